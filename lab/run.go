package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/lab/result"
)

// ErrIncomplete is returned beside a document in which a contender that was asked for could not be measured.
var ErrIncomplete = errors.New("not every contender could be measured")

// Run conducts p. It returns a document whenever something was measured: also when ctx ends or a setting can't be measured
// (marked partial, the latter with the error), and when a contender fails (ErrIncomplete). Without one the document is nil.
func Run(ctx context.Context, p plan.Plan, open Opener, o Options) (*result.Document, error) {
	r := &run{plan: p, o: o, open: open, rows: make(map[string]*rowState), dead: make(map[string][]string)}
	r.plan.Settings = o.Settings
	started := time.Now()
	var broken error
	for _, s := range r.settings() {
		if err := r.round(ctx, s); err != nil {
			if ctx.Err() == nil {
				broken = fmt.Errorf("%s %s: %w", s.Case, s.Phase, err)
			}
			break
		}
		r.done++
		if r.o.Look != nil && r.o.Look(r.document(started, false)) {
			r.o.Settings.Rounds, r.o.Settings.Blocks = s.Round, r.blocksUpTo(s.Round)
			r.o.Claimed.Rounds, r.o.Claimed.Blocks = r.o.Settings.Rounds, r.o.Settings.Blocks
			r.plan.Settings = r.o.Settings
			r.total = r.done
			break
		}
	}
	switch {
	case len(r.rows) > 0 || ctx.Err() != nil:
	case broken != nil:
		return nil, broken
	default:
		return nil, fmt.Errorf("no contender could be measured: %s", r.failureText())
	}
	doc := r.document(started, ctx.Err() != nil || broken != nil)
	switch {
	case broken != nil:
		return doc, broken
	case len(r.failures) > 0:
		return doc, ErrIncomplete
	}
	return doc, nil
}

// A run is a plan being conducted. One goroutine owns it.
type run struct {
	plan plan.Plan
	o    Options
	open Opener

	rows     map[string]*rowState
	order    []string // keys of rows, as their contenders were listed
	gaps     []result.Gap
	failures []Failure
	dead     map[string][]string // by setting, contenders that failed in it: not started again in its later rounds
	done     int
	total    int
	theirs   time.Duration // CPU time of the contenders, as far as it was seen
	carrier  *float64      // cores that carrying the hop's packets took in the busiest round; nil where nothing carries them
}

// settings lists what is measured, in order: every round of a case, phase and concurrency before the next.
func (r *run) settings() []Setting {
	phases := r.plan.Phases
	if len(phases) == 0 {
		phases = []string{""}
	}
	rnd := rand.New(rand.NewPCG(uint64(r.o.Seed), 1))
	var out []Setting
	for _, c := range r.plan.Cases {
		for _, ph := range phases {
			for _, n := range r.o.Settings.Concurrency {
				for i := range r.o.Settings.Rounds {
					out = append(out, Setting{Case: c, Phase: ph, Concurrency: n, Round: i + 1, Seed: rnd.Int64N(1 << 53)})
				}
			}
		}
	}
	r.total = len(out)
	return out
}

// A lane is an entry while it is measured.
type lane struct {
	entry   Entry
	place   int           // in the set
	callers []load.Caller // none when the target is an engine, or the lane has a crowd
	crowd   load.Crowd    // where turns are times under load
	turn    *load.Load    // in place of the plan's, for an instrument
	warm    []load.Outcome
	row     *rowState
	held    held
	before  Usage
	began   handled // before the first window
	// capacity is what the baseline answered a second before the round; 0 when the plan's rates are no shares of it.
	capacity float64
	usable   bool    // before could be read
	behind   []Usage // of its backends, before
}

// round measures one setting once.
func (r *run) round(ctx context.Context, s Setting) (err error) {
	s.Skip = r.dead[settingKey(s)]
	set, err := r.open.Open(ctx, s)
	defer func() { r.stop(ctx, s, set) }()
	if err != nil {
		return err
	}
	for _, g := range set.Gaps {
		r.gap(g.Row, g.Reason)
	}
	for _, f := range set.Failures {
		r.fail(s, f.Contender, f.Reason)
	}
	for _, e := range set.Entries {
		if key := rowKey(s, e); !slices.Contains(r.order, key) {
			r.order = append(r.order, key)
		}
	}
	rnd := rand.New(rand.NewPCG(uint64(s.Seed), 2))
	lanes := r.connect(ctx, s, set, rnd)
	defer closeAll(lanes)
	undo, err := r.offer(ctx, s, lanes)
	if err != nil {
		return err
	}
	defer undo()
	lanes = r.warmUp(ctx, s, lanes)
	if len(lanes) == 0 {
		return ctx.Err()
	}
	defer r.carried()()
	if r.o.Settings.Knee != "" {
		if err := r.knee(ctx, s, lanes, rnd); err != nil {
			return err
		}
		for _, l := range lanes {
			r.meter(ctx, s, l)
		}
		return nil
	}
	if r.o.Settings.Order == plan.Fixed {
		// They connected and warmed up in random order; they are called in the plan's.
		slices.SortFunc(lanes, func(a, b *lane) int { return cmp.Compare(a.place, b.place) })
	}
	if err := r.holdBefore(ctx, s, lanes); err != nil {
		return err
	}
	for _, l := range lanes {
		l.began = r.handled(ctx, s, l)
		l.before, l.usable = r.usage(s, l)
		l.behind = r.behind(s, l)
	}
	got, err := r.interleave(ctx, s, lanes, rnd)
	for i, l := range lanes {
		r.keep(s, l, got[i])
		l.row.handle(l.began, r.handled(ctx, s, l))
	}
	if err != nil {
		return err
	}
	if err := r.holdAfter(ctx, s, lanes, got); err != nil {
		return err
	}
	for i, l := range lanes {
		if got[i].Dead == nil {
			r.meter(ctx, s, l)
		}
	}
	return r.samples(s, lanes, got)
}

