package agent

import (
	"errors"
	"fmt"
	"time"

	"toll/wire/envelope"
)

// A Drain says what happens to an agent's messages when it is stopped.
type Drain uint8

// The ways to stop. Whichever it is, callers whose messages are not handled are answered with Stopped at once.
const (
	Now     Drain = iota // the caller of the message in progress is answered at once too, and its context ends
	Current              // the message in progress is handled to its end
	All                  // and so are those in the mailbox
)

// An Exit says how a process ended.
type Exit struct {
	Name   string
	Epoch  uint64
	Reason error // nil after an orderly stop; a *Crash when it failed
	Code   envelope.Code

	// Poison is the tell that was being handled when the process crashed; nil when there was none.
	Poison *envelope.Message
}

// Crashed says whether the process failed.
func (e Exit) Crashed() bool { return e.Code == envelope.Crashed }

// errLinger is the reason of a process whose handler did not return when it was stopped.
var errLinger = errors.New("its handler did not return in time and was left behind")

// stop begins to end the process. A harder way to stop replaces a softer one; reason goes to Stop and to the callers.
func (p *process) stop(d Drain, reason error) {
	p.mu.Lock()
	if p.state == gone || p.state == stopping && d >= p.drain {
		p.mu.Unlock()
		return
	}
	again := p.state == stopping
	p.state, p.drain = stopping, d
	if !again {
		p.reason = reason
	}
	var now []item
	if d == Now && p.busy {
		p.killed = true
		if p.current != nil {
			now = append(now, item{s: p.current})
			p.current = nil
		}
		if p.more != nil && p.more.cancel != nil {
			p.more.cancel()
		}
	}
	if d != All {
		now = p.takeAsks(now)
	}
	idle := !p.busy
	p.busy = true
	var m *envelope.Message
	if idle && d == All { // it was suspended with messages waiting
		m, _ = p.advance()
	}
	err := p.refusal()
	var kill func()
	if p.killed && p.more != nil {
		kill = p.more.kill
	}
	p.mu.Unlock()
	for _, it := range now {
		it.s.end(nil, err, p.rt)
	}
	if kill != nil {
		kill()
	}
	switch {
	case m != nil:
		go p.run(m)
	case !idle:
		if !again {
			time.AfterFunc(p.spec.Shutdown, p.leaveBehind)
		}
		return
	case p.hasStop():
		go p.finish()
	default:
		p.finish()
		return
	}
	time.AfterFunc(p.spec.Shutdown, p.leaveBehind)
}

// takeAsks takes the messages that somebody waits for out of the mailbox. mu is held.
func (p *process) takeAsks(out []item) []item {
	take := func(it item) bool {
		if it.s == nil {
			return true
		}
		out = append(out, it)
		return false
	}
	p.normal.keep(take)
	if p.more != nil {
		p.more.control.keep(take)
		p.more.overflow.keep(take)
	}
	return out
}

// halt begins an orderly stop from within the handler.
func (p *process) halt() {
	p.mu.Lock()
	if p.state < stopping {
		p.state, p.drain = stopping, Current
	}
	p.mu.Unlock()
}

func (p *process) hasStop() bool {
	if _, ok := p.handler.(Stopper); !ok {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.started
}

// finish ends a process whose owner has no more to do, in order.
func (p *process) finish() {
	p.mu.Lock()
	e := Exit{Name: p.name, Epoch: p.epoch, Reason: p.reason, Code: envelope.Stopped}
	p.mu.Unlock()
	if p.hasStop() {
		if err := p.stopHook(e.Reason); err != nil {
			e.Reason = errors.Join(e.Reason, err)
		}
	}
	p.end(e, nil)
}

func (p *process) stopHook(reason error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its Stop: %w", newCrash(r))
		}
	}()
	p.handler.(Stopper).Stop(&p.ctx, reason)
	return nil
}

