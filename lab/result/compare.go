package result

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"toll/lab/plan"
	"toll/lab/stats"
)

// The verdicts on a row.
const (
	Better       = "better"
	Worse        = "worse"
	NoDifference = "no difference shown"
)

// What a difference divides.
const (
	OfMedians  = "block medians"
	OfMinima   = "block minima"
	OfRuns     = "medians of runs"
	OfBaseline = "÷ own baseline" // the ratio that each run has to its own baseline
	OfFloor    = "÷ own floor"
	OfNothing  = "p50 by itself" // with nothing to hold it against
)

// A Comparison says what changed from one side to the other, row by row. A ratio above 1 means that the second side is slower.
type Comparison struct {
	Design     string // how the two sides were paired, one sentence
	Sequential bool   // one side ran after the other: the intervals can't be trusted
	Rows       []Difference
}

// A Difference is one row on both sides.
type Difference struct {
	Row           string // as Row.ID
	Before, After *Row   // the last run of each side
	Of            string // what is divided, in words
	Value         float64
	Lo, Hi        *float64 // at 95 % over all rows together; nil without an interval
	Pairs         int
	Floor         *float64 // distance from 1 that the A/A controls reached; nil when it is not known
	Verdict       string
}

// Missed reports whether the row got worse by more than gate, a share such as 0.03: its interval excludes 1 and the ratio lies
// beyond the noise floor as well as the gate.
func (x Difference) Missed(gate float64) bool { return x.Verdict == Worse && x.Value > 1+gate }

// Missed returns the rows that got worse by more than gate.
func (c *Comparison) Missed(gate float64) []Difference {
	var out []Difference
	for _, x := range c.Rows {
		if x.Missed(gate) {
			out = append(out, x)
		}
	}
	return out
}

// judge sets the verdict: a difference is shown when the interval excludes 1 and the ratio lies beyond the noise floor.
func (x *Difference) judge() {
	x.Verdict = NoDifference
	if x.Floor == nil || math.Abs(x.Value-1) <= *x.Floor {
		return
	}
	switch differs(x.Lo, x.Hi) {
	case -1:
		x.Verdict = Better
	case 1:
		x.Verdict = Worse
	}
}

// NoiseFloor is the largest distance from 1 that a control's interval reaches.
func NoiseFloor(lo, hi float64) float64 { return max(hi-1, 1-lo, 0) }

// Within compares the contenders of one run with their baseline: both were called in the same blocks. A change shows in the
// medians, which are what a caller sees, or in the minima, which other processes disturb least.
func Within(d *Document) (*Comparison, error) {
	c := &Comparison{Design: "paired block by block in one run"}
	var groups []*Group
	contenders := 0
	for _, g := range d.Groups() {
		others := slices.DeleteFunc(slices.Clone(g.Rows), func(r *Row) bool { return r.Role != "" })
		if g.With(Baseline) != nil && len(others) > 0 {
			groups, contenders = append(groups, g), contenders+len(others)
		}
	}
	if contenders == 0 {
		return nil, errors.New("compare: the run has no contender beside its baseline")
	}
	statistics := []struct {
		name string
		of   func(*Row, Block) *float64
	}{
		{OfMedians, (*Row).Level},
		{OfMinima, (*Row).least},
	}
	level := 1 - (1-Level)/float64(contenders*len(statistics))
	for _, g := range groups {
		for _, r := range g.Rows {
			for _, s := range statistics {
				if r.Role != "" {
					continue
				}
				x := Difference{Row: r.ID(), Before: g.With(Baseline), After: r, Of: s.name}
				if q := blockRatio(s.of, r, x.Before, level); q.Blocks > 0 {
					x.set(q)
				} else {
					return nil, fmt.Errorf("compare: %s and its baseline have no block in common", r.ID())
				}
				if k := g.With(Control); k != nil {
					x.Floor = floorOf(blockRatio(s.of, k, x.Before, Level))
				}
				x.judge()
				c.Rows = append(c.Rows, x)
			}
		}
	}
	return c, nil
}

