package lab_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
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

// A target is a contender in virtual time, called for a time and not for a number of calls.
type target struct {
	name, role string
	call       func(rnd *rand.Rand, since time.Duration) (time.Duration, error)
}

type targets []target

type timedCaller struct {
	t     target
	rnd   *rand.Rand
	start time.Time
}

func (c *timedCaller) Call(_ context.Context, m record.Mark) error {
	d, err := c.t.call(c.rnd, time.Since(c.start))
	time.Sleep(d)
	m.Bytes(100, 200)
	return err
}

// Open seats the targets.
func (ts targets) Open(_ context.Context, s lab.Setting) (lab.Set, error) {
	var set lab.Set
	start := time.Now()
	for i, t := range ts {
		seed := uint64(s.Seed)*31 + uint64(i)
		var opened atomic.Uint64
		open := load.TargetFunc(func(context.Context) (load.Caller, error) {
			return &timedCaller{t, rand.New(rand.NewPCG(seed, opened.Add(1))), start}, nil
		})
		set.Entries = append(set.Entries, lab.Entry{
			Contender: result.Contender{Name: t.name}, Role: t.role, Connections: "per-caller", Client: "raw", Target: open, Metered: open,
			Unseen: "it is a fake",
		})
	}
	return set, nil
}

// about takes d, give or take a tenth.
func about(d time.Duration) func(*rand.Rand, time.Duration) (time.Duration, error) {
	return func(rnd *rand.Rand, _ time.Duration) (time.Duration, error) {
		return time.Duration(float64(d) * (.9 + .2*rnd.Float64())), nil
	}
}

func loadPlan(s plan.Settings, names ...string) plan.Plan {
	s.Model, s.Order = max(s.Model, plan.Closed), plan.Shuffled
	s.Timeout = plan.Duration(5 * time.Second)
	s.Rounds, s.Blocks, s.Calls, s.Warmup = max(s.Rounds, 1), max(s.Blocks, 1), 1, max(s.Warmup, 1)
	return plan.Plan{
		Schema: plan.Schema, Benchmark: result.Load, Cases: []string{"request"}, Phases: []string{"tcp"}, Contenders: names, Baseline: names[0], Settings: s,
	}
}

func runLoad(t *testing.T, p plan.Plan, ts targets) *result.Document {
	t.Helper()
	d, err := lab.Run(t.Context(), p, ts, lab.Options{
		Settings: p.Settings, Claimed: p.Settings, Seed: 7, Hop: result.Hop{Kind: "loopback", MeasuredRTT: result.Ptr(.05)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range check.Rules(d) {
		// What the fakes' calls cost is this process' real time, in virtual seconds.
		if v.Rule != 7 {
			t.Errorf("%v", v)
		}
	}
	return d
}

var null = target{"null", result.Null, about(time.Millisecond)}

// The first two seconds are slow: declared as warm-up, they are in no published figure, and shown apart.
func TestTheWarmUpIsShownApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := target{"site", "", func(rnd *rand.Rand, since time.Duration) (time.Duration, error) {
			if since < 2*time.Second {
				return 200 * time.Millisecond, nil
			}
			return 5 * time.Millisecond, nil
		}}
		s := plan.Settings{Concurrency: []int{5}, Duration: plan.Duration(10 * time.Second), WarmupTime: plan.Duration(2 * time.Second)}
		d := runLoad(t, loadPlan(s, "site"), targets{slow})
		r := d.Rows[0]
		if r.Latency.Max > 5100 || r.OK != 10_000 {
			t.Errorf("%d calls, the longest took %.0f µs: of the warm-up", r.OK, r.Latency.Max)
		}
		if w := r.WarmUp; w == nil || w.OK != 50 || w.Latency.P50 < 190_000 {
			t.Errorf("the warm-up is %+v", w)
		}
	})
}

