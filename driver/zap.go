package driver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"toll/lab/load"
	"toll/lab/record"
	"toll/wire/mux"
	"toll/wire/opcall"
	"toll/wire/zap"
)

// ZAPHTTP calls the operation note in ZAP-HTTP frames: op-call's path and bodies without HTTP's text. It must not be copied
// once it has opened.
type ZAPHTTP struct {
	Addr string // tcp://host:port, tls://host:port or unix:/path
	Note int    // bytes of the note
	Seed uint64 // decides the first id of each VU
	Cold bool   // every call opens its own connection, inside the window

	TLS     *tls.Config   // for tls; nil verifies against the system's roots
	Timeout time.Duration // of one call; 0 = only the context's
	Wire    *Wire         // counts bytes; nil in a timed pass

	ids ids
}

// Open connects one VU.
func (z *ZAPHTTP) Open(ctx context.Context) (load.Caller, error) {
	path, err := opcall.Path("note")
	if err != nil {
		return nil, err
	}
	b, err := newBinaryNote(noteCall{z.ids.next(z.Seed), 1, noteText(z.Note)})
	if err != nil {
		return nil, err
	}
	conn, err := Dial(ctx, ConnConfig{Addr: z.Addr, TLS: z.TLS, Timeout: z.Timeout, Wire: z.Wire})
	if err != nil {
		return nil, err
	}
	pair := func(name, value string) zap.Pair { return zap.Pair{Name: []byte(name), Value: []byte(value)} }
	c := &zapHTTPNote{binaryNote: b, conn: conn, req: zap.Request{
		Method: []byte("POST"), Target: []byte(path), Proto: []byte("HTTP/1.1"),
		Headers: []zap.Pair{pair("Host", conn.dialer.host), pair("User-Agent", userAgent), pair("Content-Type", opcall.MediaType)},
	}}
	return orCold(z.Cold, c, conn.Close), nil
}

// A zapHTTPNote is the Caller of ZAPHTTP. Of its Conn it uses all but the HTTP.
type zapHTTPNote struct {
	binaryNote
	conn *Conn
	req  zap.Request
	resp zap.Response
	out  []byte
	in   *zap.FrameReader
	over net.Conn // what in reads
}

// Call makes one call.
func (c *zapHTTPNote) Call(ctx context.Context, _ record.Mark) error {
	c.req.Body = c.next(c.req.Body[:0])
	if err := c.exchange(ctx); err != nil {
		return c.conn.abandon(ctx, err)
	}
	if err := checkStatus(int(c.resp.Status), c.resp.Body); err != nil {
		return err
	}
	return c.answer(c.resp.Body)
}

func (c *zapHTTPNote) exchange(ctx context.Context) error {
	if err := c.conn.ready(ctx); err != nil {
		return err
	}
	if c.over != c.conn.nc {
		c.over, c.in = c.conn.nc, zap.NewFrameReader(c.conn.nc, 0)
	}
	c.out = c.req.Append(c.out[:0])
	if _, err := c.conn.nc.Write(c.out); err != nil {
		return ioFailure(err, record.Closed, "sending the frame")
	}
	m, err := c.in.Next()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return record.Fail(record.ShortBody, err)
	case errors.Is(err, zap.ErrTooLarge), errors.Is(err, zap.ErrTruncated):
		return record.Fail(record.BadReply, err)
	case err != nil:
		return ioFailure(err, record.Closed, "reading the frame")
	}
	if err := c.resp.Parse(m); err != nil {
		return record.Fail(record.BadReply, err)
	}
	if c.in.Buffered() {
		return bad("bytes behind the frame")
	}
	return nil
}

// Close closes the connection.
func (c *zapHTTPNote) Close() error { return c.conn.Close() }

// ZAPRPC calls the operation note, method 1, in ZAP-RPC frames. It must not be copied once it has opened.
type ZAPRPC struct {
	Addr   string // tcp://host:port, tls://host:port or unix:/path
	Note   int    // bytes of the note
	Seed   uint64 // decides the first id of each VU
	Shared bool   // all VUs on one connection
	Cold   bool   // every call opens its own connection, inside the window

	TLS  *tls.Config // for tls; nil verifies against the system's roots
	Wire *Wire       // counts bytes; nil in a timed pass

	ids ids

	mu   sync.Mutex
	conn *mux.Conn // guarded by mu: the shared connection
	uses int       // guarded by mu: VUs on it
}

// Open connects one VU, or joins it to the shared connection.
func (z *ZAPRPC) Open(ctx context.Context) (load.Caller, error) {
	b, err := newBinaryNote(noteCall{z.ids.next(z.Seed), 1, noteText(z.Note)})
	if err != nil {
		return nil, err
	}
	c := &rpcNote{binaryNote: b, target: z, req: zap.RPCRequest{Method: 1}}
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	return orCold(z.Cold, c, c.Close), nil
}

