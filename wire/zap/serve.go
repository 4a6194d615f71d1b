package zap

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// A Handler answers one request by filling in resp, whose status is 200 until it says otherwise. It may keep nothing of
// either, and may append to resp's Headers and Body, whose memory is used again. A panic is answered with 500 and ends the
// connection.
type Handler func(ctx context.Context, req *Request, resp *Response)

// A Server answers ZAP-HTTP requests; each zero value but Handle's means its default.
type Server struct {
	Handle       Handler
	MaxFrame     int           // bytes of a request's message; MaxMessage
	IdleTimeout  time.Duration // from a reply to the end of the next request; 2 min
	WriteTimeout time.Duration // of one write; 30 s
	Answered     func()        // called when a request was answered; nil for none
}

// Serve answers the requests on nc one after another, with one write each, on the caller's goroutine. It returns nil when
// the peer has ended the connection between requests, and when ctx has ended: then a request that is being answered is
// answered first, and one that has not arrived whole is left. Else it returns why reading, writing or a handler failed. It
// does not close nc.
func (s *Server) Serve(ctx context.Context, nc net.Conn) error {
	c := &serving{server: *s, nc: nc, in: NewFrameReader(nc, s.MaxFrame)}
	if c.server.IdleTimeout <= 0 {
		c.server.IdleTimeout = 2 * time.Minute
	}
	if c.server.WriteTimeout <= 0 {
		c.server.WriteTimeout = 30 * time.Second
	}
	stop := context.AfterFunc(ctx, func() { nc.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	c.ctx = context.WithoutCancel(ctx)
	for {
		message, err := c.next(ctx)
		if ctx.Err() != nil || err == io.EOF {
			return nil
		}
		if err == nil {
			err = c.answer(message)
		}
		if err != nil {
			return err
		}
		if s.Answered != nil {
			s.Answered()
		}
	}
}

// serving is one connection being served.
type serving struct {
	server Server
	ctx    context.Context
	nc     net.Conn
	in     *FrameReader
	req    Request
	resp   Response
	out    []byte

	readUntil, writeUntil time.Time
}

// next reads a request's message. A deadline is moved when an eighth of its time is gone.
func (c *serving) next(ctx context.Context) ([]byte, error) {
	if until := time.Now().Add(c.server.IdleTimeout); until.Sub(c.readUntil) > c.server.IdleTimeout/8 {
		c.readUntil = until
		if err := c.nc.SetReadDeadline(until); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil { // perhaps just before the deadline was moved
		return nil, ctx.Err()
	}
	return c.in.Next()
}

func (c *serving) answer(message []byte) error {
	if err := c.req.Parse(message); err != nil {
		return err
	}
	r := &c.resp
	*r = Response{Status: 200, Headers: r.Headers[:0], Body: r.Body[:0], Trailer: r.Trailer[:0]}
	if err := c.handle(); err != nil {
		*r = Response{Status: 500}
		return c.last(r.Append(c.out[:0]), err)
	}
	if r.Chunks != nil {
		return c.stream()
	}
	c.out = r.Append(c.out[:0])
	if n := len(c.out) - frameHeader; n > MaxMessage {
		*r = Response{Status: 500}
		return c.last(r.Append(nil), fmt.Errorf("zap: reply of %d bytes: %w", n, ErrTooLarge))
	}
	return c.write()
}

// last writes the reply that says no more than that something went wrong, and returns what did.
func (c *serving) last(reply []byte, reason error) error {
	c.out = reply
	if err := c.write(); err != nil {
		return fmt.Errorf("%w; then %w", reason, err)
	}
	return reason
}

func (c *serving) handle() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("zap: handling %.100q: panic: %v", c.req.Target, p)
		}
	}()
	c.server.Handle(c.ctx, &c.req, &c.resp)
	return nil
}

// stream writes a response whose body comes in pieces, each when it is there.
func (c *serving) stream() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("zap: streaming %.100q: panic: %v", c.req.Target, p)
		}
	}()
	c.out = c.resp.AppendHead(c.out[:0])
	if err := c.write(); err != nil {
		return err
	}
	for chunk := range c.resp.Chunks {
		c.out = AppendData(c.out[:0], chunk)
		if len(c.out)-frameHeader > MaxMessage {
			return fmt.Errorf("zap: piece of %d bytes: %w", len(chunk), ErrTooLarge)
		}
		if err := c.write(); err != nil {
			return err
		}
	}
	c.out = AppendEnd(c.out[:0], c.resp.Trailer)
	return c.write()
}

func (c *serving) write() error {
	if until := time.Now().Add(c.server.WriteTimeout); until.Sub(c.writeUntil) > c.server.WriteTimeout/8 {
		c.writeUntil = until
		if err := c.nc.SetWriteDeadline(until); err != nil {
			return err
		}
	}
	if _, err := c.nc.Write(c.out); err != nil {
		return fmt.Errorf("zap: writing the reply: %w", err)
	}
	if cap(c.out) > 1<<20 {
		c.out = nil
	}
	return nil
}

// ServeHTTPFrames is a Server's Serve for a handler without a context.
func ServeHTTPFrames(nc net.Conn, max int, handle func(*Request, *Response), done func()) error {
	s := Server{MaxFrame: max, Answered: done, Handle: func(_ context.Context, req *Request, resp *Response) { handle(req, resp) }}
	return s.Serve(context.Background(), nc)
}
