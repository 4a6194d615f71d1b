package driver

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"toll/lab/load"
	"toll/lab/record"
)

// maxEcho keeps a message within what the sockets' buffers hold: we write all of it before we read any of it back.
const maxEcho = 64 << 10

// Echo sends messages of one size to a server that sends back what it reads: the floor, which is what the sockets and the
// kernel cost without any protocol. A message begins with its call's id, 8 bytes big-endian. It must not be copied once it
// has opened.
type Echo struct {
	Addr    string        // tcp://host:port or unix:/path
	Size    int           // bytes of a message, 8 to 65536; 0 = 96
	Seed    uint64        // decides the first id of each VU
	Cold    bool          // every call opens its own connection, inside the window
	Timeout time.Duration // of one call; 0 = only the context's
	Wire    *Wire         // counts bytes; nil in a timed pass

	ids ids
}

// Open connects one VU.
func (e *Echo) Open(ctx context.Context) (load.Caller, error) {
	size := e.Size
	if size == 0 {
		size = 96
	}
	if size < 8 || size > maxEcho {
		return nil, fmt.Errorf("echo of %d bytes: want 8 to %d", size, maxEcho)
	}
	conn, err := Dial(ctx, ConnConfig{Addr: e.Addr, Timeout: e.Timeout, Wire: e.Wire})
	if err != nil {
		return nil, err
	}
	sent := append(make([]byte, 8, size), noteText(size-8)...)
	return orCold(e.Cold, &echo{conn: conn, id: e.ids.next(e.Seed), sent: sent, got: make([]byte, size)}, conn.Close), nil
}

// An echo is the Caller of Echo. Of its Conn it uses all but the HTTP.
type echo struct {
	conn      *Conn
	id        int64
	sent, got []byte
}

// Call sends one message and waits for all of it to come back.
func (e *echo) Call(ctx context.Context, _ record.Mark) error {
	e.id++
	binary.BigEndian.PutUint64(e.sent, uint64(e.id))
	err := e.exchange(ctx)
	if err == nil {
		err = e.judge()
	}
	if err != nil {
		// Wrong bytes too: what comes behind them would be taken for the next echo.
		return e.conn.abandon(ctx, err)
	}
	return nil
}

func (e *echo) judge() error {
	if id := int64(binary.BigEndian.Uint64(e.got)); id != e.id {
		return record.Fail(record.WrongID, fmt.Errorf("call %d: an echo of %d", e.id, id))
	}
	if string(e.got) != string(e.sent) {
		return record.Fail(record.WrongContent, fmt.Errorf("call %d: not the bytes that were sent", e.id))
	}
	return nil
}

func (e *echo) exchange(ctx context.Context) error {
	if err := e.conn.ready(ctx); err != nil {
		return err
	}
	if _, err := e.conn.nc.Write(e.sent); err != nil {
		return ioFailure(err, record.Closed, "sending")
	}
	n, err := io.ReadFull(e.conn.nc, e.got)
	switch {
	case err == nil:
		return nil
	case n == 0:
		return ioFailure(err, record.Closed, "reading the echo")
	}
	return ioFailure(err, record.ShortBody, "echo ends after %d bytes", n)
}

// Close closes the connection.
func (e *echo) Close() error { return e.conn.Close() }
