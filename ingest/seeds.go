package ingest

import (
	"errors"
	"fmt"
)

func isReceipts(t *text) bool { return !t.list && t.has("ops_per_run", "concurrency_levels", "runs") }

// receipts reads the document of the published receipt benchmark, which toll report --like carnac writes as well.
func receipts(t *text, r *Report) error {
	type summary struct {
		Count *float64
		Mean  *float64 `json:"mean_us"`
		P50   *float64 `json:"p50_us"`
		P95   *float64 `json:"p95_us"`
		P99   *float64 `json:"p99_us"`
		Max   *float64 `json:"max_us"`
		Min   *float64 `json:"min_us"`
	}
	figures := func(f Figures, s *summary) Figures {
		if s == nil {
			return nil
		}
		for name, v := range map[string]*float64{"count": s.Count, "mean_us": s.Mean, "p50_us": s.P50, "p95_us": s.P95, "p99_us": s.P99, "max_us": s.Max, "min_us": s.Min} {
			f.set(name, v, 1)
		}
		return f
	}
	var in struct {
		Benchmark string
		Date      string `json:"date_utc"`
		Runs      []struct {
			Mode        string
			Concurrency float64
			Ops         float64
			Rate        *float64 `json:"throughput_ops_s"`
			Errors      float64  `json:"error_rate"`
			Elapsed     *float64 `json:"elapsed_s"`
			Wall        *summary `json:"wall_latency_us"`
			Envelope    *summary `json:"envelope_overhead_us"`
			Sign        *summary `json:"crypto_sign_us"`
			User        *float64 `json:"cpu_user_ms"`
			System      *float64 `json:"cpu_system_ms"`
			RSS         *float64 `json:"rss_mb"`
			Heap        *float64 `json:"heap_used_mb"`
		}
	}
	if err := t.into(&in); err != nil {
		return err
	}
	r.Date, r.Method = in.Date, Method{Tool: in.Benchmark, Model: "closed", Order: "sequential"}
	for i, run := range in.Runs {
		if run.Wall == nil {
			return fmt.Errorf("run %d, %s: no wall_latency_us", i+1, run.Mode)
		}
		row := Row{Label: fmt.Sprintf("%s x%g", run.Mode, run.Concurrency), Case: "receipt", Of: run.Mode, Parts: map[string]Figures{}, Failed: map[string]int64{}}
		row.Figures = figures(Figures{"concurrency": run.Concurrency, "count": run.Ops}, run.Wall)
		for name, part := range map[string]*summary{"envelope": run.Envelope, "sign": run.Sign} {
			if f := figures(Figures{}, part); f != nil {
				row.Parts[name] = f
			}
		}
		for name, v := range map[string]*float64{"rate_per_s": run.Rate, "elapsed_s": run.Elapsed, "cpu_user_ms": run.User, "cpu_system_ms": run.System, "rss_mb": run.RSS, "heap_mb": run.Heap} {
			row.Figures.set(name, v, 1)
		}
		if n := run.Errors * run.Ops; n > 0 {
			row.Failed["error"], row.Figures["failed"] = whole(n), n
		}
		row.Figures["ok"] = run.Ops - row.Figures["failed"]
		r.Rows = append(r.Rows, row)
	}
	return nil
}

func isMarmot(t *text) bool { return t.list && t.has("name", "iterations", "p50_us") }

// marmot reads the rows of the published MLS benchmark's --json, which toll report --like marmot writes as well.
func marmot(t *text, r *Report) error {
	var in []struct {
		Name       string
		P50        *float64 `json:"p50_us"`
		P90        *float64 `json:"p90_us"`
		P99        *float64 `json:"p99_us"`
		Mean       *float64 `json:"mean_us"`
		Bytes      *float64 `json:"bytes_per_op"`
		Iterations float64
	}
	if err := t.into(&in); err != nil {
		return err
	}
	if len(in) == 0 {
		return errors.New("no row in it")
	}
	r.Method = Method{Tool: "marmotBench", Model: "closed", Order: "sequential"}
	for _, b := range in {
		row := Row{Label: b.Name, Case: b.Name, Of: "marmotBench", Figures: Figures{"count": b.Iterations, "concurrency": 1}}
		for name, v := range map[string]*float64{"p50_us": b.P50, "p90_us": b.P90, "p99_us": b.P99, "mean_us": b.Mean, "alloc_bytes_per_op": b.Bytes} {
			row.Figures.set(name, v, 1)
		}
		r.Rows = append(r.Rows, row)
	}
	return nil
}
