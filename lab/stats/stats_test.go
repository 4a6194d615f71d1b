package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/perf/benchmath"

	"toll/lab/stats"
)

var close12 = cmpopts.EquateApprox(1e-9, 1e-12)

func TestQuantilesByNearestRank(t *testing.T) {
	t.Parallel()
	check := func(xs []float64, q, want float64) {
		t.Helper()
		if got := stats.Quantile(xs, q); got != want {
			t.Errorf("q%v of %v is %v, want %v", q, xs, got, want)
		}
	}
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	check(ten, 0, 1)
	check(ten, .5, 5)
	check(ten, .9, 9)
	check(ten, .91, 10)
	check(ten, .999, 10)
	check(ten, 1, 10)
	check([]float64{7}, .5, 7)
	if got := stats.Quantile(nil, .5); !math.IsNaN(got) {
		t.Errorf("a quantile of nothing is %v", got)
	}
	if got := stats.Median([]float64{9, 1, 4, 2}); got != 3 {
		t.Errorf("median %v", got)
	}
	if got := stats.Median(nil); !math.IsNaN(got) {
		t.Errorf("a median of nothing is %v", got)
	}
}

func TestQuantileIntervalsCoverAtLeastTheirLevel(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 5, 6, 9, 20, 100, 1000} {
		for _, q := range []float64{.1, .5, .9, .99} {
			lo, hi, ok := stats.QuantileInterval(n, q, .95)
			all := 1 - math.Pow(q, float64(n)) - math.Pow(1-q, float64(n))
			if ok != (all >= .95) {
				t.Errorf("n %d, q%v: ok %v, the whole sample covers %v", n, q, ok, all)
			}
			if !ok {
				continue
			}
			covered := 0.0
			for k := lo; k < hi; k++ {
				covered += binomial(n, k, q)
			}
			if covered < .95 || lo < 1 || hi > n || lo >= hi {
				t.Errorf("n %d, q%v: ranks %d–%d cover %v", n, q, lo, hi, covered)
			}
		}
	}
	for _, bad := range []struct {
		n int
		q float64
	}{{0, .5}, {1, .5}, {10, 0}, {10, 1}} {
		if _, _, ok := stats.QuantileInterval(bad.n, bad.q, .95); ok {
			t.Errorf("%+v has an interval", bad)
		}
	}
}

func binomial(n, k int, p float64) float64 {
	c := 1.0
	for i := range k {
		c *= float64(n-i) / float64(i+1) * p
		if i < n-k {
			c *= 1 - p
		}
	}
	return c * math.Pow(1-p, float64(max(n-2*k, 0)))
}

// benchmath's interval of the median is the oracle: the same order statistics.
func TestMedianIntervalIsThatOfBenchmath(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{6, 8, 10, 15, 20, 31, 50} {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = r.ExpFloat64()
		}
		slices.Sort(xs)
		lo, hi, ok := stats.QuantileInterval(n, .5, .95)
		want := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(xs), &benchmath.DefaultThresholds), .95)
		if !ok || xs[lo-1] != want.Lo || xs[hi-1] != want.Hi {
			t.Errorf("n %d: ranks %d–%d give %v–%v, benchmath %v–%v", n, lo, hi, xs[lo-1], xs[hi-1], want.Lo, want.Hi)
		}
	}
}

func TestMannWhitneyIsThatOfBenchmath(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		a, b := make([]float64, 4+r.IntN(10)), make([]float64, 4+r.IntN(10))
		for i := range a {
			a[i] = 1 + r.Float64()
		}
		for i := range b {
			b[i] = 1.3 + r.Float64()
		}
		want := benchmath.AssumeNothing.Compare(benchmath.NewSample(a, &benchmath.DefaultThresholds), benchmath.NewSample(b, &benchmath.DefaultThresholds)).P
		if got := stats.MannWhitneyP(a, b); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v and %v: p %v, benchmath %v", a, b, got, want)
		}
	}
	if p := stats.MannWhitneyP(nil, []float64{1}); p != 1 {
		t.Errorf("an empty sample has p %v", p)
	}
	if p := stats.MannWhitneyP([]float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}); p != 1 {
		t.Errorf("all ties have p %v", p)
	}
}

