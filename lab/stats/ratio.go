package stats

import (
	"fmt"
	"math"
	"slices"
)

// leastBlocks is how many blocks any interval needs: with five, even the most extreme outcome has p = 0.0625.
const leastBlocks = 6

// A Ratio divides a contender by the baseline, block by block.
type Ratio struct {
	Value    float64 // Hodges–Lehmann estimate; NaN without a usable block
	Lo, Hi   float64 // NaN without an interval
	Blocks   int     // pairs used
	Interval bool
	Min      float64 // ratio of the smallest values; NaN without a usable block
	Warnings []string
}

// PairedRatio estimates the ratio of two contenders from a statistic of each block, such as the median time: value i of
// both is from block i. It works on the logarithms, so that a ratio and its reciprocal are treated alike. A pair that is
// not positive and finite is left out, and a warning says so.
func PairedRatio(contender, baseline []float64, level float64) Ratio {
	checkLevel(level)
	c, b := usablePairs(contender, baseline)
	n, w := len(c), walsh(logRatios(c, b))
	r := Ratio{Value: math.Exp(medianSorted(w)), Lo: math.NaN(), Hi: math.NaN(), Blocks: n, Min: MinRatio(c, b)}
	if out := len(contender) - n; out > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d of %d blocks have no positive value and are left out", out, len(contender)))
	}
	if need := blocksFor(level); n < need {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d blocks give no %.4g %% interval; at least %d do", n, 100*level, need))
		return r
	}
	lo, hi, ok := walshInterval(w, n, level)
	r.Lo, r.Hi, r.Interval = math.Exp(lo), math.Exp(hi), ok
	return r
}

// blocksFor returns how many blocks an interval of that level needs: the most extreme of n signs has p = 2 × 2⁻ⁿ.
func blocksFor(level float64) int {
	return max(leastBlocks, int(math.Ceil(1-math.Log2(1-level))))
}

// usablePairs returns the blocks in which both values are positive and finite.
func usablePairs(a, b []float64) (usableA, usableB []float64) {
	if len(a) != len(b) {
		panic(fmt.Sprintf("stats: %d and %d blocks can't be paired", len(a), len(b)))
	}
	for i := range a {
		if usable(a[i]) && usable(b[i]) {
			usableA, usableB = append(usableA, a[i]), append(usableB, b[i])
		}
	}
	return usableA, usableB
}

func usable(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// logRatios returns ln(a/b) of each block. As a difference it can't overflow, and swapping a and b only turns its sign.
func logRatios(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range d {
		d[i] = math.Log(a[i]) - math.Log(b[i])
	}
	return d
}

// MinRatio returns the ratio of the smallest values: the least disturbed block of each. NaN of none, and when one of the two
// is not positive and finite.
func MinRatio(contender, baseline []float64) float64 {
	if len(contender) == 0 || len(baseline) == 0 {
		return math.NaN()
	}
	c, b := slices.Min(contender), slices.Min(baseline)
	if !usable(c) || !usable(b) {
		return math.NaN()
	}
	return c / b
}
