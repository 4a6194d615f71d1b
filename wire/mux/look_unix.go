//go:build unix

package mux

import (
	"io"
	"net"
	"syscall"
)

// A peek reads what a socket holds already and does not wait for more.
type peek struct {
	raw syscall.RawConn
	buf []byte // of the read in progress
	n   int
	err error
	try func(fd uintptr) bool
}

// newPeek returns nil for a connection that is no socket of the system's, such as an encrypted one.
func newPeek(nc net.Conn) *peek {
	s, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	p := &peek{raw: raw}
	p.try = func(fd uintptr) bool {
		p.n, p.err = syscall.Read(int(fd), p.buf)
		return true
	}
	return p
}

// read reads into b; 0 and no error mean that nothing is there.
func (p *peek) read(b []byte) (int, error) {
	p.buf = b
	err := p.raw.Read(p.try) // of a deadline, too
	p.buf = nil
	switch {
	case err != nil:
		return 0, err
	case p.err == syscall.EAGAIN || p.err == syscall.EINTR:
		return 0, nil
	case p.err != nil:
		return 0, p.err
	case p.n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return p.n, nil
}
