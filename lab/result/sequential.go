package result

import (
	"cmp"
	"errors"
	"math"
)

// oneAfterTheOther compares two runs by what each measured against a reference of its own: what both sides' machines did to
// the reference as well cancels, and nothing else does.
func oneAfterTheOther(a, b *Document, why string) (*Comparison, error) {
	ids := compared([]*Document{a, b})
	if len(ids) == 0 {
		return nil, errors.New("compare: no row has successes in both runs")
	}
	c := &Comparison{Sequential: true, Design: "sequential: no interval can be trusted, because " + why +
		"; what the machine did meanwhile looks like a difference"}
	for _, id := range ids {
		x := Difference{Row: id, Before: a.at(id), After: b.at(id), Of: OfBaseline}
		qa, qb := x.Before.Ratio, x.After.Ratio
		if x.Before.Role == Baseline {
			x.Of, qa, qb = OfFloor, a.overFloor(x.Before), b.overFloor(x.After)
		}
		if qa == nil || qb == nil {
			x.Of, x.Value = OfNothing, Round5(x.After.Latency.P50/x.Before.Latency.P50)
		} else {
			x.combine(qa, qb)
			x.Floor = sequentialFloor(a, b, x.Before)
		}
		x.judge()
		c.Rows = append(c.Rows, x)
	}
	return c, nil
}

// overFloor is a baseline's ratio to the floor of its group, or to the null target.
func (d *Document) overFloor(r *Row) *Ratio {
	for _, g := range d.Groups() {
		if ref := cmp.Or(g.Floor(), g.With(Null)); g.With(Baseline) == r && ref != nil {
			return ratioOf(r, ref)
		}
	}
	return nil
}

// combine divides two ratios; their intervals, as halves of a logarithm, add in squares.
func (x *Difference) combine(a, b *Ratio) {
	x.Value, x.Pairs = Round5(b.Value/a.Value), min(a.Blocks, b.Blocks)
	if a.Lo == nil || b.Lo == nil {
		return
	}
	half := math.Hypot(math.Log(*a.Hi / *a.Lo)/2, math.Log(*b.Hi / *b.Lo)/2)
	x.Lo, x.Hi = Ptr(Round5(x.Value*math.Exp(-half))), Ptr(Round5(x.Value*math.Exp(half)))
}

func sequentialFloor(a, b *Document, r *Row) *float64 {
	var floors []float64
	for _, d := range []*Document{a, b} {
		for _, g := range d.Groups() {
			k := g.With(Control)
			if g.Case == r.Case && g.Phase == r.Phase && g.Concurrency == r.Concurrency && k != nil && k.Ratio != nil && k.Ratio.Lo != nil {
				floors = append(floors, NoiseFloor(*k.Ratio.Lo, *k.Ratio.Hi))
			}
		}
	}
	if len(floors) < 2 {
		return nil
	}
	return Ptr(math.Hypot(floors[0], floors[1]))
}
