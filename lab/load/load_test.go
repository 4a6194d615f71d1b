package load_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/lab/load"
	"toll/lab/record"
)

// callerFunc is a function that is a Caller.
type callerFunc func(ctx context.Context, m record.Mark) error

func (f callerFunc) Call(ctx context.Context, m record.Mark) error { return f(ctx, m) }

func sleeper(d time.Duration) load.Caller {
	return callerFunc(func(context.Context, record.Mark) error {
		time.Sleep(d)
		return nil
	})
}

// preparing counts what is prepared and what is called.
type preparing struct {
	takes           time.Duration
	prepared, calls int
}

func (p *preparing) Prepare(context.Context) error {
	time.Sleep(100 * p.takes)
	p.prepared++
	return nil
}

func (p *preparing) Call(context.Context, record.Mark) error {
	time.Sleep(p.takes)
	if p.calls++; p.calls != p.prepared {
		return errors.New("called without a preparation")
	}
	return nil
}

func TestCountMakesExactlyNCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := load.Count(t.Context(), sleeper(3*time.Millisecond), 1000, time.Second)
		if err != nil || got.Shard.Ops() != 1000 {
			t.Fatalf("%d calls, %v", got.Shard.Ops(), err)
		}
		if got.Shard.Latency.Min() != 3e6 || got.Shard.Latency.Max() != 3e6 || len(got.Shard.Raw()) != 1000 {
			t.Errorf("latencies %d to %d, %d raw", got.Shard.Latency.Min(), got.Shard.Latency.Max(), len(got.Shard.Raw()))
		}
	})
}

func TestPreparationIsNeverInTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &preparing{takes: time.Millisecond}
		start := time.Now()
		got, err := load.Count(t.Context(), p, 50, time.Second)
		if err != nil || got.Shard.Failed() != 0 || p.prepared != 50 {
			t.Fatalf("%d failures, %d preparations, %v", got.Shard.Failed(), p.prepared, err)
		}
		if got.Shard.Latency.Max() != int64(time.Millisecond) {
			t.Errorf("a preparation 100 times the call moved its time to %v", time.Duration(got.Shard.Latency.Max()))
		}
		if wall := time.Since(start); wall != 50*101*time.Millisecond {
			t.Errorf("50 calls with their preparations took %v", wall)
		}
	})
}

// A VU is not active while it prepares: else Little's law would seem broken wherever calls need preparation.
func TestPreparationIsNoActiveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lane := load.Lane{Name: "prepared", Callers: []load.Caller{&preparing{takes: time.Millisecond}}}
		got, err := load.Interleave(t.Context(), []load.Lane{lane}, load.Blocks{Blocks: 2, Calls: 10, Fixed: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got[0].Stretches {
			if s.Active != 10*time.Millisecond || s.Elapsed != 1010*time.Millisecond {
				t.Errorf("active %v of %v, want 10ms of 1.01s", s.Active, s.Elapsed)
			}
		}
	})
}

func TestCountAttributesAllocations(t *testing.T) {
	var keep []byte
	alloc := callerFunc(func(context.Context, record.Mark) error {
		keep = make([]byte, 4096)
		return nil
	})
	got, err := load.Count(t.Context(), alloc, 500, time.Second)
	if err != nil || len(keep) != 4096 {
		t.Fatal(err)
	}
	per := float64(got.Meter.Allocs) / 500
	if per < 1 || per > 1.2 {
		t.Errorf("one object a call reads %.2f", per)
	}
	none, err := load.Count(t.Context(), callerFunc(func(context.Context, record.Mark) error { return nil }), 500, time.Second)
	if err != nil || none.Meter.Allocs > 50 {
		t.Errorf("500 calls that allocate nothing read %d objects, %v", none.Meter.Allocs, err)
	}
}

