package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"toll/lab/stats"
)

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

func TestSmallSamplesHaveNoInterval(t *testing.T) {
	t.Parallel()
	eight := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	for _, c := range []struct {
		n     int
		level float64
		want  bool
	}{{0, .95, false}, {5, .95, false}, {6, .95, true}, {7, .99, false}, {8, .99, true}, {4, .9, false}, {5, .9, true}, {6, 1 - 2./64, true}} {
		if _, _, ok := stats.SignedRankInterval(eight[:c.n], c.level); ok != c.want {
			t.Errorf("%d values at %v: ok %v", c.n, c.level, ok)
		}
	}
	if lo, hi, ok := stats.SignedRankInterval(append(slices.Clone(eight), math.NaN()), .95); ok || !math.IsNaN(lo) || !math.IsNaN(hi) {
		t.Errorf("with a NaN: %v–%v, %v", lo, hi, ok)
	}
	for _, level := range []float64{0, 1, 95, math.NaN()} {
		if !panics(func() { stats.SignedRankInterval(eight, level) }) {
			t.Errorf("level %v is taken", level)
		}
	}
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
	lo, hi, _ := stats.SignedRankInterval(d, .95)
	wantLo, wantHi := accepted(d, .05)
	if lo != wantLo || hi != wantHi {
		t.Errorf("interval %v–%v, the test accepts the centres %v–%v", lo, hi, wantLo, wantHi)
	}
}

// The interval is what the test doesn't reject: all signs of all values are tried just within and just outside.
func TestSignedRankIntervalsInvertTheTest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(10, 10))
	for range 20 {
		d := make([]float64, 6+r.IntN(4))
		for i := range d {
			d[i] = r.NormFloat64() + r.ExpFloat64()
		}
		lo, hi, ok := stats.SignedRankInterval(d, .95)
		if wantLo, wantHi := accepted(d, .05); !ok || lo != wantLo || hi != wantHi {
			t.Errorf("%v: interval %v–%v, the test accepts %v–%v", d, lo, hi, wantLo, wantHi)
		}
	}
}

// accepted returns the outermost Walsh averages around the centres that the test by all signs does not reject.
func accepted(d []float64, alpha float64) (lo, hi float64) {
	w := walshOf(d)
	p := func(i int) float64 { // of a centre between the Walsh averages i and i+1
		shifted := make([]float64, len(d))
		for j := range d {
			shifted[j] = d[j] - (w[i]+w[i+1])/2
		}
		return enumerated(shifted)
	}
	from, to := 0, len(w)-2
	for p(from) <= alpha {
		from++
	}
	for p(to) <= alpha {
		to--
	}
	return w[from], w[to+1]
}

func TestSignedRankPIsExactWithTiesAndZeros(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		d := make([]float64, 1+r.IntN(12))
		for i := range d {
			d[i] = float64(r.IntN(9) - 3)
		}
		if got, want := stats.SignedRankP(d), enumerated(d); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: p %v, all signs give %v", d, got, want)
		}
	}
}

// enumerated tries all signs.
func enumerated(d []float64) float64 {
	xs := slices.DeleteFunc(slices.Clone(d), func(v float64) bool { return v == 0 })
	ranks := make([]float64, len(xs))
	pos, total := 0.0, 0.0
	for i, v := range xs {
		ranks[i] = midRank(xs, v)
		total += ranks[i]
		if v > 0 {
			pos += ranks[i]
		}
	}
	w, hits := min(pos, total-pos), 0
	for signs := range 1 << len(xs) {
		s := 0.0
		for i, rank := range ranks {
			s += float64(signs>>i&1) * rank
		}
		if s <= w {
			hits++
		}
	}
	return min(2*float64(hits)/float64(int(1)<<len(xs)), 1)
}

// midRank counts the magnitudes below that of v, and half of those equal to it.
func midRank(xs []float64, v float64) float64 {
	below, same := 0, 0
	for _, x := range xs {
		switch a, b := math.Abs(x), math.Abs(v); {
		case a < b:
			below++
		case a == b:
			same++
		}
	}
	return float64(below) + float64(same+1)/2
}

