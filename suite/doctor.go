package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"toll/contender"
	"toll/contender/place"
	"toll/driver"
	"toll/lab/env"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/lab/result"
)

// A Finding is one thing that a doctor tried on this machine.
type Finding struct {
	About string
	Text  string
	OK    bool // false: what toll promises does not hold here today
	Known bool // whether OK means anything; else the finding is a fact
}

// What the doctor holds the machine to.
const (
	knownDelay     = 200 * time.Microsecond
	delayTolerance = .05
	stallRate      = 1000
	stallTime      = time.Second
	seriesBlocks   = 20
	seriesRounds   = 4 // each with servers started anew, as every comparison has
	seriesCalls    = 100
	seriesWarmup   = 300
	delayBlocks    = 10 // of each of delayRounds
	delayRounds    = 3
	mostLate       = 200 * time.Microsecond
	mostPaused     = .005        // of the time that a spinning thread may stand still before a pacer's p99 is not its own doing
	quietFor       = time.Second // in which the doctor does nothing, to see what others do
	series         = 20
	mostAlarms     = 4 // of the series whose interval excludes 1: 20 × 5 % is one, and more than four has p < 0.003
)

// A doctor tries the instrument on servers of ours.
type doctor struct {
	ctx  context.Context
	tell func(Finding)
	rnd  *rand.Rand
	bad  int

	at       place.Placement // where the pairs run; empty: anywhere
	paused   float64         // share of its time for which a thread that only spins stood still
	smallest float64         // half-width of an A/A interval in nine of ten
}

// ErrUnwell is why a machine can't hold what toll promises.
var ErrUnwell = errors.New("this machine does not hold today what toll promises")

// Doctor measures in about half a minute what this machine can show: clocks and timers, the client's own cost, a known delay,
// a freeze, comparisons of a thing with itself. It tells each finding as it comes.
func Doctor(ctx context.Context, seed int64, tell func(Finding)) error {
	d := &doctor{ctx: ctx, tell: tell, rnd: rand.New(rand.NewPCG(uint64(seed), 5))}
	if err := d.quiet(); err != nil {
		return err
	}
	watch := env.StartWatch()
	d.machine()
	d.pauses()
	steps := []func() error{d.pacer, d.client, d.stall, d.limits, d.held}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	d.noise(watch.Stop(0))
	d.fact("smallest difference", fmt.Sprintf("± %.1f %% is the smallest difference this machine can show today (1 caller, %d blocks × %d calls)",
		100*d.smallest, seriesBlocks, seriesCalls))
	if d.bad > 0 {
		return fmt.Errorf("%w: %d findings", ErrUnwell, d.bad)
	}
	return nil
}

func (d *doctor) fact(about, text string) { d.tell(Finding{About: about, Text: text}) }

func (d *doctor) judge(about string, ok bool, format string, args ...any) {
	if !ok {
		d.bad++
	}
	d.tell(Finding{About: about, Text: fmt.Sprintf(format, args...), OK: ok, Known: true})
}

// machine reads what can be seen, and what reading clocks and recording costs.
func (d *doctor) machine() {
	e := env.Read(d.ctx)
	quota := "no CPU quota"
	if e.Cgroup.CPUs != nil {
		quota = fmt.Sprintf("a quota of %.2g CPUs", *e.Cgroup.CPUs)
	}
	d.fact("machine", fmt.Sprintf("%d processors, GOMAXPROCS %d, %s %s, cgroup %s, %s", e.CPU.Logical, e.Client.GOMAXPROCS, e.OS.Name, e.OS.Kernel, e.Cgroup.Version, quota))
	if t := e.OS.Conntrack; t != nil {
		d.fact("conntrack", trackingText(*t))
	}
	c := env.LabCost()
	d.judge("clock", c.ClockNS < 2000, "a pair of readings takes %.0f ns, its smallest step is %.0f ns", c.ClockNS, c.ClockStepNS)
	d.judge("recorder", c.RecordNS < 100 && c.RecordAllocs < .1, "%.1f ns and %.3g allocations a call", c.RecordNS, c.RecordAllocs)
	d.fact("sleep", fmt.Sprintf("the runtime's timers are %.0f µs late at p50, %.0f µs at p99; arrivals are not paced by them", c.SleepLateP50, c.SleepLateP99))
}