func (z *ZAPRPC) dial(ctx context.Context) (*mux.Conn, error) {
	d, err := newDialer(ConnConfig{Addr: z.Addr, TLS: z.TLS, Wire: z.Wire})
	if err != nil {
		return nil, err
	}
	nc, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	return mux.New(nc, zap.RPCFraming{}, mux.Config{InFlight: 4096}), nil
}

// join returns the shared connection, a new one when there is none or it is dead.
func (z *ZAPRPC) join(ctx context.Context) (*mux.Conn, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.conn == nil || z.conn.Err() != nil {
		conn, err := z.dial(ctx)
		if err != nil {
			return nil, err
		}
		z.conn, z.uses = conn, 0
	}
	z.uses++
	return z.conn, nil
}

// leave closes the shared connection behind the last VU.
func (z *ZAPRPC) leave(conn *mux.Conn) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if conn != z.conn {
		return
	}
	if z.uses--; z.uses == 0 {
		conn.Close()
		z.conn = nil
	}
}

// An rpcNote is the Caller of ZAPRPC and the exchange of its calls.
type rpcNote struct {
	binaryNote
	target *ZAPRPC
	conn   *mux.Conn
	req    zap.RPCRequest
	resp   zap.RPCResponse
}

func (c *rpcNote) connect(ctx context.Context) (err error) {
	if c.target.Shared && !c.target.Cold {
		c.conn, err = c.target.join(ctx)
	} else {
		c.conn, err = c.target.dial(ctx)
	}
	return err
}

// Call makes one call.
func (c *rpcNote) Call(ctx context.Context, _ record.Mark) error {
	if c.conn == nil || c.conn.Err() != nil {
		c.Close()
		if err := c.connect(ctx); err != nil {
			return err
		}
	}
	c.req.Payload = c.next(c.req.Payload[:0])
	err := c.conn.Call(ctx, c)
	if err == nil {
		return nil
	}
	if _, ours := errors.AsType[*record.Failure](err); ours {
		return err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
	case errors.Is(err, zap.ErrTooLarge), errors.Is(err, zap.ErrTruncated), errors.Is(err, zap.ErrMagic):
		return record.Fail(record.BadReply, err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return record.Fail(record.ShortBody, err)
	default:
		return ioFailure(err, record.Closed, "call %d", c.id)
	}
	return record.Fail(record.KindOf(err), err)
}

// AppendRequest appends the call's frame.
func (c *rpcNote) AppendRequest(dst []byte, id uint32) []byte {
	c.req.Promise = id
	return c.req.Append(dst)
}

// Reply judges the reply's frame.
func (c *rpcNote) Reply(frame []byte) error {
	if err := c.resp.Parse(frame); err != nil {
		return record.Fail(record.BadReply, err)
	}
	if c.resp.Status != zap.StatusOK {
		return record.Fail(record.Status, fmt.Errorf("call %d: status %d", c.id, c.resp.Status))
	}
	return c.answer(c.resp.Body)
}

// Close closes the connection, or leaves the shared one.
func (c *rpcNote) Close() error {
	switch {
	case c.conn == nil:
	case c.target.Shared && !c.target.Cold:
		c.target.leave(c.conn)
	default:
		c.conn.Close()
	}
	c.conn = nil
	return nil
}

// ZAPTasks calls the operation tasks_list, which takes nothing and gives an empty list, in ZAP-HTTP frames: input encoded,
// output decoded and found empty.
type ZAPTasks struct {
	Addr string // as ZAPHTTP.Addr
	Wire *Wire  // counts bytes; nil in a timed pass
}

// Open connects one VU.
func (z *ZAPTasks) Open(ctx context.Context) (load.Caller, error) {
	c, err := (&ZAPHTTP{Addr: z.Addr, Wire: z.Wire}).Open(ctx)
	if err != nil {
		return nil, err
	}
	path, err := opcall.Path("tasks_list")
	if err != nil {
		return nil, err
	}
	in, err := zap.NewCodec[struct{}]()
	if err != nil {
		return nil, err
	}
	out, err := zap.NewCodec[tasksOut]()
	if err != nil {
		return nil, err
	}
	call := c.(*zapHTTPNote)
	call.req.Target = []byte(path)
	return &zapTasks{call, in, out}, nil
}

type tasksOut struct{ Tasks []string }

// A zapTasks is the Caller of ZAPTasks.
type zapTasks struct {
	*zapHTTPNote
	in  *zap.Codec[struct{}]
	out *zap.Codec[tasksOut]
}

// Call makes one call.
func (c *zapTasks) Call(ctx context.Context, _ record.Mark) error {
	c.req.Body = c.in.Append(c.req.Body[:0], &struct{}{})
	if err := c.exchange(ctx); err != nil {
		return c.conn.abandon(ctx, err)
	}
	if err := checkStatus(int(c.resp.Status), c.resp.Body); err != nil {
		return err
	}
	var out tasksOut
	if err := c.out.View(c.resp.Body, &out); err != nil {
		return record.Fail(record.BadReply, err)
	}
	if len(out.Tasks) != 0 {
		return record.Fail(record.WrongContent, fmt.Errorf("%d tasks where there are none", len(out.Tasks)))
	}
	return nil
}
