package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"toll/wire/envelope"
	"toll/wire/frame"
	"toll/wire/mux"
	"toll/wire/zmtp"
)

// A Call is one request and what becomes of it. It may be used again; then Answer's memory is.
type Call struct {
	frame.Request
	Answer []byte // the reply's body

	code   envelope.Code
	detail string
}

// NewCall makes a call of an operation of to, on behalf of from. Body is the caller's to set.
func NewCall(to, from, op string) *Call {
	return &Call{Request: frame.Request{To: to, From: from, Op: op}}
}

// AppendRequest appends the request as call id; with Reply it makes a Call a mux.Exchange.
func (c *Call) AppendRequest(dst []byte, id uint32) []byte { return c.Request.Append(dst, id) }

// Reply takes the reply's frame.
func (c *Call) Reply(b []byte) error {
	body, code, failed, err := frame.ParseReply(b)
	if err != nil {
		return err
	}
	if failed {
		c.code, c.detail = envelope.Code(code), string(body)
		return nil
	}
	c.Answer = append(c.Answer[:0], body...)
	return nil
}

var _ mux.Exchange = (*Call)(nil)

// prepare readies c for a link whose other end's clock is ahead of ours by offset.
func (c *Call) prepare(ctx context.Context, clock *clock, offset int64) error {
	if err := c.Request.Check(); err != nil {
		return c.fail(envelope.Failed, err)
	}
	c.code, c.Kind, c.Deadline = 0, frame.Ask, 0
	if d, ok := ctx.Deadline(); ok {
		c.Deadline = clock.at(d) + offset
	}
	return nil
}

// outcome is what a call's end means to its caller; err is of the link.
func (c *Call) outcome(err error) error {
	switch {
	case err == nil && c.code == 0:
		return nil
	case err == nil:
		return &envelope.Failure{Code: c.code, Agent: c.To, Detail: c.detail}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return c.fail(envelope.Deadline, err)
	case errors.Is(err, context.Canceled):
		return c.fail(envelope.Cancelled, err)
	case errors.Is(err, mux.ErrBusy):
		return c.fail(envelope.MailboxFull, err)
	case errors.Is(err, mux.ErrTooLong), errors.Is(err, frame.ErrTooLong), errors.Is(err, zmtp.ErrTooLong):
		return c.fail(envelope.Failed, err)
	}
	return c.fail(envelope.Unreachable, err)
}

func (c *Call) fail(code envelope.Code, err error) error {
	return &envelope.Failure{Code: code, Agent: c.To, Detail: err.Error()}
}

// A Link carries calls to one other process. Its methods are safe for concurrent use. What it returns is an
// *envelope.Failure.
type Link interface {
	Call(ctx context.Context, c *Call) error
	// Tell sends a request that wants no reply; when it returns, the request has left for the other end or the broker.
	Tell(ctx context.Context, r *frame.Request) error
	// Done is closed when the link can carry nothing more.
	Done() <-chan struct{}
	Close() error
}

// A clock counts microseconds from the wall clock's time at our start on, but does not follow its changes. Two processes'
// clocks differ by what their wall clocks did then, which links measure.
type clock struct {
	base   time.Time
	origin int64
}

func newClock() *clock {
	now := time.Now()
	return &clock{now, now.UnixMicro()}
}

func (c *clock) now() int64           { return c.origin + time.Since(c.base).Microseconds() }
func (c *clock) at(t time.Time) int64 { return c.origin + t.Sub(c.base).Microseconds() }
func (c *clock) time(at int64) time.Time {
	return c.base.Add(time.Duration(at-c.origin) * time.Microsecond)
}

// Operations that a process answers for itself. Names below the prefix are reserved.
const (
	reserved = "_bus."
	opProbe  = reserved + "probe"
)

// probe asks the other end of a link whether it is ready and what its clock shows, and returns how far that is ahead of ours.
// Of several answers the quickest counts; the error is at most half its round trip.
func probe(ctx context.Context, call func(context.Context, *Call) error, clock *clock, times int) (offset int64, err error) {
	best := int64(-1)
	for range times {
		c := Call{Request: frame.Request{Header: frame.Header{Kind: frame.Ask}, Op: opProbe}}
		sent := clock.now()
		if err := c.outcome(call(ctx, &c)); err != nil {
			return 0, fmt.Errorf("probing: %w", err)
		}
		took := clock.now() - sent
		p, err := parseProbe(c.Answer)
		if err != nil {
			return 0, err
		}
		if best < 0 || took < best {
			best, offset = took, p.clock-(sent+took/2)
		}
	}
	return offset, nil
}
