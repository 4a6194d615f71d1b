package agent

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"

	"toll/wire/envelope"
)

// A state is where a process is in its life.
type state uint8

const (
	starting state = iota
	running
	suspended
	stopping
	gone
)

// String returns the state's name.
func (s state) String() string {
	return [...]string{"starting", "running", "suspended", "stopping", "gone"}[s]
}

// A process is one life of an agent. Whoever sets busy owns it: it alone calls the handler, and it goes on until the mailbox
// is empty or the process is gone.
type process struct {
	rt      *Runtime
	spec    *Spec // shared and never changed
	name    string
	epoch   uint64
	handler Handler
	owner   owner // told of the exit; nil for nobody
	ctx     Context

	mu      sync.Mutex
	state   state             // guarded by mu
	busy    bool              // guarded by mu: somebody owns the process
	started bool              // guarded by mu: Start succeeded, so Stop is due
	killed  bool              // guarded by mu: it was stopped in the middle of a message
	over    bool              // guarded by mu: gone, and everyone has been told
	left    bool              // guarded by mu: the caller of the message in progress has given up
	drain   Drain             // guarded by mu, once stopping
	reason  error             // guarded by mu, once stopping
	m       *envelope.Message // guarded by mu: being handled
	current *slot             // guarded by mu: of its caller; nil when there is none, or it has been answered
	normal  ring              // guarded by mu
	more    *more             // guarded by mu: what few processes need
	handled uint64            // guarded by mu
	loop    func()            // guarded by mu: work, once it was needed
}

// more is the part of a process that an idle one in good health has no use for.
type more struct {
	control  ring // served first
	overflow ring // callers who wait for a place in the mailbox
	expired  int  // how many of the queued have been abandoned, about
	ctx      context.Context
	cancel   context.CancelFunc // of ctx, which the handler asked for
	watchers []func(Exit)
	kill     func() // ends what the handler waits for, when the process is stopped in the middle of a message
}

// An owner is told when a process of its own has gone. rest are the tells that it had not handled.
type owner interface {
	exited(p *process, e Exit, rest []item)
}

func (p *process) extra() *more {
	if p.more == nil {
		p.more = new(more)
	}
	return p.more
}

// post puts a message into the mailbox, or hands it to a new goroutine when nothing else is to be done first. A slot is the
// caller's, nil for a tell that need not wait. When blocked is true the caller waits for a place, and s is answered when a
// tell has one.
func (p *process) post(it item) (blocked bool, err error) {
	p.mu.Lock()
	switch {
	case p.state >= stopping:
		err = p.refusal()
	case p.state == suspended && it.s != nil && !it.s.tell:
		err = failure(envelope.Suspended, p.name, "")
	case !p.busy && p.state == running:
		p.busy = true
		p.begin(it.placed())
		p.launch()
		p.mu.Unlock()
		return false, nil
	default:
		return p.queue(it)
	}
	p.mu.Unlock()
	return false, err
}

// refusal is the error of a caller that comes too late. mu is held.
func (p *process) refusal() error {
	if p.reason != nil {
		return failure(envelope.Stopped, p.name, p.reason.Error())
	}
	return failure(envelope.Stopped, p.name, "")
}

// queue puts a message into its lane; mu is held, and given back.
func (p *process) queue(it item) (blocked bool, err error) {
	lane, limit := &p.normal, p.spec.Mailbox
	if it.m.Priority > 0 {
		lane, limit = &p.extra().control, p.spec.Control
	}
	if lane.len() >= limit && p.more != nil && p.more.expired > 0 {
		p.sweep()
	}
	if lane.len() < limit {
		lane.push(it.placed())
		p.mu.Unlock()
		return false, nil
	}
	switch p.spec.Full {
	case Block:
		if it.s == nil || it.m.Priority > 0 {
			break
		}
		p.extra().overflow.push(it)
		p.mu.Unlock()
		return true, nil
	case DropOldest:
		old, _ := lane.pop()
		lane.push(it.placed())
		p.mu.Unlock()
		p.rt.counts.dropped.Add(1)
		p.discard(old, failure(envelope.MailboxFull, p.name, "dropped for a newer message"))
		return false, nil
	}
	p.mu.Unlock()
	return false, failure(envelope.MailboxFull, p.name, "")
}

