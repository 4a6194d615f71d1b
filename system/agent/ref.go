package agent

import (
	"context"
	"errors"

	"toll/wire/envelope"
)

// A Ref is a reference to one process. It does not follow a name to its next process: once the process has gone every call
// answers Stopped, or Crashed. Refs are compared with ==.
type Ref struct{ p *process }

// Name returns the agent's name.
func (r Ref) Name() string { return r.p.name }

// Epoch returns the number of this process: later ones of the same name have greater ones.
func (r Ref) Epoch() uint64 { return r.p.epoch }

// Ask has the agent handle m and returns its answer. ctx bounds all of it: waiting for a place in the mailbox, waiting in it,
// and the handling. The error is an *envelope.Failure. After an error by ctx the agent may still hold m; after any other
// outcome m is the caller's again.
func (r Ref) Ask(ctx context.Context, m *envelope.Message) (any, error) {
	p := r.p
	if ctx.Err() != nil {
		return nil, failure(envelope.FromContext(ctx), p.name, "")
	}
	if p.rt.cfg.Parity != nil {
		return r.askParity(ctx, m)
	}
	return p.ask(ctx, m)
}

func (p *process) ask(ctx context.Context, m *envelope.Message) (any, error) {
	s := p.rt.slots.get(ctx)
	if !p.spec.Inline || !p.inline(s, m) {
		if _, err := p.post(item{m, s}); err != nil {
			p.rt.slots.put(s)
			return nil, err
		}
	}
	if !s.wait(ctx) {
		p.leave(s)
		return nil, failure(envelope.FromContext(ctx), p.name, "")
	}
	v, err := s.value, s.err
	p.rt.slots.put(s)
	return v, err
}

// askParity is an ask whose message and answer go through the codec, as between processes.
func (r Ref) askParity(ctx context.Context, m *envelope.Message) (any, error) {
	m, err := r.p.rt.parity(m)
	if err != nil {
		return nil, err
	}
	v, err := r.p.ask(ctx, m)
	if err != nil {
		return nil, err
	}
	reply, err := r.p.rt.parity(m.Reply(v))
	if err != nil {
		return nil, err
	}
	return reply.Payload, nil
}

// Tell puts m into the agent's mailbox and does not wait for its handling; ctx bounds the wait for a place. m is the agent's
// from then on.
func (r Ref) Tell(ctx context.Context, m *envelope.Message) error {
	p := r.p
	if ctx.Err() != nil {
		return failure(envelope.FromContext(ctx), p.name, "")
	}
	if p.rt.cfg.Parity != nil {
		var err error
		if m, err = p.rt.parity(m); err != nil {
			return err
		}
	}
	_, err := p.post(item{m: m})
	if err == nil || p.spec.Full != Block || m.Priority > 0 || !errors.Is(err, envelope.MailboxFull) {
		return err
	}
	return p.tellBlocked(ctx, m)
}

// tellBlocked waits for a place in the mailbox.
func (p *process) tellBlocked(ctx context.Context, m *envelope.Message) error {
	s := p.rt.slots.get(ctx)
	s.tell = true
	blocked, err := p.post(item{m, s})
	if blocked && !s.wait(ctx) {
		p.leave(s)
		return failure(envelope.FromContext(ctx), p.name, "waiting for a place in its mailbox")
	}
	if blocked {
		err = s.err
	}
	p.rt.slots.put(s)
	return err
}

// Stop stops the agent and waits until it has gone or ctx ends; the stop goes on in that case.
func (r Ref) Stop(ctx context.Context, d Drain) error {
	r.p.stop(d, nil)
	return r.Wait(ctx)
}

// Wait waits until the process has gone. Its error is ctx's.
func (r Ref) Wait(ctx context.Context) error {
	p := r.p
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	if over {
		return nil
	}
	done := make(chan struct{})
	p.watch(func(Exit) { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return failure(envelope.FromContext(ctx), p.name, "waiting until it has gone")
	}
}

// Watch calls f once when the process has gone, at once if it has. f runs on the goroutine that ended it and must not block.
func (r Ref) Watch(f func(Exit)) { r.p.watch(f) }

// Suspend makes the agent answer asks with Suspended and hold tells until Resume. The message in progress is finished.
func (r Ref) Suspend() error { return r.p.suspend() }

// Resume undoes Suspend.
func (r Ref) Resume() error { return r.p.resume() }

// Queued returns how many messages wait: in both lanes, and before a full mailbox.
func (r Ref) Queued() int {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.normal.len()
	if p.more != nil {
		n += p.more.control.len() + p.more.overflow.len()
	}
	return n
}

// Busy says whether a message is being handled.
func (r Ref) Busy() bool {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.m != nil
}

// State returns where the process is in its life: starting, running, suspended, stopping or gone.
func (r Ref) State() string {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.String()
}

// Handler returns the agent's handler. Its own fields are the agent's affair.
func (r Ref) Handler() Handler { return r.p.handler }
