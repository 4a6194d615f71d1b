package stats_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"toll/lab/stats"
)

// unsteady returns how many of 100 series are said to have no steady state.
func unsteady(t *testing.T, seed uint64, series func(r *rand.Rand) []float64) (n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, seed))
	for range 100 {
		ok, why := stats.Steady(series(r))
		if !ok {
			n++
		}
		if ok != (why == "") {
			t.Errorf("steady %v, because %q", ok, why)
		}
	}
	return n
}

func ramp(r *rand.Rand, n int, perBlock float64) []float64 {
	ys := level(r, n)
	for i := range ys {
		ys[i] *= 1 + perBlock*float64(i)
	}
	return ys
}

func TestWhatMovesIsNotSteady(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		series func(r *rand.Rand) []float64
	}{
		{"a late step in 20", func(r *rand.Rand) []float64 { return step(r, 20, 14) }},
		{"an early step in 20", func(r *rand.Rand) []float64 { return step(r, 20, 5) }},
		{"a slope in 9", func(r *rand.Rand) []float64 { return ramp(r, 9, .04) }},
		{"a slope in 20", func(r *rand.Rand) []float64 { return ramp(r, 20, .01) }},
	} {
		if n := unsteady(t, 21, c.series); n < 95 {
			t.Errorf("%s: only %d of 100 are not steady", c.name, n)
		}
	}
}

func TestWhatOnlyTremblesIsSteady(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		series func(r *rand.Rand) []float64
	}{
		{"2 % noise in 9", func(r *rand.Rand) []float64 { return level(r, 9) }},
		{"2 % noise in 40", func(r *rand.Rand) []float64 { return level(r, 40) }},
		{"a spike in 20", func(r *rand.Rand) []float64 {
			ys := level(r, 20)
			ys[r.IntN(20)] *= 3
			return ys
		}},
		{"15 % noise in 20", func(r *rand.Rand) []float64 {
			ys := make([]float64, 20)
			for i := range ys {
				ys[i] = math.Exp(.15 * r.NormFloat64())
			}
			return ys
		}},
		{"a step of 3 %", func(r *rand.Rand) []float64 {
			ys := make([]float64, 40)
			for i := range ys {
				ys[i] = (1 + .03*float64(i/20)) * math.Exp(.005*r.NormFloat64())
			}
			return ys
		}},
	} {
		if n := unsteady(t, 22, c.series); n > 4 {
			t.Errorf("%s: %d of 100 are not steady", c.name, n)
		}
	}
}

func TestSteadySaysWhatItCannotTell(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(23, 23))
	if ok, why := stats.Steady(step(r, 8, 4)); !ok || !strings.Contains(why, "too few to tell") {
		t.Errorf("eight blocks: %v, %q", ok, why)
	}
	if ok, why := stats.Steady(nil); !ok || !strings.Contains(why, "too few to tell") {
		t.Errorf("no block: %v, %q", ok, why)
	}
	for _, bad := range []float64{0, math.NaN()} {
		ys := level(r, 20)
		ys[4] = bad
		if ok, why := stats.Steady(ys); ok || !strings.HasPrefix(why, "block 5 of 20") {
			t.Errorf("with %v: %v, %q", bad, ok, why)
		}
	}
}