// sweep forgets messages whose callers have gone. mu is held.
func (p *process) sweep() {
	live := func(it item) bool { return it.s == nil || !it.s.abandoned() }
	before := p.normal.len() + p.more.control.len()
	p.normal.keep(live)
	p.more.control.keep(live)
	p.more.expired = 0
	p.rt.counts.expired.Add(int64(before - p.normal.len() - p.more.control.len()))
}

// leave takes note that the caller of s has given up while its message waits or is handled.
func (p *process) leave(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == s {
		p.current, p.left = nil, true
		if p.more != nil && p.more.cancel != nil {
			p.more.cancel()
		}
		return
	}
	if p.state == gone {
		return
	}
	x := p.extra()
	x.expired++
	if x.overflow.len() > 0 {
		x.overflow.keep(func(it item) bool { return it.s != s })
	}
}

// begin makes it the message that is being handled. mu is held.
func (p *process) begin(it item) {
	p.m, p.current, p.left = it.m, it.s, false
}

// next ends the handling of one message: it returns the slot that is to be answered for it and the message to go on with.
// When there is none the process is nobody's, or the caller must finish it.
func (p *process) next() (s *slot, m *envelope.Message, finish bool) {
	p.mu.Lock()
	s = p.current
	p.m, p.current = nil, nil
	p.handled++
	if p.left {
		p.rt.counts.lateReplies.Add(1)
	}
	if p.more != nil {
		p.more.release()
	}
	m, finish = p.advance()
	p.mu.Unlock()
	return s, m, finish
}

// release ends the context of a handled message.
func (x *more) release() {
	if x.cancel != nil {
		x.cancel()
		x.ctx, x.cancel = nil, nil
	}
}

// advance takes the next message out of the mailbox, unless the process is to rest or to end. mu is held.
func (p *process) advance() (m *envelope.Message, finish bool) {
	if p.state == gone {
		p.rt.counts.zombies.Add(-1)
		return nil, false
	}
	if p.state == stopping && (p.drain != All || p.killed) {
		return nil, true
	}
	for p.state != suspended {
		it, ok := p.pop()
		if !ok {
			break
		}
		if it.s != nil && (it.s.abandoned() || it.s.ctx.Err() != nil) {
			p.rt.counts.expired.Add(1)
			it.s.answer(nil, failure(envelope.FromContext(it.s.ctx), p.name, "")) // if it still waits
			continue
		}
		p.begin(it)
		return it.m, false
	}
	if p.state == stopping {
		return nil, true
	}
	p.busy = false
	return nil, false
}

// pop takes the first message of the control lane, else of the normal one, and lets a waiting caller in.
func (p *process) pop() (it item, ok bool) {
	x := p.more
	if x == nil {
		return p.normal.pop()
	}
	if it, ok = x.control.pop(); !ok {
		it, ok = p.normal.pop()
	}
	if x.overflow.len() > 0 {
		p.admit()
	}
	if !ok {
		x.expired = 0
	}
	return it, ok
}

// admit moves waiting callers into the mailbox while there is room. mu is held.
func (p *process) admit() {
	x := p.more
	for x.overflow.len() > 0 && p.normal.len() < p.spec.Mailbox {
		it, _ := x.overflow.pop()
		if it.s.abandoned() {
			continue
		}
		if it.s.tell {
			if !it.s.answer(nil, nil) {
				continue
			}
			it.s = nil
		}
		p.normal.push(it)
	}
}

// launch starts a goroutine that handles the message in progress and those behind it. mu is held. The closure is kept: it
// would be the one thing that an ask allocates.
func (p *process) launch() {
	if p.loop == nil {
		p.loop = p.work
	}
	go p.loop()
}

// work is run for the message in progress. It needs no lock to read it: the owner alone changes it, and that is this goroutine.
func (p *process) work() { p.run(p.m) }

// run handles messages until there is none. It owns the process.
func (p *process) run(m *envelope.Message) {
	for m != nil {
		v, err := p.handle(m)
		if c, ok := err.(*crashing); ok {
			p.crashed(c.Crash)
			return
		}
		m = p.settle(v, err)
	}
}

// settle answers the message that was handled and returns the next one.
func (p *process) settle(v any, err error) *envelope.Message {
	if err != nil && errors.Is(err, ErrStop) {
		p.halt()
		if err = withoutStop(err); err == ErrStop {
			err = nil
		}
	}
	s, m, finish := p.next()
	p.respond(s, v, err)
	if finish {
		p.finish()
		return nil
	}
	return m
}

