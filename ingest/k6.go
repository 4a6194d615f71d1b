package ingest

import (
	"errors"
	"fmt"
	"maps"
	"strings"
)

func isK6(t *text) bool {
	if !t.has("metrics") || t.list {
		return false
	}
	m, ok := t.keys["metrics"].(map[string]any)
	return ok && (m["iterations"] != nil || m["http_reqs"] != nil || m["vus"] != nil)
}

// k6Metric is a metric of --summary-export, whose figures stand beside each other, or of handleSummary, which has them under
// values. What is no number, such as the verdicts of thresholds, is left out: in --summary-export true means missed.
type k6Metric map[string]any

func (m k6Metric) values() map[string]float64 {
	in := map[string]any(m)
	if v, ok := in["values"].(map[string]any); ok {
		in = v
	}
	out := make(map[string]float64)
	for name, v := range in {
		if x, ok := v.(float64); ok {
			out[name] = x
		}
	}
	return out
}

// k6 reads a summary: a row for all HTTP requests, with its parts, one for iterations, and one for every further trend that a
// script keeps in milliseconds.
func k6(t *text, r *Report) error {
	var in struct {
		Metrics map[string]k6Metric
		State   struct {
			Took float64 `json:"testRunDurationMs"`
		}
	}
	if err := t.into(&in); err != nil {
		return err
	}
	r.Method = Method{Tool: "k6", Success: "status", KeepAlive: "on"}
	shared := Figures{}
	if in.State.Took > 0 {
		shared["elapsed_s"] = in.State.Took / 1000
	}
	dropped, open := in.Metrics["dropped_iterations"].values()["count"]
	if open {
		r.Method.Model = "open" // only an arrival rate drops
	}
	for _, name := range sortedKeys(in.Metrics) {
		kind := strings.TrimSuffix(name, "_duration")
		v := in.Metrics[name].values()
		_, trend := v["p(95)"]
		if !trend || name == "http_req_duration" || strings.HasPrefix(name, "http_req_") || strings.Contains(name, "{") || name == "group_duration" {
			continue
		}
		row := Row{Label: kind, Case: kind, Of: "k6", Figures: maps.Clone(shared)}
		row.Figures.k6(v)
		if n := in.Metrics["iterations"].values(); kind == "iteration" {
			row.Label, row.Case = "iterations", "iterations"
			row.Figures["count"], row.Figures["rate_per_s"] = n["count"], n["rate"]
			if open {
				row.Figures["dropped"] = dropped
			}
			if most, ok := in.Metrics["vus_max"].values()["max"]; ok {
				row.Figures["concurrency"] = most
			}
		}
		r.Rows = append(r.Rows, row)
	}
	requests, ok := in.Metrics["http_req_duration"]
	if !ok {
		if len(r.Rows) == 0 {
			return errors.New("neither http_req_duration nor iteration_duration in its metrics")
		}
		return nil
	}
	row := Row{Label: "http requests", Case: "http", Of: "k6", Figures: maps.Clone(shared), Failed: map[string]int64{}, Parts: map[string]Figures{}}
	row.Figures.k6(requests.values())
	if n := in.Metrics["http_reqs"].values(); n["count"] > 0 {
		row.Figures["count"], row.Figures["rate_per_s"] = n["count"], n["rate"]
	}
	failed := in.Metrics["http_req_failed"].values()
	if n := failed["passes"]; n > 0 { // it is a rate of failures: those that passed are those that failed
		if n > row.Figures["count"] {
			return fmt.Errorf("%v failed of %v requests", n, row.Figures["count"])
		}
		row.Failed["status"], row.Figures["failed"] = whole(n), n
	}
	row.Figures["ok"] = row.Figures["count"] - row.Figures["failed"]
	for _, part := range []string{"blocked", "connecting", "tls_handshaking", "sending", "waiting", "receiving"} {
		if v := in.Metrics["http_req_"+part].values(); len(v) > 0 {
			f := Figures{}
			f.k6(v)
			row.Parts[part] = f
		}
	}
	r.Rows = append([]Row{row}, r.Rows...)
	return nil
}

// k6 takes a trend's figures, which are milliseconds.
func (f Figures) k6(v map[string]float64) {
	for name, x := range v {
		figure := map[string]string{"avg": "mean_us", "min": "min_us", "max": "max_us", "med": "p50_us"}[name]
		var p float64
		if _, err := fmt.Sscanf(name, "p(%g)", &p); err == nil && p > 0 && p < 100 {
			figure = quantileName(p)
		}
		if figure != "" {
			f[figure] = x * 1000
		}
	}
}