// Critical values of the signed-rank sum, two-sided 5 %, as every textbook prints them.
func TestSignedRankCriticalValues(t *testing.T) {
	t.Parallel()
	for n, w := range map[int]int{
		6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 11: 10, 12: 13, 13: 17, 14: 21, 15: 25, 16: 29, 17: 34, 18: 40, 19: 46, 20: 52, 25: 89, 30: 137,
	} {
		if at, above := signedRankPOf(n, w), signedRankPOf(n, w+1); at > .05 || above <= .05 {
			t.Errorf("n %d: p(%d) = %.4f, p(%d) = %.4f; the table says that %d is the largest significant sum", n, w, at, w+1, above, w)
		}
		d := make([]float64, n)
		for i := range d {
			d[i] = math.Pow(1.7, float64(i))
		}
		lo, hi, ok := stats.SignedRankInterval(d, .95)
		walsh := walshOf(d)
		if !ok || lo != walsh[w] || hi != walsh[len(walsh)-1-w] {
			t.Errorf("n %d: interval %v–%v, want the Walsh averages number %d from both ends, %v–%v", n, lo, hi, w+1, walsh[w], walsh[len(walsh)-1-w])
		}
	}
	if _, _, ok := stats.SignedRankInterval([]float64{1, 2, 3, 4, 5}, .95); ok {
		t.Error("five values have a 95 % interval")
	}
	if _, _, ok := stats.SignedRankInterval([]float64{1, 2, 3, 4, 5, 6, 7}, .99); ok {
		t.Error("seven values have a 99 % interval")
	}
	if _, _, ok := stats.SignedRankInterval([]float64{1, 2, 3, 4, 5, 6, 7, 8}, .99); !ok {
		t.Error("eight values have no 99 % interval")
	}
}

// signedRankPOf returns the p-value of n values without ties whose positive ranks sum to w.
func signedRankPOf(n, w int) float64 {
	d := make([]float64, n)
	for i := range d {
		d[i] = -float64(i + 1)
	}
	for r := n; r >= 1; r-- {
		if w >= r {
			d[r-1] = float64(r)
			w -= r
		}
	}
	return stats.SignedRankP(d)
}

func walshOf(d []float64) []float64 {
	var w []float64
	for i := range d {
		for j := i; j < len(d); j++ {
			w = append(w, (d[i]+d[j])/2)
		}
	}
	slices.Sort(w)
	return w
}

// Hollander and Wolfe's depression scores: R's wilcox.test prints V = 40, p = 0.01953 one-sided.
func TestSignedRankOfTheDepressionScores(t *testing.T) {
	t.Parallel()
	x := []float64{1.83, .50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	y := []float64{.878, .647, .598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	d := make([]float64, len(x))
	for i := range x {
		d[i] = x[i] - y[i]
	}
	if p := stats.SignedRankP(d); math.Abs(p-.0390625) > 1e-12 {
		t.Errorf("p %v, want 0.0390625", p)
	}
	if c := stats.HodgesLehmann(d); math.Abs(c-.46) > 1e-9 {
		t.Errorf("pseudomedian %v, want 0.46", c)
	}
}

func TestSignedRankPIsExactWithTiesAndZeros(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		d := make([]float64, 1+r.IntN(11))
		for i := range d {
			d[i] = float64(r.IntN(9) - 3)
		}
		if got, want := stats.SignedRankP(d), enumerated(d); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: p %v, all signs give %v", d, got, want)
		}
	}
	if p := stats.SignedRankP(nil); p != 1 {
		t.Errorf("p of nothing is %v", p)
	}
}

// enumerated tries all signs.
func enumerated(d []float64) float64 {
	var xs []float64
	for _, v := range d {
		if v != 0 {
			xs = append(xs, v)
		}
	}
	rank := func(v float64) float64 {
		below, same := 0, 0
		for _, o := range xs {
			if math.Abs(o) < math.Abs(v) {
				below++
			} else if math.Abs(o) == math.Abs(v) {
				same++
			}
		}
		return float64(below) + float64(same+1)/2
	}
	pos, total := 0.0, 0.0
	for _, v := range xs {
		total += rank(v)
		if v > 0 {
			pos += rank(v)
		}
	}
	w, hits := min(pos, total-pos), 0
	for signs := range 1 << len(xs) {
		s := 0.0
		for i, v := range xs {
			if signs>>i&1 == 1 {
				s += rank(v)
			}
		}
		if s <= w {
			hits++
		}
	}
	return min(2*float64(hits)/float64(int(1)<<len(xs)), 1)
}

func TestTheNormalApproximationTakesOverSmoothly(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	d := make([]float64, 260)
	for i := range d {
		d[i] = r.NormFloat64() + .12
	}
	exact, normal := stats.SignedRankP(d[:200]), stats.SignedRankP(append(slices.Clone(d[:200]), 1e-9))
	if math.Abs(exact-normal) > .003 {
		t.Errorf("p of 200 values %v, of 201 %v", exact, normal)
	}
	lo, hi, ok := stats.SignedRankInterval(d, .95)
	if c := stats.HodgesLehmann(d); !ok || lo >= c || hi <= c {
		t.Errorf("%v in %v–%v, %v", c, lo, hi, ok)
	}
}

