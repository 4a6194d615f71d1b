package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toll/wire/envelope"
)

// A Handler is what an agent does. The runtime calls it with one message at a time.
//
// What it returns answers an ask: the value, or the error as a failure of code Failed unless the error carries a code of its
// own. ErrStop behind the answer stops the agent. A panic, an error made by Fatal and a call of runtime.Goexit crash it.
// Neither c nor m may be used after Handle has returned; of m's payload that is the sender's and the handler's affair.
type Handler interface {
	Handle(c *Context, m *envelope.Message) (any, error)
}

// A HandlerFunc is a handler without state.
type HandlerFunc func(c *Context, m *envelope.Message) (any, error)

// Handle calls f.
func (f HandlerFunc) Handle(c *Context, m *envelope.Message) (any, error) { return f(c, m) }

// A Starter is called before the first message. The agent is ready when it returns nil; an error or a panic means that it
// never was. Messages that come meanwhile wait in the mailbox.
type Starter interface {
	Start(c *Context) error
}

// A Stopper is called once after the last message of an agent that had started, whatever ended it: reason is nil after an
// orderly stop.
type Stopper interface {
	Stop(c *Context, reason error)
}

// A Judge decides what happens after Handle failed, by an error or a panic. Without one an error is the caller's answer and
// a panic crashes the agent.
type Judge interface {
	Judge(c *Context, m *envelope.Message, err error) Verdict
}

// A Verdict is what a Judge decides.
type Verdict uint8

// The verdicts.
const (
	Escalate Verdict = iota // crash
	Retry                   // the same message again, in place, at most maxRetries times; then crash
	Skip                    // the error is the answer; on to the next message
	Halt                    // the error is the answer; then stop
)

// maxRetries bounds how often a Judge may have one message handled again.
const maxRetries = 3

// ErrStop, returned by a handler, stops the agent after its answer. Join it with an error to answer with that.
var ErrStop = errors.New("agent stops")

// Fatal returns an error that crashes the agent whose handler returns it.
func Fatal(err error) error { return &fatal{err} }

type fatal struct{ error }

func (f *fatal) Unwrap() error { return f.error }

// A Crash is why an agent failed.
type Crash struct {
	Cause error
	Stack []byte // of a panic; at most 16 KiB
}

// Error returns the cause.
func (c *Crash) Error() string { return c.Cause.Error() }

// Unwrap returns the cause.
func (c *Crash) Unwrap() error { return c.Cause }

// A panicError is a panic's value as an error.
type panicError struct{ value any }

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func (p *panicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// A Context is a handler's view of its agent and of the message it handles. It is the agent's own and good for one call.
type Context struct{ p *process }

// Self returns a reference to the agent.
func (c *Context) Self() Ref { return Ref{c.p} }

// Runtime returns the agent's runtime.
func (c *Context) Runtime() *Runtime { return c.p.rt }

// Context ends when the caller gives up, its deadline passes, or the agent is killed. It costs an allocation.
func (c *Context) Context() context.Context { return c.p.context() }

// Expired says whether nobody waits for the answer any more: the caller gave up or the agent was killed. It is cheap enough
// for a loop.
func (c *Context) Expired() bool { return c.p.expired() }

// Deadline returns the caller's deadline, if it has one.
func (c *Context) Deadline() (time.Time, bool) {
	if ctx := c.p.callerContext(); ctx != nil {
		return ctx.Deadline()
	}
	return time.Time{}, false
}

// Asked says whether somebody waits for an answer.
func (c *Context) Asked() bool { return c.p.asked() }

// Reply answers the caller now; what Handle returns later is then no answer. A second reply, and one that comes too late, is
// an error and counted.
func (c *Context) Reply(v any, err error) error { return c.p.reply(v, err) }

// Emit sends one value of a stream and waits until the reader has room for it: that is the backpressure. Its error says that
// the reader is gone, or that nobody asked for a stream.
func (c *Context) Emit(v any) error { return c.p.emit(v) }

// Derive returns a message from this agent in the trace of the one in progress.
func (c *Context) Derive(to, typ string, payload any) *envelope.Message {
	m := &envelope.Message{Type: typ, Sender: c.p.name, Recipient: to, Payload: payload}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if c.p.m != nil {
		m.TraceID, m.SpanID = c.p.m.TraceID, c.p.m.SpanID
	}
	return m
}

// Message is envelope.Message, for those who only see this package.
type Message = envelope.Message