// One target: the null target first, its time in slices, and no steady state where there is none.
func TestOneTargetsTimeIsDividedIntoSlices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := target{"site", "", func(rnd *rand.Rand, since time.Duration) (time.Duration, error) {
			d, _ := about(5*time.Millisecond)(rnd, since)
			if since > 7*time.Second {
				d *= 2
			}
			return d, nil
		}}
		s := plan.Settings{Concurrency: []int{5}, Duration: plan.Duration(10 * time.Second)}
		d := runLoad(t, loadPlan(s, "site", "null"), targets{steps, null})
		site, n := d.Rows[0], d.Rows[1]
		if n.Role != result.Null || n.ElapsedS > 2.1 || site.ElapsedS < 9.9 || len(site.Rounds[0].Blocks) != 20 {
			t.Errorf("null ran %.1f s, the target %.1f s in %d slices", n.ElapsedS, site.ElapsedS, len(site.Rounds[0].Blocks))
		}
		if !strings.Contains(strings.Join(site.Warnings, "\n"), "no steady state") || site.Ratio != nil {
			t.Errorf("a level that doubles is not noticed: %q", site.Warnings)
		}
	})
}

// The published profile: its stages are rows of their own, and only the hold is asked to be steady.
func TestStagesAreRowsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plan.Settings{Concurrency: []int{50}, Stages: []plan.Stage{
			{Duration: plan.Duration(10 * time.Second), Target: 50}, {Duration: plan.Duration(time.Minute), Target: 50}, {Duration: plan.Duration(10 * time.Second), Target: 0},
		}}
		d := runLoad(t, loadPlan(s, "site", "null"), targets{{"site", "", about(100 * time.Millisecond)}, null})
		r := d.Rows[0]
		if len(r.Stages) != 3 || r.Stages[0].ToS != 10 || r.Stages[1].From != 50 || r.Stages[2].To != 0 {
			t.Fatalf("stages %+v", r.Stages)
		}
		if ramp, hold := r.Stages[0].Throughput, r.Stages[1].Throughput; ramp/hold < .48 || ramp/hold > .52 {
			t.Errorf("the ramp had %.0f calls a second and the hold %.0f; want half of it", ramp, hold)
		}
		if strings.Contains(strings.Join(r.Warnings, "\n"), "no steady state") {
			t.Errorf("ramps are not meant to be steady: %q", r.Warnings)
		}
	})
}

// Failures are a row of their own and timeouts are in the tail.
func TestFailuresAndTimeoutsHaveTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		mixed := target{"site", "", func(*rand.Rand, time.Duration) (time.Duration, error) {
			switch n++; {
			case n%10 < 3:
				return time.Millisecond, record.Fail(record.Status, errors.New("500"))
			case n%10 == 3:
				return 5 * time.Second, record.Fail(record.Timeout, errors.New("late"))
			}
			return 20 * time.Millisecond, nil
		}}
		s := plan.Settings{Concurrency: []int{1}, Duration: plan.Duration(20 * time.Minute)}
		d := runLoad(t, loadPlan(s, "site", "null"), targets{mixed, null})
		r := d.Rows[0]
		if rate := float64(r.Failed[record.Status]) / float64(r.Ops); rate < .29 || rate > .31 || r.Latency.Max > 20_001 || r.Failing == nil || r.Failing.Min != 1000 {
			t.Errorf("error rate %.3f, the longest success took %.0f µs, failures %+v", rate, r.Latency.Max, r.Failing)
		}
		tail := r.Tail
		if tail == nil || tail.P99 == nil || *tail.P99 < 5e6 || tail.P50 != r.Latency.P50 || tail.AtLeastFrom < .85 || tail.AtLeastFrom > .86 {
			t.Errorf("tail %+v", tail)
		}
	})
}

// An open load that finds too few connections free says saturated; each contender of a comparison has its schedule.
func TestOpenRowsSayHowTheyKeptTheirSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plan.Settings{Model: plan.Open, Rate: 1000, Duration: plan.Duration(time.Second), Concurrency: []int{2}, Rounds: 2, Blocks: 8, InFlight: 10}
		d := runLoad(t, loadPlan(s, "a", "b", "null"), targets{
			{"a", result.Baseline, about(2 * time.Millisecond)}, {"a", result.Control, about(2 * time.Millisecond)}, {"b", "", about(40 * time.Millisecond)}, null,
		})
		a, b := d.Rows[0], d.Rows[2]
		if a.Open == nil || a.Open.Arrivals != 8000 || a.Open.Offered != 1000 || a.Dropped != 0 || a.Open.InFlightMost > 4 || a.Open.Bursts != 0 {
			t.Errorf("a: %+v, %d dropped", a.Open, a.Dropped)
		}
		if b.Ops != 8000 || b.Dropped < 5000 || b.OK+b.Dropped != 8000 || !strings.Contains(strings.Join(b.Warnings, "\n"), "saturated") {
			t.Errorf("b: %d ops, %d ok, %d dropped, %q", b.Ops, b.OK, b.Dropped, b.Warnings)
		}
		if b.Ratio == nil || b.Ratio.Lo == nil || *b.Ratio.Lo < 15 || a.Little == nil || *a.Little < .99 || *a.Little > 1.01 {
			t.Errorf("ratio %+v, Little %v", b.Ratio, a.Little)
		}
	})
}

