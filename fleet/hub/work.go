package hub

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"toll/fleet"
	"toll/lab/load"
	"toll/lab/record"
)

// A Generator is what a worker puts its load on a target with. Its methods are called one after the other.
type Generator interface {
	// Prepare reads the plan and starts what calibrating needs.
	Prepare(ctx context.Context, a *fleet.Assignment) error
	// Calibrate measures what this machine can do without a target, and ends what only that needed.
	Calibrate(ctx context.Context) (fleet.Calibration, error)
	// Arm connects to the target.
	Arm(ctx context.Context) error
	// Run puts the segment's load on it and delivers the slices, in order; deliver must not block.
	Run(ctx context.Context, deliver func(load.Slice)) (load.Outcome, error)
	Close() error
}

// WorkConfig says how a worker works.
type WorkConfig struct {
	Access
	ID        string // drawn when empty
	Run       string // the run to take part in; empty: any
	Dir       string // where its file goes
	Hello     fleet.Hello
	Generator Generator
	Patience  time.Duration                           // for the server to answer at first; 1 minute when 0
	Say       func(format string, args ...any)        // what is going on; nil for nobody
	Raw       func(a *fleet.Assignment, s load.Slice) // receives every latency of a slice, if the plan keeps them; nil for nobody
	Stepped   func() time.Duration                    // how far the wall clock was set since the start; nil asks the system's
}

// A laborer is a worker that runs. One goroutine, that of Work, owns it.
type laborer struct {
	cfg     WorkConfig
	line    *line
	clock   monotonic
	rules   *fleet.Worker
	inbox   chan func(now time.Duration) []fleet.Work
	made    chan made // slices on their way to the file
	answers string    // what the subjects of the stream's answers begin with
	journal *Journal
	fresh   copyOf // what was written last
	buf     []byte // its bytes lie in it
	ctx     context.Context
	tasks   sync.WaitGroup

	came    time.Duration // when something last came over the line, or it was found to be well
	probing bool

	stop    context.CancelFunc // of the load
	stopped string             // why the load ends early
	bye     *fleet.Farewell
}

// A copyOf is slice n's bytes.
type copyOf struct {
	n    int
	body []byte
}

// ErrLeft is why a worker ended whose measurements are not with a coordinator.
var ErrLeft = errors.New("the worker left")

// Work takes part in one run, and returns when the coordinator has everything, or when the worker can't go on.
func Work(ctx context.Context, cfg WorkConfig) error {
	if cfg.ID == "" {
		cfg.ID = "w" + drawn()[:7]
	}
	if err := CheckName(cfg.ID); err != nil {
		return err
	}
	if cfg.Say == nil {
		cfg.Say = func(string, ...any) {}
	}
	if cfg.Patience == 0 {
		cfg.Patience = time.Minute
	}
	cfg.Hello.Life = drawn()
	l, err := dial(ctx, cfg.Access, "toll worker "+cfg.ID, cfg.Patience, pingRarely)
	if err != nil {
		return err
	}
	defer l.nc.Close()
	ctx, cancel := context.WithCancel(ctx)
	w := &laborer{cfg: cfg, line: l, clock: newMonotonic(), ctx: ctx, inbox: make(chan func(time.Duration) []fleet.Work, 1<<10), answers: nats.NewInbox() + "."}
	defer func() {
		cancel()
		w.tasks.Wait()
		if w.journal != nil {
			w.journal.Close()
		}
	}()
	if w.cfg.Stepped == nil {
		w.cfg.Stepped = w.clock.stepped
	}
	w.rules = fleet.NewWorker(cfg.ID, cfg.Hello, w.clock.now())
	msgs := make(chan *nats.Msg, 1<<10)
	for _, subject := range []string{toSubject(cfg.ID), w.answers + "*"} {
		if _, err := l.nc.ChanSubscribe(subject, msgs); err != nil {
			return fmt.Errorf("listening for the coordinator: %w", err)
		}
	}
	cfg.Say("worker %s: looking for a run", cfg.ID)
	return w.loop(msgs)
}

// drawn is a random name.
func drawn() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func (w *laborer) loop(msgs chan *nats.Msg) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for w.bye == nil {
		var out []fleet.Work
		select {
		case <-w.ctx.Done():
			return fmt.Errorf("%w: %w", ErrLeft, context.Cause(w.ctx))
		case m := <-msgs:
			w.came = w.clock.now()
			if n, of := strings.CutPrefix(m.Subject, w.answers); of {
				w.stored(n, m)
			} else if d, err := fleet.Decode(m.Data); err == nil {
				out = w.rules.Handle(w.clock.now(), d)
			}
		case f := <-w.inbox:
			out = f(w.clock.now())
		case m := <-w.made:
			out = append(w.sliced(m), w.look()...)
			timer.Reset(lookLater)
		case <-timer.C:
			out = w.look()
			timer.Reset(lookAround)
		}
		w.do(out, msgs)
	}
	if !w.bye.OK {
		file := ""
		if w.journal != nil {
			file = "; what it measured is in " + w.journal.Name()
		}
		return fmt.Errorf("%w: %s%s", ErrLeft, w.bye.Why, file)
	}
	w.cfg.Say("worker %s: %s", w.cfg.ID, w.bye.Why)
	return nil
}

