package driver

import (
	"context"
	"io"
	"net/http"
	"strings"

	"toll/lab/load"
	"toll/lab/record"
)

// Plain sends one request over net/http and drains the reply undecoded: only its status is looked at. It exists to
// reproduce published methods that did so; what it times is not verified, and rows made with it must say so.
type Plain struct {
	Addr        string // as REST.Addr
	Method      string
	Path        string
	ContentType string // none when empty
	Body        string
	Wire        *Wire // counts bytes; nil in a timed pass
}

// Open connects one VU.
func (p *Plain) Open(ctx context.Context) (load.Caller, error) {
	const maxBody = 64 << 20
	h, err := newHTTPNote(ctx, ConnConfig{Addr: p.Addr, MaxBody: maxBody, Wire: p.Wire}, p.Path)
	if err != nil {
		return nil, err
	}
	return &plainCall{p, h}, nil
}

// A plainCall is the Caller of Plain.
type plainCall struct {
	*Plain
	http *httpNote
}

// Call makes one call.
func (c *plainCall) Call(ctx context.Context, _ record.Mark) error {
	var body io.Reader
	if c.Method != http.MethodGet {
		body = strings.NewReader(c.Body)
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, c.http.url, body)
	if err != nil {
		return record.Fail(record.Other, err)
	}
	if c.ContentType != "" {
		req.Header.Set("Content-Type", c.ContentType)
	}
	status, reply, err := c.http.exchange(req)
	if err != nil {
		return err
	}
	return checkStatus(status, reply)
}

// Close closes the connection.
func (c *plainCall) Close() error { return c.http.Close() }
