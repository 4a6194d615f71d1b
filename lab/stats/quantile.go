package stats

import (
	"fmt"
	"math"
	"slices"
)

// Quantile returns the value at q (0 to 1) of ascending values by nearest rank; NaN of none.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 || math.IsNaN(q) {
		return math.NaN()
	}
	// The millionth keeps a rank such as 0.999 × 50,000 from being pushed up because 0.999 is not exact.
	rank := int(math.Ceil(q*float64(len(sorted)) - 1e-6))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median returns the median, of an even number the mean of the middle two; NaN of none and of any NaN.
func Median(xs []float64) float64 {
	return medianSorted(slices.Sorted(slices.Values(xs)))
}

// medianSorted is the median of sorted values; sorting puts a NaN first.
func medianSorted(s []float64) float64 {
	n := len(s)
	if n == 0 || math.IsNaN(s[0]) {
		return math.NaN()
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

// leeway is for probabilities that are alike, or equal a level, but for rounding.
const leeway = 1e-10

// QuantileInterval returns the ranks, from 1, of the order statistics that hold the quantile q of n samples with at least
// the given confidence: the narrowest such interval, by binomial probabilities. ok is false when even all of the sample
// does not reach the level.
func QuantileInterval(n int, q, level float64) (lo, hi int, ok bool) {
	checkLevel(level)
	if n < 2 || !(q > 0 && q < 1) {
		return 0, 0, false
	}
	// between[k] is the probability that exactly k samples lie below the quantile: then it lies between ranks k and k+1.
	between := binomial(n, q)
	between[0], between[n] = -1, -1 // beyond the sample, where no interval reaches
	lo = min(max(int(float64(n+1)*q), 1), n-1)
	hi = lo + 1
	for covered := between[lo]; covered < level-leeway; {
		switch {
		case lo == 1 && hi == n:
			return lo, hi, false
		case between[lo-1] >= between[hi]*(1-leeway): // the lower of two that are alike
			lo--
			covered += between[lo]
		default:
			covered += between[hi]
			hi++
		}
	}
	return lo, hi, true
}

// binomial returns the probabilities of 0 to n successes, by logarithms so that no n is too large.
func binomial(n int, p float64) []float64 {
	out := make([]float64, n+1)
	whole, _ := math.Lgamma(float64(n + 1))
	for k := range out {
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		out[k] = math.Exp(whole - a - b + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
	return out
}

func checkLevel(level float64) {
	if !(level > 0 && level < 1) {
		panic(fmt.Sprintf("stats: a confidence level of %v is not between 0 and 1", level))
	}
}
