package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"toll/lab/stats"
)

// search runs one with a trial for each level and returns the levels that were tried.
func search(s *stats.Search, holds func(level float64) bool) (tried []float64) {
	for {
		level, more := s.Next()
		if !more {
			return tried
		}
		tried = append(tried, level)
		s.Add(holds(level))
	}
}

func TestASearchEndsAtTheEdge(t *testing.T) {
	t.Parallel()
	for _, edge := range []float64{12, 999, 1000, 1001, 54321} {
		for _, start := range []float64{20, 1000, 90000} {
			s := &stats.Search{Start: start, Step: 2, Precision: .03, Least: 10, Most: 1e6}
			tried := search(s, func(l float64) bool { return l <= edge })
			held, missed, end := s.Result()
			if end != stats.Settled || held > edge || missed <= edge || missed/held > 1.0301 {
				t.Errorf("edge %v from %v: %s between %v and %v", edge, start, end, held, missed)
			}
			if n := len(tried); n > 25 || tried[n-2] != missed || tried[n-1] != held {
				t.Errorf("edge %v from %v: %d trials, the last are %v", edge, start, n, tried[max(n-2, 0):])
			}
		}
	}
}

func TestASearchThatFindsNoEdgeSaysSo(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		holds        func(float64) bool
		end          string
		held, missed float64
	}{
		{func(float64) bool { return true }, stats.Above, 5000, 0},
		{func(float64) bool { return false }, stats.Below, 0, 10},
		{func(l float64) bool { return l > 1000 }, stats.Above, 5000, 0}, // higher is better: not a knee
	} {
		s := &stats.Search{Start: 1500, Step: 2, Precision: .05, Least: 10, Most: 5000}
		search(s, x.holds)
		if held, missed, end := s.Result(); end != x.end || held != x.held || missed != x.missed {
			t.Errorf("%s, held %v, missed %v; want %+v", end, held, missed, x)
		}
	}
	s := &stats.Search{Start: 100, Step: 2, Precision: .05, Least: 10, Most: 5000}
	s.Add(true)
	s.Stop()
	if _, more := s.Next(); more {
		t.Error("a stopped search goes on")
	}
}

// One wrong outcome anywhere moves the result by no more than the precision.
func TestOneWrongOutcomeDoesNotDecide(t *testing.T) {
	t.Parallel()
	const edge = 4321.
	for wrong := range 20 {
		s := &stats.Search{Start: 100, Step: 2, Precision: .03, Least: 10, Most: 1e6}
		n := 0
		search(s, func(l float64) bool {
			n++
			return (l <= edge) != (n == wrong+1)
		})
		held, missed, end := s.Result()
		if end != stats.Settled || held < edge/1.07 || missed > edge*1.07 {
			t.Errorf("trial %d wrong: %s between %v and %v after %d", wrong+1, end, held, missed, n)
		}
	}
}

// Near the edge outcomes are a matter of chance, and elsewhere one in fifty is wrong. The middle of eight searches lies at the
// level where half of the trials hold.
func TestSearchesAgreeUnderNoise(t *testing.T) {
	t.Parallel()
	const edge, width = 2500., .02
	rnd := rand.New(rand.NewPCG(1, 2))
	far := 0
	for range 200 {
		var found []float64
		for i := range 8 {
			start := edge * (.75 + .05*rnd.Float64())
			if i%2 == 1 {
				start = edge * (1.2 + .05*rnd.Float64())
			}
			s := &stats.Search{Start: start, Step: 1.15, Precision: .03, Least: 10, Most: 1e6}
			search(s, func(l float64) bool {
				p := 1 / (1 + math.Exp(math.Log(l/edge)/width*2))
				return rnd.Float64() < .02+.96*p
			})
			held, missed, _ := s.Result()
			found = append(found, math.Log(math.Sqrt(held*missed)/edge))
		}
		if v := stats.HodgesLehmann(found); math.Abs(v) > .03 {
			far++
		}
		if slices.ContainsFunc(found, func(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) }) {
			t.Fatalf("a search without both sides: %v", found)
		}
	}
	if far > 10 {
		t.Errorf("%d of 200 times the middle of eight searches was more than 3 %% off", far)
	}
}
