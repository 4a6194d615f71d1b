package driver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"toll/lab/record"
)

// ConnConfig says how a [Conn] connects.
type ConnConfig struct {
	Addr    string        // http://host:port, https://host:port, tcp://host:port or unix:/path
	TLS     *tls.Config   // for https; nil verifies against the system's roots
	Timeout time.Duration // limit of one Do beside its context's; 0 = none
	MaxBody int64         // largest reply body; 0 = 64 MiB
	Wire    *Wire         // counts bytes; nil = not counted
}

// A Conn is one keep-alive HTTP/1.1 connection with one request in flight. In the steady state a request costs one write,
// as few reads as the reply needs, and no allocation. After a failure it connects anew on the next Do: no request is ever
// sent twice. It is not safe for concurrent use.
type Conn struct {
	dialer dialer

	nc       net.Conn // nil: connect on the next Do
	in       replyReader
	out      []byte
	watch    *watch
	deadline time.Time // in force on nc

	timed func(part string, d time.Duration) // when not nil, is told what connecting and the first byte took
}

// Dial connects to cfg.Addr. Its error is a *record.Failure, unless the configuration is at fault.
func Dial(ctx context.Context, cfg ConnConfig) (*Conn, error) {
	d, err := newDialer(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 64 << 20
	}
	c := &Conn{dialer: d, in: replyReader{maxBody: cfg.MaxBody}}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// A RawRequest is one HTTP request.
type RawRequest struct {
	Method string // GET when empty
	Path   string // "/" when empty
	Header string // further header lines, each ended by CRLF; Host, User-Agent and Content-Length are ours
	Body   []byte // nil: none, and no Content-Length
}

// Do sends req and reads the reply, whatever its status. Its error is a *record.Failure, and the connection is then gone.
// Do ends when ctx does; calls that share one context share one watch over it, which is why they allocate nothing.
func (c *Conn) Do(ctx context.Context, req *RawRequest) (Reply, error) {
	if err := c.ready(ctx); err != nil {
		return Reply{}, c.abandon(ctx, err)
	}
	reply, err := c.exchange(req)
	if err != nil {
		return Reply{}, c.abandon(ctx, err)
	}
	if reply.Close {
		c.Close()
	}
	return reply, nil
}

// Close closes the connection. A later Do opens another.
func (c *Conn) Close() error {
	if c.nc == nil {
		return nil
	}
	c.watch.disarm()
	c.watch = nil
	err := c.nc.Close()
	c.nc = nil
	return err
}

// abandon closes the connection and returns err, or what it means when the watch had broken off the exchange.
func (c *Conn) abandon(ctx context.Context, err error) error {
	c.Close()
	if record.KindOf(err) == record.Timeout && errors.Is(ctx.Err(), context.Canceled) {
		return record.Fail(record.Other, fmt.Errorf("given up: %w", context.Cause(ctx)))
	}
	return err
}

func (c *Conn) exchange(req *RawRequest) (Reply, error) {
	c.out = c.appendRequest(c.out[:0], req)
	if _, err := c.nc.Write(c.out); err != nil {
		return Reply{}, ioFailure(err, record.Closed, "sending the request")
	}
	if c.timed != nil {
		sent := time.Now()
		if err := c.in.fill(); err != nil {
			return Reply{}, ioFailure(err, record.Closed, "reading the head")
		}
		c.timed("first_byte", time.Since(sent))
	}
	reply, err := c.in.next(req.method())
	if err != nil {
		return Reply{}, err
	}
	if extra := c.in.w - c.in.r; extra > 0 {
		return Reply{}, bad("%d bytes behind the reply", extra)
	}
	return reply, nil
}

func (r *RawRequest) method() string {
	if r.Method == "" {
		return "GET"
	}
	return r.Method
}

// appendRequest appends req, its own fields in the order in which net/http sends them.
func (c *Conn) appendRequest(b []byte, req *RawRequest) []byte {
	return appendHead(b, c.dialer.host, req)
}

// appendHead appends the whole request, body included, to a host.
func appendHead(b []byte, host string, req *RawRequest) []byte {
	b = append(b, req.method()...)
	b = append(b, ' ')
	if req.Path == "" {
		b = append(b, '/')
	}
	b = append(b, req.Path...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, host...)
	b = append(b, "\r\nUser-Agent: "+userAgent+"\r\n"...)
	if req.Body != nil {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(req.Body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, req.Header...)
	b = append(b, "\r\n"...)
	return append(b, req.Body...)
}

const userAgent = "toll"

// ready makes sure of a connection that ends with ctx.
func (c *Conn) ready(ctx context.Context) error {
	if c.nc == nil {
		if err := c.connect(ctx); err != nil {
			return err
		}
	}
	fresh := c.watch.over(ctx)
	if !fresh {
		c.watch.disarm()
		c.watch = watchOver(ctx, c.nc)
	}
	limit, _ := ctx.Deadline()
	if c.dialer.timeout > 0 {
		if t := time.Now().Add(c.dialer.timeout); limit.IsZero() || t.Before(limit) {
			limit = t
		}
	}
	// A watch just replaced may have left its mark on the connection.
	if !fresh || limit != c.deadline {
		c.deadline = limit
		if err := c.nc.SetDeadline(limit); err != nil {
			return ioFailure(err, record.Closed, "setting the deadline")
		}
	}
	// Only now: a watch that fired before the deadline was set has been undone by it.
	if err := ctx.Err(); err != nil {
		return ioFailure(err, record.Other, "before the request")
	}
	return nil
}

func (c *Conn) connect(ctx context.Context) error {
	nc, err := c.dialer.timedDial(ctx, c.timed)
	if err != nil {
		return err
	}
	c.nc, c.deadline = nc, time.Time{}
	c.in.src, c.in.r, c.in.w = nc, 0, 0
	return nil
}

// A watch breaks off what a connection is doing when a context ends. It stays armed from call to call as long as the
// context stays the same. A nil watch watches nothing.
type watch struct {
	done <-chan struct{}
	stop func() bool

	mu sync.Mutex
	nc net.Conn // guarded by mu; nil once disarmed
}

// watchOver arms a watch, nil if ctx never ends.
func watchOver(ctx context.Context, nc net.Conn) *watch {
	if ctx.Done() == nil {
		return nil
	}
	w := &watch{done: ctx.Done(), nc: nc}
	w.stop = context.AfterFunc(ctx, w.fire)
	return w
}

// over reports whether w is what watches ctx.
func (w *watch) over(ctx context.Context) bool {
	if w == nil {
		return ctx.Done() == nil
	}
	return w.done == ctx.Done()
}

func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nc != nil {
		w.nc.SetDeadline(time.Unix(1, 0))
	}
}

// disarm returns when w will never touch the connection again.
func (w *watch) disarm() {
	if w == nil {
		return
	}
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nc = nil
}

// checkPath refuses a request path that could not be sent as one.
func checkPath(path string) error {
	if !strings.HasPrefix(path, "/") || strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("path %q: want / and no space, control or non-ASCII character", path)
	}
	return nil
}
