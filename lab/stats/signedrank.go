package stats

import (
	"cmp"
	"math"
	"slices"
)

// exactUpTo is the largest sample whose signed-rank distribution is computed; above it the normal one stands in, whose
// error is then below one in ten thousand.
const exactUpTo = 200

// HodgesLehmann estimates the centre of a symmetric sample: the median of all pairwise means, each value with itself
// included (Hodges and Lehmann 1963). NaN of none.
func HodgesLehmann(d []float64) float64 { return medianSorted(walsh(d)) }

// walsh returns the Walsh averages in ascending order.
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
// at least the given confidence, for up to 200 values. ok is false when d is too small for the level (under six at 95 %).
func SignedRankInterval(d []float64, level float64) (lo, hi float64, ok bool) {
	k := criticalSum(len(d), level)
	if k < 0 {
		return math.NaN(), math.NaN(), false
	}
	w := walsh(d)
	return w[k], w[len(w)-1-k], true
}

// criticalSum returns the largest w for which P(W ≤ w) ≤ (1−level)/2, W being the signed-rank sum of n values; -1 when
// there is none.
func criticalSum(n int, level float64) int {
	tail := (1 - level) / 2
	if n > exactUpTo {
		mean, sd := signedRankMoments(n)
		return int(math.Floor(mean + sd*normalQuantile(tail) - .5))
	}
	sum, k := 0.0, -1
	// The leeway is for levels such as 0.95, of which 1 − 0.95 is a little more than 0.05.
	for w, p := range signedRankMass(ranksOf(n)) {
		if w%2 == 1 {
			continue
		}
		if sum += p; sum > tail+1e-12 {
			break
		}
		k = w / 2
	}
	return k
}

// ranksOf returns twice the ranks 1 to n: doubled, so that the mid-ranks of ties are whole too.
func ranksOf(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 2 * (i + 1)
	}
	return out
}

// signedRankMass returns the distribution of the sum of those doubled ranks whose sign is positive, each sign being as
// likely as the other.
func signedRankMass(ranks []int) []float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	p := make([]float64, total+1)
	p[0] = 1
	top := 0
	for _, r := range ranks {
		top += r
		for s := top; s >= 0; s-- {
			q := 0.0
			if s >= r {
				q = p[s-r]
			}
			p[s] = (p[s] + q) / 2
		}
	}
	return p
}

// SignedRankP returns the two-sided p-value of Wilcoxon's signed-rank test that the centre of d is 0. Zeros are dropped,
// ties have mid-ranks; the distribution is exact, ties included, for up to 200 values. 1 of none.
func SignedRankP(d []float64) float64 {
	var xs []float64
	for _, v := range d {
		if v != 0 {
			xs = append(xs, v)
		}
	}
	slices.SortFunc(xs, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	ranks, tied := doubledRanks(xs)
	positive, total := 0, 0
	for i, v := range xs {
		total += ranks[i]
		if v > 0 {
			positive += ranks[i]
		}
	}
	w := min(positive, total-positive)
	if len(xs) > exactUpTo {
		return signedRankNormal(len(xs), float64(w)/2, tied)
	}
	p := 0.0
	for s, m := range signedRankMass(ranks) {
		if s > w {
			break
		}
		p += m
	}
	return min(2*p, 1)
}

// doubledRanks ranks values that ascend by magnitude and returns Σ(t³−t) over the ties.
func doubledRanks(xs []float64) (ranks []int, tied float64) {
	ranks = make([]int, len(xs))
	for i := 0; i < len(xs); {
		j := i
		for j < len(xs) && math.Abs(xs[j]) == math.Abs(xs[i]) {
			j++
		}
		for k := i; k < j; k++ {
			ranks[k] = i + 1 + j
		}
		t := float64(j - i)
		tied += t*t*t - t
		i = j
	}
	return ranks, tied
}

func signedRankMoments(n int) (mean, sd float64) {
	f := float64(n)
	return f * (f + 1) / 4, math.Sqrt(f * (f + 1) * (2*f + 1) / 24)
}

func signedRankNormal(n int, w, tied float64) float64 {
	mean, sd := signedRankMoments(n)
	sd = math.Sqrt(sd*sd - tied/48)
	return twoSided(math.Max(math.Abs(w-mean)-.5, 0) / sd)
}

// twoSided is the probability that a standard normal value lies at least z from 0.
func twoSided(z float64) float64 { return math.Erfc(z / math.Sqrt2) }

// normalQuantile returns the value below which a standard normal one lies with probability p.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
