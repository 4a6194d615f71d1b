package ingest

import (
	"cmp"
	"fmt"
)

func isGoogle(t *text) bool { return !t.list && t.has("context", "benchmarks") }

// google reads Google Benchmark's JSON. Repetitions of one run are the runs of one row; what the library derived from them is
// left out, but where it printed nothing else.
func google(t *text, r *Report) error {
	var in struct {
		Context struct {
			Date string
		}
		Benchmarks []struct {
			Name          string
			Run           string `json:"run_name"`
			Type          string `json:"run_type"`
			Aggregate     string `json:"aggregate_name"`
			AggregateUnit string `json:"aggregate_unit"`
			Threads       float64
			Iterations    float64
			Real          *float64 `json:"real_time"`
			CPU           *float64 `json:"cpu_time"`
			Unit          string   `json:"time_unit"`
			Error         bool     `json:"error_occurred"`
		}
	}
	if err := t.into(&in); err != nil {
		return err
	}
	r.Date = in.Context.Date
	r.Method = Method{Tool: "Google Benchmark", Order: "sequential"}
	byName := make(map[string]int)
	for i, b := range in.Benchmarks {
		name := cmp.Or(b.Run, b.Name)
		at, ok := byName[name]
		if !ok {
			if len(r.Rows) > MaxRows {
				break // check says so
			}
			at = len(r.Rows)
			byName[name] = at
			r.Rows = append(r.Rows, Row{Label: name, Case: name, Of: "google-benchmark", Figures: Figures{"concurrency": max(b.Threads, 1)}, Failed: map[string]int64{}})
		}
		row := &r.Rows[at]
		if b.Error {
			row.Failed["error"]++
			continue
		}
		if b.AggregateUnit == "percentage" || b.Type == "aggregate" && b.Aggregate != "mean" && b.Aggregate != "median" && b.Aggregate != "stddev" {
			continue
		}
		us, err := parseTime("1" + cmp.Or(b.Unit, "ns"))
		if err != nil {
			return fmt.Errorf("benchmark %d, %s: unit: %w", i+1, name, err)
		}
		if b.Type == "aggregate" {
			row.Figures.set(map[string]string{"mean": "mean_us", "median": "p50_us", "stddev": "sd_us"}[b.Aggregate], b.Real, us)
			continue
		}
		run := Figures{"count": b.Iterations}
		run.set("mean_us", b.Real, us)
		run.set("cpu_us_per_op", b.CPU, us)
		row.Runs = append(row.Runs, run)
		row.Figures["count"] += b.Iterations
	}
	for i := range r.Rows {
		if row := &r.Rows[i]; len(row.Runs) == 1 {
			for k, v := range row.Runs[0] {
				row.Figures[k] = v
			}
			row.Runs = nil
		}
	}
	return nil
}
