package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"toll/lab/load"
	"toll/lab/record"
)

// Spawn asks a server to spawn and despawn children: POST {"id","count"}, answered by {"id","status":"ok","spawned","live",
// "child","ready_ns","gone_ns"}. A reply counts as a success when its body says so; its length may be any. The server's own
// times become the parts ready and gone. It must not be copied once it has opened.
type Spawn struct {
	Addr  string // http://host:port
	Path  string // /v1/spawn or /v1/noop; the latter must have spawned nothing
	Count int    // children of a call
	Live  int    // children that live beside those of the calls; they are made when the first caller opens
	Cold  bool   // every call opens its own connection, inside the window
	Wire  *Wire  // counts bytes; nil in a timed pass

	// Null takes the reply of [SpawnReply] from a null target, which keeps no children.
	Null bool

	ids atomic.Int64
}

// spawnTimeout bounds the making of the children that live beside the calls.
const spawnTimeout = 30 * time.Second

// Open connects one VU, once the server says that as many children live as should.
func (s *Spawn) Open(ctx context.Context) (load.Caller, error) {
	conn, err := Dial(ctx, ConnConfig{Addr: s.Addr, MaxBody: 1 << 20, Wire: s.Wire})
	if err != nil {
		return nil, err
	}
	c := &spawnCall{Spawn: s, conn: conn, req: RawRequest{Method: "POST", Path: s.Path, Header: "Content-Type: application/json\r\n"}}
	if !s.Null {
		if err := c.settle(ctx); err != nil {
			conn.Close()
			return nil, err
		}
	}
	if s.Cold {
		return &cold{c, conn.Close}, nil
	}
	return c, nil
}

// A spawnCall is one VU.
type spawnCall struct {
	*Spawn
	conn *Conn
	req  RawRequest
}

// A spawnReply is what the server answers.
type spawnReply struct {
	ID      *int64 `json:"id"`
	Status  string `json:"status"`
	Error   string `json:"error"`
	Spawned int    `json:"spawned"`
	Live    int    `json:"live"`
	Child   string `json:"child"`
	Ready   int64  `json:"ready_ns"`
	Gone    int64  `json:"gone_ns"`
}

// SpawnReply is the whole HTTP reply that a null target gives to a call.
func SpawnReply() []byte {
	return CannedReply(`{"id":1,"status":"ok","spawned":0,"live":0,"child":"child-1","ready_ns":0,"gone_ns":0}`)
}

// settle has the server keep Live children and waits until there are no others: those of an earlier level have gone.
func (c *spawnCall) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, spawnTimeout)
	defer cancel()
	for {
		r, err := c.exchange(ctx, "/v1/live", c.Live)
		switch {
		case err != nil:
			return fmt.Errorf("making %d children live: %w", c.Live, err)
		case r.Live == c.Live:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d children live after %v, want %d", r.Live, spawnTimeout, c.Live)
		case <-time.After(time.Millisecond):
		}
	}
}

// exchange asks once and checks what every answer must have.
func (c *spawnCall) exchange(ctx context.Context, path string, count int) (r spawnReply, err error) {
	id := int64(1)
	if !c.Null {
		id = c.ids.Add(1)
	}
	c.req.Path = path
	c.req.Body = strconv.AppendInt(append(c.req.Body[:0], `{"id":`...), id, 10)
	c.req.Body = strconv.AppendInt(append(c.req.Body, `,"count":`...), int64(count), 10)
	c.req.Body = append(c.req.Body, '}')
	reply, err := c.conn.Do(ctx, &c.req)
	if err != nil {
		return r, err
	}
	// The body decides: it says more than the status, and a status may be wrong.
	if err := json.Unmarshal(bytes.TrimSpace(reply.Body), &r); err != nil {
		if err := checkStatus(reply.Status, reply.Body); err != nil {
			return r, err
		}
		return r, record.Fail(record.BadReply, fmt.Errorf("%w: %q", err, excerpt(reply.Body)))
	}
	switch {
	case r.Status != "ok" || r.Error != "":
		return r, record.Fail(record.ErrorField, fmt.Errorf("status %q, error %q", r.Status, r.Error))
	case r.ID == nil || *r.ID != id:
		return r, record.Fail(record.WrongID, fmt.Errorf("call %d: the reply is %q", id, excerpt(reply.Body)))
	}
	return r, checkStatus(reply.Status, reply.Body)
}

// Call makes one call.
func (c *spawnCall) Call(ctx context.Context, m record.Mark) error {
	r, err := c.exchange(ctx, c.Path, c.Count)
	if err != nil {
		return err
	}
	want := c.Count
	if c.Path != "/v1/spawn" {
		want = 0
	}
	switch {
	case r.Spawned != want:
		return record.Fail(record.WrongContent, fmt.Errorf("%d children were spawned, want %d", r.Spawned, want))
	case r.Live < c.Live && !c.Null || r.Child == "" || r.Ready < 0 || r.Gone < 0:
		return record.Fail(record.WrongContent, fmt.Errorf("%d live of at least %d, child %q, ready after %d ns, gone after %d",
			r.Live, c.Live, r.Child, r.Ready, r.Gone))
	}
	if want > 0 {
		m.Part("ready", time.Duration(r.Ready))
		m.Part("gone", time.Duration(r.Gone))
	}
	return nil
}

// Close closes the connection.
func (c *spawnCall) Close() error { return c.conn.Close() }
