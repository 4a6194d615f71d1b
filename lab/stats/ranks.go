package stats

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Holm adjusts p-values for having made all of these tests (Holm 1979). The result is in the order of p; a NaN stays one,
// and counts as a test.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(nanLast(p[i]), nanLast(p[j])) })
	out := make([]float64, len(p))
	worst := 0.0
	for k, i := range order {
		worst = max(worst, min(p[i]*float64(len(p)-k), 1))
		out[i] = worst
	}
	return out
}

func nanLast(v float64) float64 {
	if math.IsNaN(v) {
		return math.Inf(1)
	}
	return v
}

// A Rank is the range of places that a contender may have, from 1; both ends are its own.
type Rank struct{ From, To int }

// Ranks orders contenders by a statistic of each block, smaller being better, and gives each the range of places that the
// data allow: behind those that are shown to be faster, before those shown to be slower. A difference is shown when the
// signed-rank test of the pair's log ratios, adjusted for all pairs by Holm, is significant at the level; under six blocks
// none is. Value i of every contender is from block i; a pair leaves out the blocks that are not usable in both.
//
// The order is that of the Hodges–Lehmann ratios to one reference, the contender of the lowest median; then by name.
func Ranks(values map[string][]float64, level float64) (order []string, ranks map[string]Rank) {
	checkLevel(level)
	order = inOrder(values)
	ranks = make(map[string]Rank, len(order))
	for _, name := range order {
		ranks[name] = Rank{1, len(order)}
	}
	for _, v := range verdicts(order, values, level) {
		f, s := ranks[v.fast], ranks[v.slow]
		f.To--
		s.From++
		ranks[v.fast], ranks[v.slow] = f, s
	}
	return order, ranks
}

// inOrder sorts the names by their ratio to a common reference, those without one last.
func inOrder(values map[string][]float64) []string {
	names := sortedBy(slices.Collect(maps.Keys(values)), func(name string) float64 { return Median(values[name]) })
	if len(names) == 0 {
		return nil
	}
	reference := values[names[0]]
	return sortedBy(names, func(name string) float64 {
		return HodgesLehmann(logRatios(usablePairs(values[name], reference)))
	})
}

// sortedBy sorts names by a figure, NaN last and equal ones by name.
func sortedBy(names []string, figure func(string) float64) []string {
	at := make(map[string]float64, len(names))
	for _, name := range names {
		at[name] = nanLast(figure(name))
	}
	return slices.SortedFunc(slices.Values(names), func(a, b string) int {
		return cmp.Or(cmp.Compare(at[a], at[b]), cmp.Compare(a, b))
	})
}

// A verdict says which of two contenders the test of the pair favours.
type verdict struct{ fast, slow string }

// verdicts tests all pairs and returns those whose difference is shown.
func verdicts(names []string, values map[string][]float64, level float64) []verdict {
	var all, shown []verdict
	var p []float64
	for i, a := range names {
		for _, b := range names[i+1:] {
			v, q := duel(a, b, values)
			all, p = append(all, v), append(p, q)
		}
	}
	for i, adjusted := range Holm(p) {
		if adjusted <= 1-level {
			shown = append(shown, all[i])
		}
	}
	return shown
}

// duel tests one pair. The side is the test's own: the median of a skewed sample can lie on the other one.
func duel(a, b string, values map[string][]float64) (v verdict, p float64) {
	d := logRatios(usablePairs(values[a], values[b]))
	if len(d) < leastBlocks {
		return verdict{a, b}, 1
	}
	p, side := signedRankTest(d)
	if side > 0 {
		return verdict{b, a}, p
	}
	return verdict{a, b}, p
}
