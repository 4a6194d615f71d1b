package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Change is a point from which on a series has another level.
type Change struct {
	At    int     // index of the first value of the new level
	Ratio float64 // new level over the one before, medians of the logarithms
	P     float64 // of the permutation test
}

const (
	permutations = 499
	changeP      = .01
)

// FindChanges splits a series where its level changes and both sides hold at least minSegment values: binary segmentation
// by the largest rank-sum statistic, each split accepted when at most 1 % of the permutations of the segment have as large
// a one. Ranks keep a single spike from looking like a level. The permutations' seed is fixed. Under ten values no split is
// that rare; a clear step in the last third is found from about sixteen on. A step that comes back is often missed: no single
// split of the series tells its two halves apart.
//
// The levels are those of the logarithms: a series with a value that is not positive and finite has none, hence no change.
func FindChanges(ys []float64, minSegment int) []Change {
	if !allUsable(ys) {
		return nil
	}
	cuts := segment(ys, 0, max(minSegment, 1), rand.New(rand.NewPCG(1, 2)))
	for i := range cuts {
		from, to := 0, len(ys)
		if i > 0 {
			from = cuts[i-1].At
		}
		if i < len(cuts)-1 {
			to = cuts[i+1].At
		}
		cuts[i].Ratio = math.Exp(logLevel(ys[cuts[i].At:to]) - logLevel(ys[from:cuts[i].At]))
	}
	return cuts
}

func allUsable(ys []float64) bool {
	return !slices.ContainsFunc(ys, func(y float64) bool { return !usable(y) })
}

func logLevel(ys []float64) float64 {
	logs := make([]float64, len(ys))
	for i, y := range ys {
		logs[i] = math.Log(y)
	}
	return Median(logs)
}

// segment returns the changes of ys, which begins at offset of the series.
func segment(ys []float64, offset, least int, rnd *rand.Rand) []Change {
	if len(ys) < 2*least {
		return nil
	}
	at, p := split(ys, least, rnd)
	if p > changeP {
		return nil
	}
	out := append(segment(ys[:at], offset, least, rnd), Change{At: offset + at, P: p})
	return append(out, segment(ys[at:], offset+at, least, rnd)...)
}

// split returns the likeliest place of a change and the share of permutations that show as large a one; 1 when all values
// are the same.
func split(ys []float64, least int, rnd *rand.Rand) (at int, p float64) {
	ranks, _ := midRanks(ys)
	at, best := largestStep(ranks, least)
	if best == 0 {
		return at, 1
	}
	asLarge := 1 // the series itself
	for range permutations {
		rnd.Shuffle(len(ranks), func(i, j int) { ranks[i], ranks[j] = ranks[j], ranks[i] })
		if _, step := largestStep(ranks, least); step >= best {
			asLarge++
		}
	}
	return at, float64(asLarge) / (permutations + 1)
}

// largestStep returns the split with the largest standardised difference of the mean doubled ranks.
func largestStep(ranks []int, least int) (at int, best float64) {
	n, sum := len(ranks), 0
	for i := 1; i <= n-least; i++ {
		sum += ranks[i-1] - (n + 1)
		if i < least {
			continue
		}
		if step := math.Abs(float64(sum)) / math.Sqrt(float64(i*(n-i))); step > best {
			at, best = i, step
		}
	}
	return at, best
}