// connect opens every VU's connection. The lanes are in random order, and warm up in it: a contender that were always the
// first to be called by a fresh client would not be the same as its control.
func (r *run) connect(ctx context.Context, s Setting, set Set, rnd *rand.Rand) []*lane {
	var lanes []*lane
	for _, i := range rnd.Perm(len(set.Entries)) {
		e := set.Entries[i]
		l := &lane{entry: e, place: i}
		if l.engine() != nil && r.o.Settings.Knee != "" {
			r.gap(r.rowName(s, e), "an engine makes its calls by itself, by a schedule that it is given whole: no knee is searched in it")
			continue
		}
		if l.engine() != nil && !r.paced() {
			lanes = append(lanes, l)
			continue
		}
		if r.o.Settings.Timed() {
			var err error
			if l.crowd, err = load.Gather(ctx, e.Target, r.vus(s)); err != nil {
				r.fail(s, label(e), "connecting: "+err.Error())
				continue
			}
			lanes = append(lanes, l)
			continue
		}
		for range s.Concurrency {
			c, err := e.Target.Open(ctx)
			if err != nil {
				r.fail(s, label(e), "connecting: "+err.Error())
				break
			}
			l.callers = append(l.callers, c)
		}
		if len(l.callers) < s.Concurrency {
			closeAll([]*lane{l})
			continue
		}
		lanes = append(lanes, l)
	}
	return lanes
}

// paced reports whether calls have times of their own at which they are due.
func (r *run) paced() bool { return r.o.Settings.Timed() && r.o.Settings.Model == plan.Open }

// warmUp makes the declared warm-up calls; a lane that nobody answers is left out.
func (r *run) warmUp(ctx context.Context, s Setting, lanes []*lane) []*lane {
	each := max(r.o.Settings.Warmup/s.Concurrency, 1)
	var live []*lane
	for _, l := range lanes {
		if l.crowd != nil {
			r.warmCrowd(ctx, s, l)
			live = append(live, l)
			continue
		}
		if dead := l.warmUp(ctx, s.Concurrency, each, time.Duration(r.o.Settings.Timeout)); dead != nil && ctx.Err() == nil {
			r.fail(s, label(l.entry), "warming up: "+dead.Error())
			continue
		}
		live = append(live, l)
	}
	if ctx.Err() != nil {
		return nil
	}
	return live
}

// warmUp has every caller make so many calls.
func (l *lane) warmUp(ctx context.Context, callers, each int, timeout time.Duration) error {
	if e := l.engine(); e != nil {
		_, err := load.RunEngine(ctx, e, callers, callers*each, timeout, new(record.Shard))
		return err
	}
	var mu sync.Mutex
	var dead error
	var wg sync.WaitGroup
	for _, c := range l.callers {
		wg.Go(func() {
			_, err := load.Count(ctx, c, each, timeout)
			mu.Lock()
			defer mu.Unlock()
			dead = cmp.Or(dead, err)
		})
	}
	wg.Wait()
	return dead
}

// engine is the lane's target when that makes stretches by itself, else nil.
func (l *lane) engine() load.Engine {
	e, _ := l.entry.Target.(load.Engine)
	return e
}

func loadLanes(lanes []*lane, concurrency int) []load.Lane {
	out := make([]load.Lane, len(lanes))
	for i, l := range lanes {
		out[i] = load.Lane{Name: l.entry.ID(), Callers: l.callers, Engine: l.engine(), EngineCallers: concurrency, Crowd: l.crowd, Load: l.turn}
	}
	return out
}

func closeAll(lanes []*lane) {
	for _, l := range lanes {
		for _, c := range l.callers {
			load.Close(c)
		}
		l.callers = nil
		if l.crowd != nil {
			l.crowd.Close()
			l.crowd = nil
		}
	}
}