// trackingText says what connection tracking does here, and where to look for what asked for it.
func trackingText(tracked bool) string {
	if !tracked {
		return "connections over loopback are not tracked: no packet is looked up"
	}
	return "connections over loopback are tracked: every packet is looked up, which makes round trips dearer by some per cent, those of all alike. " +
		"A rule of this network namespace asks for it, as podman and docker leave behind: nft list ruleset shows it (table ip nat; look for masquerade, dnat, ct). " +
		"It ends when nothing asks any more: nft delete table ip nat, if nothing needs that table"
}

// nothing is a target that does nothing.
type nothing struct{}

func (nothing) Open(context.Context) (load.Caller, error) { return nothing{}, nil }
func (nothing) Call(context.Context, record.Mark) error   { return nil }

// pacer looks at how late calls are sent that are due every millisecond.
func (d *doctor) pacer() error {
	p, err := load.NewPacer()
	if err != nil {
		return err
	}
	defer p.Close()
	c, err := load.Gather(d.ctx, nothing{}, 10)
	if err != nil {
		return err
	}
	defer c.Close()
	return d.lateness("pacer, goroutines", c, p.Wait)
}

// pacerTries is how often a pacer is tried. The middle one counts: a pause of the whole machine spoils one or another.
const pacerTries = 3

// lateness holds dispatch lateness to 200 µs at p99 on a quiet machine.
func (d *doctor) lateness(about string, c load.Crowd, wait load.Wait) error {
	var all []load.Outcome
	for range pacerTries {
		out, err := c.Run(d.ctx, load.Load{Open: true, Stages: plan.Hold(1000, time.Second), Wait: wait})
		if err != nil {
			return err
		}
		all = append(all, out)
	}
	p99 := func(o load.Outcome) time.Duration { return time.Duration(o.Shard().Late.Quantile(.99)) }
	slices.SortFunc(all, func(a, b load.Outcome) int { return cmp.Compare(p99(a), p99(b)) })
	out := all[len(all)/2]
	h := &out.Shard().Late
	text := fmt.Sprintf("at 1,000 calls a second each is sent %v late at p50, %v at p99, %v at most; %d catch-up bursts (the middle one of %d seconds; p99 %v to %v)",
		round(time.Duration(h.Quantile(.5))), round(p99(out)), round(time.Duration(h.Max())), out.Bursts, len(all), round(p99(all[0])), round(p99(all[len(all)-1])))
	if p99(out) >= mostLate && d.paused > mostPaused {
		d.fact(about, text+"; not judged: no core was idle")
		return nil
	}
	d.judge(about, p99(out) < mostLate, "%s", text)
	return nil
}

func round(t time.Duration) time.Duration {
	if t > time.Millisecond {
		return t.Round(10 * time.Microsecond)
	}
	return t.Round(100 * time.Nanosecond)
}

// null starts a null target of its own.
func (d *doctor) null(args ...string) (*contender.Process, error) {
	spec, err := contender.Self(append([]string{"serve", "null"}, args...)...)
	if err != nil {
		return nil, err
	}
	spec.Processors = d.at.Contenders
	return contender.Start(d.ctx, spec)
}

func client(addr string) *driver.HTTP {
	h := &driver.HTTP{Addr: addr, Client: driver.ClientRaw}
	if driver.LoopWorks {
		h.Client = driver.ClientLoop
	}
	return h
}

// client measures the client's own cost on a target that does nothing.
func (d *doctor) client() (err error) {
	p, err := d.null()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop(context.WithoutCancel(d.ctx))) }()
	c, err := load.Gather(d.ctx, client(p.Ready().Addr), 10)
	if err != nil {
		return err
	}
	defer c.Close()
	cpu := record.ReadCPU()
	out, err := c.Run(d.ctx, load.Load{Stages: plan.Hold(10, time.Second)})
	if err != nil {
		return err
	}
	cpu = record.ReadCPU() - cpu
	s := out.Shard()
	n := max(s.Latency.Count(), 1)
	d.fact("client", fmt.Sprintf("10 callers on a target that does nothing: %.0f calls a second, p50 %v, %.2f s client CPU per 100k calls",
		float64(n)/out.Elapsed.Seconds(), round(time.Duration(s.Latency.Quantile(.5))), cpu.Seconds()/float64(n)*1e5))
	if !driver.LoopWorks {
		return nil
	}
	return d.lateness("pacer, event loop", c, nil)
}

