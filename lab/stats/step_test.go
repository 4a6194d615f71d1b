package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"toll/lab/stats"
)

// noisy returns n values around 1 with so much spread.
func noisy(n int, spread float64, seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 7))
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Exp(spread * r.NormFloat64())
	}
	return out
}

func TestAStepIsFoundAtItsThirdValueAndASpikeIsNot(t *testing.T) {
	t.Parallel()
	found, spikes, quiet := 0, 0, 0
	const runs = 200
	for seed := range uint64(runs) {
		ys := noisy(20, .03, seed)
		if _, ok := stats.FindStep(ys, 3); ok {
			quiet++
		}
		spiked := append([]float64(nil), ys...)
		spiked[19] *= 1.6
		if _, ok := stats.FindStep(spiked, 3); ok {
			spikes++
		}
		for i := 17; i < 20; i++ {
			ys[i] *= 1.15
		}
		if c, ok := stats.FindStep(ys, 3); ok && c.Ratio > 1.08 && c.Ratio < 1.22 && c.At >= 15 && c.At <= 17 {
			found++
		}
	}
	if found < runs*95/100 || spikes > runs/100 || quiet > 0 {
		t.Errorf("of %d: %d steps found, %d spikes and %d quiet series taken for one", runs, found, spikes, quiet)
	}
}

func TestAStepNeedsALevelBeforeIt(t *testing.T) {
	t.Parallel()
	for _, ys := range [][]float64{nil, {1, 1, 1, 1, 1, 2, 2, 2}, {1, 1, 1, 1, 1, 1, 2, 0, 2}, {1, 1, 1, 1, 1, 1, 2, math.NaN(), 2}} {
		if c, ok := stats.FindStep(ys, 3); ok {
			t.Errorf("%v: %+v", ys, c)
		}
	}
	c, ok := stats.FindStep([]float64{1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2}, 3)
	if !ok || c.At != 7 || math.Abs(c.Ratio-2) > 1e-9 {
		t.Errorf("%+v, %v; want the step at 7, where it began", c, ok)
	}
	if _, ok := stats.FindStep([]float64{1, 1, 1, 1, 1, 1, 1.03, 1.03, 1.03}, 3); ok {
		t.Error("3 % was taken for a step")
	}
}
