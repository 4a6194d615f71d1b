package stats

import "math"

// Drift is how a contender's blocks moved over the run.
type Drift struct {
	ThirdsRatio   float64 // median of the last third over that of the first; NaN under three blocks
	SlopePerBlock float64 // Theil–Sen slope as a share of the median
	P             float64 // of Mann and Kendall's test for a trend
	Drifting      bool    // more than 10 % between the thirds, and a trend at 5 %
}

const (
	drifts = .10 // how far the thirds may lie apart
	driftP = .05
)

// FindDrift looks for a trend in a statistic of successive blocks. With a NaN among them nothing is known: all figures are
// NaN and Drifting is false.
func FindDrift(blocks []float64) Drift {
	third := len(blocks) / 3
	if third == 0 {
		return Drift{ThirdsRatio: math.NaN(), P: 1}
	}
	if anyNaN(blocks) {
		return Drift{ThirdsRatio: math.NaN(), SlopePerBlock: math.NaN(), P: math.NaN()}
	}
	d := Drift{
		ThirdsRatio:   Median(blocks[len(blocks)-third:]) / Median(blocks[:third]),
		SlopePerBlock: TheilSen(blocks) / Median(blocks),
		P:             MannKendall(blocks),
	}
	d.Drifting = math.Abs(d.ThirdsRatio-1) > drifts && d.P < driftP
	return d
}

// TheilSen returns the median of the slopes between all pairs, per step; 0 under two values, NaN of any NaN.
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
// else by the normal approximation with corrections for ties and continuity. 1 under three values, NaN of any NaN.
func MannKendall(ys []float64) float64 {
	n := len(ys)
	if anyNaN(ys) {
		return math.NaN()
	}
	if n < 3 {
		return 1
	}
	s, variance := concordance(ys), kendallVariance(ys)
	switch {
	case variance == 0:
		return 1
	case n <= 10 && variance == untied(n):
		return kendallExact(n, s)
	}
	return min(twoSided(max(math.Abs(float64(s))-1, 0)/math.Sqrt(variance/18)), 1)
}

// concordance counts the pairs that ascend less those that descend.
func concordance(ys []float64) int {
	s := 0
	for i, a := range ys {
		for _, b := range ys[i+1:] {
			switch {
			case b > a:
				s++
			case b < a:
				s--
			}
		}
	}
	return s
}

// kendallVariance is eighteen times the variance of the concordance of a series without a trend.
func kendallVariance(ys []float64) float64 {
	counts := make(map[float64]int)
	for _, y := range ys {
		counts[y]++
	}
	v := untied(len(ys))
	for _, t := range counts {
		v -= untied(t)
	}
	return v
}

func untied(n int) float64 { return float64(n) * float64(n-1) * float64(2*n+5) }

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
	return min(2*upTo(p, (most-max(s, -s))/2), 1)
}

// MarkOutliers marks what lies more than k scaled median absolute deviations from the median. When at least half of the
// values are the same the deviation is 0, and then nothing is marked: there is no scale to call anything far. Nor is there
// with a NaN among them.
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
