package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"sync"
	"time"
)

// The files that a running benchmark's folder has while it runs: what it says of itself, and what watching it cost.
const (
	LiveName  = "live.json"
	WatchName = "watch.json"
)

// Live is how far a run is.
type Live struct {
	Folder      string      `json:"folder,omitempty"` // filled in by the page
	Benchmark   string      `json:"benchmark"`
	Started     time.Time   `json:"started"`
	Case        string      `json:"case"`
	Phase       string      `json:"phase"`
	Concurrency int         `json:"concurrency"`
	Round       int         `json:"round"`
	Block       int         `json:"block"`
	Blocks      int         `json:"blocks"`
	Done        int         `json:"done"` // rounds of all settings
	Total       int         `json:"total"`
	Setting     LiveSetting `json:"setting"` // of the rows
	Rows        []LiveRow   `json:"rows"`
}

// A LiveSetting is what the rows of a run were last measured at.
type LiveSetting struct {
	Case        string `json:"case"`
	Phase       string `json:"phase"`
	Concurrency int    `json:"concurrency"`
}

// A LiveRow is a contender's median in the last round that ended; it is no result yet.
type LiveRow struct {
	Name   string  `json:"name"`
	Role   string  `json:"role"`
	P50    float64 `json:"p50_us"`
	Rounds int     `json:"rounds"`
}

// Watch is the CPU time that pages spent on showing a run, ns.
type Watch struct {
	CPU int64 `json:"cpu_ns"`
}

const (
	liveEvery    = 500 * time.Millisecond // two events a second at most
	liveStale    = time.Minute            // a run that has said nothing for so long has ended without a word
	mostWatchers = 16
	maxLive      = 1 << 20
)

// A watcher charges what the page spends to the runs that it shows.
type watcher struct {
	root  *os.Root
	spent func() time.Duration

	mu    sync.Mutex
	count int // guarded by mu, as all below
	last  time.Duration
	cost  map[string]time.Duration
}

// enter counts a watcher; false when there are too many.
func (x *watcher) enter() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.count == mostWatchers {
		return false
	}
	if x.count++; x.count == 1 && x.spent != nil {
		x.last = x.spent()
	}
	return true
}

func (x *watcher) leave() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count--
}

// charge deals what was spent since the last time evenly over the runs and notes it in their folders.
func (x *watcher) charge(runs []Live) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.spent == nil || len(runs) == 0 {
		return
	}
	now := x.spent()
	each := (now - x.last) / time.Duration(len(runs))
	x.last = now
	if x.cost == nil {
		x.cost = make(map[string]time.Duration)
	}
	for _, r := range runs {
		x.cost[r.Folder] += each
		data, err := json.Marshal(Watch{int64(x.cost[r.Folder])})
		if err != nil {
			continue
		}
		// A run that has just ended has no such file any more, and must not get one again: its live file is there till then.
		if f, err := x.root.OpenFile(path.Join(r.Folder, WatchName), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644); err == nil {
			f.Write(data)
			f.Close()
		}
	}
}

// running returns the runs that are going on, newest first.
func (x *watcher) running(now time.Time) []Live {
	dir, err := x.root.Open(".")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.ReadDir(-1)
	if err != nil {
		return nil
	}
	out := []Live{}
	for _, n := range names {
		if !n.IsDir() || !folderName(n.Name()) {
			continue
		}
		if l, ok := x.read(n, now); ok {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b Live) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Folder, b.Folder)) })
	return out
}

func (x *watcher) read(n fs.DirEntry, now time.Time) (l Live, ok bool) {
	f, err := x.root.Open(path.Join(n.Name(), LiveName))
	if err != nil {
		return l, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || now.Sub(info.ModTime()) > liveStale {
		return l, false
	}
	if json.NewDecoder(io.LimitReader(f, maxLive)).Decode(&l) != nil {
		return l, false
	}
	l.Folder = n.Name()
	return l, true
}

// live streams what runs as server-sent events until the reader goes away.
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	if !s.watch.enter() {
		http.Error(w, fmt.Sprintf("%d pages watch already", mostWatchers), http.StatusServiceUnavailable)
		return
	}
	defer s.watch.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	last := ""
	for {
		runs := s.watch.running(time.Now())
		data, err := json.Marshal(runs)
		if err != nil {
			return
		}
		if text := string(data); text != last {
			last = text
			if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
				return
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
		}
		s.watch.charge(runs)
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}
