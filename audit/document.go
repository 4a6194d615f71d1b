package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"toll/ingest"
	"toll/lab/check"
	"toll/lab/result"
	"toll/published"
)

// isOurs reports whether a text calls itself a result document.
func isOurs(data []byte) bool {
	var head struct {
		Schema string `json:"schema"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	return d.Decode(&head) == nil && strings.HasPrefix(head.Schema, "toll.result/")
}

// document audits a result document: first by the rules that it must keep, then by the same arithmetic as anybody's.
func document(file string, data []byte) (*Report, error) {
	d, found, err := check.Document(data)
	if err != nil {
		return nil, fmt.Errorf("audit %s: %w", file, err)
	}
	in := ingest.Digest(data)
	s := &subject{name: file, title: fmt.Sprintf("result of benchmark %s", d.Benchmark), source: "toll " + d.Toll.Version + ", " + d.Started.UTC().Format("2006-01-02"), sha256: in, judged: true}
	for i := range d.Rows {
		s.rows = append(s.rows, ofDocument(d, &d.Rows[i]))
	}
	kept := ruleClaims(d, found)
	r := s.report(result.Measured)
	r.Claims = append(kept, r.Claims...)
	slices.SortStableFunc(r.Claims, func(a, b Claim) int { return gravity(a.Verdict) - gravity(b.Verdict) })
	return r, nil
}

// ruleClaims turns what the rules of an honest number say into claims. What the document itself admits is no lie, but it is not a
// number to quote either.
func ruleClaims(d *result.Document, found []check.Violation) (out []Claim) {
	for _, v := range found {
		rule := fmt.Sprintf("rule %d", v.Rule)
		if v.Rule == 0 {
			rule = "verdict"
		}
		stated := "publishable"
		if !d.Verdict.Publishable {
			stated = "not publishable, as it says itself"
		}
		out = append(out, claim(rule, v.Row, Fails, stated, "", "%s", v.Text))
	}
	if len(found) == 0 {
		out = append(out, claim("rules", "", Holds, "it keeps the sixteen rules", "", "ratios, intervals, ranks and verdict follow from its blocks"))
	}
	return out
}

// ofDocument reads a row of ours; a foreign or published one is read as it was stated.
func ofDocument(d *result.Document, r *result.Row) *row {
	out := &row{group: r.ID(), Row: ingest.Row{Label: r.ID(), Of: r.Contender.Name, Figures: ingest.Figures{}, Failed: r.Failed}}
	f := out.Figures
	if r.Kind != result.Measured {
		for name, v := range r.Stated {
			f[name] = v
		}
		return out
	}
	zero := 0.0
	out.load = published.Shape{Model: d.Method.Model, Users: float64(r.Concurrency), Success: "content", Order: d.Method.Order, Samples: float64(r.OK)}
	out.load.Pause = &zero
	if d.Plan.CallsOnly {
		out.load.Users = 0 // users whose calls are made leave: how many there were on average is the document's own Little ratio
	}
	f["ok"], f["count"] = float64(r.OK), float64(r.OK)
	if r.Latency == nil {
		return out
	}
	l := r.Latency
	f["min_us"], f["mean_us"], f["p50_us"], f["max_us"] = l.Min, l.Mean, l.P50, l.Max
	for name, v := range map[string]*float64{"p90_us": l.P90, "p95_us": l.P95, "p99_us": l.P99, "p999_us": l.P999} {
		if v != nil {
			f[name] = *v
		}
	}
	if r.Throughput == nil || r.ElapsedS <= 0 {
		return out
	}
	f["rate_per_s"], f["elapsed_s"] = *r.Throughput, r.ElapsedS
	out.made = r.Little == nil || slices.ContainsFunc(r.Warnings, func(w string) bool {
		return strings.Contains(w, "Little ratio") || strings.Contains(w, "timed by the callee")
	})
	return out
}
