package driver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"toll/lab/load"
	"toll/lab/record"
)

// The clients by which HTTP can be called, beside ClientRaw, ClientHTTP and ClientH2C.
const (
	ClientLoop = "loop" // ours: one thread drives many connections by readiness; Linux, without TLS
	ClientH2   = "h2"   // net/http over HTTP/2 with TLS
)

// HTTP calls one URL again and again, the same request each time. It must not be copied once it has opened.
type HTTP struct {
	Addr   string // http://host:port, https://host:port or unix:/path
	Host   string // of the Host field; empty: the address'
	Client string // one of the clients; ClientRaw when empty
	RawRequest
	Expect Expect
	Steps  []Step // in place of the one request, a sequence of them

	Pauses func() (wait load.Wait, done func()) // makes what one VU waits by behind a step; nil: the runtime's timers

	// Fresh opens a connection for each request, inside the window, and times connecting, the TLS handshake and the first
	// byte as parts of it.
	Fresh   bool
	Threads int // of ClientLoop; 1 when 0

	TLS     *tls.Config   // for https; nil verifies against the system's roots
	Timeout time.Duration // of one call; 0 = only the context's
	MaxBody int64         // largest reply body; 0 = 64 MiB
	Wire    *Wire         // counts bytes; nil in a timed pass

	vus atomic.Int64 // sessions opened
}

func (h *HTTP) config() ConnConfig {
	return ConnConfig{h.Addr, h.TLS, h.Timeout, cmp.Or(h.MaxBody, 64<<20), h.Wire}
}

// Open connects one VU.
func (h *HTTP) Open(ctx context.Context) (load.Caller, error) {
	if err := checkPath(cmp.Or(h.Path, "/")); err != nil {
		return nil, err
	}
	switch h.Client {
	case ClientRaw, ClientLoop, "":
		c, err := Dial(ctx, h.config())
		if err != nil {
			return nil, err
		}
		if h.Host != "" {
			c.dialer.host = h.Host
		}
		if len(h.Steps) > 0 {
			return newSession(c, h), nil
		}
		caller := &rawHTTP{conn: c, req: h.RawRequest, expect: &h.Expect, fresh: h.Fresh}
		if h.Fresh {
			c.Close()
		}
		return caller, nil
	case ClientHTTP, ClientH2, ClientH2C:
		return h.openStd(ctx)
	}
	return nil, fmt.Errorf("client %q: want one of %s, %s, %s, %s, %s", h.Client, ClientLoop, ClientRaw, ClientHTTP, ClientH2, ClientH2C)
}

// A rawHTTP is the Caller over our own client.
type rawHTTP struct {
	conn   *Conn
	req    RawRequest
	expect *Expect
	fresh  bool
}

// Call makes one call.
func (c *rawHTTP) Call(ctx context.Context, m record.Mark) error {
	if c.fresh {
		c.conn.Close()
		c.conn.timed = m.Part
	}
	reply, err := c.conn.Do(ctx, &c.req)
	if err != nil {
		return err
	}
	return c.expect.check(reply)
}

// Close closes the connection.
func (c *rawHTTP) Close() error { return c.conn.Close() }

// openStd makes the Caller over net/http. HTTP/1.1 has its connection made now, as the raw client has; HTTP/2 connects by
// the first call.
func (h *HTTP) openStd(ctx context.Context) (load.Caller, error) {
	cfg := h.config()
	if h.Client == ClientH2 {
		cfg.TLS = cmp.Or(cfg.TLS, new(tls.Config)).Clone()
		cfg.TLS.NextProtos = []string{"h2"}
	}
	n, err := newHTTPNote(ctx, cfg, cmp.Or(h.Path, "/"))
	if err != nil {
		return nil, err
	}
	if h.Client != ClientHTTP {
		tr := n.client.Transport.(*http.Transport)
		tr.Protocols = new(http.Protocols)
		tr.Protocols.SetHTTP2(h.Client == ClientH2)
		tr.Protocols.SetUnencryptedHTTP2(h.Client == ClientH2C)
		tr.MaxConnsPerHost = 0 // a bound of one makes HTTP/2 wait for its own connection
	}
	header := make(http.Header)
	for line := range strings.SplitSeq(h.Header, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			header.Add(name, strings.TrimSpace(value))
		}
	}
	return &stdHTTP{http: n, target: h, header: header}, nil
}

// A stdHTTP is the Caller over net/http.
type stdHTTP struct {
	http   *httpNote
	target *HTTP
	header http.Header
}

// Call makes one call.
func (c *stdHTTP) Call(ctx context.Context, _ record.Mark) error {
	reply, err := c.do(ctx)
	if err != nil {
		return err
	}
	return c.target.Expect.check(reply)
}

func (c *stdHTTP) do(ctx context.Context) (Reply, error) {
	if c.target.Fresh {
		c.http.Close()
	}
	req, err := http.NewRequestWithContext(ctx, c.target.method(), c.http.url, bytes.NewReader(c.target.Body))
	if err != nil {
		return Reply{}, record.Fail(record.Other, err)
	}
	if c.target.Body == nil {
		req.Body = nil
	}
	req.Header = c.header.Clone()
	req.Header.Set("User-Agent", userAgent)
	if c.target.Host != "" {
		req.Host = c.target.Host
	}
	status, body, err := c.http.exchange(req)
	return Reply{Status: status, Body: body}, err
}

// Close closes the connection.
func (c *stdHTTP) Close() error { return c.http.Close() }

// Once makes one call on a connection of its own and returns its reply, which is the caller's to keep. A reply that is not
// expected is an error.
func (h *HTTP) Once(ctx context.Context) (Reply, error) {
	c, err := h.Open(ctx)
	if err != nil {
		return Reply{}, err
	}
	defer load.Close(c)
	var reply Reply
	switch c := c.(type) {
	case *rawHTTP:
		reply, err = c.conn.Do(ctx, &c.req)
	case *stdHTTP:
		reply, err = c.do(ctx)
	}
	if err != nil {
		return Reply{}, err
	}
	reply.Body = bytes.Clone(reply.Body)
	return reply, h.Expect.check(reply)
}

// NoMark is a Mark for calls that nobody records.
func NoMark() record.Mark { return record.Mark{} }

// ConnectTime times one connect to an address, without TLS.
func ConnectTime(ctx context.Context, addr string) (time.Duration, error) {
	a, err := parseAddress(addr)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	nc, err := new(net.Dialer).DialContext(ctx, a.network, a.addr)
	if err != nil {
		return 0, dialFailure(ctx, err)
	}
	d := time.Since(begin)
	return d, nc.Close()
}

// Socket returns the network and the address that are connected to: an IP and a port where the address names an IP or
// localhost, else what it says.
func (h *HTTP) Socket() (network, addr string) {
	a, err := parseAddress(h.Addr)
	if err != nil {
		return "", ""
	}
	if port, ok := strings.CutPrefix(a.addr, "localhost:"); ok {
		return a.network, "127.0.0.1:" + port
	}
	return a.network, a.addr
}
