package driver

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"toll/lab/load"
	"toll/lab/record"
)

// The clients by which REST can be called.
const (
	ClientRaw  = "raw"      // ours: a net.Conn, a hand-written codec, no allocation
	ClientHTTP = "net/http" // what a Go program usually pays: http.Client and encoding/json
	ClientH2C  = "h2c"      // net/http over HTTP/2 without TLS
)

// REST calls the operation note as JSON over HTTP/1.1: POST {"id","note"}, answered by {"id","note","status":"done"} and
// whatever else the callee adds. Its clients send the same bytes and judge replies alike; they differ by their library
// only. It must not be copied once it has opened.
type REST struct {
	Addr   string // http://host:port, https://host:port, tcp://host:port or unix:/path
	Client string // ClientRaw (also when empty), ClientHTTP or ClientH2C
	Path   string // "/v1/note" when empty
	Note   int    // bytes of the note
	Seed   uint64 // decides the first id of each VU
	Shared bool   // with ClientH2C, all VUs on one connection

	// ConstantID, if not 0, is the id of every call. It is for a null target, which answers with [NoteReply].
	ConstantID int64
	// Cold makes every call open its own connection, inside the window.
	Cold bool

	TLS     *tls.Config   // for https; nil verifies against the system's roots
	Timeout time.Duration // of one call; 0 = only the context's
	MaxBody int64         // largest reply body; 0 = 64 MiB
	Wire    *Wire         // counts bytes; nil in a timed pass

	ids  ids
	pool h2cPool
}

// Open connects one VU, or lets it join the shared connection.
func (r *REST) Open(ctx context.Context) (load.Caller, error) {
	path := r.Path
	if path == "" {
		path = "/v1/note"
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if r.Note < 0 {
		return nil, fmt.Errorf("note of %d bytes", r.Note)
	}
	maxBody := r.MaxBody
	if maxBody == 0 {
		maxBody = 64 << 20
	}
	cfg := ConnConfig{r.Addr, r.TLS, r.Timeout, maxBody, r.Wire}
	switch r.Client {
	case ClientRaw, "":
		return r.openRaw(ctx, cfg, path)
	case ClientHTTP:
		return r.openHTTP(ctx, cfg, path)
	case ClientH2C:
		return r.openH2C(ctx, cfg, path)
	}
	return nil, fmt.Errorf("client %q: want %q, %q or %q", r.Client, ClientRaw, ClientHTTP, ClientH2C)
}

func (r *REST) openRaw(ctx context.Context, cfg ConnConfig, path string) (load.Caller, error) {
	conn, err := Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	c := &rawNote{noteCall: r.noteCall(), conn: conn}
	c.text = []byte(c.note)
	c.req = RawRequest{Method: "POST", Path: path, Header: "Content-Type: application/json\r\n"}
	return orCold(r.Cold, c, conn.Close), nil
}

// A rawNote is the Caller over our own client.
type rawNote struct {
	noteCall
	text []byte // the note
	conn *Conn
	req  RawRequest
	json noteScanner
}

// Call makes one call.
func (c *rawNote) Call(ctx context.Context, _ record.Mark) error {
	c.id += c.step
	c.req.Body = appendNote(c.req.Body[:0], c.id, c.text)
	reply, err := c.conn.Do(ctx, &c.req)
	if err != nil {
		return err
	}
	if err := checkStatus(reply.Status, reply.Body); err != nil {
		return err
	}
	got, err := c.json.scan(reply.Body)
	if err != nil {
		return record.Fail(record.BadReply, err)
	}
	return c.judge(got.failed, got.id, bytes.Equal(got.note, c.text), string(got.status) == statusDone)
}

// Close closes the connection.
func (c *rawNote) Close() error { return c.conn.Close() }

// orCold returns c, or c that finds no connection.
func orCold(always bool, c load.Caller, drop func() error) load.Caller {
	if always {
		return &cold{c, drop}
	}
	return c
}

// cold makes a Caller find no connection.
type cold struct {
	load.Caller
	drop func() error
}

// Prepare closes the connection that the last call used.
func (c *cold) Prepare(context.Context) error { return c.drop() }

// Close closes the Caller.
func (c *cold) Close() error { return load.Close(c.Caller) }