// stall freezes a target for a second under an open load: every call that was due then has to show it.
func (d *doctor) stall() (err error) {
	p, err := d.null()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop(context.WithoutCancel(d.ctx))) }()
	c, err := load.Gather(d.ctx, client(p.Ready().Addr), 50)
	if err != nil {
		return err
	}
	defer c.Close()
	frozen := make(chan error, 1)
	timer := time.AfterFunc(time.Second, func() { frozen <- freeze(p, stallTime) })
	defer timer.Stop()
	out, err := c.Run(d.ctx, load.Load{Open: true, Stages: plan.Hold(stallRate, 3*time.Second)})
	if err != nil {
		return err
	}
	switch err := <-frozen; {
	case errors.Is(err, contender.ErrNoFreeze):
		d.fact("freeze", err.Error())
		return nil
	case err != nil:
		return err
	}
	s := out.Shard()
	seen := s.Latency.CountAbove(int64(stallTime / 10))
	longest := time.Duration(s.Latency.Max())
	due := .9 * stallRate * stallTime.Seconds()
	ok := math.Abs(float64(seen)/due-1) < .1 && longest > stallTime*95/100 && longest < stallTime*12/10 && s.Ops() == 3*stallRate
	d.judge("freeze", ok, "of %d calls, a target frozen for %v held up %d for more than %v (%.0f were due so) and one for %v; %d failed, %d dropped",
		s.Ops(), stallTime, seen, stallTime/10, due, round(longest), s.Failed(), s.Dropped)
	return nil
}

func freeze(p *contender.Process, d time.Duration) error {
	if err := p.Freeze(true); err != nil {
		return err
	}
	time.Sleep(d)
	return p.Freeze(false)
}

// limits tries whether a contender can be held to a CPU and memory limit here.
func (d *doctor) limits() error {
	spec, err := contender.Self("serve", "null")
	if err != nil {
		return err
	}
	spec.Limits.CPUs, spec.Limits.Memory = .5, 256<<20
	p, err := contender.Start(d.ctx, spec)
	if err != nil {
		d.fact("limits", "a contender can't be held to half a CPU and 256 MiB: "+err.Error())
		return nil
	}
	defer p.Stop(context.WithoutCancel(d.ctx))
	l, err := p.Limited()
	if err != nil {
		d.fact("limits", "what is in force on a contender can't be read: "+err.Error())
		return nil
	}
	d.fact("limits", fmt.Sprintf("half a CPU and 256 MiB hold on a contender, by %s", l.Mechanism))
	return nil
}

// quiet looks at what the machine does while the doctor does nothing: pressure that the doctor makes itself says nothing of
// its neighbours.
func (d *doctor) quiet() error {
	watch := env.StartWatch()
	t := time.NewTimer(quietFor)
	defer t.Stop()
	select {
	case <-t.C:
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
	n := watch.Stop(0)
	var parts []string
	quiet := true
	for _, p := range []struct {
		name string
		v    *float64
		most float64
	}{{"other processes", n.OthersCPU, 10}, {"cpu pressure", n.PSICPUSome, 10}, {"memory pressure", n.PSIMemSome, 1}, {"disk pressure", n.PSIIOSome, 20}, {"steal", n.Steal, 2}} {
		if p.v == nil {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %.1f %%", p.name, *p.v))
		quiet = quiet && *p.v <= p.most
	}
	text := fmt.Sprintf("in %v in which toll did nothing: %s", quietFor, strings.Join(parts, ", "))
	switch {
	case parts == nil:
		text = "not visible on this system"
	case !quiet:
		text += ": not a quiet machine; trust ratios, not times"
	}
	d.fact("noise before", text)
	return nil
}

// pauses spins on one thread for a moment and looks when it stood still: whatever the machine did then, it would do to a pacer.
func (d *doctor) pauses() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var lost, longest time.Duration
	count := 0
	base := time.Now()
	for last := time.Duration(0); last < quietFor; {
		now := time.Since(base)
		if gap := now - last; gap > mostLate {
			count++
			lost += gap
			longest = max(longest, gap)
		}
		last = now
	}
	d.paused = lost.Seconds() / quietFor.Seconds()
	d.fact("pauses", fmt.Sprintf("a thread that only spins stood still %d times for more than %v in %v, %.1f %% of it, once for %v",
		count, mostLate, quietFor, 100*d.paused, round(longest)))
}

// noise says what others did while the doctor worked.
func (d *doctor) noise(n result.Noise) {
	var parts []string
	for _, p := range []struct {
		name string
		v    *float64
	}{{"other processes", n.OthersCPU}, {"steal", n.Steal}} {
		if p.v != nil {
			parts = append(parts, fmt.Sprintf("%s %.1f %%", p.name, *p.v))
		}
	}
	if parts == nil {
		parts = []string{"not visible on this system"}
	}
	d.fact("noise meanwhile", strings.Join(parts, ", "))
}
