package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/perf/benchmath"

	"toll/lab/stats"
)

var close12 = cmpopts.EquateApprox(1e-9, 1e-12)

// panics reports whether f does, so that a caller's bug is not answered with a number.
func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

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
	for _, got := range []float64{stats.Quantile(nil, .5), stats.Quantile(ten, math.NaN())} {
		if !math.IsNaN(got) {
			t.Errorf("a quantile of nothing, or at no place, is %v", got)
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	xs := []float64{9, 1, 4, 2}
	if got := stats.Median(xs); got != 3 || !slices.Equal(xs, []float64{9, 1, 4, 2}) {
		t.Errorf("median %v, and the values are now %v", got, xs)
	}
	for _, xs := range [][]float64{nil, {1, 2, 3, math.NaN()}, {math.NaN()}} {
		if got := stats.Median(xs); !math.IsNaN(got) {
			t.Errorf("the median of %v is %v", xs, got)
		}
	}
}

func TestQuantileIntervalsAreTheNarrowestThatCoverTheirLevel(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 5, 6, 9, 20, 28, 60} {
		for _, q := range []float64{.1, .25, .5, .9, .99} {
			for _, level := range []float64{.5, .9, .95, .99} {
				want := narrowest(n, q, level)
				lo, hi, ok := stats.QuantileInterval(n, q, level)
				if ok != (want > 0) {
					t.Errorf("n %d, q%v at %v: ok %v, the narrowest is %d wide", n, q, level, ok, want)
				}
				if ok && (hi-lo != want || coverage(n, lo, hi, q) < level-1e-9 || lo < 1 || hi > n) {
					t.Errorf("n %d, q%v at %v: ranks %d–%d cover %v, the narrowest is %d wide", n, q, level, lo, hi, coverage(n, lo, hi, q), want)
				}
			}
		}
	}
}

// narrowest tries all pairs of ranks; 0 when none reaches the level.
func narrowest(n int, q, level float64) int {
	best := 0
	for lo := 1; lo < n; lo++ {
		for hi := lo + 1; hi <= n; hi++ {
			if coverage(n, lo, hi, q) >= level-1e-12 && (best == 0 || hi-lo < best) {
				best = hi - lo
			}
		}
	}
	return best
}

// coverage is the probability that the quantile lies between two ranks.
func coverage(n, lo, hi int, q float64) float64 {
	sum := 0.0
	for k := lo; k < hi; k++ {
		sum += binomial(n, k, q)
	}
	return sum
}

func binomial(n, k int, p float64) float64 {
	c := math.Pow(1-p, float64(n-k))
	for i := range k {
		c *= float64(n-i) / float64(i+1) * p
	}
	return c
}

func TestNoQuantileIntervalOfBadInputs(t *testing.T) {
	t.Parallel()
	for _, bad := range []struct {
		n int
		q float64
	}{{-1, .5}, {0, .5}, {1, .5}, {5, .5}, {10, 0}, {10, 1}, {10, math.NaN()}, {298, .99}} {
		if lo, hi, ok := stats.QuantileInterval(bad.n, bad.q, .95); ok {
			t.Errorf("%+v has an interval: ranks %d–%d", bad, lo, hi)
		}
	}
	if _, _, ok := stats.QuantileInterval(299, .99, .95); !ok {
		t.Error("299 samples have no 95 % interval of p99, which the largest bounds with 1 − 0.99²⁹⁹ = 0.9505")
	}
	for _, level := range []float64{0, 1, -1, 95, math.NaN()} {
		if !panics(func() { stats.QuantileInterval(20, .5, level) }) {
			t.Errorf("level %v is taken", level)
		}
	}
}

func TestLevelsThatTheWholeSampleReachesExactly(t *testing.T) {
	t.Parallel()
	for n := 3; n <= 30; n++ {
		if lo, hi, ok := stats.QuantileInterval(n, .5, 1-math.Pow(.5, float64(n-1))); !ok || lo != 1 || hi != n {
			t.Errorf("n %d: ranks %d–%d, %v", n, lo, hi, ok)
		}
	}
}

func TestOfTwoIntervalsAlikeTheLowerIsTaken(t *testing.T) {
	t.Parallel()
	for n := 6; n <= 300; n++ {
		lo, hi, _ := stats.QuantileInterval(n, .5, .95)
		if lo+hi != n+1 && lo+hi != n {
			t.Errorf("n %d: ranks %d–%d", n, lo, hi)
		}
	}
}

func TestQuantileIntervalsOfLargeSamples(t *testing.T) {
	t.Parallel()
	// By the normal distribution: 1.96 × √(n q (1−q)) to each side of the rank of q.
	const n, q = 200_000, .99
	lo, hi, ok := stats.QuantileInterval(n, q, .95)
	half := 1.96 * math.Sqrt(n*q*(1-q))
	if !ok || math.Abs(float64(hi-lo)-2*half) > 3 || math.Abs(float64(hi+lo)/2-n*q) > 3 {
		t.Errorf("ranks %d–%d, want about %.0f–%.0f", lo, hi, n*q-half, n*q+half)
	}
}

// benchmath's interval of the median is the oracle: the same order statistics, or their mirror image when both cover as
// much. Above 42 values it goes by the normal distribution and ours is the narrower.
func TestMedianIntervalIsThatOfBenchmath(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for n := 6; n <= 42; n++ {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = r.ExpFloat64()
		}
		slices.Sort(xs)
		lo, hi, ok := stats.QuantileInterval(n, .5, .95)
		want := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(xs), &benchmath.DefaultThresholds), .95)
		same := xs[lo-1] == want.Lo && xs[hi-1] == want.Hi
		mirrored := xs[n-hi] == want.Lo && xs[n-lo] == want.Hi
		if !ok || !same && !mirrored || stats.Median(xs) != want.Center {
			t.Errorf("n %d: %v in ranks %d–%d, %v–%v; benchmath %v in %v–%v", n, stats.Median(xs), lo, hi, xs[lo-1], xs[hi-1], want.Center, want.Lo, want.Hi)
		}
	}
}
