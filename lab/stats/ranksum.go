package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// exactSum is the largest size of both samples together for which the rank sum's distribution is computed.
const exactSum = 60

// MannWhitneyP returns the two-sided p-value of the rank-sum test that two independent samples have one centre: exact
// without ties for up to 60 values, else the normal approximation with corrections for ties and continuity. 1 of an empty
// sample.
func MannWhitneyP(a, b []float64) float64 {
	n, m := len(a), len(b)
	if n == 0 || m == 0 {
		return 1
	}
	sum, tied := rankSum(a, b)
	u := sum - float64(n*(n+1))/2
	u = min(u, float64(n*m)-u)
	if tied == 0 && n+m <= exactSum {
		p := 0.0
		for k, q := range rankSumMass(n, m) {
			if float64(k) > u {
				break
			}
			p += q
		}
		return min(2*p, 1)
	}
	f, g := float64(n), float64(m)
	all := f + g
	sd := math.Sqrt(f * g / 12 * (all + 1 - tied/(all*(all-1))))
	if sd == 0 {
		return 1
	}
	return min(twoSided(max(math.Abs(u-f*g/2)-.5, 0)/sd), 1)
}

// rankSum returns the sum of a's ranks among all values, ties having mid-ranks, and Σ(t³−t) over the ties.
func rankSum(a, b []float64) (sum, tied float64) {
	type value struct {
		v    float64
		mine bool
	}
	var all []value
	for _, v := range a {
		all = append(all, value{v, true})
	}
	for _, v := range b {
		all = append(all, value{v, false})
	}
	slices.SortFunc(all, func(x, y value) int { return cmp.Compare(x.v, y.v) })
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].v == all[i].v {
			j++
		}
		for _, x := range all[i:j] {
			if x.mine {
				sum += float64(i+1+j) / 2
			}
		}
		t := float64(j - i)
		tied += t*t*t - t
		i = j
	}
	return sum, tied
}

// rankSumMass returns the distribution of Mann and Whitney's U for samples of n and m: the number of ways to choose n of
// n+m ranks with a given sum, over all ways.
func rankSumMass(n, m int) []float64 {
	// ways[k][u]: choices of k of the ranks seen so far with U = u. Probabilities instead of counts keep it finite.
	ways := make([][]float64, n+1)
	for k := range ways {
		ways[k] = make([]float64, n*m+1)
	}
	ways[0][0] = 1
	for r := 1; r <= n+m; r++ {
		for k := min(r, n); k >= 1; k-- {
			shift := r - k // this rank, as the k-th chosen, beats so many not chosen
			if shift > m {
				continue
			}
			for u := n * m; u >= shift; u-- {
				ways[k][u] += ways[k-1][u-shift]
			}
		}
	}
	total := 0.0
	for _, w := range ways[n] {
		total += w
	}
	for u := range ways[n] {
		ways[n][u] /= total
	}
	return ways[n]
}

// CarryOver is whether a contender's ratio depends on its place in the block.
type CarryOver struct {
	P      float64
	Found  bool
	Detail string
}

// carryOverP is small because the question is asked of every row of every run.
const carryOverP = .01

// FindCarryOver compares the log ratios of the blocks in which the contender ran before the baseline (slot −1) with those
// in which it ran after it (+1).
func FindCarryOver(d []float64, slot []int) CarryOver {
	if len(d) != len(slot) {
		panic(fmt.Sprintf("stats: carry-over of %d ratios in %d slots", len(d), len(slot)))
	}
	var before, after []float64
	for i, v := range d {
		if slot[i] < 0 {
			before = append(before, v)
		} else {
			after = append(after, v)
		}
	}
	c := CarryOver{P: MannWhitneyP(before, after)}
	if c.P < carryOverP {
		c.Found = true
		c.Detail = fmt.Sprintf("%.3f before it (%d blocks), %.3f after it (%d)", math.Exp(Median(before)), len(before), math.Exp(Median(after)), len(after))
	}
	return c
}
