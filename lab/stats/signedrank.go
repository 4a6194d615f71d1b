package stats

import (
	"math"
	"slices"
)

// exactUpTo is the largest sample whose signed-rank distribution is computed; above it the normal one stands in, whose
// p-values are then off by less than 0.001, and near 0.05 by less than 0.0003.
const exactUpTo = 200

// HodgesLehmann estimates the centre of a symmetric sample: the median of all pairwise means, each value with itself
// included (Hodges and Lehmann 1963). NaN of none and of any NaN.
func HodgesLehmann(d []float64) float64 { return medianSorted(walsh(d)) }

// walsh returns the Walsh averages in ascending order, a NaN first.
func walsh(d []float64) []float64 {
	out := make([]float64, 0, len(d)*(len(d)+1)/2)
	for i, a := range d {
		for _, b := range d[i:] {
			out = append(out, (a+b)/2)
		}
	}
	slices.Sort(out)
	return out
}

// SignedRankInterval returns the interval for the centre of d that inverts Wilcoxon's signed-rank test: exact, hence with
// at least the given confidence, for up to 200 values. ok is false when d is too small for the level (under six at 95 %) or
// holds a NaN.
func SignedRankInterval(d []float64, level float64) (lo, hi float64, ok bool) {
	checkLevel(level)
	return walshInterval(walsh(d), len(d), level)
}

// walshInterval is SignedRankInterval of n values by their Walsh averages.
func walshInterval(w []float64, n int, level float64) (lo, hi float64, ok bool) {
	k := criticalSum(n, level)
	if k < 0 || math.IsNaN(w[0]) {
		return math.NaN(), math.NaN(), false
	}
	return w[k], w[len(w)-1-k], true
}

// criticalSum returns the largest w for which P(W ≤ w) ≤ (1−level)/2, W being the signed-rank sum of n values; -1 when
// there is none.
func criticalSum(n int, level float64) int {
	tail := (1 - level) / 2
	if n > exactUpTo {
		mean, sd := signedRankMoments(n)
		return max(int(math.Floor(mean+sd*normalQuantile(tail)-.5)), -1)
	}
	sum, k := 0.0, -1
	for _, p := range signedRankMass(ranksTo(n), n*(n+1)/4) {
		if sum += p; sum > tail {
			break
		}
		k++
	}
	return k
}

func ranksTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i + 1
	}
	return out
}

// signedRankMass returns the probabilities that the ranks with a positive sign sum to 0, 1, … top, each sign being as likely
// as the other.
func signedRankMass(ranks []int, top int) []float64 {
	p := make([]float64, top+1)
	p[0] = 1
	reach := 0
	for _, r := range ranks {
		reach = min(reach+r, top)
		for s := reach; s >= r; s-- {
			p[s] = (p[s] + p[s-r]) / 2
		}
		for s := range min(r, reach+1) {
			p[s] /= 2
		}
	}
	return p
}

// SignedRankP returns the two-sided p-value of Wilcoxon's signed-rank test that the centre of d is 0. Zeros are dropped,
// ties have mid-ranks; the distribution is exact, ties included, for up to 200 values. 1 of none, NaN of any NaN.
func SignedRankP(d []float64) float64 {
	p, _ := signedRankTest(d)
	return p
}

// signedRankTest returns the p-value and the side of 0 on which the ranks weigh more: -1, 0 or 1.
func signedRankTest(d []float64) (p float64, side int) {
	if anyNaN(d) {
		return math.NaN(), 0
	}
	xs := slices.DeleteFunc(slices.Clone(d), func(v float64) bool { return v == 0 })
	ranks, tied := midRanks(magnitudes(xs))
	up, down := 0, 0
	for i, v := range xs {
		if v > 0 {
			up += ranks[i]
		} else {
			down += ranks[i]
		}
	}
	return signedRankTail(ranks, min(up, down), tied), sign(up - down)
}

// signedRankTail returns the two-sided p-value of w, the smaller of both sums of doubled ranks.
func signedRankTail(ranks []int, w int, tied float64) float64 {
	if n := len(ranks); n > exactUpTo {
		mean, sd := signedRankMoments(n)
		sd = math.Sqrt(sd*sd - tied/48)
		return twoSided(max(mean-float64(w)/2-.5, 0) / sd)
	}
	return min(2*upTo(signedRankMass(ranks, w), w), 1)
}

// signedRankMoments are the mean and the standard deviation of the signed-rank sum of n values without ties.
func signedRankMoments(n int) (mean, sd float64) {
	f := float64(n)
	return f * (f + 1) / 4, math.Sqrt(f * (f + 1) * (2*f + 1) / 24)
}

// normalQuantile returns the value below which a standard normal one lies with probability p.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

func magnitudes(xs []float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = math.Abs(x)
	}
	return out
}

func sign(v int) int { return min(max(v, -1), 1) }
