package http1

import (
	"errors"
	"net"
	"sync"
)

// HandOver gives the connection to somebody who speaks another protocol or another server's API, with the request still to
// be read, once the handler has returned. A request with a body can't be handed over. The server forgets the connection:
// its Shutdown no longer waits for it.
func (r *Reply) HandOver(to func(nc net.Conn)) error {
	switch {
	case r.conn == nil:
		return errors.New("hand over: a reply without a connection")
	case r.conn.req.length > 0 || r.conn.req.chunked:
		return errors.New("hand over: the request has a body")
	case r.stream != nil:
		return errors.New("hand over: a stream has begun")
	}
	r.handOver = to
	return nil
}

// A replayed is a connection of which some bytes were read already.
type replayed struct {
	net.Conn
	first []byte
}

// Read returns those bytes first.
func (c *replayed) Read(p []byte) (int, error) {
	if len(c.first) > 0 && len(p) > 0 {
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// Replay returns a connection that reads first before what nc gives.
func Replay(nc net.Conn, first []byte) net.Conn { return &replayed{nc, first} }

// A Given is a listener whose connections somebody else accepted and gives to it.
type Given struct {
	addr  net.Addr
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
}

// NewGiven returns a listener that says it listens at addr.
func NewGiven(addr net.Addr) *Given {
	return &Given{addr: addr, conns: make(chan net.Conn), gone: make(chan struct{})}
}

// Give hands a connection to whoever accepts, and closes it when the listener is closed.
func (g *Given) Give(nc net.Conn) {
	select {
	case g.conns <- nc:
	case <-g.gone:
		nc.Close()
	}
}

// Accept waits for a connection.
func (g *Given) Accept() (net.Conn, error) {
	select {
	case nc := <-g.conns:
		return nc, nil
	case <-g.gone:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Give.
func (g *Given) Close() error {
	g.once.Do(func() { close(g.gone) })
	return nil
}

// Addr is the address that NewGiven was given.
func (g *Given) Addr() net.Addr { return g.addr }
