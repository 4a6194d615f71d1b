package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/lab/stats"
)

var baseline = []float64{100, 110, 95, 130, 105, 99, 101, 180, 98, 102}

func scaled(xs []float64, factor float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = factor * x
	}
	return out
}

func TestPairedRatio(t *testing.T) {
	t.Parallel()
	want := stats.Ratio{Value: .5, Lo: .5, Hi: .5, Blocks: 10, Interval: true, Min: .5}
	if d := cmp.Diff(want, stats.PairedRatio(scaled(baseline, .5), baseline, .95), close12); d != "" {
		t.Error(d)
	}
	if got := stats.PairedRatio(baseline, baseline, .95); got.Value != 1 || got.Lo != 1 || got.Hi != 1 {
		t.Errorf("a contender over itself: %+v", got)
	}
}

func TestAnIntervalNeedsItsBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		blocks int
		level  float64
		need   string // "" when they are enough
	}{{0, .95, "at least 6 do"}, {5, .95, "at least 6 do"}, {6, .95, ""}, {5, .8, "at least 6 do"}, {7, .99, "at least 8 do"}, {8, .99, ""}, {10, .999, "99.9 % interval; at least 11 do"}} {
		got := stats.PairedRatio(baseline[:c.blocks], baseline[:c.blocks], c.level)
		if got.Interval != (c.need == "") || math.IsNaN(got.Lo) != (c.need != "") || math.IsNaN(got.Hi) != (c.need != "") {
			t.Errorf("%d blocks at %v: %+v", c.blocks, c.level, got)
		}
		if c.need != "" && (len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], c.need)) {
			t.Errorf("%d blocks at %v: warned %q, want %q", c.blocks, c.level, got.Warnings, c.need)
		}
	}
}

func TestUnusableBlocksAreLeftOutAndSaid(t *testing.T) {
	t.Parallel()
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		odd := scaled(baseline, .5)
		odd[3] = bad
		base := slices.Clone(baseline)
		base[7] = bad
		for _, got := range []stats.Ratio{stats.PairedRatio(odd, base, .95), stats.PairedRatio(base, odd, .95)} {
			want := []string{"2 of 10 blocks have no positive value and are left out"}
			if got.Blocks != 8 || !got.Interval || !slices.Equal(got.Warnings, want) || math.IsNaN(got.Min) {
				t.Errorf("with %v in two blocks: %+v", bad, got)
			}
		}
	}
	if got := stats.PairedRatio(nil, nil, .95); got.Interval || !math.IsNaN(got.Value) || !math.IsNaN(got.Min) || got.Blocks != 0 {
		t.Errorf("no block: %+v", got)
	}
}

func TestThePairedRatioRefusesBugs(t *testing.T) {
	t.Parallel()
	if !panics(func() { stats.PairedRatio(baseline, baseline[1:], .95) }) {
		t.Error("slices of different length were paired")
	}
	for _, level := range []float64{0, 1, 95, math.NaN()} {
		if !panics(func() { stats.PairedRatio(baseline[:1], baseline[:1], level) }) {
			t.Errorf("level %v is taken", level)
		}
	}
}

func TestMinRatio(t *testing.T) {
	t.Parallel()
	if got := stats.MinRatio([]float64{9, 3}, []float64{2, 8, 4}); got != 1.5 {
		t.Errorf("got %v, want 3/2", got)
	}
	for _, bad := range [][]float64{nil, {1, math.NaN()}, {1, 0}, {math.Inf(1)}, {-1, 2}} {
		if a, b := stats.MinRatio(bad, baseline), stats.MinRatio(baseline, bad); !math.IsNaN(a) || !math.IsNaN(b) {
			t.Errorf("of %v: %v, and the other way round %v", bad, a, b)
		}
	}
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
		if !(q.Lo <= q.Value && q.Value <= q.Hi) {
			t.Errorf("%+v does not hold its value", q)
		}
		want := stats.Ratio{Value: 1 / q.Value, Lo: 1 / q.Hi, Hi: 1 / q.Lo, Blocks: n, Interval: true, Min: 1 / q.Min}
		if d := cmp.Diff(want, stats.PairedRatio(b, a, .95), close12); d != "" {
			t.Errorf("swapped: %s", d)
		}
		pa, pb := make([]float64, n), make([]float64, n)
		for i, j := range r.Perm(n) {
			pa[i], pb[i] = 7*a[j], 7*b[j]
		}
		if d := cmp.Diff(q, stats.PairedRatio(pa, pb, .95), close12); d != "" {
			t.Errorf("scaled and permuted blocks: %s", d)
		}
	}
}

// The more confidence, the wider: each interval lies within the next.
func TestIntervalsOfHigherLevelsAreWider(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 11))
	a, b := make([]float64, 20), make([]float64, 20)
	for i := range a {
		a[i], b[i] = math.Exp(r.NormFloat64()), math.Exp(r.NormFloat64())
	}
	inner := stats.PairedRatio(a, b, .5)
	for _, level := range []float64{.8, .9, .95, .99, .999} {
		outer := stats.PairedRatio(a, b, level)
		if outer.Lo > inner.Lo || outer.Hi < inner.Hi {
			t.Errorf("at %v %v–%v, narrower than %v–%v", level, outer.Lo, outer.Hi, inner.Lo, inner.Hi)
		}
		inner = outer
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