func TestPairedRatio(t *testing.T) {
	t.Parallel()
	base := []float64{100, 110, 95, 130, 105, 99, 101, 180, 98, 102}
	half := make([]float64, len(base))
	for i := range base {
		half[i] = base[i] / 2
	}
	want := stats.Ratio{Value: .5, Lo: .5, Hi: .5, Blocks: 10, Interval: true, Min: .5}
	if d := cmp.Diff(want, stats.PairedRatio(half, base, .95), close12); d != "" {
		t.Error(d)
	}
	few := stats.PairedRatio(half[:5], base[:5], .95)
	if few.Interval || !math.IsNaN(few.Lo) || few.Value != .5 || len(few.Warnings) != 1 {
		t.Errorf("five blocks: %+v", few)
	}
	odd := slices.Clone(half)
	odd[3], odd[4], odd[5] = 0, math.NaN(), math.Inf(1)
	if got := stats.PairedRatio(odd, base, .95); got.Blocks != 7 || !got.Interval || len(got.Warnings) != 1 {
		t.Errorf("three unusable blocks: %+v", got)
	}
	if got := stats.PairedRatio(nil, nil, .95); got.Interval || !math.IsNaN(got.Value) {
		t.Errorf("no block: %+v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("slices of different length were paired")
		}
	}()
	stats.PairedRatio(base, base[1:], .95)
}

func TestPropertiesOfThePairedRatio(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		n := 6 + r.IntN(30)
		a, b := make([]float64, n), make([]float64, n)
		for i := range a {
			a[i], b[i] = math.Exp(r.NormFloat64()), math.Exp(r.NormFloat64()+.5)
		}
		q := stats.PairedRatio(a, b, .95)
		if q.Lo > q.Value || q.Hi < q.Value {
			t.Errorf("%+v does not hold its value", q)
		}
		swapped := stats.PairedRatio(b, a, .95)
		if math.Abs(swapped.Value*q.Value-1) > 1e-9 || math.Abs(swapped.Lo*q.Hi-1) > 1e-9 {
			t.Errorf("%+v swapped is %+v", q, swapped)
		}
		perm := r.Perm(n)
		pa, pb := make([]float64, n), make([]float64, n)
		for i, j := range perm {
			pa[i], pb[i] = 7*a[j], 7*b[j]
		}
		if d := cmp.Diff(q, stats.PairedRatio(pa, pb, .95), close12); d != "" {
			t.Errorf("scaled and permuted blocks: %s", d)
		}
	}
}

// Holm's own kind of example: of these four, the first two survive at 5 %.
func TestHolm(t *testing.T) {
	t.Parallel()
	if d := cmp.Diff([]float64{.03, .06, .06, .02}, stats.Holm([]float64{.01, .04, .03, .005}), close12); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{1, 1}, stats.Holm([]float64{.9, .8}), close12); d != "" {
		t.Error(d)
	}
	if got := stats.Holm(nil); len(got) != 0 {
		t.Error(got)
	}
}

func TestRanksAreRangesWhereNothingIsShown(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	values := map[string][]float64{}
	for range 20 {
		drift := math.Exp(r.NormFloat64() / 4)
		for _, c := range []struct {
			name  string
			level float64
		}{{"fast", 50}, {"even", 100}, {"odd", 100}, {"slow", 200}} {
			values[c.name] = append(values[c.name], c.level*drift*math.Exp(r.NormFloat64()/50))
		}
	}
	order, ranks := stats.Ranks(values, .95)
	want := map[string]stats.Rank{"fast": {1, 1}, "even": {2, 3}, "odd": {2, 3}, "slow": {4, 4}}
	if d := cmp.Diff(want, ranks); d != "" || order[0] != "fast" || order[3] != "slow" {
		t.Errorf("order %v, ranks %s", order, d)
	}
	for name := range values {
		values[name] = values[name][:5]
	}
	if _, ranks := stats.Ranks(values, .95); ranks["fast"] != (stats.Rank{From: 1, To: 4}) {
		t.Errorf("five blocks rank nobody: %v", ranks)
	}
	if order, ranks := stats.Ranks(nil, .95); len(order) != 0 || len(ranks) != 0 {
		t.Error(order, ranks)
	}
}

func TestDriftIsATrendAndNotNoise(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	found := 0
	for range 200 {
		ys := make([]float64, 20)
		for i := range ys {
			ys[i] = 100 * math.Exp(r.NormFloat64()/20)
		}
		if stats.FindDrift(ys).Drifting {
			found++
		}
		for i := range ys {
			ys[i] *= 1 + .02*float64(i)
		}
		if d := stats.FindDrift(ys); !d.Drifting || d.SlopePerBlock < .01 || d.SlopePerBlock > .025 {
			t.Errorf("2 %% a block: %+v", d)
		}
	}
	if found > 2 {
		t.Errorf("%d of 200 steady series drift", found)
	}
	if d := stats.FindDrift([]float64{1, 2}); d.Drifting {
		t.Error(d)
	}
}

