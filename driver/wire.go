package driver

import (
	"net"
	"sync/atomic"
)

// A Wire counts the bytes that a target's connections write and read, TLS included. Give it to a target for a pass that
// meters bytes, and leave it out of the timed one. A nil Wire counts nothing and costs nothing.
type Wire struct{ Out, In atomic.Int64 }

// count returns nc, counted if w is there to count.
func (w *Wire) count(nc net.Conn) net.Conn {
	if w == nil {
		return nc
	}
	return &countedConn{nc, w}
}

type countedConn struct {
	net.Conn
	wire *Wire
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.wire.In.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.wire.Out.Add(int64(n))
	return n, err
}
