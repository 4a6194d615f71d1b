package lab_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toll/lab"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/lab/result"
)

// serial answers one call at a time, each in a millisecond of the bubble's clock, and counts its handler as taking half of it.
type serial struct {
	turn  chan struct{}
	mu    sync.Mutex
	calls int64
}

func (s *serial) Open(context.Context) (load.Caller, error) { return s, nil }

func (s *serial) Call(context.Context, record.Mark) error {
	s.turn <- struct{}{}
	<-time.After(time.Millisecond)
	<-s.turn
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
	return nil
}

func (s *serial) Handled(context.Context) (int64, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls, time.Duration(s.calls) * time.Millisecond / 2, nil
}

func (*serial) Usage() (lab.Usage, error)                      { return lab.Usage{}, nil }
func (*serial) Counters(context.Context) (lab.Counters, error) { return lab.Counters{}, nil }
func (*serial) Stop(context.Context) error                     { return nil }

// serials opens a fresh serial for each entry.
type serials struct{}

func (serials) Open(context.Context, lab.Setting) (lab.Set, error) {
	entry := func(name, role string) lab.Entry {
		s := &serial{turn: make(chan struct{}, 1)}
		return lab.Entry{Contender: result.Contender{Name: name}, Role: role, Connections: "per-caller", Target: s, Process: s, Handles: true}
	}
	return lab.Set{Entries: []lab.Entry{entry("a", result.Baseline), entry("a", result.Control), entry("b", "")}}, nil
}

// The rate of each phase is its share of what the baseline answers, which is a thousand a second; what the handlers count is
// taken off the calls' time.
func TestRatesAreSharesOfTheCapacity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, err := plan.Parse("p.yaml", []byte(`
schema: toll.plan/v1
benchmark: gateway
cases: [work/1ms]
phases: [below, above]
contenders: [a, b]
baseline: a
model: open
shares: {below: 0.5, above: 2}
concurrency: [4]
rounds: 1
blocks: 2
duration: 1s
in_flight: 50
warmup_time: 100ms
`))
		if err != nil {
			t.Fatal(err)
		}
		d, err := lab.Run(t.Context(), p, serials{}, lab.Options{Settings: p.Settings, Claimed: p.Settings, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range d.Rows {
			want := map[string]float64{"below": .5, "above": 2}[r.Phase]
			if r.Open == nil || r.Open.Share == nil || *r.Open.Share != want {
				t.Fatalf("%s: open %+v, want the share %v", r.ID(), r.Open, want)
			}
			if c := *r.Open.Capacity; c < 990 || c > 1010 {
				t.Errorf("%s: capacity %v, want about 1000", r.ID(), c)
			}
			if o := r.Open.Offered; o < 990*want || o > 1010*want {
				t.Errorf("%s: %v a second were offered, want %v × 1000", r.ID(), o, want)
			}
			if (r.Dropped > 0) != (r.Phase == "above") {
				t.Errorf("%s: %d dropped", r.ID(), r.Dropped)
			}
			if f := r.Framework; f == nil || f.Handler != 500 || f.Overhead != result.Round3(r.Latency.Mean-500) {
				t.Errorf("%s: framework %+v of calls that take %v µs", r.ID(), f, r.Latency.Mean)
			}
		}
		if d.Plan.Rate != 0 || len(d.Method.Deviations) != 0 {
			t.Errorf("the echo has the rate %v; deviations %v", d.Plan.Rate, d.Method.Deviations)
		}
	})
}