func blockRatio(of func(*Row, Block) *float64, r, base *Row, level float64) stats.Ratio {
	row, b := columns(pairsOf(of, r, base, func(Round) bool { return true }))
	return stats.PairedRatio(row, b, level)
}

// floorOf is the noise floor that a control's ratio gives; nil without an interval.
func floorOf(q stats.Ratio) *float64 {
	if !q.Interval {
		return nil
	}
	return Ptr(NoiseFloor(q.Lo, q.Hi))
}

func (x *Difference) set(q stats.Ratio) {
	x.Value, x.Pairs = Round5(q.Value), q.Blocks
	x.Lo, x.Hi = interval(q)
}

// Compare sets results of the same plan, on the same kind of machine over the same hop, beside each other. Where each side has
// several runs that took turns they are paired; a single run of each, or one side after the other, is sequential.
func Compare(before, after []*Document) (*Comparison, error) {
	if len(before) == 0 || len(after) == 0 {
		return nil, errors.New("compare: a side without a result")
	}
	byStart := func(a, b *Document) int { return a.Started.Compare(b.Started) }
	before, after = slices.SortedFunc(slices.Values(before), byStart), slices.SortedFunc(slices.Values(after), byStart)
	for _, d := range slices.Concat(before[1:], after) {
		if err := Comparable(before[0], d); err != nil {
			return nil, err
		}
	}
	c, err := beside(before, after)
	if err == nil && trackingDiffers(slices.Concat(before, after)) {
		c.Design += "; connections over loopback were tracked in some of the runs and not in others, which shows in every round trip"
	}
	return c, err
}

func beside(before, after []*Document) (*Comparison, error) {
	if why := sequential(before, after); why != "" {
		return oneAfterTheOther(before[len(before)-1], after[len(after)-1], why)
	}
	return inTurns(before, after)
}

// trackingDiffers reports whether connections were tracked in some of the runs and, for all that is known, not in others.
func trackingDiffers(all []*Document) bool {
	seen := make(map[bool]bool)
	for _, d := range all {
		if t := d.Environment.OS.Conntrack; t != nil {
			seen[*t] = true
		}
	}
	return len(seen) > 1
}

// Comparable says why two results may not be compared, nil when they may.
func Comparable(a, b *Document) error {
	if a.Plan.SHA256 != b.Plan.SHA256 {
		return fmt.Errorf("compare: the plans differ: %s", planDifference(a, b))
	}
	if x, y := a.Environment.MachineKey, b.Environment.MachineKey; x != y {
		return fmt.Errorf("compare: the machines differ: key %s (%s, %d CPUs) and %s (%s, %d CPUs)",
			short(x), a.Environment.CPU.BrandCPUID, a.Environment.CPU.Logical, short(y), b.Environment.CPU.BrandCPUID, b.Environment.CPU.Logical)
	}
	if x, y := a.Method.Hop, b.Method.Hop; x.Kind != y.Kind || x.ConfiguredRTT != y.ConfiguredRTT {
		return fmt.Errorf("compare: the hops differ: %s with %g ms and %s with %g ms", x.Kind, x.ConfiguredRTT, y.Kind, y.ConfiguredRTT)
	}
	return nil
}

func short(s string) string { return s[:min(len(s), 12)] }