func TestTheilSenAndMannKendall(t *testing.T) {
	t.Parallel()
	if got := stats.TheilSen([]float64{1, 3, 5, 100, 9}); got != 2 {
		t.Errorf("slope %v, want 2 in spite of one outlier", got)
	}
	// Of the 24 orders of four values one ascends and one descends.
	if got := stats.MannKendall([]float64{1, 2, 3, 4}); math.Abs(got-2./24) > 1e-12 {
		t.Errorf("p %v, want 2/24", got)
	}
	if got := stats.MannKendall([]float64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}); got != 1 {
		t.Errorf("a constant has p %v", got)
	}
	up := make([]float64, 30)
	for i := range up {
		up[i] = float64(i)
	}
	if got := stats.MannKendall(up); got > 1e-9 {
		t.Errorf("thirty ascending values have p %v", got)
	}
}

func TestCarryOver(t *testing.T) {
	t.Parallel()
	var d []float64
	var slot []int
	for i := range 20 {
		d = append(d, .001*float64(i%7))
		slot = append(slot, 2*(i%2)-1)
	}
	if c := stats.FindCarryOver(d, slot); c.Found {
		t.Errorf("%+v", c)
	}
	for i := range d {
		if slot[i] > 0 {
			d[i] += .3
		}
	}
	if c := stats.FindCarryOver(d, slot); !c.Found || c.Detail == "" {
		t.Errorf("%+v", c)
	}
	if c := stats.FindCarryOver(nil, nil); c.Found {
		t.Errorf("%+v", c)
	}
}

func TestOutliersAreMarkedByTheirDistance(t *testing.T) {
	t.Parallel()
	got := stats.MarkOutliers([]float64{100, 101, 99, 100.5, 180}, 5)
	if d := cmp.Diff([]bool{false, false, false, false, true}, got); d != "" {
		t.Error(d)
	}
	if got := stats.MarkOutliers([]float64{1, 1, 1, 1, 9}, 5); slices.Contains(got, true) {
		t.Errorf("without a scale nothing is far: %v", got)
	}
	if got := stats.MarkOutliers(nil, 5); len(got) != 0 {
		t.Error(got)
	}
}

func TestAPersistentStepIsAChangeAndASpikeIsNot(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 8))
	series := func(n int) []float64 {
		ys := make([]float64, n)
		for i := range ys {
			ys[i] = 100 * math.Exp(r.NormFloat64()/50)
		}
		return ys
	}
	missed, invented := 0, 0
	for range 100 {
		ys := series(30)
		if len(stats.FindChanges(ys, 3)) > 0 {
			invented++
		}
		ys[12] *= 3
		if ok, _ := stats.Steady(ys); !ok {
			invented++
		}
		step := series(30)
		for i := 18; i < 30; i++ {
			step[i] *= 1.15
		}
		c := stats.FindChanges(step, 3)
		if len(c) != 1 || c[0].At < 17 || c[0].At > 19 || math.Abs(c[0].Ratio-1.15) > .03 {
			missed++
		}
		if ok, why := stats.Steady(step); ok || why == "" {
			missed++
		}
	}
	if missed > 5 || invented > 6 {
		t.Errorf("of 100 steps %d were missed or misplaced; of 200 steady series %d changed", missed, invented)
	}
	if ok, why := stats.Steady(series(8)); !ok || why == "" {
		t.Errorf("eight blocks: %v, %q", ok, why)
	}
	if c := stats.FindChanges(nil, 3); c != nil {
		t.Error(c)
	}
	two := series(45)
	for i := range two {
		two[i] *= math.Pow(1.3, float64(i/15))
	}
	if c := stats.FindChanges(two, 3); len(c) != 2 || c[0].At != 15 || c[1].At != 30 {
		t.Errorf("two steps: %+v", c)
	}
}

func TestTheSameSeriesGivesTheSameChanges(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 9))
	ys := make([]float64, 40)
	for i := range ys {
		ys[i] = 1 + r.Float64() + float64(i/20)
	}
	if d := cmp.Diff(stats.FindChanges(ys, 3), stats.FindChanges(ys, 3)); d != "" {
		t.Error(d)
	}
}

func BenchmarkPairedRatio(b *testing.B) {
	for _, n := range []int{20, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			x, y := make([]float64, n), make([]float64, n)
			for i := range x {
				x[i], y[i] = 1+r.Float64(), 1+r.Float64()
			}
			b.ReportAllocs()
			for b.Loop() {
				stats.PairedRatio(x, y, .95)
			}
		})
	}
}
