package stats

import (
	"fmt"
	"math"
)

// Drift is how a contender's blocks moved over the run.
type Drift struct {
	ThirdsRatio   float64 // median of the last third over that of the first; NaN under three blocks
	SlopePerBlock float64 // Theil–Sen slope as a share of the median
	P             float64 // of Mann and Kendall's test for a trend
	Drifting      bool    // more than 10 % between the thirds, and a trend at 5 %
}

// drifts is how far the thirds may lie apart.
const drifts = .10

// FindDrift looks for a trend in a statistic of successive blocks.
func FindDrift(blocks []float64) Drift {
	third := len(blocks) / 3
	if third == 0 {
		return Drift{ThirdsRatio: math.NaN(), P: 1}
	}
	d := Drift{
		ThirdsRatio:   Median(blocks[len(blocks)-third:]) / Median(blocks[:third]),
		SlopePerBlock: TheilSen(blocks) / Median(blocks),
		P:             MannKendall(blocks),
	}
	d.Drifting = math.Abs(d.ThirdsRatio-1) > drifts && d.P < .05
	return d
}

// TheilSen returns the median of the slopes between all pairs, per step; 0 under two values.
func TheilSen(ys []float64) float64 {
	var slopes []float64
	for i := range ys {
		for j := i + 1; j < len(ys); j++ {
			slopes = append(slopes, (ys[j]-ys[i])/float64(j-i))
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	return Median(slopes)
}

// MannKendall returns the two-sided p-value of the test for a monotonic trend: exact for up to ten values without ties,
// else by the normal approximation with corrections for ties and continuity. 1 under three values.
func MannKendall(ys []float64) float64 {
	n := len(ys)
	if n < 3 {
		return 1
	}
	s := 0
	counts := make(map[float64]int)
	for i, a := range ys {
		counts[a]++
		for _, b := range ys[i+1:] {
			switch {
			case b > a:
				s++
			case b < a:
				s--
			}
		}
	}
	if n <= 10 && len(counts) == n {
		return kendallExact(n, s)
	}
	f := float64(n)
	variance := f * (f - 1) * (2*f + 5)
	for _, c := range counts {
		t := float64(c)
		variance -= t * (t - 1) * (2*t + 5)
	}
	if variance <= 0 {
		return 1
	}
	return min(twoSided(max(math.Abs(float64(s))-1, 0)/math.Sqrt(variance/18)), 1)
}

// kendallExact counts the permutations of n by their inversions.
func kendallExact(n, s int) float64 {
	most := n * (n - 1) / 2
	p := make([]float64, most+1)
	p[0] = 1
	for k := 2; k <= n; k++ {
		next := make([]float64, most+1)
		for inv := range p {
			for add := 0; add < k && inv+add <= most; add++ {
				next[inv+add] += p[inv] / float64(k)
			}
		}
		p = next
	}
	inversions := (most - max(s, -s)) / 2
	sum := 0.0
	for i := 0; i <= inversions; i++ {
		sum += p[i]
	}
	return min(2*sum, 1)
}

// MarkOutliers marks what lies more than k scaled median absolute deviations from the median. When more than half of the
// values are the same the deviation is 0, and then nothing is marked: there is no scale to call anything far.
func MarkOutliers(xs []float64, k float64) []bool {
	out := make([]bool, len(xs))
	m := Median(xs)
	off := make([]float64, len(xs))
	for i, x := range xs {
		off[i] = math.Abs(x - m)
	}
	// 1.4826 makes the deviation that of a normal sample.
	mad := 1.4826 * Median(off)
	for i := range xs {
		out[i] = mad > 0 && off[i] > k*mad
	}
	return out
}

const (
	steadyBlocks = 9   // fewer blocks say nothing
	unsteady     = .05 // a step of the level that is larger than this is no steady state
)

// Steady reports whether a contender had come to its steady state: no change point with a step of more than 5 % lies in its
// blocks. With fewer than nine blocks it can't tell, and says so.
func Steady(blocks []float64) (ok bool, why string) {
	if len(blocks) < steadyBlocks {
		return true, fmt.Sprintf("%d blocks are too few to tell; %d are needed", len(blocks), steadyBlocks)
	}
	for _, c := range FindChanges(blocks, 3) {
		if math.Abs(c.Ratio-1) > unsteady {
			return false, fmt.Sprintf("from block %d of %d on its level is %.2f × what it was (p = %.2g)", c.At+1, len(blocks), c.Ratio, c.P)
		}
	}
	return true, ""
}