// The published profile's hold: 50 VUs for five minutes at 26.45 ms a call, in virtual time.
func TestClosedKeepsEveryVUBusyForTheWholeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const vus, d, call = 50, 5 * time.Minute, 26450 * time.Microsecond
		var callers []load.Caller
		var most, now atomic.Int64
		for range vus {
			callers = append(callers, callerFunc(func(context.Context, record.Mark) error {
				for n := now.Add(1); ; {
					if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
						break
					}
				}
				time.Sleep(call)
				now.Add(-1)
				return nil
			}))
		}
		got, elapsed, err := load.Closed(t.Context(), callers, d, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		each := int64(d/call) + 1 // the call in flight at the end is finished
		if got.Ops() != vus*each || most.Load() != vus {
			t.Errorf("%d calls, want %d; at most %d in flight", got.Ops(), vus*each, most.Load())
		}
		if elapsed != time.Duration(each)*call {
			t.Errorf("elapsed %v, want %v", elapsed, time.Duration(each)*call)
		}
	})
}

func TestStoppingLetsCallsInFlightFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 95*time.Millisecond)
		defer cancel()
		c := callerFunc(func(ctx context.Context, _ record.Mark) error {
			time.Sleep(10 * time.Millisecond)
			return ctx.Err()
		})
		got, _, err := load.Closed(ctx, []load.Caller{c, c}, time.Hour, time.Second)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v", err)
		}
		if got.Latency.Count() != 20 || got.Failed() != 0 {
			t.Errorf("%d successes and %d failures; the calls in flight at the stop must count as successes", got.Latency.Count(), got.Failed())
		}
	})
}

func TestACallIsToldThatItIsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := callerFunc(func(ctx context.Context, _ record.Mark) error {
			n++
			until, ok := ctx.Deadline()
			if left := time.Until(until); !ok || left != time.Second {
				t.Errorf("call %d starts with a deadline %v away", n, left)
			}
			if n%2 == 0 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		start := time.Now()
		got, err := load.Count(t.Context(), c, 6, time.Second)
		if err != nil || got.Shard.Failures[record.Timeout] != 3 || got.Shard.Latency.Count() != 3 {
			t.Errorf("%v, %v", got.Shard.Failures, err)
		}
		if took := time.Since(start); took > 3*1300*time.Millisecond {
			t.Errorf("three overdue calls took %v", took)
		}
	})
}

func TestADeadContenderIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := callerFunc(func(ctx context.Context, _ record.Mark) error { return os.ErrDeadlineExceeded })
		got, err := load.Count(t.Context(), c, 1000, time.Second)
		if err == nil || got.Shard.Ops() != 5 {
			t.Errorf("%d calls on a contender that never answers; %v", got.Shard.Ops(), err)
		}
		wrong := callerFunc(func(context.Context, record.Mark) error { return record.Fail(record.WrongID, errors.New("x")) })
		if got, err := load.Count(t.Context(), wrong, 1000, time.Second); err != nil || got.Shard.Failures[record.WrongID] != 1000 {
			t.Errorf("a contender that answers wrongly is still called: %v, %v", got.Shard.Failures, err)
		}
	})
}

// lanes returns k lanes that log their calls.
func lanes(k int, log *[]int) []load.Lane {
	var out []load.Lane
	for i := range k {
		out = append(out, load.Lane{Callers: []load.Caller{callerFunc(func(context.Context, record.Mark) error {
			*log = append(*log, i)
			time.Sleep(time.Duration(i+1) * time.Millisecond)
			return nil
		})}})
	}
	return out
}

func TestEveryBlockCallsEveryLaneInAFreshOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const k, blocks, calls = 4, 50, 10
		run := func(seed uint64) ([]int, []load.LaneResult) {
			var log []int
			got, err := load.Interleave(t.Context(), lanes(k, &log), load.Blocks{
				Blocks: blocks, Calls: calls, Rand: rand.New(rand.NewPCG(seed, 0)),
			})
			if err != nil || len(log) != k*blocks*calls {
				t.Fatalf("%d calls, %v", len(log), err)
			}
			return log, got
		}
		log, got := run(1)
		orders := make(map[[k]int]int)
		for b := range blocks {
			var order [k]int
			for slot := range k {
				at := (b*k + slot) * calls
				order[slot] = log[at]
				for _, l := range log[at : at+calls] {
					if l != order[slot] {
						t.Fatalf("block %d: a stretch is interrupted: %v", b, log[at:at+calls])
					}
				}
			}
			orders[order]++
			for i := range k {
				if got[i].Stretches[b].Slot != indexOf(order, i) {
					t.Errorf("block %d: lane %d ran in slot %d, the result says %d", b, i, indexOf(order, i), got[i].Stretches[b].Slot)
				}
			}
		}
		if len(orders) < 15 {
			t.Errorf("50 shuffles of four lanes gave only %d orders", len(orders))
		}
		again, _ := run(1)
		if d := cmp.Diff(log, again); d != "" {
			t.Error("the same seed gave another order")
		}
		for i, l := range got {
			s := l.Stretches[7]
			if want := float64((i + 1) * 1e6); s.Median != want || s.Min != want || s.OK != calls || len(s.Raw) != calls {
				t.Errorf("lane %d, block 7: %+v", i, s)
			}
			if l.Shard.Ops() != blocks*calls {
				t.Errorf("lane %d: %d calls", i, l.Shard.Ops())
			}
		}
	})
}

