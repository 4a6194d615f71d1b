package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"toll/lab/stats"
)

// HistoryName is the file of a folder of results that has a line for each of them.
const HistoryName = "history.jsonl"

// What a history holds at most, in bytes; more is refused rather than read.
const (
	maxHistory = 256 << 20
	maxLine    = 4 << 20
)

// A Record is one run's line of a history: enough to list it and to draw trends.
type Record struct {
	Folder      string      `json:"folder"` // of the result, in the history's own folder
	Benchmark   string      `json:"benchmark"`
	Started     time.Time   `json:"started"`
	ElapsedS    float64     `json:"elapsed_s"`
	Seed        int64       `json:"seed"`
	Commit      string      `json:"commit"`
	MachineKey  string      `json:"machine_key"`
	Machine     string      `json:"machine"`
	Plan        string      `json:"plan_sha256"`
	Hop         string      `json:"hop"`
	Publishable bool        `json:"publishable"`
	Partial     bool        `json:"partial"`
	Rows        []RecordRow `json:"rows"`
}

// A RecordRow is what a trend needs of a measured row.
type RecordRow struct {
	ID         string   `json:"id"`
	Role       string   `json:"role"`
	Rank       string   `json:"rank,omitempty"`
	P50        *float64 `json:"p50_us"`
	P99        *float64 `json:"p99_us"`
	Ratio      *float64 `json:"ratio"`
	Lo         *float64 `json:"lo"`
	Hi         *float64 `json:"hi"`
	ServerCPU  *float64 `json:"server_cpu_us_per_op"`
	Throughput *float64 `json:"throughput_per_s"`
}

// Key says which runs belong to one series: same machine type, plan and hop.
func (r Record) Key() string { return r.MachineKey + " " + r.Plan + " " + r.Hop }

// Record reduces d, which lies in folder, to its line of a history.
func (d *Document) Record(folder string) Record {
	r := Record{
		Folder: folder, Benchmark: d.Benchmark, Started: d.Started, ElapsedS: d.ElapsedS, Seed: d.Seed, Commit: d.Toll.Commit,
		MachineKey: d.Environment.MachineKey, Machine: fmt.Sprintf("%s, %d CPUs", d.Environment.CPU.BrandCPUID, d.Environment.CPU.Logical),
		Plan: d.Plan.SHA256, Hop: d.Method.Hop.Kind, Publishable: d.Verdict.Publishable, Partial: d.Partial, Rows: []RecordRow{},
	}
	if d.Method.Hop.ConfiguredRTT > 0 {
		r.Hop += fmt.Sprintf(" %g ms", d.Method.Hop.ConfiguredRTT)
	}
	for i := range d.Rows {
		x := &d.Rows[i]
		if x.Kind != Measured {
			continue
		}
		row := RecordRow{ID: x.ID(), Role: x.Role, Rank: x.Rank, Throughput: x.Throughput}
		if x.Latency != nil {
			row.P50, row.P99 = Ptr(x.Latency.P50), x.Latency.P99
		}
		if x.Ratio != nil {
			row.Ratio, row.Lo, row.Hi = Ptr(x.Ratio.Value), x.Ratio.Lo, x.Ratio.Hi
		}
		if x.Server != nil {
			row.ServerCPU = x.Server.CPU
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

// AppendHistory adds a line to the history file, in one write, so that runs that end at the same time don't mix.
func AppendHistory(file string, r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// ReadHistory reads a history's lines, at most 256 MiB of them. A line that can't be read, such as the last one of a full disk, is left
// out and counted.
func ReadHistory(r io.Reader) (all []Record, bad int, err error) {
	lines := bufio.NewScanner(io.LimitReader(r, maxHistory))
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var rec Record
		if json.Unmarshal(lines.Bytes(), &rec) != nil || rec.Folder == "" {
			bad++
			continue
		}
		all = append(all, rec)
	}
	if err := lines.Err(); err != nil {
		return all, bad, fmt.Errorf("history: after %d lines: %w", len(all)+bad, err)
	}
	return all, bad, nil
}

// A Trend is one row over the runs of a series.
type Trend struct {
	Row     string
	Of      string // what its values are
	Points  []TrendPoint
	Changes []stats.Change // points from which on it has another level
}

// A TrendPoint is the row in one run.
type TrendPoint struct {
	Folder  string
	Started time.Time
	Commit  string
	Value   float64
	Lo, Hi  *float64
}

// changeRuns is how many runs a new level must hold before it is called one.
const changeRuns = 3

// Trends draws a series, one trend per row, in the order of the runs: the ratio to the baseline where there is one, because what the
// machine did to both is not in it; else the p50.
func Trends(series []Record) []Trend {
	series = slices.SortedStableFunc(slices.Values(series), func(a, b Record) int { return a.Started.Compare(b.Started) })
	var out []Trend
	at := make(map[string]int)
	for _, rec := range series {
		for _, row := range rec.Rows {
			p, of, ok := point(rec, row)
			if !ok {
				continue
			}
			key := row.ID + "|" + of
			if _, known := at[key]; !known {
				at[key] = len(out)
				out = append(out, Trend{Row: row.ID, Of: of})
			}
			t := &out[at[key]]
			t.Points = append(t.Points, p)
		}
	}
	for i := range out {
		out[i].find()
	}
	return out
}

func point(rec Record, row RecordRow) (p TrendPoint, of string, ok bool) {
	p = TrendPoint{Folder: rec.Folder, Started: rec.Started, Commit: rec.Commit}
	switch {
	case row.Ratio != nil:
		p.Value, p.Lo, p.Hi = *row.Ratio, row.Lo, row.Hi
		return p, "ratio to the baseline", true
	case row.P50 != nil:
		p.Value = *row.P50
		return p, "p50 µs", true
	}
	return p, "", false
}

// find marks where the trend's level changes.
func (t *Trend) find() {
	values := make([]float64, len(t.Points))
	for i, p := range t.Points {
		values[i] = p.Value
	}
	t.Changes = stats.FindChanges(values, changeRuns)
	from := 0
	if n := len(t.Changes); n > 0 {
		from = t.Changes[n-1].At
	}
	if c, ok := stats.FindStep(values[from:], changeRuns); ok {
		c.At += from
		t.Changes = append(t.Changes, c)
	}
}