// stop ends the set's processes. What one left behind, or that it had crashed, is a failure of that contender alone.
func (r *run) stop(ctx context.Context, s Setting, set Set) {
	ctx = context.WithoutCancel(ctx)
	var wg sync.WaitGroup
	errs := make([]error, len(set.Entries))
	for i, e := range set.Entries {
		if e.Process == nil {
			continue
		}
		if u, err := e.Process.Usage(); err == nil {
			r.theirs += u.CPU
		}
		for _, b := range e.Backends {
			if u, err := b.Process.Usage(); err == nil {
				r.theirs += u.CPU
			}
		}
		wg.Go(func() {
			errs[i] = e.Process.Stop(ctx)
			for _, b := range e.Backends {
				if err := b.Process.Stop(ctx); err != nil {
					errs[i] = errors.Join(errs[i], fmt.Errorf("its backend %s: %w", b.Name, err))
				}
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil && !r.explained(s, label(set.Entries[i]), err) {
			r.fail(s, label(set.Entries[i]), err.Error())
		}
	}
}

// explained puts the end of a contender that was given up in its reason's place: calls without a reply say less than the exit
// status and the last words of the process that owed them.
func (r *run) explained(s Setting, contender string, err error) bool {
	if !errors.Is(err, io.EOF) || !slices.Contains(r.dead[settingKey(s)], contender) {
		return false
	}
	row := gapRow(s, contender)
	for i := len(r.gaps) - 1; i >= 0; i-- {
		if g := &r.gaps[i]; g.Row == row {
			reason := g.Reason
			when, _, _ := strings.Cut(reason, ": ")
			g.Reason = when + ": " + err.Error()
			for j := range r.failures {
				if f := &r.failures[j]; f.Contender == contender && f.Reason == reason {
					f.Reason = g.Reason
				}
			}
			return true
		}
	}
	return false
}

func (r *run) usage(s Setting, l *lane) (Usage, bool) {
	if l.entry.Process == nil {
		return Usage{}, false
	}
	u, err := l.entry.Process.Usage()
	if err != nil {
		r.gap(r.rowName(s, l.entry)+": server.cpu_us_per_op", err.Error())
		return Usage{}, false
	}
	return u, true
}

// behind returns what each of the lane's backends has used; nil when one of them does not say.
func (r *run) behind(s Setting, l *lane) []Usage {
	var out []Usage
	for _, b := range l.entry.Backends {
		u, err := b.Process.Usage()
		if err != nil {
			r.gap(r.rowName(s, l.entry)+": backend "+b.Name, err.Error())
			return nil
		}
		out = append(out, u)
	}
	return out
}

func (r *run) samples(s Setting, lanes []*lane, got []load.LaneResult) error {
	if r.o.Samples == nil {
		return nil
	}
	for i, l := range lanes {
		if err := r.o.Samples(Samples{s, l.entry, got[i].Stretches}); err != nil {
			return fmt.Errorf("keeping the raw samples: %w", err)
		}
	}
	return nil
}

func (r *run) progress(s Setting, block int) {
	if r.o.Progress != nil {
		r.o.Progress(Progress{s, block + 1, r.o.Settings.BlocksOf(s.Round - 1), r.done, r.total})
	}
}

// gap notes a figure that is not there, once.
func (r *run) gap(row, reason string) {
	g := result.Gap{Row: row, Reason: reason}
	if !slices.Contains(r.gaps, g) {
		r.gaps = append(r.gaps, g)
	}
}

// fail notes that a contender can't be measured any further in this setting.
func (r *run) fail(s Setting, contender, reason string) {
	r.dead[settingKey(s)] = append(r.dead[settingKey(s)], contender)
	f := Failure{contender, reason}
	if !slices.Contains(r.failures, f) {
		r.failures = append(r.failures, f)
	}
	r.gap(gapRow(s, contender), reason)
}

// gapRow is how the gap of a whole row names it.
func gapRow(s Setting, contender string) string {
	return strings.Join(strings.Fields(s.Case+" "+s.Phase+" "+contender), " ")
}

func (r *run) failureText() string {
	var all []string
	for _, f := range r.failures {
		all = append(all, f.Contender+": "+f.Reason)
	}
	for _, g := range r.gaps {
		all = append(all, g.Row+": "+g.Reason)
	}
	return strings.Join(slices.Compact(all), "; ")
}

// label is how an entry is called in messages.
func label(e Entry) string {
	if e.Role == result.Control {
		return e.Contender.Name + " (control)"
	}
	return e.Contender.Name
}

func rowKey(s Setting, e Entry) string { return settingKey(s) + "|" + e.ID() }

func settingKey(s Setting) string { return fmt.Sprint(s.Case, "|", s.Phase, "|", s.Concurrency) }