// crashed ends a process whose handler failed. Its owner calls it.
func (p *process) crashed(c *Crash) {
	p.mu.Lock()
	if p.state == gone {
		p.mu.Unlock()
		p.rt.counts.zombies.Add(-1)
		return
	}
	if p.killed { // what failed had been given up already
		p.m, p.current = nil, nil
		p.mu.Unlock()
		p.finish()
		return
	}
	p.state, p.drain, p.reason = stopping, Now, c
	e := Exit{Name: p.name, Epoch: p.epoch, Reason: c, Code: envelope.Crashed}
	s := p.current
	if s == nil && !p.left {
		e.Poison = p.m
	}
	p.m, p.current = nil, nil
	if p.more != nil {
		p.more.release()
	}
	var now []item
	hook := p.started
	if _, ok := p.handler.(Stopper); !ok {
		hook = false
	}
	if hook {
		now = p.takeAsks(now)
	}
	p.mu.Unlock()
	p.rt.counts.crashes.Add(1)
	if hook {
		err := failure(envelope.Crashed, p.name, c.Error())
		for _, it := range append(now, item{s: s}) {
			if it.s != nil {
				it.s.end(nil, err, p.rt)
			}
		}
		s = nil
		if err := p.stopHook(c); err != nil {
			c.Cause = errors.Join(c.Cause, err)
		}
	}
	p.end(e, s)
}

// leaveBehind ends a process whose owner does not come back.
func (p *process) leaveBehind() {
	p.mu.Lock()
	e := Exit{Name: p.name, Epoch: p.epoch, Reason: errors.Join(p.reason, errLinger), Code: envelope.Stopped}
	s := p.current
	over := p.state == gone
	p.current = nil
	if p.more != nil && p.more.cancel != nil {
		p.more.cancel()
	}
	p.killed = true
	p.mu.Unlock()
	if !over && p.end(e, s) {
		p.rt.counts.zombies.Add(1)
	}
}

// end takes the process out of the world: its name is free, then everyone who waits is answered, then its owner and its
// watchers are told. It returns false when that has happened already.
func (p *process) end(e Exit, current *slot) bool {
	p.mu.Lock()
	if p.state == gone {
		p.mu.Unlock()
		return false
	}
	p.state = gone
	var rest []item
	if x := p.more; x != nil {
		x.release()
		rest = p.normal.take(x.control.take(rest))
		rest = x.overflow.take(rest)
	} else if p.normal.n > 0 {
		rest = p.normal.take(rest)
	}
	p.mu.Unlock()
	p.rt.registry.remove(p)
	p.rt.counts.handled.Add(int64(p.handled))
	var tells []item
	err := failureOf(e)
	if current != nil {
		current.end(nil, err, p.rt)
	}
	for _, it := range rest {
		switch {
		case it.s == nil:
			tells = append(tells, it)
		case it.s.tell:
			it.s.answer(nil, err)
		default:
			it.s.end(nil, err, p.rt)
		}
	}
	p.rt.event(Event{Kind: ProcessGone, Name: p.name, Epoch: p.epoch, Err: e.Reason})
	if p.owner != nil {
		p.owner.exited(p, e, tells)
	} else {
		p.rt.bury(e, tells)
	}
	p.mu.Lock()
	p.over = true
	var watchers []func(Exit)
	if p.more != nil {
		watchers, p.more = p.more.watchers, nil
	}
	p.mu.Unlock()
	for _, w := range watchers {
		w(e)
	}
	return true
}

// failureOf is what the callers of a process that ended are told.
func failureOf(e Exit) error {
	f := &envelope.Failure{Code: e.Code, Agent: e.Name}
	if e.Reason != nil {
		f.Detail = e.Reason.Error()
	}
	return f
}

// discard answers the caller of a message that will not be handled, or buries the message.
func (p *process) discard(it item, err error) {
	if it.s != nil {
		it.s.end(nil, err, p.rt)
		return
	}
	p.rt.deadLetter(it.m, err)
}

// watch calls f once when the process has gone; at once if it has.
func (p *process) watch(f func(Exit)) {
	p.mu.Lock()
	if !p.over {
		x := p.extra()
		x.watchers = append(x.watchers, f)
		p.mu.Unlock()
		return
	}
	e := Exit{Name: p.name, Epoch: p.epoch, Reason: p.reason, Code: envelope.Stopped}
	var c *Crash
	if errors.As(p.reason, &c) {
		e.Code = envelope.Crashed
	}
	p.mu.Unlock()
	f(e)
}

// suspend makes the process take no asks, and hold its other messages, until it is resumed.
func (p *process) suspend() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != running && p.state != suspended {
		return p.refusal()
	}
	p.state = suspended
	return nil
}

func (p *process) resume() error {
	p.mu.Lock()
	if p.state != suspended {
		defer p.mu.Unlock()
		if p.state == running {
			return nil
		}
		return p.refusal()
	}
	p.state = running
	var m *envelope.Message
	if !p.busy {
		p.busy = true
		m, _ = p.advance()
	}
	p.mu.Unlock()
	if m != nil {
		go p.run(m)
	}
	return nil
}
