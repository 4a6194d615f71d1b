package stats

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Holm adjusts p-values for having made all of these tests (Holm 1979). The result is in the order of p.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	out := make([]float64, len(p))
	worst := 0.0
	for k, i := range order {
		worst = max(worst, min(p[i]*float64(len(p)-k), 1))
		out[i] = worst
	}
	return out
}

// A Rank is the range of places that a contender may have, from 1; both ends are its own.
type Rank struct{ From, To int }

// Ranks orders contenders by a statistic of each block, smaller being better, and gives each the range of places that the
// data allow: behind those that are shown to be faster, before those shown to be slower. A difference is shown when the
// signed-rank test of the pair, adjusted for all pairs by Holm, is significant at the level. All must have the same blocks.
func Ranks(values map[string][]float64, level float64) (order []string, ranks map[string]Rank) {
	order = slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		if c := cmp.Compare(center(values[a]), center(values[b])); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	type pair struct{ fast, slow string }
	var pairs []pair
	var p []float64
	for i, a := range order {
		for _, b := range order[i+1:] {
			d := logRatios(values[a], values[b])
			if len(d) > 0 && Median(d) > 0 {
				pairs = append(pairs, pair{b, a})
			} else {
				pairs = append(pairs, pair{a, b})
			}
			p = append(p, pairP(d))
		}
	}
	ranks = make(map[string]Rank, len(order))
	for _, name := range order {
		ranks[name] = Rank{1, len(order)}
	}
	for i, adjusted := range Holm(p) {
		if adjusted > 1-level {
			continue
		}
		f, s := ranks[pairs[i].fast], ranks[pairs[i].slow]
		f.To--
		s.From++
		ranks[pairs[i].fast], ranks[pairs[i].slow] = f, s
	}
	return order, ranks
}

// center is where a contender lies among the others: its Hodges–Lehmann estimate on the logarithms.
func center(xs []float64) float64 {
	logs := make([]float64, len(xs))
	for i, x := range xs {
		logs[i] = math.Log(x)
	}
	return HodgesLehmann(logs)
}

func logRatios(a, b []float64) []float64 {
	var d []float64
	for i := range min(len(a), len(b)) {
		if usable(a[i]) && usable(b[i]) {
			d = append(d, math.Log(a[i]/b[i]))
		}
	}
	return d
}

// pairP is the pair's p-value; with too few blocks for any interval nothing is shown.
func pairP(d []float64) float64 {
	if len(d) < leastBlocks {
		return 1
	}
	return SignedRankP(d)
}