// How often the rules look whether there is something to say or to publish again: by a timer, or with each slice, as long as one
// comes every second.
const (
	lookAround = 500 * time.Millisecond
	lookLater  = 1200 * time.Millisecond
)

// look sees whether there is something to say, and whether the line is well.
func (w *laborer) look() []fleet.Work {
	now := w.clock.now()
	if !w.probing && now-w.came >= probeAfter {
		w.probing = true
		w.later(func() func(time.Duration) []fleet.Work {
			w.line.probe()
			return func(now time.Duration) []fleet.Work { w.came, w.probing = now, false; return nil }
		})
	}
	return w.rules.Tick(now, w.cfg.Stepped())
}

// later has a task done beside the loop, which then hears of its outcome.
func (w *laborer) later(task func() func(now time.Duration) []fleet.Work) {
	w.tasks.Go(func() { w.hear(task()) })
}

func (w *laborer) hear(f func(now time.Duration) []fleet.Work) {
	select {
	case w.inbox <- f:
	case <-w.ctx.Done():
	}
}

func (w *laborer) do(all []fleet.Work, msgs chan *nats.Msg) {
	for _, k := range all {
		switch {
		case k.Send != nil:
			subject := upSubject(k.Send.Run)
			if k.Send.Run == "" {
				subject = helloSubject(w.cfg.Run)
			}
			w.line.nc.Publish(subject, k.Send.Encode()) // what is lost is told again
		case k.Prepare != nil:
			w.prepare(k.Prepare, msgs)
		case k.Calibrate:
			w.cfg.Say("worker %s: calibrating", w.cfg.ID)
			w.later(func() func(time.Duration) []fleet.Work {
				c, err := w.cfg.Generator.Calibrate(w.ctx)
				return func(now time.Duration) []fleet.Work { return w.rules.Calibrated(now, c, err) }
			})
		case k.Arm:
			w.later(func() func(time.Duration) []fleet.Work {
				err := w.cfg.Generator.Arm(w.ctx)
				return func(now time.Duration) []fleet.Work { return w.rules.Armed(now, err) }
			})
		case k.Start != nil:
			w.run(k.Start.At)
		case k.Stop != "":
			if w.stopped == "" && w.stop != nil {
				w.stopped = k.Stop
				w.cfg.Say("worker %s: stopping: %s", w.cfg.ID, k.Stop)
				w.stop()
			}
		case k.Publish != nil:
			w.publish(*k.Publish)
		case k.Leave != nil:
			w.bye = k.Leave
		}
	}
}

// prepare opens what belongs to the run.
func (w *laborer) prepare(a *fleet.Assignment, msgs chan *nats.Msg) {
	run := w.rules.Run()
	err := CheckName(run)
	if err == nil {
		w.journal, err = NewJournal(w.cfg.Dir, run, w.cfg.ID)
	}
	if err == nil {
		_, err = w.line.nc.ChanSubscribe(allSubject(run), msgs)
	}
	w.cfg.Say("worker %s: run %s, %d of %d", w.cfg.ID, run, a.Segment.Number+1, a.Segment.Of)
	w.later(func() func(time.Duration) []fleet.Work {
		if err == nil {
			err = w.cfg.Generator.Prepare(w.ctx, a)
		}
		return func(now time.Duration) []fleet.Work { return w.rules.Prepared(now, err) }
	})
}

