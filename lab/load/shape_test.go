package load_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
)

// published is the profile of a published benchmark: 10 s to 50 users, five minutes, 10 s to none.
func published() []plan.Stage {
	return []plan.Stage{
		{Duration: plan.Duration(10 * time.Second), Target: 50},
		{Duration: plan.Duration(5 * time.Minute), Target: 50},
		{Duration: plan.Duration(10 * time.Second), Target: 0},
	}
}

// A server takes a fixed time for each call and counts what is in flight.
type server struct {
	takes    time.Duration
	now, top atomic.Int64
	opened   atomic.Int64
	fail     func(n int64) error
	calls    atomic.Int64
}

func (s *server) Open(context.Context) (load.Caller, error) {
	s.opened.Add(1)
	return callerFunc(func(context.Context, record.Mark) error {
		for n := s.now.Add(1); ; {
			if m := s.top.Load(); n <= m || s.top.CompareAndSwap(m, n) {
				break
			}
		}
		time.Sleep(s.takes)
		s.now.Add(-1)
		if n := s.calls.Add(1); s.fail != nil {
			return s.fail(n)
		}
		return nil
	}), nil
}

func gather(t *testing.T, target load.Target, vus int) load.Crowd {
	t.Helper()
	c, err := load.Gather(t.Context(), target, vus)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// The published profile in virtual time: 50 VUs, 26.45 ms a call.
func TestClosedFollowsThePublishedProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: 26450 * time.Microsecond}
		c := gather(t, s, 50)
		var at5 int64
		time.AfterFunc(5*time.Second, func() { at5 = s.now.Load() })
		out, err := c.Run(t.Context(), load.Load{Stages: published(), Slices: 20})
		if err != nil {
			t.Fatal(err)
		}
		sum := out.Shard()
		if s.top.Load() != 50 || sum.Failed() != 0 || s.now.Load() != 0 {
			t.Errorf("at most %d in flight, %d failures, %d left in flight", s.top.Load(), sum.Failed(), s.now.Load())
		}
		if at5 < 24 || at5 > 26 {
			t.Errorf("%d VUs after 5 s, want 25 ± 1", at5)
		}
		// The area below the profile is 50 × 310 VU-seconds.
		want := 50 * 310 / s.takes.Seconds()
		if got := float64(sum.Ops()); math.Abs(got/want-1) > .005 {
			t.Errorf("%.0f calls, want about %.0f", got, want)
		}
		if active := sum.Active.Seconds(); math.Abs(active/(50*310)-1) > .005 {
			t.Errorf("the VUs were active for %.1f s, want about %d", active, 50*310)
		}
		if out.Elapsed < 319*time.Second || out.Elapsed > 321*time.Second {
			t.Errorf("elapsed %v", out.Elapsed)
		}
		stages := map[int]int64{}
		for _, sl := range out.Slices {
			stages[sl.Stage] += sl.Shard.Ops()
		}
		ramp, hold := float64(stages[0]), float64(stages[1])
		if len(stages) != 3 || math.Abs(ramp/hold-5.0/300) > .001 || stages[0] < stages[2]-60 || stages[0] > stages[2]+60 {
			t.Errorf("calls by stage %v", stages)
		}
	})
}

func TestThinkTimeIsNeitherLatencyNorActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: 10 * time.Millisecond}
		out, err := gather(t, s, 10).Run(t.Context(), load.Load{Stages: plan.Hold(10, 11*time.Second), Think: 100 * time.Millisecond})
		sum := out.Shard()
		if err != nil || sum.Ops() != 10*100 || sum.Latency.Max() != int64(s.takes) || sum.Active != 1000*s.takes {
			t.Errorf("%d calls of at most %v, active %v, %v", sum.Ops(), time.Duration(sum.Latency.Max()), sum.Active, err)
		}
	})
}

func TestACountOfCallsIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int64{1, 7, 10, 1001} {
			out, err := gather(t, &server{takes: time.Millisecond}, 10).Run(t.Context(), load.Load{Stages: plan.Hold(10, time.Hour), Calls: n})
			if sum := out.Shard(); err != nil || sum.Ops() != n {
				t.Errorf("%d calls, want %d; %v", sum.Ops(), n, err)
			}
		}
	})
}

// One request: every quantile is that request's time (locustio/locust#331).
func TestOneCallIsEveryQuantile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, _ := gather(t, &server{takes: 1234567}, 1).Run(t.Context(), load.Load{Stages: plan.Hold(1, time.Hour), Calls: 1})
		h := &out.Shard().Latency
		for _, q := range []float64{0, .5, .9, .95, .99, .999, 1} {
			if v := h.Quantile(q); v != 1234567 {
				t.Errorf("q%v is %d", q, v)
			}
		}
	})
}

