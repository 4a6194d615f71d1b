package driver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"time"

	"toll/lab/load"
	"toll/lab/record"
)

// notePath is the operation as gRPC and Connect name it.
const notePath = "/toll.note.v1.Notes/Note"

// GRPC calls the operation note as a unary gRPC call: a POST over HTTP/2 whose body is one message behind five bytes, and
// whose outcome stands in the trailers. It needs no gRPC library, because that is all there is to it on the client's side;
// what is measured is the server's. It must not be copied once it has opened.
type GRPC struct {
	Addr   string // http://host:port or unix:/path: HTTP/2 without TLS
	Note   int    // bytes of the note
	Seed   uint64 // decides the first id of each VU
	Shared bool   // all VUs on one connection

	Cold    bool          // every call opens its own connection, inside the window
	Timeout time.Duration // of one call; 0 = only the context's
	Wire    *Wire         // counts bytes; nil in a timed pass

	ids  ids
	pool h2cPool
}

// Open connects one VU, or lets it join the shared connection.
func (g *GRPC) Open(ctx context.Context) (load.Caller, error) {
	cfg := ConnConfig{Addr: g.Addr, Timeout: g.Timeout, MaxBody: maxProtoReply, Wire: g.Wire}
	h, closer, err := g.pool.open(ctx, cfg, notePath, g.Shared && !g.Cold)
	if err != nil {
		return nil, err
	}
	c := &protoNote{noteCall: noteCall{g.ids.next(g.Seed), 1, noteText(g.Note)}, http: h, close: closer, protocol: grpcUnary{}}
	return orCold(g.Cold, c, h.Close), nil
}

// Connect calls the operation note as a unary call of the Connect protocol, in protobuf over HTTP/1.1. It must not be
// copied once it has opened.
type Connect struct {
	Addr string // as REST.Addr
	Note int    // bytes of the note
	Seed uint64 // decides the first id of each VU

	Cold    bool          // every call opens its own connection, inside the window
	TLS     *tls.Config   // for https; nil verifies against the system's roots
	Timeout time.Duration // of one call; 0 = only the context's
	Wire    *Wire         // counts bytes; nil in a timed pass

	ids ids
}

// Open connects one VU.
func (o *Connect) Open(ctx context.Context) (load.Caller, error) {
	h, err := newHTTPNote(ctx, ConnConfig{Addr: o.Addr, TLS: o.TLS, Timeout: o.Timeout, MaxBody: maxProtoReply, Wire: o.Wire}, notePath)
	if err != nil {
		return nil, err
	}
	c := &protoNote{noteCall: noteCall{o.ids.next(o.Seed), 1, noteText(o.Note)}, http: h, close: h.Close, protocol: connectUnary{}}
	return orCold(o.Cold, c, h.Close), nil
}

// maxProtoReply is the largest reply that is read.
const maxProtoReply = 4 << 20

// An rpcProtocol is what differs between gRPC and Connect in a unary call.
type rpcProtocol interface {
	// request frames a message, which has prefixRoom bytes of room before it, and says what it is.
	request(header http.Header, roomAndMessage []byte) (body []byte)
	// reply returns the message in a reply of status 2xx.
	reply(resp *http.Response, body []byte) (message []byte, err error)
}

// prefixRoom is the room that gRPC's framing needs before a message: a flag and four bytes of length.
const prefixRoom = 5

// A protoNote is the Caller of GRPC and Connect.
type protoNote struct {
	noteCall
	http     *httpNote
	close    func() error
	protocol rpcProtocol
}

// Call makes one call.
func (c *protoNote) Call(ctx context.Context, _ record.Mark) error {
	c.id += c.step
	room := make([]byte, prefixRoom, prefixRoom+len(c.note)+20)
	header := make(http.Header, 4)
	body := c.protocol.request(header, appendProtoNote(room, c.id, []byte(c.note)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.http.url, bytes.NewReader(body))
	if err != nil {
		return record.Fail(record.Other, err)
	}
	header.Set("User-Agent", userAgent)
	req.Header = header
	resp, reply, err := c.http.exchangeAll(req)
	if err != nil {
		return err
	}
	if err := checkStatus(resp.StatusCode, reply); err != nil {
		return err
	}
	message, err := c.protocol.reply(resp, reply)
	if err != nil {
		return err
	}
	got, err := scanProtoNote(message)
	if err != nil {
		return record.Fail(record.BadReply, err)
	}
	return c.judge(false, got.id, string(got.note) == c.note, string(got.status) == statusDone)
}

// Close closes the connection, a shared one with its last VU.
func (c *protoNote) Close() error { return c.close() }

// grpcUnary is gRPC over HTTP/2 as its protocol document describes it.
type grpcUnary struct{}

func (grpcUnary) request(header http.Header, b []byte) []byte {
	header.Set("Content-Type", "application/grpc")
	header.Set("Te", "trailers")
	b[0] = 0 // not compressed
	binary.BigEndian.PutUint32(b[1:prefixRoom], uint32(len(b)-prefixRoom))
	return b
}

func (grpcUnary) reply(resp *http.Response, body []byte) ([]byte, error) {
	kind := resp.Header.Get("Content-Type")
	if rest, ok := strings.CutPrefix(kind, "application/grpc"); !ok || rest != "" && rest[0] != '+' && rest[0] != ';' {
		return nil, bad("Content-Type %.60q, want application/grpc", kind)
	}
	outcome := resp.Trailer
	if len(outcome.Values("Grpc-Status")) == 0 {
		outcome = resp.Header // a reply of trailers only
	}
	status := outcome.Values("Grpc-Status")
	switch {
	case len(status) != 1:
		return nil, bad("%d grpc-status in the trailers, want 1", len(status))
	case status[0] != "0":
		return nil, record.Fail(record.ErrorField, fmt.Errorf("grpc-status %.20q: %.120q", status[0], outcome.Get("Grpc-Message")))
	}
	return grpcMessage(body)
}

// grpcMessage returns the one message of a unary reply's body.
func grpcMessage(body []byte) ([]byte, error) {
	if len(body) < prefixRoom {
		return nil, bad("a message's prefix of %d bytes, want %d", len(body), prefixRoom)
	}
	if body[0] != 0 {
		return nil, bad("flag %d before a message; nothing but 0, not compressed, was asked for", body[0])
	}
	if n := binary.BigEndian.Uint32(body[1:]); int64(n) != int64(len(body)-prefixRoom) {
		return nil, bad("a message of %d bytes in a body that has %d", n, len(body)-prefixRoom)
	}
	return body[prefixRoom:], nil
}

// connectUnary is Connect's own protocol for unary calls.
type connectUnary struct{}

func (connectUnary) request(header http.Header, b []byte) []byte {
	header.Set("Content-Type", connectMedia)
	header.Set("Connect-Protocol-Version", "1")
	return b[prefixRoom:]
}

const connectMedia = "application/proto"

func (connectUnary) reply(resp *http.Response, body []byte) ([]byte, error) {
	if kind := resp.Header.Get("Content-Type"); kind != connectMedia {
		return nil, bad("Content-Type %.60q, want %s", kind, connectMedia)
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, bad("Content-Encoding %.60q that nobody asked for", coding)
	}
	return body, nil
}
