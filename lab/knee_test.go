package lab_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toll/lab"
	"toll/lab/check"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/lab/result"
)

// A queue is a server in virtual time that serves one call at a time, in the order of their arrival.
type queue struct {
	service func(since time.Duration) time.Duration
	refuse  int // calls that may wait; the next is refused; 0 = any number

	mu    sync.Mutex
	begin time.Time
	free  time.Time // guarded by mu: when it will have served all that wait
}

// Call waits for its turn and is served.
func (q *queue) Call(_ context.Context, m record.Mark) error {
	q.mu.Lock()
	now := time.Now()
	if q.begin.IsZero() {
		q.begin = now
	}
	d := q.service(now.Sub(q.begin))
	if q.free.Before(now) {
		q.free = now
	}
	if q.refuse > 0 && q.free.Sub(now) > time.Duration(q.refuse)*d {
		q.mu.Unlock()
		return record.Fail("refused", errors.New("full"))
	}
	q.free = q.free.Add(d)
	until := q.free
	q.mu.Unlock()
	time.Sleep(time.Until(until))
	m.Bytes(100, 200)
	return nil
}

// queues seats queues by name.
type queues map[string]*queue

// Open starts each anew.
func (qs queues) Open(context.Context, lab.Setting) (lab.Set, error) {
	var set lab.Set
	for _, name := range []string{"site", "other", "null"} {
		q := qs[name]
		if q == nil {
			continue
		}
		role := map[string]string{"null": result.Null}[name]
		if qs["other"] != nil && name == "site" {
			role = result.Baseline
		}
		open := load.TargetFunc(func(context.Context) (load.Caller, error) { return q, nil })
		seat := lab.Entry{Contender: result.Contender{Name: name}, Role: role, Connections: "per-caller", Client: "raw", Target: open, Metered: open, Unseen: "it is a fake"}
		set.Entries = append(set.Entries, seat)
		if role == result.Baseline {
			seat.Role = result.Control
			set.Entries = append(set.Entries, seat)
		}
	}
	return set, nil
}

func every(d time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return d }
}

func kneePlan(bound string, names ...string) plan.Plan {
	return loadPlan(plan.Settings{
		Model: plan.Open, Knee: bound, Rate: 100, Duration: plan.Duration(2 * time.Second), WarmupTime: plan.Duration(time.Second),
		Concurrency: []int{10}, Rounds: 2, Blocks: 8,
	}, names...)
}

// kneeOf runs a plan and returns the document, whose every rule but the client's real CPU time is held.
func kneeOf(t *testing.T, p plan.Plan, qs queues, wait load.Wait) *result.Document {
	t.Helper()
	d, err := lab.Run(t.Context(), p, qs, lab.Options{
		Settings: p.Settings, Claimed: p.Settings, Seed: 7, Hop: result.Hop{Kind: "loopback", MeasuredRTT: result.Ptr(.05)}, Wait: wait,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range check.Rules(d) {
		if v.Rule != 7 {
			t.Errorf("%v", v)
		}
	}
	return d
}

// waitMD1 is the probability that an arrival of a Poisson process of a rate waits at most t for a server that takes d for each
// (Erlang 1909; Crommelin 1932).
func waitMD1(rate, d, t float64) float64 {
	sum, fact := 0., 1.
	for k := range int(math.Floor(t/d+1e-9)) + 1 {
		if k > 0 {
			fact *= float64(k)
		}
		x := rate * (t - float64(k)*d)
		sum += math.Exp(x) * math.Pow(-x, float64(k)) / fact
	}
	return (1 - rate*d) * sum
}

// The queue M/D/1 has a known distribution, so the rate at which its p99 reaches a bound can be computed.
func TestTheKneeOfAKnownQueueIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const service, bound = .001, .008
		lo, hi := 1., 1/service
		for range 60 {
			if mid := (lo + hi) / 2; waitMD1(mid, service, bound-service) > .99 {
				lo = mid
			} else {
				hi = mid
			}
		}
		p := kneePlan("p99<8ms", "site")
		p.Arrivals, p.Duration = plan.Poisson, plan.Duration(10*time.Second)
		d := kneeOf(t, p, queues{"site": {service: every(time.Millisecond)}}, nil)
		k := d.Rows[0].Knee
		if k.Rate == nil || k.Lo == nil || math.Abs(*k.Rate/lo-1) > .05 { // spells of two seconds: most of them have fewer bursts than their share
			t.Fatalf("found %s, the truth is %.1f/s", k.Text(), lo)
		}
		if *k.Lo > lo*1.02 || *k.Hi < lo/1.02 || *k.Hi / *k.Lo > 1.15 {
			t.Errorf("the interval of %s does not hold %.1f/s, or is wide", k.Text(), lo)
		}
		if s := k.Sides(); s.Below == 0 || s.Above == 0 || s.MissedBelow > s.Below/5 || s.HeldAbove > s.Above/5 {
			t.Errorf("%+v", s)
		}
		t.Logf("found %s, the truth is %.1f/s; %+v", k.Text(), lo, k.Sides())
	})
}

