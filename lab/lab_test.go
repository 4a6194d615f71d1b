package lab_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toll/lab"
	"toll/lab/check"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/lab/result"
)

// A fake is a contender in virtual time: a call takes about base, and the machine's drift is the same for all.
type fake struct {
	name, role string
	base       time.Duration
	fail       func(call int) error // nil for none
	openErr    error
	stopErr    error
	limited    lab.Limited
}

type fakeCaller struct {
	f     *fake
	rnd   *rand.Rand
	calls int
	start time.Time
}

func (c *fakeCaller) Call(_ context.Context, m record.Mark) error {
	c.calls++
	drift := 1 + .1*time.Since(c.start).Seconds()
	time.Sleep(time.Duration(float64(c.f.base) * drift * (1 + .1*c.rnd.Float64())))
	if c.f.fail != nil {
		return c.f.fail(c.calls)
	}
	return nil
}

// house opens fakes and counts what is started and stopped.
type house struct {
	fakes            []*fake
	start            time.Time
	mu               sync.Mutex
	started, stopped int
	settings         []lab.Setting
}

type fakeProcess struct {
	h       *house
	err     error
	limited lab.Limited
}

func (p fakeProcess) Usage() (lab.Usage, error) {
	cpu := time.Since(p.h.start) / 10
	return lab.Usage{CPU: cpu, User: cpu / 2, System: cpu / 2, RSSPeak: 10 << 20, Threads: 5, Limited: p.limited}, nil
}

func (p fakeProcess) Counters(context.Context) (lab.Counters, error) {
	return lab.Counters{}, errors.New("it does not say")
}

func (p fakeProcess) Stop(context.Context) error {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	p.h.stopped++
	return p.err
}

func (h *house) Open(_ context.Context, s lab.Setting) (lab.Set, error) {
	h.settings = append(h.settings, s)
	var set lab.Set
	for i, f := range h.fakes {
		if slices.Contains(s.Skip, f.name) {
			continue
		}
		h.started++
		seed := uint64(s.Seed) + uint64(i)
		var out, in int64
		target := load.TargetFunc(func(context.Context) (load.Caller, error) {
			return &fakeCaller{f: f, rnd: rand.New(rand.NewPCG(seed, 9)), start: h.start}, f.openErr
		})
		set.Entries = append(set.Entries, lab.Entry{
			Contender: result.Contender{Name: f.name, Language: "go"}, Role: f.role, Connections: "per-caller",
			Target: target, Metered: target,
			Wire: func() (int64, int64) {
				out, in = out+20_000, in+10_000
				return out, in
			},
			Process: fakeProcess{h, f.stopErr, f.limited},
		})
	}
	return set, nil
}

func standard() []*fake {
	return []*fake{
		{name: "rest", role: result.Baseline, base: 100 * time.Microsecond},
		{name: "rest", role: result.Control, base: 100 * time.Microsecond},
		{name: "rest-raw", base: 60 * time.Microsecond},
		{name: "floor", role: result.Floor, base: 40 * time.Microsecond},
		{name: "null", role: result.Null, base: 45 * time.Microsecond},
	}
}

func thePlan() plan.Plan {
	return plan.Plan{
		Schema: plan.Schema, Benchmark: "transport", Cases: []string{"call/32B"}, Phases: []string{"tcp"},
		Contenders: []string{"rest", "rest-raw", "floor", "null"}, Baseline: "rest",
		Thresholds: []string{"rest-raw ratio <= 0.7", "rest-raw p50 < 1"},
	}
}

func settings() plan.Settings {
	return plan.Settings{
		Model: plan.Closed, Order: plan.Shuffled, Concurrency: []int{1}, Rounds: 5, Blocks: 20, Calls: 100, Warmup: 50,
		Timeout: plan.Duration(time.Second),
	}
}

// run conducts a plan over fakes in virtual time.
func run(ctx context.Context, t *testing.T, h *house, s plan.Settings, o lab.Options) (*result.Document, error) {
	t.Helper()
	h.start = time.Now()
	o.Settings, o.Claimed, o.Seed = s, settings(), 42
	o.Claimed.Idle = s.Idle
	o.Hop = result.Hop{Kind: "loopback"}
	return lab.Run(ctx, thePlan(), h, o)
}

func row(t *testing.T, d *result.Document, name, role string) *result.Row {
	t.Helper()
	for i := range d.Rows {
		if d.Rows[i].Contender.Name == name && d.Rows[i].Role == role {
			return &d.Rows[i]
		}
	}
	t.Fatalf("no row %s %q", name, role)
	return nil
}

func TestARunGivesAPublishableDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{fakes: standard()}
		samples := 0
		d, err := run(t.Context(), t, h, settings(), lab.Options{Samples: func(s lab.Samples) error {
			for _, st := range s.Stretches {
				samples += len(st.Raw)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range check.Rules(d) {
			t.Error(v)
		}
		if !d.Verdict.Publishable || len(d.Method.Deviations) != 0 {
			t.Errorf("verdict %+v, deviations %v", d.Verdict, d.Method.Deviations)
		}
		raw := row(t, d, "rest-raw", "")
		if q := raw.Ratio; q == nil || q.Value < .58 || q.Value > .62 || *q.Hi > .65 || q.Blocks != 20 || raw.Rank != "1" {
			t.Errorf("rest-raw: ratio %+v, rank %q", raw.Ratio, raw.Rank)
		}
		if c := row(t, d, "rest", result.Control); *c.Ratio.Lo > 1 || *c.Ratio.Hi < 1 || c.Rank != "" {
			t.Errorf("control: %+v, rank %q", c.Ratio, c.Rank)
		}
		if raw.Ops != 2000 || raw.Latency.P99 == nil || raw.Latency.P999 != nil || len(raw.Rounds) != 5 || *raw.Little < .99 || *raw.Little > 1.01 {
			t.Errorf("rest-raw: %d calls, p99 %v, p999 %v, %d rounds, Little %v", raw.Ops, raw.Latency.P99, raw.Latency.P999, len(raw.Rounds), *raw.Little)
		}
		if raw.WireBytes == nil || raw.WireBytes.Out != 100 || raw.WireBytes.In != 50 {
			t.Errorf("20,000 and 10,000 bytes over 200 calls: %+v", raw.WireBytes)
		}
		if p := raw.Intervals["p99"]; p.Lo > *raw.Latency.P99 || p.Hi < *raw.Latency.P99 || p.Lo == p.Hi || len(raw.Intervals) != 4 {
			t.Errorf("intervals %+v", raw.Intervals)
		}
		if samples != 5*2000 {
			t.Errorf("%d raw samples, want those of five rows", samples)
		}
		if h.started != 25 || h.stopped != 25 {
			t.Errorf("%d processes started, %d stopped; five contenders in five rounds", h.started, h.stopped)
		}
		if d.Method.Hop.MeasuredRTT == nil || *d.Method.Hop.MeasuredRTT < .04 || *d.Method.Hop.MeasuredRTT > .06 {
			t.Errorf("measured RTT %v", d.Method.Hop.MeasuredRTT)
		}
		if len(d.Thresholds) != 2 || !d.Thresholds[0].Passed || d.Thresholds[1].Passed {
			t.Errorf("thresholds %+v", d.Thresholds)
		}
	})
}

func TestTheSameSeedGivesTheSameOrder(t *testing.T) {
	slots := func(t *testing.T) (out []int) {
		synctest.Test(t, func(t *testing.T) {
			d, err := run(t.Context(), t, &house{fakes: standard()}, settings(), lab.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range row(t, d, "rest", result.Baseline).Rounds {
				for _, b := range x.Blocks {
					out = append(out, b.Slot)
				}
			}
		})
		return out
	}
	if a, b := slots(t), slots(t); !slices.Equal(a, b) || len(a) != 20 {
		t.Errorf("slots %v and %v", a, b)
	}
}

func TestAContenderThatFailsLeavesTheOthersIntact(t *testing.T) {
	dies := func(n int) error {
		if n > 60 {
			return record.Fail(record.Closed, errors.New("gone"))
		}
		return nil
	}
	for name, c := range map[string]struct {
		change func(*fake)
		want   string
		rows   int // of all five
	}{
		"refuses":        {func(f *fake) { f.openErr = errors.New("connection refused") }, "connecting: connection refused", 4},
		"dies in warmup": {func(f *fake) { f.fail = func(int) error { return record.Fail(record.Closed, errors.New("gone")) } }, "warming up: 5 calls in a row got no reply; the last: closed: gone", 4},
		"dies in blocks": {func(f *fake) { f.fail = dies }, "in round 1: 5 calls in a row got no reply; the last: closed: gone", 5},
		"leaks a child":  {func(f *fake) { f.stopErr = errors.New("left a process running: 77 sleep 1000; killed it") }, "left a process running: 77 sleep 1000; killed it", 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &house{fakes: standard()}
				c.change(h.fakes[2])
				d, err := run(t.Context(), t, h, settings(), lab.Options{})
				if !errors.Is(err, lab.ErrIncomplete) {
					t.Fatalf("error %v", err)
				}
				if len(d.Rows) != c.rows {
					t.Errorf("%d rows, want %d", len(d.Rows), c.rows)
				}
				if !slices.ContainsFunc(d.Gaps, func(g result.Gap) bool {
					return g.Row == "call/32B tcp rest-raw" && strings.Contains(g.Reason, c.want)
				}) {
					t.Errorf("no gap says %q: %v", c.want, d.Gaps)
				}
				if q := row(t, d, "rest", result.Control); q.Ops != 2000 || q.Ratio == nil || q.Ratio.Blocks != 20 {
					t.Errorf("the control's row is not intact: %d calls, %+v", q.Ops, q.Ratio)
				}
				if h.started != h.stopped || h.started != 25-4 {
					t.Errorf("%d started, %d stopped; a failed contender is not started again", h.started, h.stopped)
				}
				for _, v := range check.Rules(d) {
					t.Error(v)
				}
			})
		})
	}
}

func TestWrongRepliesAreFailuresAndNeverLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{fakes: standard()}
		h.fakes[2].fail = func(n int) error {
			if n%2 == 0 {
				return record.Fail(record.WrongID, errors.New("7 instead of 8"))
			}
			return nil
		}
		d, err := run(t.Context(), t, h, settings(), lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := row(t, d, "rest-raw", "")
		if r.OK != 1000 || r.Failed[record.WrongID] != 1000 || r.Histogram.Count != 1000 || r.Verified != 1000 {
			t.Errorf("%d successes, failures %v, %d latencies", r.OK, r.Failed, r.Histogram.Count)
		}
		for _, v := range check.Rules(d) {
			t.Error(v)
		}
	})
}

func TestAnInterruptedRunIsAPartialResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := &house{fakes: standard()}
		n := 0
		d, err := run(ctx, t, h, settings(), lab.Options{Progress: func(lab.Progress) {
			if n++; n == 10 {
				cancel()
			}
		}})
		if err != nil || d == nil || !d.Partial || d.Verdict.Publishable {
			t.Fatalf("%v, %+v", err, d)
		}
		if len(d.Method.Deviations) != 1 || d.Method.Deviations[0].What != "completed" {
			t.Errorf("deviations %v", d.Method.Deviations)
		}
		if r := row(t, d, "rest", result.Baseline); r.Ops != 1000 {
			t.Errorf("%d calls; ten blocks were done", r.Ops)
		}
		if h.started != h.stopped {
			t.Errorf("%d started, %d stopped", h.started, h.stopped)
		}
		for _, v := range check.Rules(d) {
			t.Error(v)
		}
	})
}

func TestWhatRanDifferentlyIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings()
		s.Blocks, s.Rounds, s.Order = 5, 1, plan.Fixed
		d, err := run(t.Context(), t, &house{fakes: standard()}, s, lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var what []string
		for _, v := range d.Method.Deviations {
			what = append(what, v.What)
		}
		if !slices.Equal(what, []string{"order", "rounds", "blocks"}) {
			t.Errorf("deviations of %v", what)
		}
		if q := row(t, d, "rest-raw", "").Ratio; q.Lo != nil || q.Blocks != 5 {
			t.Errorf("five blocks give no interval: %+v", q)
		}
		for _, v := range check.Rules(d) {
			if v.Rule != 4 { // without an interval the control shows no noise floor
				t.Error(v)
			}
		}
	})
}

// What the plan asks of the machine and does not get is a deviation that the document's rules know.
func TestWhatTheMachineDidNotGiveIsListed(t *testing.T) {
	for name, x := range map[string]struct {
		polling func() error
		idle    string
		gap     string
	}{
		"given":      {func() error { return nil }, plan.Poll, ""},
		"not given":  {func() error { return errors.New("processors fell asleep 3 times") }, "", "processors fell asleep 3 times"},
		"not tended": {nil, "", "nothing keeps them from sleep"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := settings()
			s.Idle = plan.Poll
			d, err := run(t.Context(), t, &house{fakes: standard()}, s, lab.Options{Polling: x.polling})
			if err != nil {
				t.Fatal(err)
			}
			want := []plan.Deviation{{What: "idle", Claimed: plan.Poll, Ran: plan.Any}}
			if x.idle == plan.Poll {
				want = nil
			}
			if diff := cmp.Diff(want, d.Method.Deviations, cmpopts.EquateEmpty()); diff != "" || d.Method.Idle != x.idle {
				t.Errorf("%s: idle %q, deviations %s", name, d.Method.Idle, diff)
			}
			gap := slices.IndexFunc(d.Gaps, func(g result.Gap) bool { return g.Row == "method.idle" })
			if (gap >= 0) != (x.gap != "") || gap >= 0 && d.Gaps[gap].Reason != x.gap {
				t.Errorf("%s: gaps %v; want %q", name, d.Gaps, x.gap)
			}
			for _, v := range check.Rules(d) {
				t.Errorf("%s: %v", name, v)
			}
		})
	}
}

