package agent

import (
	"context"
	"errors"

	"toll/wire/envelope"
)

// Lend is Ask for a caller who can do without its goroutine: the handler of an idle agent runs on it, so that nothing is handed
// from one goroutine to another. What would free a caller of Ask before the handler has returned - a Reply, a stop of the agent,
// the end of ctx - then calls free with the answer, on another goroutine, and Lend returns kept false when the handler does:
// the caller's goroutine has nothing more to do for this call. Otherwise the answer is Lend's own, and free is not called.
func (r Ref) Lend(ctx context.Context, m *envelope.Message, free func(v any, err error)) (v any, err error, kept bool) {
	p := r.p
	if !p.spec.Inline && p.rt.cfg.Parity == nil && ctx.Err() == nil {
		s := &slot{ctx: ctx, free: free}
		s.state.Store(lent)
		if p.take(m, s) {
			return p.lent(ctx, m, s)
		}
	}
	v, err = r.Ask(ctx, m)
	return v, err, true
}

// Lend is Call for a caller who can do without its goroutine, as [Ref.Lend] says.
func (rt *Runtime) Lend(ctx context.Context, m *envelope.Message, free func(v any, err error)) (v any, err error, kept bool) {
	if r, err := rt.find(m); err == nil {
		return r.Lend(ctx, m, free)
	}
	v, err = rt.Call(ctx, m)
	return v, err, true
}

// take makes the caller the owner of an idle process that is to handle m. It returns false when it is not idle.
func (p *process) take(m *envelope.Message, s *slot) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy || p.state != running {
		return false
	}
	p.busy = true
	p.begin(item{m, s})
	return true
}

// An ender is a context that calls a function after its end without being waited for, which saves setting that up. It may
// call it too late, when that does nothing any more.
type ender interface{ AtEnd(f func()) }

// lent handles m on its caller's goroutine.
func (p *process) lent(ctx context.Context, m *envelope.Message, s *slot) (v any, err error, kept bool) {
	over := func() {
		if s.state.CompareAndSwap(lent, abandoned) {
			p.leave(s)
			s.free(nil, failure(envelope.FromContext(ctx), p.name, ""))
		}
	}
	if e, ok := ctx.(ender); ok {
		e.AtEnd(over)
	} else {
		defer context.AfterFunc(ctx, over)()
	}
	v, err = p.handle(m)
	kept = s.state.CompareAndSwap(lent, returned)
	if c, ok := err.(*crashing); ok {
		p.crashed(c.Crash)
		return nil, failure(envelope.Crashed, p.name, c.Error()), kept
	}
	if next := p.settle(v, err); next != nil {
		go p.run(next)
	}
	if err != nil && errors.Is(err, ErrStop) {
		err = withoutStop(err)
	}
	if err != nil && err != ErrStop {
		return nil, envelope.FailureOf(err, p.name), kept
	}
	return v, nil, kept
}