// run waits for the start, puts the load on the target and brings its slices to the loop.
func (w *laborer) run(at time.Duration) {
	ctx, stop := context.WithCancel(w.ctx)
	w.stop = stop
	a := w.rules.Assignment()
	w.made = make(chan made, a.Slices+1)
	w.later(func() func(time.Duration) []fleet.Work {
		defer stop()
		waitUntil(ctx, w.clock.base, at)
		begun := time.Now()
		late := begun.Sub(w.clock.base) - at
		if ctx.Err() == nil {
			w.hear(func(now time.Duration) []fleet.Work { return w.rules.Started(now) })
		}
		from, cpu := 0, record.ReadCPU()
		before := record.ReadMeter()
		var out load.Outcome
		err := ctx.Err()
		var t fleet.Totals
		if err == nil {
			out, err = w.cfg.Generator.Run(ctx, func(s load.Slice) {
				if ctx.Err() != nil && time.Since(begun) < s.To {
					return // it was stopped before it was over
				}
				used := record.ReadCPU()
				w.made <- made{from, s, used - cpu}
				count(&t, s.Shard)
				from, cpu = from+1, used
			})
		}
		spent := record.ReadMeter().Sub(before)
		return func(now time.Duration) []fleet.Work {
			var last []fleet.Work // the end of the load is heard of behind its last slice
			for len(w.made) > 0 {
				last = append(last, w.sliced(<-w.made)...)
			}
			t.Elapsed, t.Arrivals, t.InFlightMost, t.InFlight, t.Bursts, t.BurstMost = out.Elapsed, out.Arrivals, out.InFlightMost, out.InFlight, out.Bursts, out.BurstMost
			t.Threads, t.CPU, t.Allocs, t.AllocBytes, t.StartLate = out.Threads, spent.CPU, spent.Allocs, spent.AllocBytes, late
			if ctx.Err() != nil && err != nil {
				t.Stopped, err = w.stopped, nil
			}
			w.cfg.Say("worker %s: done, handing in", w.cfg.ID)
			return append(last, w.rules.Finished(now, t, err)...)
		}
	})
}

// made is a slice on its way to the loop, with the CPU time that the process used since the one before.
type made struct {
	n     int
	slice load.Slice
	cpu   time.Duration
}

// spinFor is how long before the start the worker stops sleeping: a timer may be late.
const spinFor = 500 * time.Microsecond

func waitUntil(ctx context.Context, base time.Time, at time.Duration) {
	if d := at - time.Since(base) - spinFor; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
	for time.Since(base) < at && ctx.Err() == nil {
	}
}

// count adds what was delivered to the totals, by the worker's own count.
func count(t *fleet.Totals, s *record.Shard) {
	t.OK += s.Latency.Count()
	t.SumNS += s.Latency.Sum()
	t.Dropped += s.Dropped
	for kind, n := range s.Failures {
		if t.Failed == nil {
			t.Failed = make(map[string]int64)
		}
		t.Failed[kind] += n
	}
}

// sliced puts a slice into the worker's file and then on its way.
func (w *laborer) sliced(m made) []fleet.Work {
	now, a := w.clock.now(), w.rules.Assignment()
	s := fleet.Slice{
		Run: w.rules.Run(), Worker: w.cfg.ID, N: m.n, Stage: m.slice.Stage, From: m.slice.From, To: m.slice.To, CPU: m.cpu, Shard: m.slice.Shard,
	}
	w.buf = s.AppendBinary(w.buf[:0])
	body := w.buf
	if len(body) > fleet.MaxSlice {
		return w.rules.Fail(now, fmt.Sprintf("slice %d has %d bytes; at most %d", m.n, len(body), fleet.MaxSlice))
	}
	if err := w.journal.Append(body); err != nil {
		return w.rules.Fail(now, err.Error())
	}
	w.fresh = copyOf{m.n, body}
	if w.cfg.Raw != nil && a.Raw {
		w.cfg.Raw(a, m.slice)
	}
	var late time.Duration
	if h := &m.slice.Shard.Late; h.Count() > 0 {
		late = time.Duration(h.Quantile(.99))
	}
	share := 0.
	if d := (m.slice.To - m.slice.From).Seconds() * float64(max(w.cfg.Hello.Host.GOMAXPROCS, 1)); d > 0 {
		share = m.cpu.Seconds() / d
	}
	return w.rules.Sliced(now, m.n, m.slice.To, body, late, share)
}

// publish puts a slice of the file into the stream, and hears whether it is there.
func (w *laborer) publish(c fleet.Copy) {
	body := w.fresh.body
	if c.N != w.fresh.n || body == nil {
		var err error
		if body, err = w.journal.Read(c.N); err != nil {
			w.do(w.rules.Fail(w.clock.now(), err.Error()), nil)
			return
		}
	}
	w.fresh = copyOf{} // the file is what counts from here on
	run := w.rules.Run()
	m := &nats.Msg{Subject: sliceSubject(run, w.cfg.ID, c.N), Data: body, Header: nats.Header{}}
	id := run + "/" + w.cfg.ID + "/" + strconv.Itoa(c.N)
	if c.Time > 1 { // the stream may have confirmed it and lost it since
		id += "/" + strconv.Itoa(c.Time)
	}
	m.Header.Set(jetstream.MsgIDHeader, id)
	m.Reply = w.answers + strconv.Itoa(c.N)
	w.line.nc.PublishMsg(m) // what is lost is tried again
}

// stored hears whether slice n is in the stream. What is not is tried again.
func (w *laborer) stored(n string, m *nats.Msg) {
	var answer struct {
		Stream string          `json:"stream"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(m.Data, &answer) != nil || answer.Stream == "" || answer.Error != nil {
		return
	}
	if i, err := strconv.Atoi(n); err == nil {
		w.rules.Stored(i)
	}
}