// In a fixed order every round calls the contenders as the set lists them, although they connect in random order.
func TestAFixedOrderIsTheSetsInEveryRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := settings()
		s.Blocks, s.Rounds, s.Order = 12, 6, plan.Fixed
		d, err := run(t.Context(), t, &house{fakes: standard()}, s, lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range d.Rows {
			for _, round := range r.Rounds {
				for _, b := range round.Blocks {
					if b.Slot != i {
						t.Errorf("%s %s, round %d: slot %d, want %d", r.Contender.Name, r.Role, round.Round, b.Slot, i)
					}
				}
			}
		}
	})
}

// What was measured before something broke is not thrown away.
func TestABrokenRunKeepsWhatItMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{fakes: standard()}
		rounds := 0
		d, err := run(t.Context(), t, h, settings(), lab.Options{Samples: func(s lab.Samples) error {
			if rounds = s.Setting.Round; rounds == 3 {
				return errors.New("disk full")
			}
			return nil
		}})
		if err == nil || !strings.Contains(err.Error(), "disk full") || d == nil || !d.Partial || d.Verdict.Publishable {
			t.Fatalf("%v, %+v", err, d)
		}
		if r := row(t, d, "rest", result.Baseline); r.Ops != 1200 {
			t.Errorf("%d calls; three of five rounds were made", r.Ops)
		}
		for _, v := range check.Rules(d) {
			t.Error(v)
		}
	})
}

func TestNothingMeasuredIsAnErrorThatSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{fakes: standard()}
		for _, f := range h.fakes {
			f.openErr = errors.New("no such host")
		}
		d, err := run(t.Context(), t, h, settings(), lab.Options{})
		if d != nil || err == nil || !strings.Contains(err.Error(), "rest-raw: connecting: no such host") {
			t.Errorf("%v", err)
		}
	})
}

// engine makes stretches in virtual time and says what they cost.
type engine struct {
	load.Target
	base  time.Duration
	after int // questions until it gives no answer any more; 0 for never
	asked int
}

func (e *engine) Run(_ context.Context, callers, n int, s *record.Shard) (time.Duration, error) {
	if e.asked++; e.after > 0 && e.asked > e.after {
		return 0, errors.New("gone")
	}
	time.Sleep(time.Second) // its set-up is nobody's time
	for i := range n {
		s.Done(e.base+time.Duration(i), nil)
		s.Mark().Part("sign", e.base/2)
	}
	s.Mark().Alloc(int64(3*n), int64(96*n))
	s.CPU, s.CPUKnown, s.Checked = s.CPU+time.Duration(n)*e.base, true, s.Checked+int64(n)
	elapsed := time.Duration((n+callers-1)/callers) * e.base * 101 / 100
	s.Active += time.Duration(callers) * elapsed
	return elapsed, nil
}

// engines opens engines in place of the fakes.
type engines struct {
	*house
	after int
}

func (h engines) Open(ctx context.Context, s lab.Setting) (lab.Set, error) {
	set, err := h.house.Open(ctx, s)
	for i := range set.Entries {
		e := &set.Entries[i]
		e.Target, e.Metered, e.Wire, e.CalleeClock, e.Connections = &engine{base: h.fakes[i].base, after: h.after}, nil, nil, true, "shared"
	}
	return set, err
}

func TestEnginesAreRowsLikeAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fakes := standard()[:3]
		h := engines{&house{fakes: fakes, start: time.Now()}, 0}
		s := settings()
		s.Concurrency = []int{4}
		d, err := lab.Run(t.Context(), thePlan(), h, lab.Options{
			Settings: s, Claimed: s, Seed: 1, Hop: result.Hop{Kind: "none"},
		})
		if err != nil {
			t.Fatal(err)
		}
		raw := row(t, d, "rest-raw", "")
		if raw.Ops != 5*4*100 || raw.Verified != raw.OK || raw.Little == nil || *raw.Little < 1 || *raw.Little > 1.02 {
			t.Errorf("%d calls, %d verified of %d, Little %v", raw.Ops, raw.Verified, raw.OK, raw.Little)
		}
		if raw.Ratio == nil || raw.Ratio.Value < .59 || raw.Ratio.Value > .61 {
			t.Errorf("ratio %+v", raw.Ratio)
		}
		if c := raw.Server; c == nil || c.CPU == nil || *c.CPU != 60 || c.Allocs == nil || *c.Allocs != 3 || *c.AllocBytes != 96 {
			t.Errorf("cost %+v", c)
		}
		if raw.Client.CPU != nil || raw.Parts["sign"].Count != raw.OK {
			t.Errorf("client %+v, parts %+v", raw.Client, raw.Parts)
		}
	})
}

func TestAnEngineThatFallsSilentIsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := engines{&house{fakes: standard()[:3], start: time.Now()}, 3}
		d, err := lab.Run(t.Context(), thePlan(), h, lab.Options{
			Settings: settings(), Claimed: settings(), Seed: 1, Hop: result.Hop{Kind: "none"},
		})
		if !errors.Is(err, lab.ErrIncomplete) || d == nil || len(d.Gaps) == 0 {
			t.Fatalf("%v, %+v", err, d)
		}
	})
}

func TestWatchingIsChargedToTheClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := run(t.Context(), t, &house{fakes: standard()}, settings(), lab.Options{Seed: 1, Watched: func() time.Duration { return 3 * time.Second }})
		if err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for _, r := range d.Rows {
			if r.Client.CPU == nil {
				t.Fatalf("%s has no client CPU", r.ID())
			}
			total += *r.Client.CPU * float64(r.Ops) / 1e6
		}
		if total < 2.99 {
			t.Errorf("of 3 s that the page spent, the rows' clients were charged %.3f s", total)
		}
		said := slices.ContainsFunc(d.Anomalies, func(a result.Anomaly) bool {
			return a.Kind == result.Noisy && strings.Contains(a.Detail, "3000 ms of CPU time are charged to the client")
		})
		if !said {
			t.Errorf("the document does not say that the run was watched: %v", d.Anomalies)
		}
	})
}

// The instruments have no limits; what the document says is what the contenders have, and none in force is a deviation.
func TestLimitsAreThoseOfTheContenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, mechanism := range []string{"cgroup-v1", "none"} {
			fakes := standard()
			for _, f := range fakes {
				f.limited = lab.Limited{Mechanism: "none"}
				if f.role != result.Floor && f.role != result.Null {
					f.limited = lab.Limited{Mechanism: mechanism, MemoryPeak: 5 << 20, OOMKills: 0, Known: mechanism != "none"}
				}
			}
			s := settings()
			s.Limits = plan.Quota{CPUs: 1, Memory: "1GiB"}
			d, err := run(t.Context(), t, &house{fakes: fakes}, s, lab.Options{MemoryLimit: 1 << 30})
			if err != nil {
				t.Fatal(err)
			}
			m := d.Method.Limits
			if m.Mechanism != mechanism {
				t.Errorf("mechanism %q, want %q", m.Mechanism, mechanism)
			}
			none := slices.ContainsFunc(d.Method.Deviations, func(v plan.Deviation) bool { return v.Ran == "none in force" })
			inForce := m.CPUs != nil && *m.CPUs == 1 && m.MemoryMB != nil && *m.MemoryMB == 1024
			if inForce == none || none != (mechanism == "none") {
				t.Errorf("%s: %+v, deviations %v", mechanism, m, d.Method.Deviations)
			}
			if raw := row(t, d, "rest-raw", "").Server; mechanism != "none" && (raw.MemoryPeakMB == nil || *raw.MemoryPeakMB != 5 || raw.OOMKills == nil) {
				t.Errorf("%+v", raw)
			}
		}
	})
}

// Each process names what limits it; who is limited by nothing while others are is named.
func TestLimitsThatSeveralHoldAreAllNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for raw, want := range map[string]struct{ mechanism, deviation string }{
			"podman": {"cgroup-v1, podman", ""},
			"none":   {"cgroup-v1", "none in force on rest-raw"},
		} {
			fakes := standard()
			for _, f := range fakes {
				f.limited = lab.Limited{Mechanism: "cgroup-v1", Known: true}
				if f.role == result.Floor || f.role == result.Null {
					f.limited = lab.Limited{Mechanism: "none"}
				}
				if f.name == "rest-raw" {
					f.limited = lab.Limited{Mechanism: raw}
				}
			}
			s := settings()
			s.Limits = plan.Quota{CPUs: 1}
			d, err := run(t.Context(), t, &house{fakes: fakes}, s, lab.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, v := range d.Method.Deviations {
				if strings.HasPrefix(v.Ran, result.NoneInForce) {
					got = v.Ran
				}
			}
			if d.Method.Limits.Mechanism != want.mechanism || got != want.deviation {
				t.Errorf("%s: by %q, deviation %q; want %+v", raw, d.Method.Limits.Mechanism, got, want)
			}
		}
	})
}
