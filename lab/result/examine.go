package result

import (
	"fmt"
	"math"

	"toll/lab/plan"
	"toll/lab/stats"
)

// The kinds of anomaly.
const (
	Drift     = "drift"
	CarryOver = "carry-over"
	Outlier   = "outlier"
	Unstable  = "unstable"
	Noisy     = "noise"
	HopBound  = "hop-bound"
)

// Examine notes what is odd about the run as a whole: drift of a baseline, results that depend on a contender's place in
// the block, rounds that lie far off, ratios whose verdict changes without those. It needs Compare's figures.
func (d *Document) Examine() {
	for _, g := range d.Groups() {
		base := g.With(Baseline)
		if base == nil {
			continue
		}
		if dr := stats.FindDrift(base.BlockP50s()); dr.Drifting {
			d.anomaly(Drift, base, fmt.Sprintf("the last third of its blocks took %.2f × the first (%+.2f %% a block); ratios are paired within blocks and survive it",
				dr.ThirdsRatio, 100*dr.SlopePerBlock))
		}
		for _, x := range base.Rounds {
			if x.Outlier != "" {
				d.anomaly(Outlier, base, fmt.Sprintf("round %d: %s; it is kept, and the ratios are given with and without it", x.Round, x.Outlier))
			}
		}
		for _, r := range g.Rows {
			d.examineRow(r, base)
		}
	}
}

func (d *Document) examineRow(r, base *Row) {
	if r.Role == Baseline {
		return
	}
	if c := stats.FindCarryOver(slots(r, base)); c.Found && d.Method.Order != plan.Fixed {
		d.anomaly(CarryOver, r, fmt.Sprintf("its ratio depends on whether it ran before or after the baseline in the block (p = %.2g): %s", c.P, c.Detail))
	}
	if q := r.Ratio; q != nil && q.Without != nil && differs(q.Lo, q.Hi) != differs(q.Without.Lo, q.Without.Hi) {
		d.anomaly(Unstable, r, "with and without the outlier rounds the verdict against the baseline differs")
	}
}

// slots returns each block's log ratio and whether the row ran before (-1) or after (+1) the baseline in it.
func slots(r, base *Row) (logs []float64, slot []int) {
	for _, p := range pairs(r, base, func(Round) bool { return true }) {
		logs = append(logs, math.Log(p.row/p.base))
		if slotAt(r, p) < slotAt(base, p) {
			slot = append(slot, -1)
		} else {
			slot = append(slot, 1)
		}
	}
	return logs, slot
}

func slotAt(r *Row, p pair) int {
	for _, x := range r.Rounds {
		if x.Round == p.round {
			return x.Blocks[p.block].Slot
		}
	}
	return 0
}

// differs is -1 or 1 when the interval lies below or above 1, and 0 when it holds 1 or is not there.
func differs(lo, hi *float64) int {
	switch {
	case lo == nil || hi == nil:
		return 0
	case *hi < 1:
		return -1
	case *lo > 1:
		return 1
	}
	return 0
}

func (d *Document) anomaly(kind string, r *Row, detail string) {
	d.Anomalies = append(d.Anomalies, Anomaly{kind, r.ID(), detail})
}

// Moved is how a row's block medians moved over the run.
type Moved struct {
	Middle      float64 // their median, µs
	ThirdsRatio float64 // the last third over the first; NaN under three blocks
	Drifting    bool
}

// Moved looks for a trend in the row's blocks.
func (r *Row) Moved() Moved {
	all := r.BlockP50s()
	d := stats.FindDrift(all)
	return Moved{stats.Median(all), d.ThirdsRatio, d.Drifting}
}

// Judge sets the document's thresholds: one is passed when every measured row of its contender keeps it. A contender
// without such a figure has not passed.
func (d *Document) Judge(exprs []string) {
	for _, e := range exprs {
		t, err := plan.ParseThreshold(e)
		passed := err == nil
		rows := 0
		for i := range d.Rows {
			r := &d.Rows[i]
			if r.Kind != Measured || r.Role == Control || !about(t, r) {
				continue
			}
			rows++
			v := r.figure(t)
			passed = passed && v != nil && t.Holds(*v)
		}
		d.Thresholds = append(d.Thresholds, Threshold{e, passed && rows > 0})
	}
}

// about reports whether a threshold bounds a row: that of its contender, or without one every contender's.
func about(t plan.Threshold, r *Row) bool {
	if t.Contender == "" {
		return r.Role == "" || r.Role == Baseline
	}
	return t.Contender == r.Contender.Name
}

// figure returns what a threshold's metric bounds, nil when the row does not have it.
func (r *Row) figure(t plan.Threshold) *float64 {
	if q, ok := t.Quantile(); ok {
		return r.quantile(q)
	}
	switch t.Metric {
	case "ratio":
		if r.Ratio != nil {
			return &r.Ratio.Value
		}
	case "min":
		if r.Latency != nil {
			return &r.Latency.Min
		}
	case "mean":
		if r.Latency != nil {
			return &r.Latency.Mean
		}
	case "ops":
		return Ptr(float64(r.Ops))
	case "dropped":
		return Ptr(float64(r.Dropped))
	case "ok":
		if r.Ops > 0 {
			return Ptr(float64(r.OK) / float64(r.Ops))
		}
	case "max":
		if r.Latency != nil {
			return &r.Latency.Max
		}
	case "failures":
		if r.Ops > 0 {
			return Ptr(float64(r.Ops-r.OK) / float64(r.Ops))
		}
	case "throughput":
		return r.Throughput
	case "cpu":
		if r.Server != nil {
			return r.Server.CPU
		}
	}
	return nil
}

// quantile returns any quantile of the successes' times, µs, by nearest rank from the row's histogram; nil when fewer than
// ten values lie beyond it, and of calls that failed or timed out it knows nothing.
func (r *Row) quantile(q float64) *float64 {
	if l := r.Latency; l != nil {
		switch q {
		case .5:
			return &l.P50
		case .9:
			return l.P90
		case .95:
			return l.P95
		case .99:
			return l.P99
		}
	}
	h := r.Histogram
	if h == nil || h.Count == 0 || q > .5 && float64(h.Count)*(1-q) < 10-1e-6 && q < 1 {
		return nil
	}
	rank := max(int64(math.Ceil(q*float64(h.Count)-1e-6)), 1)
	var seen int64
	for _, b := range h.Buckets {
		if seen += b[1]; seen >= rank {
			return Ptr(Round3(float64(min(b[0], h.Max)) / 1000))
		}
	}
	return Ptr(Round3(float64(h.Max) / 1000))
}
