package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"
)

// Bounds of a client.
const (
	maxAnswerHead = 64 << 10
	maxInterim    = 5 // 1xx before the answer
	keptFor       = time.Minute
)

// A client asks backends over HTTP/1.1. What it asks of http:// goes out and comes in on the goroutine that asks, on
// connections that are kept: net/http has two more for each connection, and where waking up is most of what a call costs,
// handing over to them costs as much as the call. What is not that plain (https, a user in the URL, a redirect) it leaves to
// net/http.
type client struct {
	timeout time.Duration // of one request
	most    int64         // bytes of a body that are read
	other   *http.Client

	mu    sync.Mutex
	idle  []*link     // guarded by mu: the last used is the last
	sweep *time.Timer // guarded by mu: runs while there are idle connections
}

// A link is a connection to a backend.
type link struct {
	addr  string
	nc    net.Conn
	in    *bufio.Reader
	room  io.LimitedReader // what in reads from: bounds an answer
	out   []byte
	used  bool      // it has answered before
	since time.Time // when it became idle
	until time.Time // the deadline in force
}

// An answered is what a backend answered.
type answered struct {
	status int
	body   []byte
	whole  bool // the body is no longer than the client reads
}

func newClient(timeout time.Duration, most int64) *client {
	return &client{timeout: timeout, most: most, other: &http.Client{Timeout: timeout, Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: timeout}).DialContext, MaxIdleConnsPerHost: keptAlive, IdleConnTimeout: keptFor,
	}}}
}

// get makes a GET request.
func (c *client) get(ctx context.Context, address string) (answered, error) {
	return c.do(ctx, http.MethodGet, address, nil)
}

// do makes a request, whose body, if it has one, is JSON. A kept connection that turns out to be closed before a byte of the
// answer came is replaced by a new one, once and for GET.
func (c *client) do(ctx context.Context, method, address string, body []byte) (answered, error) {
	u, err := url.Parse(address)
	if err != nil {
		return answered{}, err
	}
	if u.Scheme != "http" || u.User != nil || !plainHost(u.Host) {
		return c.byOther(ctx, method, address, body)
	}
	a, again, err := c.ask(ctx, method, u, body, c.take(hostPort(u)))
	if again {
		a, _, err = c.ask(ctx, method, u, body, nil)
	}
	if err != nil {
		return answered{}, fmt.Errorf("%s %s: %w", method, address, err)
	}
	if a.status >= 300 && a.status < 400 && a.status != http.StatusNotModified && method == http.MethodGet {
		return c.byOther(ctx, method, address, body)
	}
	return a, nil
}

// plainHost reports whether a host stands in a Host field as it is.
func plainHost(host string) bool {
	for i := range len(host) {
		if host[i] <= ' ' || host[i] >= 0x7f {
			return false
		}
	}
	return host != ""
}

func hostPort(u *url.URL) string {
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "80")
	}
	return u.Host
}

// ask makes a request on a connection, a new one if l is nil. again says that the connection was closed before it was asked.
func (c *client) ask(ctx context.Context, method string, u *url.URL, body []byte, l *link) (a answered, again bool, err error) {
	until := time.Now().Add(c.timeout)
	if l == nil {
		if l, err = c.dial(ctx, hostPort(u)); err != nil {
			return a, false, err
		}
	}
	if d, ok := ctx.Deadline(); ok && d.Before(until) {
		until = d
	}
	// Moving a deadline a little costs as much as setting one, and in the steady state that would be for every request.
	if d := until.Sub(l.until); d < 0 || d > c.timeout/8 {
		l.until = until
		l.nc.SetDeadline(until)
	}
	stop := context.AfterFunc(ctx, func() { l.nc.SetDeadline(time.Unix(1, 0)) })
	a, keeps, err := l.exchange(method, u, body, c.most)
	if stop() && keeps && err == nil {
		c.keep(l)
		return a, false, nil
	}
	l.nc.Close()
	if err != nil && ctx.Err() != nil {
		return a, false, context.Cause(ctx)
	}
	again = err != nil && l.used && l.untouched() && method == http.MethodGet && !errors.Is(err, os.ErrDeadlineExceeded)
	return a, again, err
}

