package stats_test

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/perf/benchmath"

	"toll/lab/stats"
)

func samples(r *rand.Rand, n, m int) (a, b []float64) {
	for range n {
		a = append(a, 1+r.Float64())
	}
	for range m {
		b = append(b, 1.3+r.Float64())
	}
	return a, b
}

func TestMannWhitneyIsThatOfBenchmath(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		a, b := samples(r, 4+r.IntN(10), 4+r.IntN(10))
		want := benchmath.AssumeNothing.Compare(benchmath.NewSample(a, &benchmath.DefaultThresholds), benchmath.NewSample(b, &benchmath.DefaultThresholds)).P
		if got := stats.MannWhitneyP(a, b); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v and %v: p %v, benchmath %v", a, b, got, want)
		}
	}
}

// All ways to divide the values into two samples are tried.
func TestMannWhitneyIsExactForSmallSamples(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(24, 24))
	for range 60 {
		a, b := samples(r, 1+r.IntN(6), 1+r.IntN(6))
		if got, want := stats.MannWhitneyP(a, b), divided(a, b); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v and %v: p %v, all divisions give %v", a, b, got, want)
		}
	}
}

// divided is the two-sided p-value by enumeration.
func divided(a, b []float64) float64 {
	all := slices.Concat(a, b)
	observed := beaten(all, 1<<len(a)-1)
	observed = min(observed, len(a)*len(b)-observed)
	hits, ways := 0, 0
	for mask := range 1 << len(all) {
		if bits.OnesCount(uint(mask)) != len(a) {
			continue
		}
		ways++
		if beaten(all, mask) <= observed {
			hits++
		}
	}
	return min(2*float64(hits)/float64(ways), 1)
}

// beaten counts the pairs of a value in the mask and a smaller one outside it.
func beaten(all []float64, mask int) (u int) {
	for i, x := range all {
		for j, y := range all {
			if mask>>i&1 == 1 && mask>>j&1 == 0 && x > y {
				u++
			}
		}
	}
	return u
}

// Above 60 values the normal distribution takes over; at 60 both are close.
func TestMannWhitneysApproximationTakesOverSmoothly(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(25, 25))
	const n = 30
	sd := math.Sqrt(n * n * (2*n + 1) / 12.)
	for range 20 {
		a, b := samples(r, n, n)
		u := beaten(slices.Concat(a, b), 1<<n-1)
		u = min(u, n*n-u)
		normal := math.Erfc((n*n/2. - float64(u) - .5) / sd / math.Sqrt2)
		if exact := stats.MannWhitneyP(a, b); math.Abs(exact-normal) > .005 {
			t.Errorf("U %d: p %v, by the normal distribution %v", u, exact, normal)
		}
	}
}

// Ties leave U the variance n m ÷ (N(N−1)) × Σ(rank − mean)².
func TestTiesNarrowMannWhitneysApproximation(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(29, 29))
	for range 20 {
		all := make([]float64, 20)
		for i := range all {
			all[i] = float64(1 + r.IntN(3))
		}
		squares := 0.
		for _, v := range all {
			off := midRank(all, v) - 10.5
			squares += off * off
		}
		sd := math.Sqrt(8 * 12 / (20. * 19) * squares)
		want := math.Erfc(max(float64(lead(all, 8))/2-.5, 0) / sd / math.Sqrt2)
		if got := stats.MannWhitneyP(all[:8], all[8:]); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: p %v, want %v", all, got, want)
		}
	}
}

// With ties, shuffled values are the yardstick.
func TestMannWhitneyWithTies(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(27, 27))
	for range 10 {
		a, b := make([]float64, 12), make([]float64, 15)
		for i := range a {
			a[i] = float64(r.IntN(6))
		}
		for i := range b {
			b[i] = float64(r.IntN(6) + r.IntN(2))
		}
		all := slices.Concat(a, b)
		most, hits := lead(all, len(a)), 0
		const times = 4000
		for range times {
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			if lead(all, len(a)) >= most {
				hits++
			}
		}
		if got, want := stats.MannWhitneyP(a, b), float64(hits)/times; math.Abs(got-want) > .03 {
			t.Errorf("%v and %v: p %v, shuffled %v", a, b, got, want)
		}
	}
}

// lead is by how many pairs one of the samples, the first n values and the others, beats the other one.
func lead(all []float64, n int) (pairs int) {
	for _, x := range all[:n] {
		for _, y := range all[n:] {
			switch {
			case x > y:
				pairs++
			case x < y:
				pairs--
			}
		}
	}
	return abs(pairs)
}

func TestMannWhitneyIsSymmetric(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(26, 26))
	for range 50 {
		a, b := samples(r, 1+r.IntN(40), 1+r.IntN(40))
		if p, q := stats.MannWhitneyP(a, b), stats.MannWhitneyP(b, a); math.Abs(p-q) > 1e-12 || p <= 0 || p > 1 {
			t.Errorf("p %v, swapped %v", p, q)
		}
	}
}

func TestMannWhitneyOfNothingOfTiesAndOfNaN(t *testing.T) {
	t.Parallel()
	ones := []float64{1, 1, 1, 1}
	if p, q := stats.MannWhitneyP(nil, ones), stats.MannWhitneyP(ones, ones); p != 1 || q != 1 {
		t.Errorf("an empty sample has p %v, all ties %v", p, q)
	}
	nan := []float64{1, math.NaN()}
	if p, q := stats.MannWhitneyP(nan, ones), stats.MannWhitneyP(ones, nan); !math.IsNaN(p) || !math.IsNaN(q) {
		t.Errorf("with a NaN p is %v and %v", p, q)
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
	if c := stats.FindCarryOver(d, slot); c.Found || c.Detail != "" {
		t.Errorf("%+v", c)
	}
	for i := range d {
		if slot[i] > 0 {
			d[i] += .3
		}
	}
	if c := stats.FindCarryOver(d, slot); !c.Found || c.Detail != "1.003 before it (10 blocks), 1.354 after it (10)" {
		t.Errorf("%+v", c)
	}
}

func TestCarryOverOfBadInputs(t *testing.T) {
	t.Parallel()
	if c := stats.FindCarryOver(nil, nil); c.Found || c.P != 1 {
		t.Errorf("of nothing: %+v", c)
	}
	if c := stats.FindCarryOver([]float64{1, 2}, []int{1, 1}); c.Found || c.P != 1 {
		t.Errorf("of one side: %+v", c)
	}
	if c := stats.FindCarryOver([]float64{1, math.NaN()}, []int{1, -1}); c.Found || !math.IsNaN(c.P) {
		t.Errorf("of a NaN: %+v", c)
	}
	if !panics(func() { stats.FindCarryOver([]float64{1}, nil) }) || !panics(func() { stats.FindCarryOver([]float64{1}, []int{0}) }) {
		t.Error("a ratio without its slot is taken")
	}
}
