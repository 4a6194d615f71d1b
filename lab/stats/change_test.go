package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/lab/stats"
)

// step returns a series whose level rises by 15 % from block at on.
func step(r *rand.Rand, n, at int) []float64 {
	ys := level(r, n)
	for i := at; i < n; i++ {
		ys[i] *= 1.15
	}
	return ys
}

func TestAPersistentStepIsAChange(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 8))
	missed := 0
	for range 100 {
		c := stats.FindChanges(step(r, 30, 18), 3)
		if len(c) != 1 || c[0].At < 17 || c[0].At > 19 || math.Abs(c[0].Ratio-1.15) > .03 || c[0].P > .01 {
			missed++
		}
	}
	if missed > 3 {
		t.Errorf("of 100 steps %d were missed or misplaced", missed)
	}
}

func TestASpikeIsNoChange(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(17, 17))
	steady, spiked := 0, 0
	for range 200 {
		ys := level(r, 30)
		if len(stats.FindChanges(ys, 3)) > 0 {
			steady++
		}
		ys[r.IntN(30)] *= 3
		if len(stats.FindChanges(ys, 3)) > 0 {
			spiked++
		}
	}
	if steady > 6 || spiked > 6 {
		t.Errorf("of 200 steady series %d changed, of 200 with a spike %d", steady, spiked)
	}
}

func TestSeveralChangesAreFoundInTheirOrder(t *testing.T) {
	t.Parallel()
	ys := level(rand.New(rand.NewPCG(18, 18)), 45)
	for i := range ys {
		ys[i] *= []float64{1, 1.3, .8}[i/15]
	}
	c := stats.FindChanges(ys, 3)
	if len(c) != 2 || c[0].At != 15 || c[1].At != 30 || math.Abs(c[0].Ratio-1.3) > .05 || math.Abs(c[1].Ratio-.8/1.3) > .05 {
		t.Errorf("%+v", c)
	}
}

func TestTheSameSeriesGivesTheSameChanges(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 9))
	ys := step(r, 40, 20)
	before := slices.Clone(ys)
	first := stats.FindChanges(ys, 3)
	if d := cmp.Diff(first, stats.FindChanges(ys, 3)); d != "" || len(first) == 0 {
		t.Errorf("%+v, then %s", first, d)
	}
	if !slices.Equal(ys, before) {
		t.Error("the series itself was shuffled")
	}
	for i, c := range stats.FindChanges(scaled(ys, 1000), 3) {
		if c.At != first[i].At || c.P != first[i].P || math.Abs(c.Ratio-first[i].Ratio) > 1e-9 {
			t.Errorf("in other units %+v became %+v", first[i], c)
		}
	}
}

func TestSegmentsAreAtLeastAsLongAsAsked(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(19, 19))
	for _, least := range []int{-1, 0, 1, 3, 8} {
		ys := step(r, 40, 35)
		last := 0
		for _, c := range stats.FindChanges(ys, least) {
			if c.At-last < max(least, 1) || 40-c.At < max(least, 1) {
				t.Errorf("segments of at least %d: a change at %d after one at %d", least, c.At, last)
			}
			last = c.At
		}
	}
}

func TestSeriesWithoutALevelHaveNoChange(t *testing.T) {
	t.Parallel()
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		ys := step(rand.New(rand.NewPCG(20, 20)), 30, 15)
		ys[4] = bad
		if c := stats.FindChanges(ys, 3); c != nil {
			t.Errorf("with %v: %+v", bad, c)
		}
	}
	for _, ys := range [][]float64{nil, {1}, {1, 2, 3, 4, 5}, slices.Repeat([]float64{7}, 40)} {
		if c := stats.FindChanges(ys, 3); c != nil {
			t.Errorf("%v: %+v", ys, c)
		}
	}
}