func planDifference(a, b *Document) string {
	var parts []string
	if a.Benchmark != b.Benchmark {
		parts = append(parts, fmt.Sprintf("benchmark %s and %s", a.Benchmark, b.Benchmark))
	}
	for _, f := range []struct {
		name string
		x, y []string
	}{
		{"cases", a.Plan.Cases, b.Plan.Cases}, {"phases", a.Plan.Phases, b.Plan.Phases},
		{"contenders", a.Plan.Contenders, b.Plan.Contenders}, {"with", a.Plan.With, b.Plan.With},
		{"baseline", []string{a.Plan.Baseline}, []string{b.Plan.Baseline}}, {"thresholds", a.Plan.Thresholds, b.Plan.Thresholds},
	} {
		if !slices.Equal(f.x, f.y) {
			parts = append(parts, fmt.Sprintf("%s %s and %s", f.name, strings.Join(f.x, ","), strings.Join(f.y, ",")))
		}
	}
	for _, v := range plan.Deviations(a.Plan.Settings, b.Plan.Settings) {
		if v.Claimed != v.Ran {
			parts = append(parts, fmt.Sprintf("%s %s and %s", v.What, v.Claimed, v.Ran))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("digests %s and %s", short(a.Plan.SHA256), short(b.Plan.SHA256))
	}
	return strings.Join(parts, "; ")
}

// sequential says why the runs of two sides, each in the order of their starts, can't be paired; "" when they took turns.
func sequential(before, after []*Document) string {
	if len(before) == 1 && len(after) == 1 {
		return "each side is one run, made at another time than the other's"
	}
	if len(before) != len(after) {
		return fmt.Sprintf("%d runs of one side and %d of the other can't be paired", len(before), len(after))
	}
	for i := range before[1:] {
		first, next := later(before[i], after[i]), earlier(before[i+1], after[i+1])
		if !next.Started.After(first.Started) {
			return fmt.Sprintf("pair %d begins before pair %d has begun on both sides: the runs did not take turns", i+2, i+1)
		}
	}
	return ""
}

func later(a, b *Document) *Document {
	if a.Started.After(b.Started) {
		return a
	}
	return b
}

func earlier(a, b *Document) *Document {
	if a.Started.After(b.Started) {
		return b
	}
	return a
}

// at returns d's measured row of an ID, nil without one.
func (d *Document) at(id string) *Row {
	for i := range d.Rows {
		if d.Rows[i].Kind == Measured && d.Rows[i].ID() == id {
			return &d.Rows[i]
		}
	}
	return nil
}

// compared lists the IDs of rows that have successes in every document.
func compared(all []*Document) []string {
	var out []string
	for i := range all[0].Rows {
		r := &all[0].Rows[i]
		id := r.ID()
		lacks := func(d *Document) bool { x := d.at(id); return x == nil || x.Latency == nil }
		if r.Kind == Measured && (r.Ranked() || r.Role == Floor) && !slices.ContainsFunc(all, lacks) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func p50s(all []*Document, id string) []float64 {
	out := make([]float64, len(all))
	for i, d := range all {
		out[i] = d.at(id).Latency.P50
	}
	return out
}

// inTurns pairs the runs of both sides one by one.
func inTurns(before, after []*Document) (*Comparison, error) {
	ids := compared(slices.Concat(before, after))
	if len(ids) == 0 {
		return nil, errors.New("compare: no row has successes in every run")
	}
	c := &Comparison{Design: fmt.Sprintf("%d pairs of runs that took turns", len(before))}
	level := 1 - (1-Level)/float64(len(ids))
	for _, id := range ids {
		x := Difference{Row: id, Before: before[len(before)-1].at(id), After: after[len(after)-1].at(id), Of: OfRuns}
		x.set(stats.PairedRatio(p50s(after, id), p50s(before, id), level))
		x.Floor = pairedFloor(before, after, x.Before)
		x.judge()
		c.Rows = append(c.Rows, x)
	}
	return c, nil
}

// pairedFloor is what the controls of all runs, divided by their own baselines, say that paired runs can't show.
func pairedFloor(before, after []*Document, r *Row) *float64 {
	var control, base []float64
	for _, d := range slices.Concat(before, after) {
		for _, g := range d.Groups() {
			a, b := g.With(Control), g.With(Baseline)
			if g.Case == r.Case && g.Phase == r.Phase && g.Concurrency == r.Concurrency && a != nil && b != nil && a.Latency != nil && b.Latency != nil {
				control, base = append(control, a.Latency.P50), append(base, b.Latency.P50)
			}
		}
	}
	return floorOf(stats.PairedRatio(control, base, Level))
}