// withoutStop returns what was joined to ErrStop.
func withoutStop(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return ErrStop
	}
	var rest []error
	for _, e := range joined.Unwrap() {
		if !errors.Is(e, ErrStop) {
			rest = append(rest, e)
		}
	}
	return errors.Join(rest...)
}

func (p *process) respond(s *slot, v any, err error) {
	if s == nil {
		return
	}
	if err != nil {
		v, err = nil, envelope.FailureOf(err, p.name)
	}
	s.end(v, err, p.rt)
}

// crashing is the error of a handler that failed. It is a type of its own: a handler may well return the Crash of another
// agent as its answer.
type crashing struct{ *Crash }

// handle calls the handler, as often as its judge wants. A *crashing says that it failed.
func (p *process) handle(m *envelope.Message) (any, error) {
	for try := 0; ; try++ {
		v, err := p.call(m)
		if err == nil || err == ErrStop {
			return v, err
		}
		crash, failed := err.(*crashing)
		judge, ok := p.handler.(Judge)
		if !ok {
			var f *fatal
			if !failed && errors.As(err, &f) {
				return nil, &crashing{&Crash{Cause: f.error}}
			}
			return v, err
		}
		if failed {
			err = crash.Crash
		}
		switch verdict := p.judge(judge, m, err); {
		case verdict == Retry && try < maxRetries:
			m.Attempt++
			continue
		case verdict == Skip:
			return nil, err
		case verdict == Halt:
			return nil, errors.Join(err, ErrStop)
		}
		if !failed {
			crash = &crashing{&Crash{Cause: err}}
		}
		return nil, crash
	}
}

// judge asks the handler's judge; one that panics has escalated.
func (p *process) judge(j Judge, m *envelope.Message, err error) (v Verdict) {
	defer func() {
		if recover() != nil {
			v = Escalate
		}
	}()
	return j.Judge(&p.ctx, m, err)
}

// errGoexit is the crash of a handler that ended its goroutine.
var errGoexit = errors.New("the handler called runtime.Goexit")

// errCrashing is how a span ends whose handler did not return.
var errCrashing = errors.New("the handler crashed")

// call calls the handler once. A panic is returned as a *crashing; Goexit can't be, so the process ends before the goroutine
// does.
func (p *process) call(m *envelope.Message) (v any, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if r := recover(); r != nil {
			err = &crashing{newCrash(r)}
			return
		}
		p.crashed(&Crash{Cause: errGoexit})
	}()
	if o := p.rt.observer; o != nil {
		end := o.Handling(p.callerContext(), p.name, m)
		defer func() {
			if !returned {
				end(errCrashing)
			}
		}()
		v, err = p.handler.Handle(&p.ctx, m)
		returned = true
		end(err)
	} else {
		v, err = p.handler.Handle(&p.ctx, m)
	}
	returned = true
	return v, err
}

func newCrash(r any) *Crash {
	stack := debug.Stack()
	return &Crash{Cause: &panicError{r}, Stack: stack[:min(len(stack), 16<<10)]}
}

// inline handles an ask on the caller's own goroutine when the agent is idle. It returns false when it is not.
func (p *process) inline(s *slot, m *envelope.Message) bool {
	if !p.take(m, s) {
		return false
	}
	v, err := p.handle(m)
	if c, ok := err.(*crashing); ok {
		p.crashed(c.Crash)
		return true
	}
	if next := p.settle(v, err); next != nil {
		go p.run(next)
	}
	return true
}

// callerContext returns the context of the caller of the message in progress, nil without one.
func (p *process) callerContext() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return nil
	}
	return p.current.ctx
}

func (p *process) context() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.extra()
	if x.ctx == nil {
		parent := p.rt.ctx
		if p.current != nil {
			parent = p.current.ctx
		}
		x.ctx, x.cancel = context.WithCancel(parent)
		if p.killed || p.left {
			x.cancel()
		}
	}
	return x.ctx
}

func (p *process) expired() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed || p.left || p.current != nil && (p.current.abandoned() || p.current.ctx.Err() != nil)
}

func (p *process) asked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current != nil
}

// reply answers the message in progress before its handler returns.
func (p *process) reply(v any, err error) error {
	p.mu.Lock()
	s := p.current
	p.current = nil
	p.mu.Unlock()
	if s == nil {
		p.rt.counts.lateReplies.Add(1)
		return failure(envelope.Cancelled, p.name, "nobody waits for this reply")
	}
	p.respond(s, v, err)
	return nil
}
