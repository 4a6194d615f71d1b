package stats

import (
	"fmt"
	"math"
	"slices"
)

// exactSum is the largest size of both samples together for which the rank sum's distribution is computed.
const exactSum = 60

// MannWhitneyP returns the two-sided p-value of the rank-sum test that two independent samples have one centre: exact
// without ties for up to 60 values, else the normal approximation with corrections for ties and continuity. 1 of an empty
// sample, NaN of any NaN.
func MannWhitneyP(a, b []float64) float64 {
	n, m := len(a), len(b)
	if anyNaN(a) || anyNaN(b) {
		return math.NaN()
	}
	if n == 0 || m == 0 {
		return 1
	}
	ranks, tied := midRanks(slices.Concat(a, b))
	u := -n * (n + 1) // doubled, as the ranks are
	for _, r := range ranks[:n] {
		u += r
	}
	u = min(u, 2*n*m-u)
	if tied == 0 && n+m <= exactSum {
		return min(2*upTo(rankSumMass(n, m), u/2), 1)
	}
	return rankSumNormal(float64(n), float64(m), float64(u)/2, tied)
}

// rankSumNormal approximates the two-sided p-value of u, the smaller of both samples' U.
func rankSumNormal(n, m, u, tied float64) float64 {
	all := n + m
	sd := math.Sqrt(n * m / 12 * (all + 1 - tied/(all*(all-1))))
	if sd == 0 {
		return 1
	}
	return twoSided(max(n*m/2-u-.5, 0) / sd)
}

// rankSumMass returns the distribution of Mann and Whitney's U for samples of n and m: the number of ways to choose n of
// n+m ranks with a given U, over all ways.
func rankSumMass(n, m int) []float64 {
	// ways[k][u]: choices of k of the ranks seen so far. Floats, since the ways of 30 and 30 (10¹⁷) are nearly too many.
	ways := make([][]float64, n+1)
	for k := range ways {
		ways[k] = make([]float64, n*m+1)
	}
	ways[0][0] = 1
	for r := 1; r <= n+m; r++ {
		for k := min(r, n); k >= max(1, r-m); k-- {
			beats := r - k // how many that are not chosen lie below this rank, chosen as the k-th
			for u := n * m; u >= beats; u-- {
				ways[k][u] += ways[k-1][u-beats]
			}
		}
	}
	mass := ways[n]
	total := upTo(mass, n*m)
	for u := range mass {
		mass[u] /= total
	}
	return mass
}

// CarryOver is whether a contender's ratio depends on its place in the block.
type CarryOver struct {
	P      float64
	Found  bool
	Detail string // both ratios, when it was found
}

// carryOverP is small because the question is asked of every row of every run.
const carryOverP = .01

// FindCarryOver compares the log ratios of the blocks in which the contender ran before the baseline (slot −1) with those
// in which it ran after it (+1). With a NaN among them P is NaN and nothing is found.
func FindCarryOver(d []float64, slot []int) CarryOver {
	before, after := bySlot(d, slot)
	c := CarryOver{P: MannWhitneyP(before, after)}
	if c.P < carryOverP {
		c.Found = true
		c.Detail = fmt.Sprintf("%.3f before it (%d blocks), %.3f after it (%d)", math.Exp(Median(before)), len(before), math.Exp(Median(after)), len(after))
	}
	return c
}

func bySlot(d []float64, slot []int) (before, after []float64) {
	if len(d) != len(slot) {
		panic(fmt.Sprintf("stats: carry-over of %d ratios in %d slots", len(d), len(slot)))
	}
	for i, v := range d {
		switch slot[i] {
		case -1:
			before = append(before, v)
		case 1:
			after = append(after, v)
		default:
			panic(fmt.Sprintf("stats: slot %d of block %d is neither −1 nor 1", slot[i], i))
		}
	}
	return before, after
}
