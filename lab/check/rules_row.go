package check

import (
	"cmp"
	"slices"
	"strings"

	"toll/lab/plan"
	"toll/lab/result"
	"toll/lab/stats"
)

// measured checks a row that we measured, by itself.
func (c *checker) measured(r *result.Row) {
	c.processes(r)
	c.replies(r)
	c.model(r)
	c.costs(r)
	c.steady(r)
	c.quantiles(r)
	c.rounds(r)
	c.fleet(r)
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
	if c.doc.Method.Processes != "in-process" && (roles["server"] == nil || r.Server == nil) && !c.gap(r, "server") {
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
		if r.Service == nil && r.OK > 0 {
			c.add(6, r, "an open-model row without its service time")
		}
		if r.Open == nil && r.Ops > 0 {
			c.add(6, r, "an open-model row that does not say how its schedule was kept")
		}
		if c.doc.Plan.Knee != "" {
			c.knee(r)
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

// knee checks a row whose blocks are searches: each outcome must follow from its stretch's figures, each side of a settled
// search must have been tried twice, and the estimate must be what the searches give.
func (c *checker) knee(r *result.Row) {
	switch {
	case r.Knee == nil:
		c.add(6, r, "the plan looks for a knee and the row has none")
	case r.Knee.Bound != c.doc.Plan.Knee:
		c.add(6, r, "its knee is of %s, the plan's is of %s", r.Knee.Bound, c.doc.Plan.Knee)
	default:
		if why := r.Knee.Inconsistent(); why != "" {
			c.add(6, r, "knee: %s", why)
		}
		if slices.ContainsFunc(r.Knee.Searches, func(s result.KneeSearch) bool { return s.End == result.ClientBoundEnd }) && !warned(r, "client-bound") {
			c.add(7, r, "a search for its knee was client-bound and the row does not say so")
		}
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
	c.spent(r)
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

// spent holds what was counted on either side to what can be: nobody gives time or memory back.
func (c *checker) spent(r *result.Row) {
	server := cmp.Or(r.Server, new(result.ServerCost))
	for _, f := range []struct {
		field string
		v     *float64
	}{
		{"client.cpu_us_per_op", r.Client.CPU}, {"client.allocs_per_op", r.Client.Allocs}, {"client.alloc_bytes_per_op", r.Client.AllocBytes},
		{"server.cpu_us_per_op", server.CPU}, {"server.allocs_per_op", server.Allocs}, {"server.alloc_bytes_per_op", server.AllocBytes},
	} {
		if f.v != nil && *f.v < 0 {
			c.add(8, r, "%s is %v, less than nothing", f.field, *f.v)
		}
	}
}

// gap reports whether the gaps explain a missing field of the row, or the whole metering of it.
func (c *checker) gap(r *result.Row, field string) bool {
	return slices.ContainsFunc(c.doc.Gaps, func(g result.Gap) bool {
		missing, ok := strings.CutPrefix(g.Row, r.ID()+": ")
		return ok && missing != "" && g.Reason != "" && (strings.HasPrefix(missing, field) || strings.HasPrefix(field, missing) || missing == "metering")
	}) || slices.ContainsFunc(c.doc.Gaps, func(g result.Gap) bool { return g.Row == r.ID() && g.Reason != "" })
}

// Rule 9: warm-up is declared, and a row without a steady state says so.
func (c *checker) steady(r *result.Row) {
	if ok, why := stats.Steady(r.BlockP50s()); !ok && !warned(r, "no steady state") {
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
		if span, there := r.Intervals[q.name]; there && (span.Lo > *q.v || span.Hi < *q.v) {
			c.add(10, r, "%s is %.3f, outside its own interval %.3f–%.3f", q.name, *q.v, span.Lo, span.Hi)
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
	case encrypted && r.TLS == nil && !warned(r, result.InTheClear):
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
