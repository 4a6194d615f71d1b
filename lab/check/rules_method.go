package check

import (
	"slices"
	"strings"

	"toll/lab/plan"
	"toll/lab/result"
)

// method checks what concerns the run as a whole.
func (c *checker) method() {
	d := c.doc
	ran := d.Plan.Settings
	if d.Method.Processes == plan.Shared {
		c.add(1, nil, "the contenders share one server process, so each inherits what the one before it left there")
	}
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
	if ran.Warmup < 1 && ran.WarmupTime <= 0 {
		c.add(9, nil, "no warm-up is declared")
	}
	c.deviations()
	c.environment()
}

// neverMoved reports whether, over six or more blocks, no contender was ever in another place.
func neverMoved(d *result.Document) bool {
	most, lanes := 0, 0
	for _, g := range d.Groups() {
		if !compared(g) {
			continue
		}
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
	want := d.Deviations()
	var got []plan.Deviation
	interrupted := false
	for _, v := range d.Method.Deviations {
		if v.What == "completed" {
			interrupted = true
			continue
		}
		if v.What == "limits" && strings.HasPrefix(v.Ran, result.NoneInForce) { // the plan can't tell
			c.add(12, nil, "limits of %s were asked for and were %s", v.Claimed, v.Ran)
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
