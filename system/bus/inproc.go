package bus

import (
	"context"
	"sync"

	"toll/wire/envelope"
	"toll/wire/frame"
)

// Inproc is a link to a responder in the same process. It carries the same frames as the others, so that what works over it
// works over them; agents that share a process and trust each other need no bus.
type Inproc struct {
	responder *Responder
	buffers   sync.Pool // of *job
	once      sync.Once
	done      chan struct{}
}

// NewInproc makes a link to r.
func NewInproc(r *Responder) *Inproc { return &Inproc{responder: r, done: make(chan struct{})} }

func (l *Inproc) call(ctx context.Context, c *Call) error {
	select {
	case <-l.done:
		return envelope.Unreachable
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m, ok := l.buffers.Get().(*job)
	if !ok {
		m = new(job)
	}
	defer l.buffers.Put(m)
	m.request = c.AppendRequest(m.request[:0], 1)
	if len(m.request) > l.responder.cfg.MaxFrame {
		return frame.ErrTooLong
	}
	var err error
	if m.reply, err = l.responder.respond(m.reply[:0], m.request); err != nil {
		return err
	}
	return c.Reply(m.reply)
}

// Call has c answered on the caller's goroutine.
func (l *Inproc) Call(ctx context.Context, c *Call) error {
	if err := c.prepare(ctx, l.responder.clock, 0); err != nil {
		return err
	}
	return c.outcome(l.call(ctx, c))
}

// Tell has r taken.
func (l *Inproc) Tell(ctx context.Context, r *frame.Request) error {
	c := Call{Request: *r}
	if err := c.prepare(ctx, l.responder.clock, 0); err != nil {
		return err
	}
	c.Kind = frame.Tell
	return c.outcome(l.call(ctx, &c))
}

// Done is closed by Close.
func (l *Inproc) Done() <-chan struct{} { return l.done }

// Close ends the link.
func (l *Inproc) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}
