package stats

import (
	"fmt"
	"math"
	"slices"
)

// leastBlocks is how many blocks a 95 % interval needs: with five, even the most extreme outcome has p = 0.0625.
const leastBlocks = 6

// A Ratio divides a contender by the baseline, block by block.
type Ratio struct {
	Value    float64 // Hodges–Lehmann estimate; NaN without a usable block
	Lo, Hi   float64 // NaN without an interval
	Blocks   int     // pairs used
	Interval bool
	Min      float64 // ratio of the smallest values
	Warnings []string
}

// PairedRatio estimates the ratio of two contenders from a statistic of each block, such as the median time: value i of
// both is from block i. It works on the logarithms, so that a ratio and its reciprocal are treated alike. A pair that is
// not positive and finite is left out, and a warning says so. Slices of different length are the caller's bug.
func PairedRatio(contender, baseline []float64, level float64) Ratio {
	if len(contender) != len(baseline) {
		panic(fmt.Sprintf("stats: paired ratio of %d and %d blocks", len(contender), len(baseline)))
	}
	var c, b, d []float64
	for i := range contender {
		if usable(contender[i]) && usable(baseline[i]) {
			c, b = append(c, contender[i]), append(b, baseline[i])
			d = append(d, math.Log(contender[i]/baseline[i]))
		}
	}
	r := Ratio{Value: math.Exp(HodgesLehmann(d)), Lo: math.NaN(), Hi: math.NaN(), Blocks: len(d), Min: MinRatio(c, b)}
	if out := len(contender) - len(d); out > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d of %d blocks have no positive value and are left out", out, len(contender)))
	}
	lo, hi, ok := SignedRankInterval(d, level)
	if !ok || len(d) < leastBlocks {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d blocks give no %.0f %% interval; at least %d do", len(d), 100*level, leastBlocks))
		return r
	}
	r.Lo, r.Hi, r.Interval = math.Exp(lo), math.Exp(hi), true
	return r
}

func usable(v float64) bool { return v > 0 && !math.IsInf(v, 1) }

// MinRatio returns the ratio of the smallest values: the least disturbed block of each. NaN of none.
func MinRatio(contender, baseline []float64) float64 {
	if len(contender) == 0 || len(baseline) == 0 {
		return math.NaN()
	}
	return slices.Min(contender) / slices.Min(baseline)
}
