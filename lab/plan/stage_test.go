package plan_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"toll/lab/plan"
)

// published is the profile of a published benchmark: 10 s to 50 users, five minutes, 10 s to none.
func published() []plan.Stage {
	return []plan.Stage{
		{Duration: plan.Duration(10 * time.Second), Target: 50},
		{Duration: plan.Duration(5 * time.Minute), Target: 50},
		{Duration: plan.Duration(10 * time.Second), Target: 0},
	}
}

func TestVUsFollowThePublishedProfile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at   time.Duration
		n    int
		done bool
	}{
		{0, 0, false}, {99 * time.Millisecond, 0, false}, {100 * time.Millisecond, 1, false},
		{5 * time.Second, 25, false}, {10 * time.Second, 50, false}, {200 * time.Second, 50, false},
		{315 * time.Second, 25, false}, {320*time.Second - 1, 0, false}, {320 * time.Second, 0, true},
	} {
		if n, done := plan.VUs(published(), c.at); n != c.n || done != c.done {
			t.Errorf("at %v: %d VUs, done %v; want %d, %v", c.at, n, done, c.n, c.done)
		}
	}
}

// Active and VUs are two views of one profile: at any time as many VUs are within an active span as VUs says.
func TestEveryVUsSpansAddUpToTheLevel(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	profiles := [][]plan.Stage{published(), plan.Hold(7, 3*time.Second), {{Duration: plan.Duration(time.Second), Target: 3}}}
	for range 200 {
		var p []plan.Stage
		for range 1 + r.IntN(6) {
			s := plan.Stage{Duration: plan.Duration(r.Int64N(int64(3 * time.Second))), Target: float64(r.IntN(12))}
			if r.IntN(4) == 0 {
				s.Duration = 0
			}
			p = append(p, s)
		}
		profiles = append(profiles, p)
	}
	for _, p := range profiles {
		for range 50 {
			at := time.Duration(r.Int64N(int64(plan.Total(p)) + 1))
			want, done := plan.VUs(p, at)
			level, _ := plan.Level(p, at)
			if f := math.Abs(level + .5 - math.Round(level+.5)); done || f < 1e-6 && level != math.Round(level) {
				continue // on the edge of a VU's span, where a nanosecond decides
			}
			got := 0
			for vu := range 50 {
				for _, s := range plan.Active(p, vu) {
					if s.From <= at && at < s.To {
						got++
					}
				}
			}
			if got != want {
				t.Errorf("profile %v at %v: %d active spans, %d VUs", p, at, got, want)
			}
		}
	}
}

func TestAConstantRateArrivesEvenly(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.5, 1, 3, 100, 1000, 1234.5, 99_999} {
		d := 10 * time.Second
		a := plan.NewArrivals(plan.Hold(rate, d), nil)
		n := 0
		for ; ; n++ {
			at, ok := a.Next()
			if !ok {
				break
			}
			if want := time.Duration(float64(n) / rate * 1e9); (at - want).Abs() > time.Microsecond {
				t.Fatalf("rate %v: arrival %d is due at %v, want %v", rate, n, at, want)
			}
		}
		if want := int(math.Ceil(rate*d.Seconds() - 1e-6)); n != want {
			t.Errorf("rate %v for %v: %d arrivals, want %d", rate, d, n, want)
		}
	}
}

func TestARampArrivesByItsArea(t *testing.T) {
	t.Parallel()
	stages := []plan.Stage{
		{Duration: plan.Duration(10 * time.Second), Target: 100},
		{Duration: plan.Duration(20 * time.Second), Target: 100},
		{Duration: plan.Duration(10 * time.Second), Target: 0},
	}
	a := plan.NewArrivals(stages, nil)
	var in [3]int
	last := time.Duration(-1)
	for {
		at, ok := a.Next()
		if !ok {
			break
		}
		if at <= last {
			t.Fatalf("an arrival at %v after one at %v", at, last)
		}
		last = at
		switch {
		case at < 10*time.Second:
			in[0]++
		case at < 30*time.Second:
			in[1]++
		default:
			in[2]++
		}
	}
	if in != [3]int{500, 2000, 500} || plan.Expected(stages) != 3000 {
		t.Errorf("arrivals by stage %v, want 500, 2000, 500; expected %v", in, plan.Expected(stages))
	}
}

// A Poisson process has as many arrivals as expected, give or take four standard deviations, and gaps whose standard
// deviation is their mean.
func TestPoissonArrivals(t *testing.T) {
	t.Parallel()
	const rate, seconds = 1000, 100
	a := plan.NewArrivals(plan.Hold(rate, seconds*time.Second), rand.New(rand.NewPCG(7, 7)))
	var n int
	var last time.Duration
	var sum, squares float64
	for {
		at, ok := a.Next()
		if !ok {
			break
		}
		gap := (at - last).Seconds()
		last = at
		n++
		sum += gap
		squares += gap * gap
	}
	if off := math.Abs(float64(n) - rate*seconds); off > 4*math.Sqrt(rate*seconds) {
		t.Errorf("%d arrivals, want about %d", n, rate*seconds)
	}
	mean := sum / float64(n)
	if cv := math.Sqrt(squares/float64(n)-mean*mean) / mean; math.Abs(cv-1) > .02 {
		t.Errorf("gaps have a coefficient of variation of %.3f, want 1", cv)
	}
}

// A VU's last call is whole, though it ends behind its time.
func TestCallsThatAreBegun(t *testing.T) {
	t.Parallel()
	hold := func(d time.Duration) []plan.Stage { return plan.Hold(10, d) }
	for _, x := range []struct {
		stages []plan.Stage
		want   int64
	}{
		{hold(110 * time.Millisecond), 10},
		{hold(111 * time.Millisecond), 20},
		{[]plan.Stage{{Duration: plan.Duration(10 * time.Second), Target: 10}, {Duration: plan.Duration(300 * time.Second), Target: 10}, {Duration: plan.Duration(10 * time.Second)}}, 28186},
		{nil, 0},
	} {
		if n := plan.Begun(x.stages, 110*time.Millisecond); n != x.want {
			t.Errorf("%v: %d calls, want %d", x.stages, n, x.want)
		}
	}
}
