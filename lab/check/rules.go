package check

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"toll/lab/plan"
	"toll/lab/result"
	"toll/lab/stats"
)

// A quantile is shown only from so many successes on (rule 10), so that about ten lie beyond it.
const (
	LeastP90  = 100
	LeastP95  = 200
	LeastP99  = 1_000
	LeastP999 = 10_000
)

// ClientBound is the share of its cores above which the client, not the contender, may be what a row measures.
const ClientBound = 0.85

// leastBlocks is how many blocks an interval needs.
const leastBlocks = 6

// A Violation is one rule that the document breaks, and where.
type Violation struct {
	Rule int    // of the design's sixteen
	Row  string // "" when the document as a whole is meant
	Text string
}

// String returns rule, row and text.
func (v Violation) String() string {
	if v.Row == "" {
		return fmt.Sprintf("rule %d: %s", v.Rule, v.Text)
	}
	return fmt.Sprintf("rule %d: %s: %s", v.Rule, v.Row, v.Text)
}

// Rules returns every rule that d breaks, in their order.
func Rules(d *result.Document) []Violation {
	c := &checker{doc: d}
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Kind == result.Measured {
			c.measured(r)
		} else {
			c.foreign(r)
		}
	}
	for _, g := range d.Groups() {
		c.group(g)
	}
	c.derived()
	c.method()
	slices.SortStableFunc(c.found, func(a, b Violation) int { return a.Rule - b.Rule })
	return c.found
}

// Verdict is what the rules say of d, as the document itself carries it.
func Verdict(d *result.Document) result.Verdict {
	v := result.Verdict{Publishable: true, Reasons: []string{}}
	for _, f := range Rules(d) {
		v.Publishable = false
		v.Reasons = append(v.Reasons, f.String())
	}
	if d.Partial {
		v.Publishable = false
		v.Reasons = append(v.Reasons, "the run was interrupted")
	}
	return v
}

type checker struct {
	doc   *result.Document
	found []Violation
}

func (c *checker) add(rule int, r *result.Row, format string, args ...any) {
	v := Violation{Rule: rule, Text: fmt.Sprintf(format, args...)}
	if r != nil {
		v.Row = r.ID()
	}
	c.found = append(c.found, v)
}

// measured checks a row that we measured, by itself.
func (c *checker) measured(r *result.Row) {
	c.processes(r)
	c.replies(r)
	c.model(r)
	c.costs(r)
	c.steady(r)
	c.quantiles(r)
	c.rounds(r)
	c.tls(r)
	if r.Concurrency < 1 {
		c.add(16, r, "concurrency is %d", r.Concurrency)
	}
}

// Rule 1: separate processes over real connections, each with its threads and GOMAXPROCS.
func (c *checker) processes(r *result.Row) {
	if r.Ops == 0 {
		return
	}
	roles := make(map[string]*result.Process)
	for i := range r.Processes {
		roles[r.Processes[i].Role] = &r.Processes[i]
	}
	if roles["client"] == nil || roles["client"].GOMAXPROCS == nil {
		c.add(1, r, "the client's process and its GOMAXPROCS are not stated")
	}
	if c.doc.Method.Processes != "in-process" && (roles["server"] == nil || r.Server == nil) {
		c.add(1, r, "the server's process is not stated; a contender within this process must say in-process")
	}
	if r.Connections != "shared" && r.Connections != "per-caller" {
		c.add(1, r, "connections is %q; expected shared or per-caller", r.Connections)
	}
	if s := roles["server"]; s != nil && s.Threads == nil && !c.gap(r, "server") {
		c.add(1, r, "the server's threads are not stated")
	}
}

