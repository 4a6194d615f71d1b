package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"

	"toll/lab"
	"toll/web"
)

// A liveFile tells toll view, at most twice a second and between blocks, how far a run is. Nothing of it is in a window.
type liveFile struct {
	dir   string
	last  time.Time
	state web.Live
}

func newLiveFile(dir, benchmark string, started time.Time) *liveFile {
	return &liveFile{dir: dir, state: web.Live{Benchmark: benchmark, Started: started.UTC()}}
}

// show writes the run's progress. A file that can't be written must not end a run: the page then shows nothing.
func (l *liveFile) show(p lab.Progress) {
	if time.Since(l.last) < statusEvery {
		return
	}
	l.last = time.Now()
	l.state.Case, l.state.Phase, l.state.Concurrency, l.state.Round = p.Setting.Case, p.Setting.Phase, p.Setting.Concurrency, p.Setting.Round
	l.state.Block, l.state.Blocks, l.state.Done, l.state.Total = p.Block, p.Blocks, p.Done, p.Total
	data, err := json.Marshal(l.state)
	if err != nil {
		return
	}
	tmp := filepath.Join(l.dir, "."+web.LiveName)
	if os.WriteFile(tmp, data, 0o644) == nil {
		os.Rename(tmp, filepath.Join(l.dir, web.LiveName))
	}
}

// round adds a contender's median of the round that just ended.
func (l *liveFile) round(x lab.Samples) {
	var all []int64
	for _, st := range x.Stretches {
		all = append(all, st.Raw...)
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	row := web.LiveRow{Name: x.Entry.Contender.Name, Role: x.Entry.Role, P50: float64(all[len(all)/2]) / 1000, Rounds: 1}
	setting := web.LiveSetting{Case: x.Setting.Case, Phase: x.Setting.Phase, Concurrency: x.Setting.Concurrency}
	if l.state.Setting != setting {
		l.state.Setting, l.state.Rows = setting, nil
	}
	i := slices.IndexFunc(l.state.Rows, func(r web.LiveRow) bool { return r.Name == row.Name && r.Role == row.Role })
	if i < 0 {
		l.state.Rows = append(l.state.Rows, row)
		return
	}
	row.Rounds = l.state.Rows[i].Rounds + 1
	l.state.Rows[i] = row
}

// watched returns the CPU time that pages spent on showing this run.
func (l *liveFile) watched() time.Duration {
	var w web.Watch
	data, err := os.ReadFile(filepath.Join(l.dir, web.WatchName))
	if err != nil || json.Unmarshal(data, &w) != nil || w.CPU < 0 || w.CPU > int64(24*time.Hour) {
		return 0
	}
	return time.Duration(w.CPU)
}

// remove deletes what was only there while the run went on.
func (l *liveFile) remove() {
	for _, name := range []string{web.LiveName, "." + web.LiveName, web.WatchName} {
		os.Remove(filepath.Join(l.dir, name))
	}
}