// The same target twice, forty times: no more than four runs may claim a difference (one in twenty is expected).
func TestTheSameThingTwiceIsRarelyADifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := 0
		for seed := range int64(40) {
			s := plan.Settings{Concurrency: []int{2}, Duration: plan.Duration(20 * time.Millisecond), Rounds: 4, Blocks: 20}
			p := loadPlan(s, "a", "b")
			d, err := lab.Run(t.Context(), p, targets{
				{"a", result.Baseline, about(time.Millisecond)}, {"a", result.Control, about(time.Millisecond)}, {"b", "", about(time.Millisecond)},
			}, lab.Options{Settings: p.Settings, Claimed: p.Settings, Seed: seed + 1, Hop: result.Hop{Kind: "none"}})
			if err != nil {
				t.Fatal(err)
			}
			if q := d.Rows[2].Ratio; *q.Lo > 1 || *q.Hi < 1 {
				claims++
			}
		}
		if claims > 4 {
			t.Errorf("%d of 40 runs claim a difference", claims)
		}
	})
}

// Ten calls have no p99: it is absent, with its reason on the screen, and never a zero. What is there is by nearest rank, and
// the largest is the largest (rakyll/hey#120). A threshold on a quantile that is not there is not met.
func TestTenCallsHaveNoTailQuantileAndNoZeroInItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := -1 // the warm-up's is the first
		growing := target{"site", "", func(*rand.Rand, time.Duration) (time.Duration, error) {
			calls++
			return time.Duration(calls) * time.Millisecond, nil
		}}
		s := plan.Settings{Concurrency: []int{1}, Duration: plan.Duration(time.Hour), CallsOnly: true}
		p := loadPlan(s, "site")
		p.Settings.Calls = 10
		p.Thresholds = plan.Thresholds{"p50 <= 5.1ms", "max <= 10ms", "p99 < 1h", "p95 < 1h"}
		d := runLoad(t, p, targets{growing})
		r := d.Rows[0]
		if r.OK != 10 || r.Latency == nil {
			t.Fatalf("%d ok, %+v", r.OK, r.Latency)
		}
		l := r.Latency
		if l.P90 != nil || l.P95 != nil || l.P99 != nil || l.P999 != nil {
			t.Errorf("tail quantiles of ten calls: %v %v %v %v", l.P90, l.P95, l.P99, l.P999)
		}
		near := func(got, want float64) bool { return got > want*.998 && got < want*1.002 }
		if !near(l.P50, 5000) || !near(l.Max, 10_000) || !near(l.Min, 1000) || !near(l.Mean, 5500) {
			t.Errorf("min %v, mean %v, p50 %v, max %v µs; want 1000, 5500, 5000, 10000", l.Min, l.Mean, l.P50, l.Max)
		}
		want := []bool{true, true, false, false}
		for i, th := range d.Thresholds {
			if th.Passed != want[i] {
				t.Errorf("%s: passed %v", th.Expr, th.Passed)
			}
		}
	})
}

// A spender is a process that spends so much CPU time for each call that was made.
type spender struct {
	calls *atomic.Int64
	each  time.Duration
}

func (s spender) Usage() (lab.Usage, error) {
	return lab.Usage{CPU: time.Duration(s.calls.Load()) * s.each, RSSPeak: 1 << 20, Threads: 1}, nil
}

func (spender) Counters(context.Context) (lab.Counters, error) {
	return lab.Counters{}, errors.New("it does not count")
}

func (spender) Stop(context.Context) error { return nil }

// spenders seat a baseline, its control and one that spends twice as much, each with two backends.
type spenders struct{}