func TestSignedRanksOfNothingAndOfNaN(t *testing.T) {
	t.Parallel()
	if a, b := stats.SignedRankP(nil), stats.SignedRankP([]float64{0, 0}); a != 1 || b != 1 {
		t.Errorf("p of nothing is %v, of zeros %v", a, b)
	}
	nan := []float64{1, math.NaN(), 2}
	if p, c := stats.SignedRankP(nan), stats.HodgesLehmann(nan); !math.IsNaN(p) || !math.IsNaN(c) {
		t.Errorf("with a NaN: p %v, centre %v", p, c)
	}
	if c := stats.HodgesLehmann(nil); !math.IsNaN(c) {
		t.Errorf("the centre of nothing is %v", c)
	}
}

// At the hand-over the exact and the normal distribution agree, so that one more value is no jump.
func TestTheNormalApproximationTakesOverSmoothly(t *testing.T) {
	t.Parallel()
	const n = 200
	mean, sd := n*(n+1)/4., math.Sqrt(n*(n+1)*(2*n+1)/24.)
	for w := 5000; w <= n*(n+1)/4; w += 100 {
		exact, normal := signedRankPOf(n, w), math.Erfc((mean-float64(w)-.5)/sd/math.Sqrt2)
		off := math.Abs(exact - normal)
		if off > .001 || exact > .03 && exact < .07 && off > .0003 {
			t.Errorf("sum %d of 200 values: p %v, by the normal distribution %v", w, exact, normal)
		}
	}
}

// Above 200 values the tails are those of a normal distribution with the variance that ties leave: a quarter of Σ rank².
func TestTiesNarrowTheNormalApproximation(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(28, 28))
	for range 5 {
		d := make([]float64, 250)
		up, total, squares := 0., 0., 0.
		for i := range d {
			d[i] = float64(1+r.IntN(2)) * []float64{-1, 1, 1}[r.IntN(3)]
		}
		for i := 40; i < 80; i++ {
			d[i] *= -1
		}
		for _, v := range d {
			rank := midRank(d, v)
			total += rank
			squares += rank * rank
			if v > 0 {
				up += rank
			}
		}
		want := math.Erfc((math.Abs(up-total/2) - .5) / math.Sqrt(squares/4) / math.Sqrt2)
		if got := stats.SignedRankP(d); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("p %v, want %v", got, want)
		}
	}
}

// The ends of the interval and the p-value agree above 200 values too.
func TestTheNormalIntervalInvertsTheNormalTest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(30, 30))
	d := make([]float64, 300)
	for i := range d {
		d[i] = r.NormFloat64()
	}
	lo, hi, _ := stats.SignedRankInterval(d, .95)
	w := walshOf(d)
	k, found := slices.BinarySearch(w, lo)
	if !found || hi != w[len(w)-1-k] {
		t.Fatalf("%v and %v are no Walsh averages as far from either end", lo, hi)
	}
	if at, above := signedRankPOf(300, k), signedRankPOf(300, k+1); at > .05 || above <= .05 {
		t.Errorf("p(%d) = %v, p(%d) = %v", k, at, k+1, above)
	}
}

func TestIntervalsOfLargeSamples(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	d := make([]float64, 1000)
	for i := range d {
		d[i] = r.NormFloat64()
	}
	// Of a normal sample the interval is that of its mean but for the test's efficiency, 3/π.
	half := 1.96 * math.Sqrt(math.Pi/3/1000)
	for _, n := range []int{200, 201, 1000} {
		lo, hi, ok := stats.SignedRankInterval(d[:n], .95)
		want := half * math.Sqrt(1000/float64(n))
		if c := stats.HodgesLehmann(d[:n]); !ok || lo >= c || hi <= c || math.Abs((hi-lo)/2/want-1) > .1 {
			t.Errorf("n %d: %v in %v–%v, %v; want about ± %v", n, c, lo, hi, ok, want)
		}
	}
}
