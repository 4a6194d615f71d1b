package stats

import (
	"cmp"
	"math"
	"slices"
)

// midRanks returns twice the rank of each value, ties sharing the middle of theirs, and Σ(t³−t) over the groups of t ties.
// The ranks are doubled so that all are whole.
func midRanks(xs []float64) (doubled []int, tied float64) {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(xs[i], xs[j]) })
	doubled = make([]int, len(xs))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && xs[order[to]] == xs[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			doubled[i] = from + 1 + to
		}
		t := float64(to - from)
		tied += t*t*t - t
		from = to
	}
	return doubled, tied
}

// upTo sums the probabilities of 0 to top.
func upTo(mass []float64, top int) float64 {
	sum := 0.0
	for _, p := range mass[:top+1] {
		sum += p
	}
	return sum
}

// twoSided is the probability that a standard normal value lies at least z from 0.
func twoSided(z float64) float64 { return math.Erfc(z / math.Sqrt2) }

func anyNaN(xs []float64) bool { return slices.ContainsFunc(xs, math.IsNaN) }