// Rule 5: every success was verified, and no failure is among the latencies.
func (c *checker) replies(r *result.Row) {
	var failed int64
	for kind, n := range r.Failed {
		if failed += n; n <= 0 {
			c.add(5, r, "%d failures of kind %s", n, kind)
		}
	}
	if r.Ops != r.OK+failed+r.Dropped {
		c.add(5, r, "%d calls, but %d successes, %d failures and %d dropped", r.Ops, r.OK, failed, r.Dropped)
	}
	if r.Verified != r.OK {
		c.add(5, r, "%d successes, of which %d replies were verified", r.OK, r.Verified)
	}
	if h := r.Histogram; h != nil {
		var in int64
		for _, b := range h.Buckets {
			in += b[1]
		}
		if in != r.OK || h.Count != r.OK {
			c.add(5, r, "the latencies hold %d values, the successes are %d", in, r.OK)
		}
	}
}

// Rule 6: an open-model row counts from the intended start and reports what was dropped; a closed one carries its Little ratio.
func (c *checker) model(r *result.Row) {
	switch c.doc.Method.Model {
	case plan.Open:
		if r.Service == nil {
			c.add(6, r, "an open-model row without its service time")
		}
		if r.Dropped > 0 && !warned(r, "saturated") {
			c.add(6, r, "%d arrivals were dropped and the row does not say saturated", r.Dropped)
		}
	case plan.Closed:
		if r.OK == 0 || warned(r, "timed by the callee") {
			return
		}
		if r.Little == nil {
			c.add(6, r, "a closed-model row without its Little ratio")
			return
		}
		if (*r.Little < .95 || *r.Little > 1.05) && !warned(r, "Little ratio") {
			c.add(6, r, "Little ratio %.3f is outside 0.95–1.05 and the row does not warn", *r.Little)
		}
	default:
		c.add(6, r, "model is %q; expected closed or open", c.doc.Method.Model)
	}
}

// Rules 8 and 14: what both sides spent, or a gap that says why not.
func (c *checker) costs(r *result.Row) {
	if r.Ops == 0 {
		return
	}
	type figure struct {
		field string
		there bool
	}
	need := []figure{
		{"client.cpu_us_per_op", r.Client.CPU != nil},
		{"wire_bytes", r.WireBytes != nil},
	}
	if c.doc.Method.Processes != "in-process" {
		need = append(need,
			figure{"server.cpu_us_per_op", r.Server != nil && r.Server.CPU != nil},
			figure{"server.rss_peak_mb", r.Server != nil && r.Server.RSSPeakMB != nil})
	}
	for _, f := range need {
		if !f.there && !c.gap(r, f.field) {
			c.add(8, r, "%s is missing, and no gap says why", f.field)
		}
	}
	allocs := []figure{{"client.allocs_per_op", r.Client.Allocs != nil}}
	if r.Server != nil {
		allocs = append(allocs, figure{"server.allocs_per_op", r.Server.Allocs != nil})
	}
	for _, f := range allocs {
		if !f.there && !c.gap(r, f.field) {
			c.add(14, r, "%s is null without a gap", f.field)
		}
	}
	if r.OK == 0 && len(r.Failed) == 0 {
		c.add(14, r, "no latency, and neither a failure nor a gap says why")
	}
}

// gap reports whether the gaps explain a missing field of the row, or the whole metering of it.
func (c *checker) gap(r *result.Row, field string) bool {
	return slices.ContainsFunc(c.doc.Gaps, func(g result.Gap) bool {
		missing, ok := strings.CutPrefix(g.Row, r.ID()+": ")
		return ok && g.Reason != "" && (strings.HasPrefix(missing, field) || strings.HasPrefix(field, missing) || missing == "metering")
	}) || slices.ContainsFunc(c.doc.Gaps, func(g result.Gap) bool { return g.Row == r.ID() && g.Reason != "" })
}

// Rule 9: warm-up is declared, and a row without a steady state says so.
func (c *checker) steady(r *result.Row) {
	if ok, why := stats.Steady(p50s(r)); !ok && !warned(r, "no steady state") {
		c.add(9, r, "not steady, and the row does not say so: %s", why)
	}
}

