package stats

import (
	"math"
	"slices"
)

const (
	stepBefore = 6   // values that a level needs before a step from it can be told
	stepEach   = 2.0 // how far off every value of the new level lies, in deviations of the one before
	stepMiddle = 2.5 // and how far off its middle
	stepLeast  = .05 // and how large the step is at least
	stepSpread = .01 // the least spread that a level is taken to have
)

// FindStep looks at the end of a series for a new level that has held for at least least values: each of them lies off the
// middle of those before, to the same side, by more than two of their deviations (from the median absolute one, of
// the logarithms), their own middle by more than two and a half, and by more than 5 %. It finds a step sooner than FindChanges can, which needs enough
// values on both sides for a permutation test; a spike does not last, so it is none.
func FindStep(ys []float64, least int) (Change, bool) {
	if least < 1 || len(ys) < stepBefore+least || !allUsable(ys) {
		return Change{}, false
	}
	logs := make([]float64, len(ys))
	for i, y := range ys {
		logs[i] = math.Log(y)
	}
	at := len(ys) - least
	for ; at > stepBefore; at-- { // the level may have begun earlier
		if _, ok := stepAt(logs, at-1); !ok {
			break
		}
	}
	size, ok := stepAt(logs, at)
	if !ok || math.Abs(size) < math.Log(1+stepLeast) {
		return Change{}, false
	}
	return Change{At: at, Ratio: math.Exp(size), P: math.NaN()}, true
}

// stepAt returns how far the level from at on lies above the one before, and whether it lies off as a level must.
func stepAt(logs []float64, at int) (size float64, ok bool) {
	before, after := logs[:at], logs[at:]
	middle := Median(before)
	off := make([]float64, len(before))
	for i, x := range before {
		off[i] = math.Abs(x - middle)
	}
	spread := max(1.4826*Median(off), stepSpread)
	size = Median(after) - middle
	side := math.Copysign(1, size)
	near := slices.ContainsFunc(after, func(x float64) bool { return side*(x-middle) <= stepEach*spread })
	return size, !near && math.Abs(size) > stepMiddle*spread
}
