package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/lab/stats"
)

// level returns n blocks that wander by 2 % around 100.
func level(r *rand.Rand, n int) []float64 {
	ys := make([]float64, n)
	for i := range ys {
		ys[i] = 100 * math.Exp(r.NormFloat64()/50)
	}
	return ys
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
		if d := stats.FindDrift(ys); !d.Drifting || d.SlopePerBlock < .01 || d.SlopePerBlock > .025 || d.ThirdsRatio < 1.1 {
			t.Errorf("2 %% a block: %+v", d)
		}
	}
	if found > 2 {
		t.Errorf("%d of 200 steady series drift", found)
	}
}

func TestDriftDownCountsAsWell(t *testing.T) {
	t.Parallel()
	want := stats.Drift{ThirdsRatio: 110. / 180, SlopePerBlock: -10. / 145, P: 2. / 3628800, Drifting: true}
	got := stats.FindDrift([]float64{190, 180, 170, 160, 150, 140, 130, 120, 110, 100})
	if d := cmp.Diff(want, got, close12); d != "" {
		t.Error(d)
	}
}

func TestDriftOfTooLittleAndOfNaN(t *testing.T) {
	t.Parallel()
	for _, ys := range [][]float64{nil, {1, 2}, {1, 2, 3, math.NaN(), 5, 6, 7, 8, 9}} {
		if d := stats.FindDrift(ys); d.Drifting || !math.IsNaN(d.ThirdsRatio) {
			t.Errorf("%v: %+v", ys, d)
		}
	}
}

func TestTheilSen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ys   []float64
		want float64
	}{{[]float64{1, 3, 5, 100, 9}, 2}, {[]float64{4, 4, 4}, 0}, {[]float64{3, 1}, -2}, {[]float64{7}, 0}, {nil, 0}} {
		if got := stats.TheilSen(c.ys); got != c.want {
			t.Errorf("%v: slope %v, want %v", c.ys, got, c.want)
		}
	}
	if got := stats.TheilSen([]float64{1, math.NaN(), 3}); !math.IsNaN(got) {
		t.Errorf("with a NaN the slope is %v", got)
	}
}

// Of the 24 orders of four values one ascends and one descends.
func TestMannKendallOfAFullTrend(t *testing.T) {
	t.Parallel()
	for _, ys := range [][]float64{{1, 2, 3, 4}, {9, 7, 5, 3}} {
		if got := stats.MannKendall(ys); math.Abs(got-2./24) > 1e-12 {
			t.Errorf("%v: p %v, want 2/24", ys, got)
		}
	}
	if got := stats.MannKendall(slices.Repeat([]float64{5}, 12)); got != 1 {
		t.Errorf("a constant has p %v", got)
	}
	if got := stats.MannKendall([]float64{1, 2}); got != 1 {
		t.Errorf("two values have p %v", got)
	}
	if got := stats.MannKendall([]float64{1, 2, math.NaN(), 4}); !math.IsNaN(got) {
		t.Errorf("with a NaN p is %v", got)
	}
}

// All orders of six values are tried.
func TestMannKendallIsExactForFewValues(t *testing.T) {
	t.Parallel()
	all := orders([]float64{1, 2, 3, 4, 5, 6})
	for i := 0; i < len(all); i += 37 {
		most, hits := abs(ascents(all[i])), 0
		for _, other := range all {
			if abs(ascents(other)) >= most {
				hits++
			}
		}
		want := min(float64(hits)/float64(len(all)), 1)
		if got := stats.MannKendall(all[i]); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: p %v, all orders give %v", all[i], got, want)
		}
	}
}

func orders(xs []float64) [][]float64 {
	if len(xs) < 2 {
		return [][]float64{xs}
	}
	var out [][]float64
	for i, x := range xs {
		for _, rest := range orders(slices.Delete(slices.Clone(xs), i, i+1)) {
			out = append(out, append([]float64{x}, rest...))
		}
	}
	return out
}

// ascents counts the pairs that ascend less those that descend.
func ascents(ys []float64) (s int) {
	for i := range ys {
		for j := range i {
			if ys[j] < ys[i] {
				s++
			} else if ys[j] > ys[i] {
				s--
			}
		}
	}
	return s
}

func abs(v int) int { return max(v, -v) }

// The approximation takes over at eleven values, and at once when there are ties. Shuffled series are its yardstick.
func TestMannKendallsApproximationIsClose(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(16, 16))
	for _, ys := range [][]float64{
		{1, 2, 4, 3, 6, 5, 9, 8, 7, 12, 10, 11, 13},
		{1, 1, 2, 2, 1, 3, 3, 2, 3, 1, 3, 3},
		{3, 1, 2, 6, 4, 5, 2, 7, 3, 5, 6, 4},
	} {
		most, hits, shuffled := abs(ascents(ys)), 0, slices.Clone(ys)
		const times = 20000
		for range times {
			r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if abs(ascents(shuffled)) >= most {
				hits++
			}
		}
		if got, want := stats.MannKendall(ys), float64(hits)/times; math.Abs(got-want) > .015 {
			t.Errorf("%v: p %v, shuffled %v", ys, got, want)
		}
	}
}

func TestOutliersAreMarkedByTheirDistance(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range []struct {
		xs   []float64
		k    float64
		want []bool
	}{
		{[]float64{100, 101, 99, 100.5, 180}, 5, []bool{false, false, false, false, true}},
		{[]float64{-80, 101, 99, 100.5, 100}, 5, []bool{true, false, false, false, false}},
		{[]float64{1, 2, 3, 4, 5}, 1.4, []bool{false, false, false, false, false}}, // 2 is 1.35 scaled deviations
		{[]float64{1, 2, 3, 4, 5}, 1.3, []bool{true, false, false, false, true}},
		{[]float64{1, 1, 1, 1, 9}, 5, []bool{false, false, false, false, false}}, // without a scale nothing is far
		{[]float64{1, 2, nan, 3, 90}, 5, []bool{false, false, false, false, false}},
		{nil, 5, []bool{}},
	} {
		if d := cmp.Diff(c.want, stats.MarkOutliers(c.xs, c.k)); d != "" {
			t.Errorf("%v beyond %v: %s", c.xs, c.k, d)
		}
	}
}