// Rule 10: no quantile without its samples; maximum and the count above 10 × p50 always.
func (c *checker) quantiles(r *result.Row) {
	if r.OK == 0 {
		if r.Latency != nil {
			c.add(10, r, "a latency without a success")
		}
		return
	}
	l := r.Latency
	if l == nil || r.AboveTen == nil {
		c.add(10, r, "%d successes, but latency or the count above 10 × p50 is missing", r.OK)
		return
	}
	last := l.Min
	for _, q := range []struct {
		name  string
		v     *float64
		least int64
	}{
		{"p50", &l.P50, 1}, {"p90", l.P90, LeastP90}, {"p95", l.P95, LeastP95}, {"p99", l.P99, LeastP99},
		{"p999", l.P999, LeastP999}, {"max", &l.Max, 1},
	} {
		if (q.v != nil) != (r.OK >= q.least) {
			c.add(10, r, "%s with %d successes; it needs %d, and then it must be there", q.name, r.OK, q.least)
		}
		if q.v == nil {
			continue
		}
		if *q.v < last {
			c.add(10, r, "%s is %.3f, less than the quantile below it, %.3f", q.name, *q.v, last)
		}
		last = *q.v
	}
	if l.Mean < l.Min || l.Mean > l.Max {
		c.add(10, r, "mean %.3f lies outside %.3f to %.3f", l.Mean, l.Min, l.Max)
	}
}

// Rule 11: nothing is discarded: the rounds add up to the row.
func (c *checker) rounds(r *result.Row) {
	var ops, ok int64
	for _, x := range r.Rounds {
		ops, ok = ops+x.Ops, ok+x.OK
		var inBlocks int64
		for _, b := range x.Blocks {
			inBlocks += b.OK
		}
		if inBlocks != x.OK {
			c.add(11, r, "round %d holds %d successes, its blocks %d", x.Round, x.OK, inBlocks)
		}
	}
	if ops != r.Ops || ok != r.OK {
		c.add(11, r, "its rounds hold %d calls and %d successes, the row %d and %d", ops, ok, r.Ops, r.OK)
	}
	if n := len(r.Rounds); n != c.doc.Method.Replicates && !warned(r, "measured in") && !c.doc.Partial {
		c.add(11, r, "%d rounds of %d, and the row does not say why", n, c.doc.Method.Replicates)
	}
}

// Rule 15: TLS is verified on both sides, or the row says that it is not.
func (c *checker) tls(r *result.Row) {
	encrypted := strings.Contains(r.Phase, "tls")
	switch {
	case encrypted && r.TLS == nil:
		c.add(15, r, "phase %s, but nothing says what was verified", r.Phase)
	case r.TLS != nil && !r.TLS.ServerVerified && !warned(r, "server not verified"):
		c.add(15, r, "the server's certificate was not verified and the row does not say \"server not verified\"")
	case r.Phase == "mtls" && r.TLS != nil && !r.TLS.ClientVerified:
		c.add(15, r, "phase mtls, but the client's certificate was not verified")
	}
}

// foreign checks a row that somebody else measured. Rule 13: figures are read-only and never divided by ours.
func (c *checker) foreign(r *result.Row) {
	if r.Ratio != nil || r.Rank != "" {
		c.add(13, r, "a %s row has a ratio or a rank", r.Kind)
	}
	if r.Source == nil || len(r.Source.SHA256) != 64 || (r.Kind == result.Published && r.Source.Date == "") {
		c.add(13, r, "a %s row without its source's date and digest", r.Kind)
	}
}

// group checks the rows that are compared with each other.
func (c *checker) group(g *result.Group) {
	base, control, null := g.With(result.Baseline), g.With(result.Control), g.With(result.Null)
	name := fmt.Sprintf("%s %s ×%d", g.Case, g.Phase, g.Concurrency)
	if base == nil {
		for _, r := range g.Rows {
			if r.Ratio != nil {
				c.add(3, r, "a ratio without a baseline in its case, phase and concurrency")
			}
		}
	}
	for _, r := range g.Rows {
		c.ratio(r, base)
	}
	if control == nil && len(g.Rows) > 1 {
		c.add(4, nil, "%s: no A/A control among the rows", name)
	}
	if control != nil && (control.Ratio == nil || control.Ratio.Lo == nil) {
		c.add(4, control, "the control has no interval, so the run's noise floor is unknown")
	}
	if null == nil && c.doc.Method.Processes != "in-process" && !calleeTimed(g) {
		c.add(7, nil, "%s: no null target among the rows, so the lab's own cost is unknown", name)
	}
	for _, r := range g.Rows {
		c.clientBound(r)
	}
}

