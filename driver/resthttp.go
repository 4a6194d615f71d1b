package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"toll/lab/load"
	"toll/lab/record"
)

// openHTTP makes the Caller over net/http. Its connection is made now, as the raw client's is, so that Open fails for both
// when nobody answers.
func (r *REST) openHTTP(ctx context.Context, cfg ConnConfig, path string) (load.Caller, error) {
	c, err := newHTTPNote(ctx, cfg, path)
	if err != nil {
		return nil, err
	}
	c.noteCall = r.noteCall()
	return orCold(r.Cold, c, c.Close), nil
}

// openH2C is openHTTP over HTTP/2.
func (r *REST) openH2C(ctx context.Context, cfg ConnConfig, path string) (load.Caller, error) {
	c, closer, err := r.pool.open(ctx, cfg, path, r.Shared && !r.Cold)
	if err != nil {
		return nil, err
	}
	c.noteCall = r.noteCall()
	return orCold(r.Cold, &sharedNote{c, closer}, c.Close), nil
}

// A sharedNote is a Caller on a connection that others may be on.
type sharedNote struct {
	load.Caller
	leave func() error
}

// Close leaves the connection.
func (c *sharedNote) Close() error { return c.leave() }

// newHTTPNote connects; what is called is up to the caller.
func newHTTPNote(ctx context.Context, cfg ConnConfig, path string) (*httpNote, error) {
	d, err := newDialer(cfg)
	if err != nil {
		return nil, err
	}
	nc, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	first := make(chan net.Conn, 1)
	first <- nc
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case nc := <-first:
			return nc, nil
		default:
			return d.dial(ctx)
		}
	}
	tr := &http.Transport{
		DialContext:            dial,
		DialTLSContext:         dial,
		DisableCompression:     true,
		MaxConnsPerHost:        1,
		MaxIdleConnsPerHost:    1,
		MaxResponseHeaderBytes: maxHead,
	}
	c := &httpNote{maxBody: cfg.MaxBody, url: d.scheme() + "://" + d.host + path, first: first}
	c.client = http.Client{Transport: tr, Timeout: cfg.Timeout, CheckRedirect: noRedirect}
	return c, nil
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (a address) scheme() string {
	if a.tls {
		return "https"
	}
	return "http"
}

// An httpNote is the Caller over net/http and encoding/json.
type httpNote struct {
	noteCall
	client  http.Client
	url     string
	maxBody int64
	first   chan net.Conn // made by Open, until a call uses it
}

type noteIn struct {
	ID   int64  `json:"id"`
	Note string `json:"note"`
}

type noteOut struct {
	ID     int64           `json:"id"`
	Note   string          `json:"note"`
	Status string          `json:"status"`
	Error  json.RawMessage `json:"error"`
}

// Call makes one call.
func (c *httpNote) Call(ctx context.Context, _ record.Mark) error {
	c.id += c.step
	in, err := json.Marshal(noteIn{c.id, c.note})
	if err != nil {
		return record.Fail(record.Other, err)
	}
	req, err := http.NewRequestWithContext(ctx, "POST", c.url, bytes.NewReader(in))
	if err != nil {
		return record.Fail(record.Other, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	status, body, err := c.exchange(req)
	if err != nil {
		return err
	}
	if err := checkStatus(status, body); err != nil {
		return err
	}
	var out noteOut
	if err := json.Unmarshal(body, &out); err != nil {
		return record.Fail(record.BadReply, err)
	}
	failed := len(out.Error) > 0 && string(out.Error) != "null"
	return c.judge(failed, out.ID, out.Note == c.note, out.Status == statusDone)
}

// exchange sends req and reads the whole reply.
func (c *httpNote) exchange(req *http.Request) (status int, body []byte, err error) {
	resp, body, err := c.exchangeAll(req)
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, body, nil
}

// exchangeAll is exchange for who wants the reply's header and trailer too. The reply's own body is closed.
func (c *httpNote) exchangeAll(req *http.Request) (resp *http.Response, body []byte, err error) {
	resp, err = c.client.Do(req)
	if err != nil {
		return nil, nil, httpFailure(err, record.Closed)
	}
	defer resp.Body.Close()
	if resp.ContentLength > c.maxBody {
		return nil, nil, bad("body of %d bytes, more than %d", resp.ContentLength, c.maxBody)
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, c.maxBody+1))
	if err != nil {
		return nil, nil, httpFailure(err, record.ShortBody)
	}
	if int64(len(body)) > c.maxBody {
		return nil, nil, bad("body of more than %d bytes", c.maxBody)
	}
	return resp, body, nil
}

// httpFailure finds the kind of an error of net/http: what it says of itself, else broken if the connection broke off, else
// a reply that net/http could not parse.
func httpFailure(err error, broken string) error {
	_, ours := errors.AsType[*record.Failure](err)
	switch {
	case ours, errors.Is(err, context.Canceled):
		return record.Fail(record.KindOf(err), err)
	case record.KindOf(err) == record.Timeout:
		return record.Fail(record.Timeout, err)
	case brokeOff(err):
		return record.Fail(broken, err)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return record.Fail(record.Connect, fmt.Errorf("refused by the peer: %w", err))
	}
	return record.Fail(record.BadReply, err)
}

// brokeOff reports whether err says that the connection ended. One such error of net/http has no name.
func brokeOff(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return strings.Contains(err.Error(), "server closed idle connection")
}

// Close closes the connection.
func (c *httpNote) Close() error {
	c.client.CloseIdleConnections()
	select {
	case nc := <-c.first:
		return nc.Close()
	default:
		return nil
	}
}
