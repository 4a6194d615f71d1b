package load_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
)

// A delivery is a slice and when it came.
type delivery struct {
	at    time.Duration
	slice load.Slice
	calls int64
}

// deliveries runs a load whose slices are delivered and checks what holds for all of them.
func deliveries(t *testing.T, s *server, vus int, l load.Load) ([]delivery, load.Outcome) {
	t.Helper()
	c := gather(t, s, vus)
	begin := time.Now()
	var got []delivery
	l.Slices = int(plan.Total(l.Stages) / time.Second)
	l.Deliver = func(sl load.Slice) {
		got = append(got, delivery{time.Since(begin), sl, sl.Shard.Ops() + sl.Shard.Dropped})
	}
	l.Raw = true
	out, err := c.Run(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(out.Slices) {
		t.Fatalf("%d of %d slices were delivered", len(got), len(out.Slices))
	}
	var calls int64
	for i, d := range got {
		if d.slice.From != out.Slices[i].From {
			t.Errorf("delivery %d is of %v to %v", i, d.slice.From, d.slice.To)
		}
		if n := d.slice.Shard.Ops() + d.slice.Shard.Dropped; n != d.calls || out.Slices[i].Shard.Ops() != 0 {
			t.Errorf("slice %d held %d calls when it was delivered and %d in the end, and %d are in the outcome", i, d.calls, n, out.Slices[i].Shard.Ops())
		}
		calls += d.calls
		var raw record.Hist
		for _, v := range d.slice.Shard.Raw() {
			raw.Record(v)
		}
		if !raw.Equal(&d.slice.Shard.Latency) {
			t.Errorf("slice %d: %d raw latencies are not those of the histogram of %d", i, raw.Count(), d.slice.Shard.Latency.Count())
		}
	}
	if l.Open && calls != out.Arrivals {
		t.Errorf("%d calls were delivered of %d arrivals", calls, out.Arrivals)
	}
	return got, out
}

// late is the longest that a slice was kept after its end.
func late(all []delivery) time.Duration {
	var d time.Duration
	for _, x := range all {
		d = max(d, x.at-x.slice.To)
	}
	return d
}

func TestSlicesAreDeliveredWhenNothingCanBeAdded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes time.Duration
		load  load.Load
		most  time.Duration
	}{
		"closed":            {7 * time.Millisecond, load.Load{Stages: plan.Hold(5, 10*time.Second)}, 10 * time.Millisecond},
		"closed, slow":      {1700 * time.Millisecond, load.Load{Stages: plan.Hold(5, 10*time.Second)}, 1700 * time.Millisecond},
		"closed, thinking":  {time.Millisecond, load.Load{Stages: plan.Hold(5, 10*time.Second), Think: 3 * time.Second}, time.Millisecond},
		"closed, ramp":      {time.Millisecond, load.Load{Stages: []plan.Stage{{Duration: plan.Duration(10 * time.Second), Target: 5}}}, time.Millisecond},
		"open":              {3 * time.Millisecond, load.Load{Stages: plan.Hold(500, 10*time.Second), Open: true}, 120 * time.Millisecond},
		"open, rare":        {3 * time.Millisecond, load.Load{Stages: plan.Hold(.7, 10*time.Second), Open: true}, 1600 * time.Millisecond},
		"open, many idle":   {90 * time.Millisecond, load.Load{Stages: []plan.Stage{{Target: 500}, {Duration: plan.Duration(3 * time.Second), Target: 500}, {Target: 5}, {Duration: plan.Duration(7 * time.Second), Target: 5}}, Open: true}, 400 * time.Millisecond},
		"open, overwhelmed": {3 * time.Second, load.Load{Stages: plan.Hold(100, 10*time.Second), Open: true, InFlight: 20}, 3200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all, _ := deliveries(t, &server{takes: c.takes}, 5, c.load)
				if d := late(all); d > c.most {
					t.Errorf("a slice came %v after its end, want at most %v", d, c.most)
				}
			})
		})
	}
}

// What a segment's generator measures adds up to what one alone would.
func TestSegmentsAddUpToTheLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 7))
		stages := []plan.Stage{{Duration: plan.Duration(3 * time.Second), Target: 300}, {Duration: plan.Duration(4 * time.Second), Target: 50}}
		whole, sum := deliveries(t, &server{takes: time.Millisecond}, 5, load.Load{Stages: stages, Open: true})
		of := 2 + r.IntN(6)
		var arrivals int64
		sums := make([]int64, len(whole))
		for i := range of {
			shares, ahead := plan.Segment{Number: i, Of: of}.Rates(stages)
			all, out := deliveries(t, &server{takes: time.Millisecond}, 5, load.Load{Stages: shares, Open: true, Ahead: ahead})
			arrivals += out.Arrivals
			for k, d := range all {
				sums[k] += d.calls
			}
		}
		if arrivals != sum.Arrivals {
			t.Errorf("%d segments have %d arrivals, the whole %d", of, arrivals, sum.Arrivals)
		}
		for k, n := range sums {
			if n != whole[k].calls {
				t.Errorf("slice %d: %d calls, %d of the whole", k, n, whole[k].calls)
			}
		}
	})
}