// calleeTimed reports whether every row of a group was timed inside the contender's own process: then the lab's cost is in
// none of its times.
func calleeTimed(g *result.Group) bool {
	return !slices.ContainsFunc(g.Rows, func(r *result.Row) bool { return !warned(r, "timed by the callee") })
}

// Rule 3: ratios are paired per block, with an interval from six blocks on and not before.
func (c *checker) ratio(r, base *result.Row) {
	q := r.Ratio
	if q == nil {
		return
	}
	if base == nil || q.To != base.Contender.Name {
		c.add(3, r, "its ratio is to %q, which is not the baseline of its group", q.To)
	}
	if (q.Lo == nil) != (q.Hi == nil) || (q.Lo != nil) != (q.Blocks >= leastBlocks) {
		c.add(3, r, "interval and blocks do not go together: %d blocks", q.Blocks)
	}
	if q.Lo != nil && q.Hi != nil && (*q.Lo > q.Value || *q.Hi < q.Value) {
		c.add(3, r, "ratio %.5f lies outside its interval %.5f–%.5f", q.Value, *q.Lo, *q.Hi)
	}
}

// Rule 7: a client that used more than 85 % of its cores is flagged.
func (c *checker) clientBound(r *result.Row) {
	if r.Client.CPU == nil || r.ElapsedS == 0 || len(r.Processes) == 0 || r.Processes[0].GOMAXPROCS == nil {
		return
	}
	cores := float64(min(r.Concurrency, *r.Processes[0].GOMAXPROCS))
	// Rounded figures may lie on the other side of the bound than what they were rounded from: 1 % of leeway.
	if share := *r.Client.CPU * float64(r.Ops) / 1e6 / r.ElapsedS / cores; share > ClientBound+.01 && !warned(r, "client-bound") {
		c.add(7, r, "the client used %.0f %% of its cores and the row does not say client-bound", 100*share)
	}
}

// derived computes ratios, ranks and thresholds again from the blocks and compares.
func (c *checker) derived() {
	again := *c.doc
	again.Rows = slices.Clone(c.doc.Rows)
	for i := range again.Rows {
		again.Rows[i].Rounds = slices.Clone(again.Rows[i].Rounds)
	}
	again.Compare()
	for i := range again.Rows {
		was, is := &c.doc.Rows[i], &again.Rows[i]
		if was.Kind != result.Measured {
			continue
		}
		if !sameRatio(was.Ratio, is.Ratio) {
			c.add(3, was, "its blocks give the ratio %s, the document says %s", ratioText(is.Ratio), ratioText(was.Ratio))
		}
		if was.Rank != is.Rank {
			c.add(4, was, "its blocks give the rank %q, the document says %q", is.Rank, was.Rank)
		}
		for j := range was.Rounds {
			if (was.Rounds[j].Outlier == "") != (is.Rounds[j].Outlier == "") {
				c.add(11, was, "round %d: marked as outlier %q, its figures give %q", was.Rounds[j].Round, was.Rounds[j].Outlier, is.Rounds[j].Outlier)
			}
		}
		if is.Ratio != nil && is.Ratio.Without != nil && (was.Ratio == nil || was.Ratio.Without == nil) {
			c.add(11, was, "the ratio without the outlier rounds is not given")
		}
	}
}

func sameRatio(a, b *result.Ratio) bool {
	if a == nil || b == nil {
		return a == b
	}
	return near(&a.Value, &b.Value) && near(a.Lo, b.Lo) && near(a.Hi, b.Hi) && a.Blocks == b.Blocks
}

func near(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return math.Abs(*a-*b) <= 2e-5*max(math.Abs(*a), 1)
}

