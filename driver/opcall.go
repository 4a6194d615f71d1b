package driver

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"toll/lab/load"
	"toll/lab/record"
	"toll/wire/opcall"
	"toll/wire/zap"
)

// OpCall calls the operation note in binary over HTTP/1.1: POST /.well-known/zip/op/note, input and output as ZAP messages.
// Beside the body it differs from REST in nothing, client by client. It must not be copied once it has opened.
type OpCall struct {
	Addr   string // as REST.Addr
	Client string // ClientRaw (also when empty) or ClientHTTP
	Note   int    // bytes of the note
	Seed   uint64 // decides the first id of each VU
	Cold   bool   // every call opens its own connection, inside the window

	TLS     *tls.Config   // for https; nil verifies against the system's roots
	Timeout time.Duration // of one call; 0 = only the context's
	Wire    *Wire         // counts bytes; nil in a timed pass

	ids ids
}

// binaryIn and binaryOut are the shapes on the wire: the fields' order is the format.
type binaryIn struct {
	ID   int64
	Note string
}

type binaryOut struct {
	ID                  int64
	Note, Status, Owner string
}

// A binaryNote encodes a call and judges its answers, whatever carries them.
type binaryNote struct {
	noteCall
	in  *zap.Codec[binaryIn]
	out *zap.Codec[binaryOut]
}

func newBinaryNote(call noteCall) (binaryNote, error) {
	in, err := zap.NewCodec[binaryIn]()
	if err != nil {
		return binaryNote{}, err
	}
	out, err := zap.NewCodec[binaryOut]()
	return binaryNote{call, in, out}, err
}

// next appends the body of the next call.
func (b *binaryNote) next(dst []byte) []byte {
	b.id += b.step
	return b.in.Append(dst, &binaryIn{b.id, b.note})
}

// answer judges a reply's body.
func (b *binaryNote) answer(body []byte) error {
	var out binaryOut
	if len(body) == 0 {
		return bad("no body")
	}
	if err := b.out.View(body, &out); err != nil {
		return record.Fail(record.BadReply, err)
	}
	return b.judge(false, out.ID, out.Note == b.note, out.Status == statusDone)
}

// Open connects one VU.
func (o *OpCall) Open(ctx context.Context) (load.Caller, error) {
	path, err := opcall.Path("note")
	if err != nil {
		return nil, err
	}
	b, err := newBinaryNote(noteCall{o.ids.next(o.Seed), 1, noteText(o.Note)})
	if err != nil {
		return nil, err
	}
	const maxBody = 64 << 20
	cfg := ConnConfig{o.Addr, o.TLS, o.Timeout, maxBody, o.Wire}
	switch o.Client {
	case ClientRaw, "":
		conn, err := Dial(ctx, cfg)
		if err != nil {
			return nil, err
		}
		req := RawRequest{Method: "POST", Path: path, Header: "Content-Type: " + opcall.MediaType + "\r\n"}
		return orCold(o.Cold, &rawOpCall{b, conn, req}, conn.Close), nil
	case ClientHTTP:
		h, err := newHTTPNote(ctx, cfg, path)
		if err != nil {
			return nil, err
		}
		return orCold(o.Cold, &httpOpCall{b, h}, h.Close), nil
	}
	return nil, fmt.Errorf("client %q: want %q or %q", o.Client, ClientRaw, ClientHTTP)
}

// A rawOpCall is the Caller over our own client.
type rawOpCall struct {
	binaryNote
	conn *Conn
	req  RawRequest
}

// Call makes one call.
func (c *rawOpCall) Call(ctx context.Context, _ record.Mark) error {
	c.req.Body = c.next(c.req.Body[:0])
	reply, err := c.conn.Do(ctx, &c.req)
	if err != nil {
		return err
	}
	if err := checkStatus(reply.Status, reply.Body); err != nil {
		return err
	}
	return c.answer(reply.Body)
}

// Close closes the connection.
func (c *rawOpCall) Close() error { return c.conn.Close() }

// An httpOpCall is the Caller over net/http.
type httpOpCall struct {
	binaryNote
	http *httpNote
}

// Call makes one call.
func (c *httpOpCall) Call(ctx context.Context, _ record.Mark) error {
	req, err := http.NewRequestWithContext(ctx, "POST", c.http.url, bytes.NewReader(c.next(nil)))
	if err != nil {
		return record.Fail(record.Other, err)
	}
	req.Header.Set("Content-Type", opcall.MediaType)
	req.Header.Set("User-Agent", userAgent)
	status, body, err := c.http.exchange(req)
	if err != nil {
		return err
	}
	if err := checkStatus(status, body); err != nil {
		return err
	}
	return c.answer(body)
}

// Close closes the connection.
func (c *httpOpCall) Close() error { return c.http.Close() }