// Evenly spaced arrivals never wait until there are more of them than the server can serve: its knee is its capacity.
func TestTheKneeOfEvenArrivalsIsTheCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := kneeOf(t, kneePlan("p99<5ms", "site"), queues{"site": {service: every(400 * time.Microsecond)}, "null": {service: every(150 * time.Microsecond)}}, nil)
		r := d.Rows[0]
		if k := r.Knee; k.Rate == nil || math.Abs(*k.Rate/2500-1) > .025 {
			t.Errorf("found %s, the truth is 2500/s", k.Text())
		}
		if len(r.Knee.Searches) != 8 || len(r.Rounds) != 2 || r.Latency.P99 == nil || *r.Latency.P99 >= 5000 || r.Dropped != 0 {
			t.Errorf("%d searches, %d rounds, p99 %v at the knee, %d dropped", len(r.Knee.Searches), len(r.Rounds), r.Latency.P99, r.Dropped)
		}
		if n := len(d.Rows[1].Knee.Searches); n != 2 {
			t.Errorf("the null target was searched %d times in 2 rounds", n)
		}
	})
}

// Two contenders are searched in turns, and compared by the time per call at their knees.
func TestKneesAreCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := kneeOf(t, kneePlan("p99<5ms", "site", "other"), queues{
			"site": {service: every(400 * time.Microsecond)}, "other": {service: every(200 * time.Microsecond)}, "null": {service: every(150 * time.Microsecond)},
		}, nil)
		for _, r := range d.Rows {
			switch {
			case r.Contender.Name == "other":
				if q := r.Ratio; q == nil || q.Of != result.KneeTime || q.Lo == nil || math.Abs(q.Value-.5) > .02 || r.Rank != "1" {
					t.Errorf("%+v, rank %s", r.Ratio, r.Rank)
				}
			case r.Role == result.Control:
				if q := r.Ratio; q == nil || q.Lo == nil || math.Abs(q.Value-1) > .02 {
					t.Errorf("the control: %+v", r.Ratio)
				}
			}
		}
	})
}

// A server that refuses what it can't do in time fails, which is a miss however fast it was.
func TestARefusalIsAMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := kneeOf(t, kneePlan("p99<50ms", "site"), queues{"site": {service: every(time.Millisecond), refuse: 3}}, nil)
		if k := d.Rows[0].Knee; k.Rate == nil || math.Abs(*k.Rate/1000-1) > .03 {
			t.Errorf("found %s, the truth is 1000/s", k.Text())
		}
	})
}

// A client that sends late is not the contender's fault: the knee is then at least what held.
func TestALateClientIsNotTheContenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last time.Duration
		slow := func(_ context.Context, begin time.Time, at time.Duration) {
			time.Sleep(time.Until(begin.Add(at)))
			if at-last < time.Millisecond { // above a thousand a second it loses its breath
				time.Sleep(20 * time.Millisecond)
			}
			last = at
		}
		d := kneeOf(t, kneePlan("p99<8ms", "site"), queues{"site": {service: every(10 * time.Microsecond)}}, slow)
		r := d.Rows[0]
		k := r.Knee
		if k.Rate != nil || k.AtLeast == nil || *k.AtLeast < 500 || *k.AtLeast > 1000 {
			t.Errorf("found %s", k.Text())
		}
		if !strings.Contains(strings.Join(r.Warnings, "\n"), "client-bound: 8 of 8 searches ended") || k.Sides().Disturbed == 0 {
			t.Errorf("%q", r.Warnings)
		}
	})
}

// Freezes of the machine, which have nothing to do with the rate, do not decide.
func TestHiccupsDoNotDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(3, 4))
		next := time.Duration(0)
		freezing := func(since time.Duration) time.Duration {
			if since > next { // every twenty seconds or so
				next = since + time.Duration((10+20*rnd.Float64())*float64(time.Second))
				return 100 * time.Millisecond
			}
			return 400 * time.Microsecond
		}
		d := kneeOf(t, kneePlan("p99<5ms", "site"), queues{"site": {service: freezing}}, nil)
		k := d.Rows[0].Knee
		if k.Rate == nil || math.Abs(*k.Rate/2500-1) > .05 {
			t.Errorf("found %s, the truth is 2500/s", k.Text())
		}
		t.Logf("%s, %+v", k.Text(), k.Sides())
	})
}

// On a machine that stands still every second or so, for several times the bound, the knee is found twice alike.
func TestAKneeIsFoundTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found [2]float64
		for i := range found {
			rnd := rand.New(rand.NewPCG(uint64(i), 5))
			between := func(lo, hi float64) time.Duration {
				return time.Duration((lo + (hi-lo)*rnd.Float64()) * float64(time.Second))
			}
			next := time.Duration(0)
			p := kneePlan("p99<5ms", "site")
			p.Blocks, p.Rate = 6, 1500
			d := kneeOf(t, p, queues{"site": {service: func(since time.Duration) time.Duration {
				if since > next {
					next = since + between(.4, 2)
					return between(.008, .02)
				}
				return 400 * time.Microsecond
			}}}, nil)
			k := d.Rows[0].Knee
			if k.Rate == nil || k.Lo == nil {
				t.Fatalf("found %s", k.Text())
			}
			t.Logf("%s, %+v", k.Text(), k.Sides())
			found[i] = *k.Rate
		}
		if r := found[1] / found[0]; r < .95 || r > 1.05 || math.Abs(found[0]/2500-1) > .1 {
			t.Errorf("found %.0f, the truth is a little below 2500/s", found)
		}
	})
}

// What holds nothing has no knee, and says so.
func TestNoRateHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := kneeOf(t, kneePlan("p99<5ms", "site"), queues{"site": {service: every(20 * time.Millisecond)}}, nil)
		k := d.Rows[0].Knee
		if k.Rate != nil || k.AtLeast != nil || k.Text() != "none found" || len(d.Gaps) == 0 || d.Gaps[0].Reason != "no rate held p99<5ms" {
			t.Errorf("%s; gaps %v", k.Text(), d.Gaps)
		}
	})
}
