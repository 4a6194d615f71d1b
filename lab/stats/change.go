package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Change is a point from which on a series has another level.
type Change struct {
	At    int     // index of the first value of the new level
	Ratio float64 // new level over the one before, medians
	P     float64 // of the permutation test
}

const (
	permutations = 499
	changeP      = .01
)

// FindChanges splits a series of positive values where its level changes and both sides hold at least minSegment values:
// binary segmentation by the largest rank-sum statistic, each split accepted when fewer than 1 % of the permutations of the
// segment have a larger one. Ranks keep a single spike from looking like a level. The permutations' seed is fixed.
func FindChanges(ys []float64, minSegment int) []Change {
	logs := make([]float64, len(ys))
	for i, y := range ys {
		logs[i] = math.Log(y)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	cuts := segment(logs, 0, max(minSegment, 1), rnd)
	slices.SortFunc(cuts, func(a, b Change) int { return a.At - b.At })
	for i := range cuts {
		from, to := 0, len(logs)
		if i > 0 {
			from = cuts[i-1].At
		}
		if i < len(cuts)-1 {
			to = cuts[i+1].At
		}
		cuts[i].Ratio = math.Exp(Median(logs[cuts[i].At:to]) - Median(logs[from:cuts[i].At]))
	}
	return cuts
}

func segment(logs []float64, offset, least int, rnd *rand.Rand) []Change {
	if len(logs) < 2*least {
		return nil
	}
	ranks := midRanks(logs)
	at, best := largestStep(ranks, least)
	worse := 0
	for range permutations {
		rnd.Shuffle(len(ranks), func(i, j int) { ranks[i], ranks[j] = ranks[j], ranks[i] })
		if _, s := largestStep(ranks, least); s >= best {
			worse++
		}
	}
	p := float64(worse+1) / (permutations + 1)
	if best == 0 || p > changeP {
		return nil
	}
	out := []Change{{At: offset + at, P: p}}
	out = append(out, segment(logs[:at], offset, least, rnd)...)
	return append(out, segment(logs[at:], offset+at, least, rnd)...)
}

// midRanks returns the ranks of xs, ties sharing the middle of theirs.
func midRanks(xs []float64) []float64 {
	sorted := slices.Sorted(slices.Values(xs))
	out := make([]float64, len(xs))
	for i, x := range xs {
		first, _ := slices.BinarySearch(sorted, x)
		last := first
		for last < len(sorted) && sorted[last] == x {
			last++
		}
		out[i] = float64(first+1+last) / 2
	}
	return out
}

// largestStep returns the split with the largest standardised difference of the mean ranks.
func largestStep(ranks []float64, least int) (at int, best float64) {
	n := float64(len(ranks))
	mean, sum := (n+1)/2, 0.0
	for i, r := range ranks {
		sum += r - mean
		left := float64(i + 1)
		if i+1 < least || len(ranks)-i-1 < least {
			continue
		}
		if s := math.Abs(sum) / math.Sqrt(left*(n-left)); s > best {
			at, best = i+1, s
		}
	}
	return at, best
}
