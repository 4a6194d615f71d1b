package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toll/lab/stats"
)

// The usual example first: of its four, two survive at 5 %.
func TestHolm(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range []struct{ p, want []float64 }{
		{[]float64{.01, .04, .03, .005}, []float64{.03, .06, .06, .02}},
		{[]float64{.9, .8}, []float64{1, 1}},
		{[]float64{.02}, []float64{.02}},
		{[]float64{.01, .01, .01}, []float64{.03, .03, .03}},
		{[]float64{.01, nan, 1, .02}, []float64{.04, nan, 1, .06}},
		{nil, []float64{}},
	} {
		if d := cmp.Diff(c.want, stats.Holm(c.p), close12, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("of %v: %s", c.p, d)
		}
	}
}

func TestHolmIsMonotone(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(12, 12))
	for range 100 {
		p := make([]float64, 1+r.IntN(12))
		for i := range p {
			p[i] = r.Float64() * r.Float64()
		}
		got := stats.Holm(p)
		for i := range p {
			for j := range p {
				if p[i] < p[j] && got[i] > got[j] {
					t.Errorf("%v become %v: the order changed", p, got)
				}
			}
			if got[i] < p[i] || got[i] > 1 || got[i] > float64(len(p))*p[i]+1e-12 {
				t.Errorf("%v of %d became %v: not between itself and Bonferroni's", p[i], len(p), got[i])
			}
		}
	}
}

// field returns the blocks of contenders that share the drift of a block; level is what each takes.
func field(r *rand.Rand, blocks int, level map[string]float64) map[string][]float64 {
	names := make([]string, 0, len(level))
	for name := range level {
		names = append(names, name)
	}
	slices.Sort(names)
	values := make(map[string][]float64)
	for range blocks {
		drift := math.Exp(r.NormFloat64() / 4)
		for _, name := range names {
			values[name] = append(values[name], level[name]*drift*math.Exp(r.NormFloat64()/50))
		}
	}
	return values
}

func TestRanksAreRangesWhereNothingIsShown(t *testing.T) {
	t.Parallel()
	values := field(rand.New(rand.NewPCG(6, 6)), 20, map[string]float64{"fast": 50, "even": 100, "odd": 100, "slow": 200})
	order, ranks := stats.Ranks(values, .95)
	want := map[string]stats.Rank{"fast": {From: 1, To: 1}, "even": {From: 2, To: 3}, "odd": {From: 2, To: 3}, "slow": {From: 4, To: 4}}
	if d := cmp.Diff(want, ranks); d != "" || order[0] != "fast" || order[3] != "slow" {
		t.Errorf("order %v, ranks %s", order, d)
	}
	for name := range values {
		values[name] = values[name][:5]
	}
	if _, ranks := stats.Ranks(values, .95); ranks["fast"] != (stats.Rank{From: 1, To: 4}) {
		t.Errorf("five blocks rank nobody: %v", ranks)
	}
}

func TestEqualContendersStandByName(t *testing.T) {
	t.Parallel()
	order, ranks := stats.Ranks(map[string][]float64{"c": baseline, "a": baseline, "b": baseline}, .95)
	tied := stats.Rank{From: 1, To: 3}
	if !slices.Equal(order, []string{"a", "b", "c"}) || ranks["a"] != tied || ranks["b"] != tied || ranks["c"] != tied {
		t.Errorf("order %v, ranks %v", order, ranks)
	}
	if order, ranks := stats.Ranks(nil, .95); len(order) != 0 || len(ranks) != 0 {
		t.Error(order, ranks)
	}
	if order, ranks := stats.Ranks(map[string][]float64{"only": baseline}, .95); len(order) != 1 || ranks["only"] != (stats.Rank{From: 1, To: 1}) {
		t.Error(order, ranks)
	}
}

// A contender that is a shade faster in most blocks and far slower in the others is the slower one: the side is the test's
// own, not that of the median.
func TestTheShownSideIsThatOfTheTest(t *testing.T) {
	t.Parallel()
	skewed, even := make([]float64, 60), make([]float64, 60)
	for i := range skewed {
		even[i] = 1
		skewed[i] = .999
		if i%20 < 9 {
			skewed[i] = 1.6 + float64(i)/1000
		}
	}
	order, ranks := stats.Ranks(map[string][]float64{"a-skewed": skewed, "b-even": even}, .95)
	if order[0] != "b-even" || ranks["b-even"] != (stats.Rank{From: 1, To: 1}) || ranks["a-skewed"] != (stats.Rank{From: 2, To: 2}) {
		t.Errorf("order %v, ranks %v", order, ranks)
	}
}

func TestContendersWithoutValuesAreLastAndTied(t *testing.T) {
	t.Parallel()
	values := field(rand.New(rand.NewPCG(13, 13)), 20, map[string]float64{"fast": 50, "slow": 100, "a-dead": math.NaN()})
	values["fast"][3] = math.NaN()
	order, ranks := stats.Ranks(values, .95)
	want := map[string]stats.Rank{"fast": {From: 1, To: 2}, "slow": {From: 2, To: 3}, "a-dead": {From: 1, To: 3}}
	if d := cmp.Diff(want, ranks); d != "" || order[2] != "a-dead" {
		t.Errorf("order %v, ranks %s", order, d)
	}
	if !panics(func() { stats.Ranks(map[string][]float64{"a": baseline, "b": baseline[1:]}, .95) }) {
		t.Error("contenders with different blocks were ranked")
	}
	if !panics(func() { stats.Ranks(values, 95) }) {
		t.Error("a level of 95 is taken")
	}
}

func TestRanksDoNotDependOnScaleOrBlockOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(14, 14))
	for range 20 {
		values := field(r, 15, map[string]float64{"a": 100, "b": 101, "c": 103, "d": 120})
		order, ranks := stats.Ranks(values, .95)
		perm, moved := r.Perm(15), make(map[string][]float64)
		for name, xs := range values {
			for _, j := range perm {
				moved[name] = append(moved[name], 3*xs[j])
			}
		}
		order2, ranks2 := stats.Ranks(moved, .95)
		if !slices.Equal(order, order2) || cmp.Diff(ranks, ranks2) != "" {
			t.Errorf("%v %v became %v %v", order, ranks, order2, ranks2)
		}
		for name, k := range ranks {
			if k.From < 1 || k.To > 4 || k.From > k.To {
				t.Errorf("%s has the places %+v", name, k)
			}
		}
	}
}

// Of four equal contenders, at most one field in twenty may be ranked: that is what Holm is for.
func TestEqualContendersAreSeldomRanked(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(15, 15))
	const fields = 300
	ranked := 0
	for range fields {
		_, ranks := stats.Ranks(field(r, 20, map[string]float64{"a": 1, "b": 1, "c": 1, "d": 1}), .95)
		for _, k := range ranks {
			if k != (stats.Rank{From: 1, To: 4}) {
				ranked++
				break
			}
		}
	}
	t.Logf("%.1f %% of the fields of equals were ranked", 100*float64(ranked)/fields)
	if ranked > fields*7/100 {
		t.Errorf("%d of %d fields of equals were ranked", ranked, fields)
	}
}