func indexOf(order [4]int, v int) int {
	for i, x := range order {
		if x == v {
			return i
		}
	}
	return -1
}

func TestAFixedOrderStaysFixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []int
		if _, err := load.Interleave(t.Context(), lanes(3, &log), load.Blocks{Blocks: 4, Calls: 1, Fixed: true}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]int{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}, log); d != "" {
			t.Error(d)
		}
	})
}

func TestADeadLaneLeavesTheOthersIntact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		dies := callerFunc(func(context.Context, record.Mark) error {
			if n++; n > 25 {
				return record.Fail(record.Closed, errors.New("gone"))
			}
			return nil
		})
		got, err := load.Interleave(t.Context(), []load.Lane{
			{Callers: []load.Caller{dies}}, {Callers: []load.Caller{sleeper(time.Millisecond)}},
		}, load.Blocks{Blocks: 10, Calls: 10, Rand: rand.New(rand.NewPCG(1, 1))})
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Dead == nil || got[0].Shard.Latency.Count() != 25 || got[0].Shard.Failed() != 5 {
			t.Errorf("the dead lane: %v, %d successes, %d failures", got[0].Dead, got[0].Shard.Latency.Count(), got[0].Shard.Failed())
		}
		if got[1].Dead != nil || len(got[1].Stretches) != 10 {
			t.Errorf("the living lane: %v, %d stretches", got[1].Dead, len(got[1].Stretches))
		}
	})
}

func TestSeveralVUsShareABlockEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var callers []load.Caller
		for range 8 {
			callers = append(callers, sleeper(2*time.Millisecond))
		}
		got, err := load.Interleave(t.Context(), []load.Lane{{Callers: callers}}, load.Blocks{Blocks: 3, Calls: 100, Rand: rand.New(rand.NewPCG(1, 1))})
		if err != nil {
			t.Fatal(err)
		}
		s := got[0].Stretches[0]
		if s.OK != 104 || s.Elapsed != 26*time.Millisecond || s.Active != 8*s.Elapsed || got[0].Shard.Active != 3*s.Active {
			t.Errorf("100 calls over 8 VUs: %d in %v; want 13 each, side by side", s.OK, s.Elapsed)
		}
	})
}

func TestAStretchCanHaveADuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := load.Interleave(t.Context(), []load.Lane{{Callers: []load.Caller{sleeper(time.Millisecond), sleeper(time.Millisecond)}}},
			load.Blocks{Blocks: 6, Duration: 100 * time.Millisecond, Rand: rand.New(rand.NewPCG(1, 1))})
		if err != nil || got[0].Shard.Ops() != 6*200 || got[0].Stretches[5].OK != 200 || got[0].Stretches[5].Median != 1e6 {
			t.Errorf("%+v, %v", got[0].Stretches, err)
		}
	})
}

func TestTheWindowAllocatesNothing(t *testing.T) {
	c := callerFunc(func(ctx context.Context, m record.Mark) error {
		ctx.Deadline()
		m.Bytes(1, 1)
		return nil
	})
	got, err := load.Count(t.Context(), c, 20_000, time.Minute)
	if err != nil || got.Meter.Allocs > 200 {
		t.Errorf("20,000 calls allocated %d objects; %v", got.Meter.Allocs, err)
	}
}

// BenchmarkCall is what the executor adds to a call.
func BenchmarkCall(b *testing.B) {
	c := callerFunc(func(context.Context, record.Mark) error { return nil })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := load.Count(b.Context(), c, 1000, time.Minute); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/call")
}
