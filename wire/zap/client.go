package zap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// glance is how often a waiting client looks whether its context was cancelled; being told of it would cost a registration
// per call.
const glance = 10 * time.Millisecond

// writeTimeout bounds a write under a context without a deadline.
const writeTimeout = 30 * time.Second

var (
	errUnread  = errors.New("zap: the last response's body is not read to its end")
	errBody    = errors.New("zap: no streamed body is there to read")
	errUnasked = errors.New("zap: more arrived than the request asked for")
)

// A Client makes ZAP-HTTP exchanges one after another on a connection: a write and, as a rule, a read each. After an error
// of the connection, a deadline included, the next frame to arrive may answer an earlier call, so it can't be used any
// more and every call says why. It is not safe for concurrent use.
type Client struct {
	nc         net.Conn
	in         *FrameReader
	framing    HTTPFraming
	out        []byte
	readUntil  time.Time
	writeUntil time.Time
	streaming  bool
	err        error
}

// NewClient makes a client of nc, which is its own from now on; max bounds a message, MaxMessage when 0.
func NewClient(nc net.Conn, max int) *Client {
	return &Client{nc: nc, framing: HTTPFraming{Max: max}, in: NewFrameReader(nc, max)}
}

// Close closes the connection.
func (c *Client) Close() error {
	if c.err == nil {
		c.err = net.ErrClosed
	}
	return c.nc.Close()
}

// Err returns why the connection can't be used, nil while it can.
func (c *Client) Err() error { return c.err }

// Call sends req and reads its response, which is valid until the next call. When resp.Streamed, Chunk reads the body. ctx
// bounds it: its deadline is kept, but a write that is stuck may be given up an eighth of the time early; its cancellation
// is noticed a hundredth of a second late, and not by a write.
func (c *Client) Call(ctx context.Context, req *Request, resp *Response) error {
	switch {
	case c.err != nil:
		return c.unusable()
	case c.streaming:
		return errUnread
	case c.in.Buffered():
		return c.fail(errUnasked)
	}
	if err := ended(ctx); err != nil {
		return err
	}
	c.out = req.Append(c.out[:0])
	if _, err := c.framing.Length(c.out); err != nil {
		return fmt.Errorf("request not sent: %w", err)
	}
	if err := c.send(ctx); err != nil {
		return c.fail(fmt.Errorf("zap: writing the request: %w", err))
	}
	message, err := c.next(ctx)
	if err != nil {
		return c.fail(fmt.Errorf("zap: reading the response: %w", err))
	}
	if err := resp.Parse(message); err != nil {
		return c.fail(err)
	}
	c.streaming = resp.Streamed
	return nil
}

// Chunk returns the next piece of a streamed body, valid until the next call, and io.EOF behind the last; then the trailer
// stands in resp, which must be what Call was given.
func (c *Client) Chunk(ctx context.Context, resp *Response) ([]byte, error) {
	switch {
	case c.err != nil:
		return nil, c.unusable()
	case !c.streaming:
		return nil, errBody
	}
	message, err := c.next(ctx)
	if err != nil {
		return nil, c.fail(fmt.Errorf("zap: reading the body: %w", err))
	}
	chunk, end, trailer, err := ParseChunk(message)
	if err != nil {
		return nil, c.fail(err)
	}
	if end {
		c.streaming, resp.Trailer = false, trailer
		return nil, io.EOF
	}
	return chunk, nil
}

func (c *Client) unusable() error { return fmt.Errorf("zap: connection unusable: %w", c.err) }

func (c *Client) fail(err error) error {
	c.err = err
	c.nc.Close()
	return err
}

func (c *Client) send(ctx context.Context) error {
	if err := c.boundWrite(ctx); err != nil {
		return err
	}
	_, err := c.nc.Write(c.out)
	if cap(c.out) > 1<<20 {
		c.out = nil
	}
	return err
}

// next reads a frame and returns its message.
func (c *Client) next(ctx context.Context) ([]byte, error) {
	for {
		if err := c.boundRead(ctx); err != nil {
			return nil, err
		}
		message, err := c.in.Next()
		switch {
		case err == nil:
			return message, nil
		case err == io.EOF:
			return nil, io.ErrUnexpectedEOF
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return nil, err
		}
		if err := ended(ctx); err != nil {
			return nil, err
		}
		c.readUntil = time.Unix(0, 0)
	}
}

// boundRead makes reading end when ctx does, and from time to time. A deadline that is early costs a look at ctx; one that
// will do is left as it is, for moving it costs more than looking at the clock.
func (c *Client) boundRead(ctx context.Context) error {
	deadline, has := ctx.Deadline()
	if !has && ctx.Done() == nil {
		if c.readUntil.IsZero() {
			return nil
		}
		c.readUntil = time.Time{}
		return c.nc.SetReadDeadline(c.readUntil)
	}
	now := time.Now()
	until := now.Add(glance)
	if has && deadline.Before(until) {
		until = deadline
	}
	if c.readUntil.After(now.Add(glance/4)) && !c.readUntil.After(until) {
		return nil
	}
	c.readUntil = until
	return c.nc.SetReadDeadline(until)
}

func (c *Client) boundWrite(ctx context.Context) error {
	now := time.Now()
	until := now.Add(writeTimeout)
	if deadline, has := ctx.Deadline(); has && deadline.Before(until) {
		until = deadline
	}
	early := until.Sub(c.writeUntil)
	if early >= 0 && early <= until.Sub(now)/8 {
		return nil
	}
	c.writeUntil = until
	return c.nc.SetWriteDeadline(until)
}

// ended is why a caller may wait no longer. A deadline counts by the clock: some contexts are late to say so.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return nil
}
