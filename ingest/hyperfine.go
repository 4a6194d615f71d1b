package ingest

import "fmt"

func isHyperfine(t *text) bool {
	if !t.has("results") || t.list {
		return false
	}
	all, ok := t.keys["results"].([]any)
	if !ok || len(all) == 0 {
		return false
	}
	first, ok := all[0].(map[string]any)
	return ok && first["command"] != nil
}

// hyperfine reads --export-json: times are seconds of a whole command.
func hyperfine(t *text, r *Report) error {
	var in struct {
		Results []struct {
			Command      string
			Mean, Median *float64
			Min, Max     *float64
			SD           *float64 `json:"stddev"`
			User, System *float64
			Times        []float64
			ExitCodes    []*int `json:"exit_codes"`
		}
	}
	if err := t.into(&in); err != nil {
		return err
	}
	r.Method = Method{Tool: "hyperfine", Model: "closed", Success: "exit", Order: "sequential"}
	for i, b := range in.Results {
		if b.Mean == nil || len(b.Times) > maxRuns {
			return fmt.Errorf("result %d, %.60q: no mean, or more than %d times", i+1, b.Command, maxRuns)
		}
		row := Row{Label: b.Command, Case: "command", Of: b.Command, Figures: Figures{"concurrency": 1}, Failed: map[string]int64{}}
		row.Figures.set("mean_us", b.Mean, 1e6)
		row.Figures.set("sd_us", b.SD, 1e6)
		row.Figures.set("p50_us", b.Median, 1e6)
		row.Figures.set("min_us", b.Min, 1e6)
		row.Figures.set("max_us", b.Max, 1e6)
		row.Figures.set("cpu_user_ms", b.User, 1e3)
		row.Figures.set("cpu_system_ms", b.System, 1e3)
		for _, s := range b.Times {
			row.Runs = append(row.Runs, Figures{"mean_us": s * 1e6})
		}
		if len(b.Times) > 0 {
			row.Figures["count"] = float64(len(b.Times))
		}
		for _, code := range b.ExitCodes {
			if code == nil || *code != 0 {
				row.Failed["exit"]++
			}
		}
		r.Rows = append(r.Rows, row)
	}
	return nil
}