// A rate is never exceeded, however many could call (bojand/ghz#185).
func TestARateIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := gather(t, &server{takes: time.Millisecond}, 5000).Run(t.Context(), load.Load{Open: true, Stages: plan.Hold(100, 50*time.Second)})
		sum := out.Shard()
		if rate := float64(sum.Ops()) / out.Elapsed.Seconds(); err != nil || sum.Ops() != 5000 || rate > 101 {
			t.Errorf("%d calls at %.1f/s, %v", sum.Ops(), rate, err)
		}
		if sum.Late.Max() != 0 || out.InFlightMost != 1 || out.Bursts != 0 {
			t.Errorf("late by %d ns at most, %d in flight, %d bursts", sum.Late.Max(), out.InFlightMost, out.Bursts)
		}
	})
}

// frozen answers in 200 µs, but nothing between two times.
type frozen struct {
	start      time.Time
	from, till time.Duration
}

func (f *frozen) Open(context.Context) (load.Caller, error) {
	return callerFunc(func(context.Context, record.Mark) error {
		if at := time.Since(f.start); at >= f.from && at < f.till {
			time.Sleep(f.till - at)
		}
		time.Sleep(200 * time.Microsecond)
		return nil
	}), nil
}

// 1,000 arrivals a second for 10 s, the target frozen for 1 s once: what a user sees is a tail of up to a second.
func TestAStallIsInTheTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &frozen{start: time.Now(), from: 5 * time.Second, till: 6 * time.Second}
		out, err := gather(t, f, 50).Run(t.Context(), load.Load{Open: true, Stages: plan.Hold(1000, 10*time.Second)})
		sum := out.Shard()
		if err != nil || sum.Ops() != 10_000 || sum.Dropped != 0 {
			t.Fatalf("%d calls, %d dropped, %v", sum.Ops(), sum.Dropped, err)
		}
		within(t, "p50", sum.Latency.Quantile(.5), 0, 2*time.Millisecond)
		within(t, "p95", sum.Latency.Quantile(.95), 400*time.Millisecond, 650*time.Millisecond)
		within(t, "p99", sum.Latency.Quantile(.99), 850*time.Millisecond, time.Second)
		within(t, "max", sum.Latency.Max(), 990*time.Millisecond, 1010*time.Millisecond)
		if out.InFlightMost < 990 || out.InFlightMost > 1001 {
			t.Errorf("at most %d in flight", out.InFlightMost)
		}
		if sum.Service.Count() != 10_000 {
			t.Errorf("%d service times", sum.Service.Count())
		}
		// Little: calls in flight over time are the calls times their mean.
		if l := float64(out.InFlight) / float64(sum.Service.Sum()); math.Abs(l-1) > .001 {
			t.Errorf("Little ratio %.4f", l)
		}
	})
}

func within(t *testing.T, name string, got int64, lo, hi time.Duration) {
	t.Helper()
	if d := time.Duration(got); d < lo || d > hi {
		t.Errorf("%s is %v, want %v to %v", name, d, lo, hi)
	}
}

// Few connections: what finds none free is dropped and counted, and never silently late (grafana/k6#2837, vegeta with a cap).
func TestArrivalsBeyondTheBoundAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &frozen{start: time.Now(), from: 5 * time.Second, till: 6 * time.Second}
		out, err := gather(t, f, 50).Run(t.Context(), load.Load{Open: true, Stages: plan.Hold(1000, 10*time.Second), InFlight: 50})
		sum := out.Shard()
		if err != nil || out.Arrivals != 10_000 || sum.Ops()+sum.Dropped != 10_000 || sum.Dropped < 940 || sum.Dropped > 951 || out.InFlightMost != 50 {
			t.Errorf("%d arrivals: %d calls, %d dropped, at most %d in flight, %v", out.Arrivals, sum.Ops(), sum.Dropped, out.InFlightMost, err)
		}
	})
}