func ratioText(q *result.Ratio) string {
	if q == nil {
		return "none"
	}
	if q.Lo == nil || q.Hi == nil {
		return fmt.Sprintf("%.5f over %d blocks", q.Value, q.Blocks)
	}
	return fmt.Sprintf("%.5f (%.5f–%.5f) over %d blocks", q.Value, *q.Lo, *q.Hi, q.Blocks)
}

// method checks what concerns the run as a whole.
func (c *checker) method() {
	d := c.doc
	ran := d.Plan.Settings
	// Rule 2: shuffled blocks; a fixed order is a deviation whatever method is claimed.
	if d.Method.Order != ran.Order {
		c.add(2, nil, "the method says order %s, the plan %s", d.Method.Order, ran.Order)
	}
	if d.Method.Order == plan.Fixed && !slices.ContainsFunc(d.Method.Deviations, func(v plan.Deviation) bool { return v.What == "order" }) {
		c.add(2, nil, "the order is fixed, and the deviations do not list it")
	}
	if d.Method.Order == plan.Shuffled && neverMoved(d) {
		c.add(2, nil, "the order is said to be shuffled, but every block has the contenders in the same places")
	}
	if ran.Warmup < 1 {
		c.add(9, nil, "no warm-up is declared")
	}
	c.deviations()
	c.environment()
}

// neverMoved reports whether, over six or more blocks, no contender was ever in another place.
func neverMoved(d *result.Document) bool {
	most, lanes := 0, 0
	for _, g := range d.Groups() {
		lanes = max(lanes, len(g.Rows))
		for _, r := range g.Rows {
			seen := 0
			first := -1
			for _, x := range r.Rounds {
				for _, b := range x.Blocks {
					if first < 0 {
						first = b.Slot
					}
					if b.Slot != first {
						return false
					}
					seen++
				}
			}
			most = max(most, seen)
		}
	}
	return most >= leastBlocks && lanes > 1
}

// Rule 12: deviations are computed.
func (c *checker) deviations() {
	d := c.doc
	if d.Plan.Claims == nil {
		c.add(12, nil, "the plan does not say which method it claims")
		return
	}
	want := plan.Deviations(*d.Plan.Claims, d.Plan.Settings)
	var got []plan.Deviation
	interrupted := false
	for _, v := range d.Method.Deviations {
		if v.What == "completed" {
			interrupted = true
			continue
		}
		got = append(got, v)
	}
	if !slices.Equal(want, got) {
		c.add(12, nil, "the plan gives the deviations %v, the document lists %v", want, got)
	}
	if d.Partial != interrupted {
		c.add(12, nil, "a partial result must list what was not completed among the deviations, and only such a result")
	}
	if d.Plan.Digest() != d.Plan.SHA256 {
		c.add(12, nil, "the plan's digest does not fit the plan")
	}
}

// Rule 16: concurrency, hop and limits are stated from what was in force.
func (c *checker) environment() {
	m := c.doc.Method
	if len(m.Concurrency) == 0 {
		c.add(16, nil, "the method does not state a concurrency")
	}
	if m.Hop.Kind == "" {
		c.add(16, nil, "the method does not state the hop")
	}
	if m.Processes != "in-process" && m.Hop.Kind != "none" && m.Hop.MeasuredRTT == nil && !slices.ContainsFunc(c.doc.Gaps, func(g result.Gap) bool { return g.Row == "method.hop.measured_rtt_ms" }) {
		c.add(16, nil, "the hop's RTT was not measured, and no gap says why")
	}
	if m.Limits.Mechanism == "" {
		c.add(16, nil, "the method does not state by which mechanism the contenders were limited, or that none was")
	}
}

func warned(r *result.Row, about string) bool {
	return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, about) })
}

func p50s(r *result.Row) []float64 {
	var out []float64
	for _, x := range r.Rounds {
		for _, b := range x.Blocks {
			if b.P50 != nil {
				out = append(out, *b.P50)
			}
		}
	}
	return out
}