func (c *client) dial(ctx context.Context, addr string) (*link, error) {
	d := net.Dialer{Timeout: c.timeout}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	l := &link{addr: addr, nc: nc}
	l.room.R = nc
	l.in = bufio.NewReader(&l.room)
	return l, nil
}

// untouched reports whether nothing of an answer has come.
func (l *link) untouched() bool { return l.room.N == maxAnswerHead && l.in.Buffered() == 0 }

// exchange sends a request and reads its answer. keeps says that the connection can be used again.
func (l *link) exchange(method string, u *url.URL, body []byte, most int64) (a answered, keeps bool, err error) {
	l.out = append(append(append(append(l.out[:0], method...), ' '), u.RequestURI()...), " HTTP/1.1\r\nHost: "...)
	l.out = append(append(l.out, u.Host...), "\r\nUser-Agent: toll\r\n"...)
	if body != nil {
		l.out = append(l.out, "Content-Type: application/json\r\nContent-Length: "...)
		l.out = append(strconv.AppendInt(l.out, int64(len(body)), 10), "\r\n"...)
	}
	l.out = append(append(l.out, "\r\n"...), body...)
	l.room.N = maxAnswerHead
	if _, err := l.nc.Write(l.out); err != nil {
		return a, false, err
	}
	resp, err := l.answer()
	if err != nil {
		return a, false, err
	}
	l.room.N = most + maxAnswerHead // chunks have frames
	a.status = resp.StatusCode
	if a.body, err = readBody(resp, most); err != nil {
		return a, false, fmt.Errorf("reading the body: %w", err)
	}
	a.whole = int64(len(a.body)) <= most
	a.body = a.body[:min(int64(len(a.body)), most)]
	keeps = a.whole && !resp.Close && l.in.Buffered() == 0
	l.used = true
	return a, keeps, nil
}

// answer reads a head.
func (l *link) answer() (*http.Response, error) {
	for range maxInterim + 1 {
		resp, err := http.ReadResponse(l.in, nil)
		switch {
		case err != nil && l.room.N <= 0:
			return nil, fmt.Errorf("a head of more than %d bytes", maxAnswerHead)
		case err != nil:
			return nil, err
		case resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols:
			return resp, nil
		}
	}
	return nil, fmt.Errorf("more than %d answers before the answer", maxInterim)
}

// readBody reads a body up to one byte more than most.
func readBody(resp *http.Response, most int64) ([]byte, error) {
	if n := resp.ContentLength; n >= 0 && n <= most {
		body := make([]byte, n)
		_, err := io.ReadFull(resp.Body, body)
		return body, err
	}
	return io.ReadAll(io.LimitReader(resp.Body, most+1))
}

// byOther makes a request by net/http.
func (c *client) byOther(ctx context.Context, method, address string, body []byte) (a answered, err error) {
	var out io.Reader
	if body != nil {
		out = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, out)
	if err != nil {
		return a, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.other.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if a.body, err = readBody(resp, c.most); err != nil {
		return a, err
	}
	a.status, a.whole = resp.StatusCode, int64(len(a.body)) <= c.most
	a.body = a.body[:min(int64(len(a.body)), c.most)]
	return a, nil
}

// take takes a connection to an address that is kept, the one used last; nil if there is none.
func (c *client) take(addr string) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.idle) - 1; i >= 0; i-- {
		if l := c.idle[i]; l.addr == addr {
			c.idle = append(c.idle[:i], c.idle[i+1:]...)
			return l
		}
	}
	return nil
}

// keep keeps a connection for a while; of too many, the one that was idle for longest is closed.
func (c *client) keep(l *link) {
	l.since = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) >= keptAlive {
		c.idle[0].nc.Close()
		c.idle = append(c.idle[:0], c.idle[1:]...)
	}
	c.idle = append(c.idle, l)
	if c.sweep == nil {
		c.sweep = time.AfterFunc(keptFor/2, c.swept)
	}
}

// swept closes connections that were idle for long enough, and comes again while there are any.
func (c *client) swept() {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.idle) && time.Since(c.idle[n].since) >= keptFor/2 {
		c.idle[n].nc.Close()
		n++
	}
	c.idle = append(c.idle[:0], c.idle[n:]...)
	clear(c.idle[len(c.idle):cap(c.idle)])
	if len(c.idle) == 0 {
		c.sweep = nil
		return
	}
	c.sweep.Reset(keptFor / 2)
}
