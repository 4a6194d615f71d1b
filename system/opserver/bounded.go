package opserver

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

// A bounded listener closes at once the connections beyond as many as taken has room for.
type bounded struct {
	net.Listener
	taken chan struct{}
}

// Accept waits for a connection that there is room for.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		nc, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.taken <- struct{}{}:
			return &boundedConn{Conn: nc, leave: sync.OnceFunc(func() { <-b.taken })}, nil
		default:
			nc.Close()
		}
	}
}

type boundedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection and gives up its place.
func (c *boundedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite says that nothing more will be sent, where the connection can: a refusal must reach a client that is still
// sending, and a plain Close would take it back.
func (c *boundedConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SyscallConn gives the socket, where the connection is one.
func (c *boundedConn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
