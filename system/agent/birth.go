package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toll/wire/envelope"
)

// maxName bounds an agent's name.
const maxName = 255

// A birth is what a process is made of.
type birth struct {
	name    string
	handler Handler
	spec    *Spec
	owner   owner         // told when the process has gone, also of one that was registered and never ready
	inherit []item        // what an earlier process of the name left
	timing  *Timing       // nil for none
	memory  *process      // unused as yet; nil makes it anew
	limit   time.Duration // of the time until it is ready, when ctx has no deadline; 0 is none
}

// start gives a name to a new process and waits until it is ready. The process is nil when an error came before it had its
// name; after a later one its owner is told.
func (rt *Runtime) start(ctx context.Context, b birth) (*process, error) {
	if b.name == "" || len(b.name) > maxName {
		return nil, &Refusal{Reason: BadName, Name: fmt.Sprintf("%.40s", b.name), Detail: fmt.Sprintf("%d bytes; 1 to %d are allowed", len(b.name), maxName)}
	}
	if rt.registry.count.Load() >= int64(rt.cfg.MaxAgents) {
		return nil, &Refusal{Reason: MaxAgents, Name: b.name, Detail: fmt.Sprintf("%d agents live", rt.cfg.MaxAgents)}
	}
	p := b.memory
	if p == nil {
		p = new(process)
	}
	p.rt, p.spec, p.name, p.handler, p.owner, p.state, p.ctx.p = rt, b.spec, b.name, b.handler, b.owner, running, p
	starter, slow := b.handler.(Starter)
	if slow || len(b.inherit) > 0 {
		p.state, p.busy = starting, true
	}
	p.started = !slow
	for _, it := range b.inherit {
		p.normal.push(it)
	}
	if !rt.registry.add(p) {
		return nil, &Refusal{Reason: DuplicateName, Name: b.name, Detail: "an agent has this name"}
	}
	b.timing.mark(Register)
	if rt.closed.Load() {
		p.end(Exit{Name: b.name, Epoch: p.epoch, Code: envelope.Stopped}, nil)
		return p, &Refusal{Reason: ShuttingDown, Name: b.name, Detail: "the runtime has been closed"}
	}
	if slow && !b.spec.Inline {
		if err := p.await(ctx, starter, b); err != nil {
			return p, err
		}
	} else if slow || len(b.inherit) > 0 {
		b.timing.mark(Start)
		if err := p.open(starter, nil); err != nil {
			return p, err
		}
	}
	b.timing.mark(Ready)
	rt.event(Event{Kind: ProcessStarted, Name: b.name, Epoch: p.epoch})
	return p, nil
}

// await opens p on a goroutine of its own and waits for it.
func (p *process) await(ctx context.Context, h Starter, b birth) error {
	s := p.rt.slots.get(ctx)
	s.timed = b.timing != nil
	go p.open(h, s)
	var ready bool
	if _, bounded := ctx.Deadline(); bounded || b.limit == 0 {
		ready = s.wait(ctx)
	} else {
		ready = s.waitFor(ctx, b.limit)
	}
	if !ready {
		p.stop(Now, errGivenUp)
		code := envelope.Deadline
		if ctx.Err() != nil {
			code = envelope.FromContext(ctx)
		}
		return failure(code, p.name, "it was not ready in time and is being stopped")
	}
	err := s.err
	if at, ok := s.value.(time.Time); ok {
		b.timing.markAt(Start, at)
	}
	p.rt.slots.put(s)
	return err
}

// errGivenUp is why a process was stopped that was not ready in time.
var errGivenUp = errors.New("it was not ready in time")

// open runs h's Start, if there is one, tells who waits with s, and goes on with the messages that came meanwhile: on this
// goroutine when it is the process' own, which is when there is an s.
func (p *process) open(h Starter, s *slot) error {
	var began any
	if s != nil && s.timed {
		began = time.Now()
	}
	if h != nil {
		if err := p.startHook(h, s); err != nil {
			p.end(Exit{Name: p.name, Epoch: p.epoch, Reason: err, Code: envelope.Stopped}, nil)
			if s != nil {
				s.answer(nil, err)
			}
			return err
		}
	}
	p.mu.Lock()
	p.started = true
	var err error
	if p.state == starting {
		p.state = running
	} else {
		err = p.refusal()
	}
	m, finish := p.advance()
	p.mu.Unlock()
	if finish {
		p.finish()
	}
	switch {
	case s == nil && m != nil:
		go p.run(m)
	case s != nil:
		s.answer(began, err)
		p.run(m)
	}
	return err
}

// startHook calls Start. A panic is a failure to start; so is Goexit, after which nothing returns.
func (p *process) startHook(h Starter, s *slot) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if r := recover(); r != nil {
			err = p.startFailed(newCrash(r))
			return
		}
		err := p.startFailed(errGoexit)
		p.end(Exit{Name: p.name, Epoch: p.epoch, Reason: err, Code: envelope.Stopped}, nil)
		if s != nil {
			s.answer(nil, err)
		}
	}()
	err = h.Start(&p.ctx)
	returned = true
	if err != nil {
		err = p.startFailed(err)
	}
	return err
}

func (p *process) startFailed(err error) error {
	return &Refusal{Reason: StartFailed, Name: p.name, Detail: err.Error(), Cause: err}
}

// A Step is one of those that a spawn and a despawn take.
type Step uint8

// The steps.
const (
	Admit    Step = iota // limits, allow-list and veto; the handler is made
	Register             // the name is taken
	Start                // the process' own goroutine runs
	Ready                // its Start has returned and the spawner knows
	Stop                 // of a despawn: the process is told
	Gone                 // its Stop has returned, its name is free and the despawner knows
	Steps    = iota
)

// String returns the step's name.
func (s Step) String() string {
	return [...]string{"admit", "register", "start", "ready", "stop", "gone"}[s]
}

// A Timing receives how long each step of a spawn took, by one monotonic clock. Without one no clock is read.
type Timing struct {
	last  time.Time
	Took  [Steps]time.Duration
	Total time.Duration // of the spawn: accepted to ready
}

// begin starts the clock.
func (t *Timing) begin() {
	if t != nil {
		t.last = time.Now()
	}
}

func (t *Timing) mark(s Step) {
	if t != nil {
		t.markAt(s, time.Now())
	}
}

func (t *Timing) markAt(s Step, at time.Time) {
	if t == nil {
		return
	}
	t.Took[s] = at.Sub(t.last)
	t.last = at
	if s <= Ready {
		t.Total += t.Took[s]
	}
}