func (spenders) Open(context.Context, lab.Setting) (lab.Set, error) {
	var set lab.Set
	for _, c := range []struct {
		name, role string
		each       time.Duration
	}{{"a", result.Baseline, time.Millisecond}, {"a", result.Control, time.Millisecond}, {"b", "", 2 * time.Millisecond}, {"null", result.Null, 0}, {"floor", result.Floor, 0}} {
		calls := new(atomic.Int64)
		target := load.TargetFunc(func(context.Context) (load.Caller, error) { return countedCaller{calls}, nil })
		e := lab.Entry{
			Contender: result.Contender{Name: c.name}, Role: c.role, Connections: "per-caller", Target: target, Metered: target,
			Process: spender{calls, c.each}, Delay: 50 * time.Millisecond,
		}
		if c.role != result.Null && c.role != result.Floor {
			e.Backends = []lab.Backend{{Name: "api", Process: spender{calls, 3 * time.Millisecond}}, {Name: "store", Process: spender{calls, time.Millisecond}}}
		}
		set.Entries = append(set.Entries, e)
	}
	return set, nil
}

type countedCaller struct{ calls *atomic.Int64 }

func (c countedCaller) Call(_ context.Context, m record.Mark) error {
	time.Sleep(50 * time.Millisecond)
	c.calls.Add(1)
	m.Bytes(1, 1)
	m.Part("step", 50*time.Millisecond)
	return nil
}

// By a published method with pauses: instruments take little of its time, the ceiling is what the pauses allow, CPU ratios are
// paired by round, and what stands behind a contender has figures of its own.
func TestAMethodWithPausesAndBackends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := loadPlan(plan.Settings{
			Concurrency: []int{10}, Rounds: 6, Blocks: 6, Think: plan.Duration(150 * time.Millisecond),
			Stages: []plan.Stage{{Duration: plan.Duration(10 * time.Second), Target: 10}, {Duration: plan.Duration(30 * time.Second), Target: 10}, {Duration: plan.Duration(10 * time.Second), Target: 0}},
		}, "a", "b", "null", "floor")
		p.Benchmark, p.Cases = "tools", []string{"tmdevlab/v1"}
		d, err := lab.Run(t.Context(), p, spenders{}, lab.Options{
			Settings: p.Settings, Claimed: p.Settings, Seed: 7, Hop: result.Hop{Kind: "loopback", MeasuredRTT: result.Ptr(.05)},
		})
		if err != nil {
			t.Fatal(err)
		}
		rows := make(map[string]*result.Row)
		for i := range d.Rows {
			rows[d.Rows[i].Contender.Name+d.Rows[i].Role] = &d.Rows[i]
		}
		a, b, null := rows["abaseline"], rows["b"], rows["null"+result.Null]
		if a.Ceiling == nil || *a.Ceiling != 40 || *a.Throughput < 39 || *a.Throughput > 41 {
			t.Errorf("the ceiling is %v, the rate %v", a.Ceiling, *a.Throughput)
		}
		if null.ElapsedS > 6*2.3 || len(null.Stages) != 0 || len(a.Stages) != 3 || a.Stages[1].Parts["step"].Count == 0 {
			t.Errorf("null took %.1f s with %d stages; the contender's stages are %+v", null.ElapsedS, len(null.Stages), a.Stages)
		}
		if q := b.CPURatio; q == nil || q.Value != 2 || q.Lo == nil || *q.Lo != 2 || q.Of != result.RoundCPU || a.CPURank != "1" || b.CPURank != "2" {
			t.Errorf("CPU ratio %+v, ranks %q and %q", q, a.CPURank, b.CPURank)
		}
		if a.Backend == nil || *a.Backend.CPU != 4000 || *a.Backends["api"].CPU != 3000 || *a.Backends["store"].CPU != 1000 || *a.Server.CPU != 1000 {
			t.Errorf("backends %+v of %+v", a.Backends, a.Backend)
		}
		for _, v := range check.Rules(d) {
			if v.Rule == 3 || v.Rule == 12 {
				t.Error(v)
			}
		}
		b.CPURank = "1"
		edited := false
		for _, v := range check.Rules(d) {
			edited = edited || strings.Contains(v.Text, "its rounds give the CPU ratio")
		}
		if !edited {
			t.Error("an edited CPU rank is not noticed")
		}
	})
}
