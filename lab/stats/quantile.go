package stats

import (
	"math"
	"slices"
)

// Quantile returns the value at q (0 to 1) of ascending values by nearest rank; NaN of none.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	// The millionth keeps a rank such as 0.999 × 50,000 from being pushed up because 0.999 is not exact.
	rank := int(math.Ceil(q*float64(len(sorted)) - 1e-6))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median returns the median, of an even number the mean of the middle two; NaN of none.
func Median(xs []float64) float64 {
	return medianSorted(slices.Sorted(slices.Values(xs)))
}

func medianSorted(s []float64) float64 {
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

// QuantileInterval returns the ranks, from 1, of the order statistics that hold the quantile q of n samples with at least
// the given confidence: the narrowest such interval around the rank of q, by binomial probabilities. ok is false when even
// all of the sample does not reach the level.
func QuantileInterval(n int, q, level float64) (lo, hi int, ok bool) {
	if n < 1 || q <= 0 || q >= 1 {
		return 0, 0, false
	}
	// mass[k] is the probability that exactly k samples lie below the quantile: then it lies between ranks k and k+1.
	mass := binomial(n, q)
	center := min(max(int(math.Round(q*float64(n))), 1), n-1)
	if n == 1 {
		return 0, 0, false
	}
	lo, hi = center, center+1
	covered := mass[center]
	for covered < level && (lo > 1 || hi < n) {
		down, up := -1.0, -1.0
		if lo > 1 {
			down = mass[lo-1]
		}
		if hi < n {
			up = mass[hi]
		}
		if down >= up {
			lo--
			covered += down
		} else {
			hi++
			covered += up
		}
	}
	return lo, hi, covered >= level
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