// A generator that was held up sends what is overdue at once, says so, and counts the wait as the calls' own.
func TestCatchingUpIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := false
		wait := func(_ context.Context, begin time.Time, at time.Duration) {
			time.Sleep(at - time.Since(begin))
			if at >= time.Second && !held {
				held = true
				time.Sleep(300 * time.Millisecond)
			}
		}
		out, err := gather(t, &server{takes: time.Millisecond}, 10).Run(t.Context(),
			load.Load{Open: true, Stages: plan.Hold(1000, 2*time.Second), Wait: wait})
		sum := out.Shard()
		if err != nil || sum.Ops() != 2000 || out.Bursts != 1 || out.BurstMost < 298 || out.BurstMost > 301 {
			t.Errorf("%d calls, %d bursts of at most %d, %v", sum.Ops(), out.Bursts, out.BurstMost, err)
		}
		within(t, "lateness", sum.Late.Max(), 299*time.Millisecond, 301*time.Millisecond)
		within(t, "longest from the intended start", sum.Latency.Max(), 300*time.Millisecond, 302*time.Millisecond)
		within(t, "longest from its send", sum.Service.Max(), time.Millisecond, time.Millisecond)
	})
}

func TestARampedRateFollowsItsStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stages := []plan.Stage{
			{Duration: plan.Duration(10 * time.Second), Target: 200},
			{Duration: plan.Duration(5 * time.Minute), Target: 200},
			{Duration: plan.Duration(10 * time.Second), Target: 0},
		}
		for _, rnd := range []*rand.Rand{nil, rand.New(rand.NewPCG(1, 1))} {
			out, err := gather(t, &server{takes: 5 * time.Millisecond}, 10).Run(t.Context(), load.Load{Open: true, Stages: stages, Rand: rnd})
			if err != nil {
				t.Fatal(err)
			}
			want, slack := []float64{1000, 60_000, 1000}, 0.0
			if rnd != nil {
				slack = 4
			}
			for i, sl := range out.Slices {
				if off := math.Abs(float64(sl.Shard.Ops()) - want[i]); off > slack*math.Sqrt(want[i]) {
					t.Errorf("stage %d: %d calls, want %.0f", i, sl.Shard.Ops(), want[i])
				}
			}
		}
	})
}

// 30 % fast failures: the successes' latencies have none of them, and they have a distribution of their own.
func TestFastFailuresAreNoLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := load.TargetFunc(func(context.Context) (load.Caller, error) {
			n := 0
			return callerFunc(func(context.Context, record.Mark) error {
				if n++; n%10 < 3 {
					time.Sleep(time.Millisecond)
					return record.Fail(record.Status, errors.New("500"))
				}
				time.Sleep(20 * time.Millisecond)
				return nil
			}), nil
		})
		out, err := gather(t, target, 10).Run(t.Context(), load.Load{Stages: plan.Hold(10, time.Hour), Calls: 10_000})
		sum := out.Shard()
		if err != nil || sum.Failures[record.Status] != 3000 || sum.Latency.Count() != 7000 {
			t.Fatalf("%d successes, %v, %v", sum.Latency.Count(), sum.Failures, err)
		}
		if sum.Latency.Min() != 20e6 || sum.Latency.Max() != 20e6 || sum.Failing.Min() != 1e6 || sum.Failing.Max() != 1e6 || sum.Failing.Count() != 3000 {
			t.Errorf("successes took %d to %d ns, failures %d to %d", sum.Latency.Min(), sum.Latency.Max(), sum.Failing.Min(), sum.Failing.Max())
		}
	})
}

// A target that is away for a while does not end the load, and is not hammered meanwhile.
func TestAnOutageIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		target := load.TargetFunc(func(context.Context) (load.Caller, error) {
			return callerFunc(func(context.Context, record.Mark) error {
				if at := time.Since(start); at > time.Second && at < 2*time.Second {
					return record.Fail(record.Connect, errors.New("refused"))
				}
				time.Sleep(time.Millisecond)
				return nil
			}), nil
		})
		out, err := gather(t, target, 4).Run(t.Context(), load.Load{Stages: plan.Hold(4, 3*time.Second)})
		sum := out.Shard()
		if err != nil || sum.Latency.Count() < 4*1800 || sum.Failed() < 4*10 || sum.Failed() > 4*40 {
			t.Errorf("%d successes, %d failures, %v", sum.Latency.Count(), sum.Failed(), err)
		}
	})
}

func TestAnInterruptedLoadKeepsWhatItMeasured(t *testing.T) {
	for _, open := range []bool{false, true} {
		t.Run(fmt.Sprint("open ", open), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{takes: 10 * time.Millisecond}
				c := gather(t, s, 10)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second+time.Millisecond)
				defer cancel()
				out, err := c.Run(ctx, load.Load{Open: open, Stages: plan.Hold(10, time.Hour)})
				sum := out.Shard()
				if !errors.Is(err, context.DeadlineExceeded) || sum.Failed() != 0 || sum.Ops() < 10 || s.now.Load() != 0 {
					t.Errorf("%d calls, %d failures, %d in flight, %v", sum.Ops(), sum.Failed(), s.now.Load(), err)
				}
			})
		})
	}
}
