package audit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"toll/ingest"
	"toll/published"
)

// A subject is what is audited, whoever measured it.
type subject struct {
	name, title, source, sha256 string

	rows    []*row
	claimed []published.Claim
	repeats []*subject
	judged  bool // the document compares its rows by rules of its own
}

// A row is one line with the method that was stated for it.
type row struct {
	ingest.Row
	group  string // rows of one group are compared
	load   published.Shape
	ratios []float64 // to the group's baseline, one per sample
	coarse float64   // the resolution of its times, µs; 0 = finer than a reader sees
	made   bool      // its mean was computed from its rate by who printed it
}

// num returns a figure, and whether it was stated.
func (r *row) num(name string) (float64, bool) {
	v, ok := r.Figures[name]
	return v, ok
}

// first returns the first figure of those names that was stated.
func (r *row) first(names ...string) (v float64, name string, ok bool) {
	for _, n := range names {
		if v, ok := r.Figures[n]; ok {
			return v, n, true
		}
	}
	return 0, "", false
}

// middle is the row's typical time: its mean, else its median.
func (r *row) middle() (v float64, name string, ok bool) { return r.first("mean_us", "p50_us") }

// median is the row's median, else its mean.
func (r *row) median() (v float64, name string, ok bool) { return r.first("p50_us", "mean_us") }

// callers is how many the row was called by at most at once, 0 where it is not stated.
func (r *row) callers() float64 { return cmp.Or(r.Figures["concurrency"], r.load.Users) }

// profile is the mean number of users over the stages, as a share of the most.
func (r *row) profile() float64 {
	area, all, from := 0.0, 0.0, 0.0
	for _, s := range r.load.Stages {
		area += s.Seconds * (from + s.To) / 2
		all += s.Seconds
		from = s.To
	}
	if all == 0 {
		return 1
	}
	return area / all
}

// seconds is how long the stages last.
func (r *row) seconds() float64 {
	all := 0.0
	for _, s := range r.load.Stages {
		all += s.Seconds
	}
	return all
}

// requests is how many requests one iteration makes, and how many of them the rate counts; 0 where it is not stated.
func (r *row) requests() (made, counted float64) {
	made = r.load.Requests[r.Of]
	return made, cmp.Or(r.load.Counted, made)
}

// samples is how many calls stand behind the row's quantiles, 0 where it is not stated.
func (r *row) samples() float64 {
	if n, stated := r.num("count"); stated {
		return n
	}
	n := r.load.Samples
	for _, x := range r.Runs {
		n += x["count"]
	}
	return n
}

// part returns a part's mean and how often an iteration has it.
func (r *row) part(name string) (mean, times float64, ok bool) {
	mean, ok = r.Parts[name]["mean_us"]
	times = r.load.Parts[name]
	return mean, times, ok && times > 0
}

// groups returns the rows that are compared with each other, in their order.
func (s *subject) groups() [][]*row {
	var names []string
	by := make(map[string][]*row)
	for _, r := range s.rows {
		if !slices.Contains(names, r.group) {
			names = append(names, r.group)
		}
		by[r.group] = append(by[r.group], r)
	}
	var out [][]*row
	for _, n := range names {
		out = append(out, by[n])
	}
	return out
}

// alike returns the rows of a group that had as many callers.
func alike(g []*row) [][]*row {
	var out [][]*row
	for _, r := range g {
		at := slices.IndexFunc(out, func(l []*row) bool { return l[0].callers() == r.callers() })
		if at < 0 {
			out = append(out, nil)
			at = len(out) - 1
		}
		out[at] = append(out[at], r)
	}
	return out
}

// find returns the row of a label.
func (s *subject) find(label string) *row {
	at := slices.IndexFunc(s.rows, func(r *row) bool { return r.Label == label })
	if at < 0 {
		return nil
	}
	return s.rows[at]
}

// fromTable reads a published table.
func fromTable(t published.Table) *subject {
	s := &subject{name: t.Name, title: t.Title, source: t.Source + ", " + t.Date, sha256: t.SHA256, claimed: t.Claims}
	for _, p := range t.Rows {
		r := &row{group: strings.TrimSpace(p.Case + " " + p.Phase), load: t.LoadOf(p), ratios: p.Ratios, Row: ingest.Row{Label: p.Label, Of: p.Contender}}
		r.Figures, r.Parts = figures(p.Figures)
		for name, f := range p.Parts {
			r.Parts[name], _ = figures(f)
		}
		for _, f := range p.Rounds {
			run, _ := figures(f)
			r.Runs = append(r.Runs, run)
		}
		for name, span := range map[string][2]float64{"min_us": p.Min, "p50_us": p.P50} {
			if span[0] > 0 && span[0] == span[1] {
				r.Figures[name] = span[0] * 1000
			}
		}
		s.rows = append(s.rows, r)
	}
	return s
}

// figures names a published table's columns as ingest does, and sorts those of parts apart: crypto_sign_p50_us is the p50_us of
// the part crypto_sign.
func figures(in map[string]float64) (ingest.Figures, map[string]ingest.Figures) {
	out, parts := ingest.Figures{}, make(map[string]ingest.Figures)
	for name, v := range in {
		name, v = canonical(name, v)
		at := strings.LastIndexByte(strings.TrimSuffix(name, "_us"), '_')
		if part := name[:max(at, 0)]; strings.HasSuffix(name, "_us") && at > 0 && isTime(name[at+1:]) {
			if part == "wall_latency" { // the whole, which the row states in its own columns too
				out[name[at+1:]] = v
				continue
			}
			if parts[part] == nil {
				parts[part] = ingest.Figures{}
			}
			parts[part][name[at+1:]] = v
			continue
		}
		out[name] = v
	}
	return out, parts
}

// isTime reports whether a name is one of a distribution's.
func isTime(name string) bool {
	return slices.Contains([]string{"min_us", "mean_us", "max_us", "sd_us", "count_us"}, name) || quantileOf(name) > 0
}

// canonical gives a column its name and unit.
func canonical(name string, v float64) (string, float64) {
	names := map[string]string{
		"rps": "rate_per_s", "throughput_ops_s": "rate_per_s", "offered_rps": "offered_per_s", "requests": "count", "ops": "count",
		"http_requests": "made", "mcp_requests": "counted", "memory_mb": "rss_mb",
	}
	if to, ok := names[name]; ok {
		return to, v
	}
	if strings.HasPrefix(name, "cpu_") { // CPU time is no latency
		return name, v
	}
	if base, ok := strings.CutSuffix(name, "_ms"); ok {
		name, v = base+"_us", v*1000
	}
	if base, ok := strings.CutSuffix(name, "avg_us"); ok {
		name = base + "mean_us"
	}
	return name, v
}

// fromIngest reads another harness' output.
func fromIngest(in *ingest.Report) *subject {
	s := &subject{name: in.File, title: "output of " + in.Method.Tool, source: in.Format, sha256: in.SHA256}
	zero := 0.0
	for i := range in.Rows {
		r := &row{Row: in.Rows[i], group: in.Rows[i].Case}
		r.Figures, r.Parts = maps.Clone(r.Figures), maps.Clone(r.Parts)
		r.load = published.Shape{Model: in.Method.Model, Success: in.Method.Success, Order: in.Method.Order, Fresh: in.Method.KeepAlive == "off"}
		r.coarse, r.made = in.Method.Resolution, in.Method.MeanFromRate
		if in.Method.Model == "closed" {
			r.load.Pause = &zero
		}
		s.rows = append(s.rows, r)
	}
	return s
}
