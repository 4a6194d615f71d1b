package check

import (
	"fmt"
	"math"
	"slices"

	"toll/lab/plan"
	"toll/lab/result"
)

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
	if control == nil && compared(g) {
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

// compared reports whether the group compares contenders: a null target or a floor beside one contender does not.
func compared(g *result.Group) bool {
	n := 0
	for _, r := range g.Rows {
		if r.Ranked() {
			n++
		}
	}
	return n > 1
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
	if c.doc.Method.Model == plan.Open {
		cores = float64(*r.Processes[0].GOMAXPROCS)
	}
	if n := r.Processes[0].Threads; n != nil {
		cores = min(cores, float64(*n))
	}
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
	if !slices.EqualFunc(again.Ladder, c.doc.Ladder, sameRung) {
		c.add(3, nil, "the blocks give the ladder %+v, the document says %+v", again.Ladder, c.doc.Ladder)
	}
	for i := range again.Rows {
		was, is := &c.doc.Rows[i], &again.Rows[i]
		if was.Kind != result.Measured {
			continue
		}
		if !sameRatio(was.Ratio, is.Ratio) {
			c.add(3, was, "its blocks give the ratio %s, the document says %s", ratioText(is.Ratio), ratioText(was.Ratio))
		}
		if !sameRatio(was.CPURatio, is.CPURatio) || was.CPURank != is.CPURank {
			c.add(3, was, "its rounds give the CPU ratio %s and rank %q, the document says %s and %q", ratioText(is.CPURatio), is.CPURank, ratioText(was.CPURatio), was.CPURank)
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

func sameRung(a, b result.Rung) bool {
	return a.Step == b.Step && a.From == b.From && a.To == b.To && near(&a.Value, &b.Value) && near(a.Lo, b.Lo) && near(a.Hi, b.Hi)
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
