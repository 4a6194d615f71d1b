//go:build unix

package mux

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// newRaw returns nil for a connection that is no socket of the system's, such as an encrypted one.
func newRaw(nc net.Conn) syscall.RawConn {
	s, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// send writes what the socket takes at once and returns the rest of b. A socket that takes nothing now is no error.
func send(nc net.Conn, fd uintptr, b []byte) (rest []byte, err error) {
	n, err := syscall.Write(int(fd), b)
	switch {
	case err == syscall.EAGAIN || err == syscall.EINTR:
		return b, nil
	case err != nil:
		return b, failed(nc, "write", err)
	}
	return b[n:], nil
}

// failed is err as reading and writing nc itself would have it.
func failed(nc net.Conn, op string, err error) error {
	return &net.OpError{Op: op, Net: nc.LocalAddr().Network(), Source: nc.LocalAddr(), Addr: nc.RemoteAddr(), Err: os.NewSyscallError(op, err)}
}

// A trip writes and then waits for what that brings about, without a look in between that would be in vain: a reading that
// finds nothing costs a system call. It writes when the runtime has forgotten what the poller told it before; what comes from
// then on wakes it. An end that came before does not, so whoever trips has to bound its wait.
type trip struct {
	nc  net.Conn
	raw syscall.RawConn
	try func(fd uintptr) bool

	out  []byte // of the trip in progress: still to be written
	sent func() // called when all of it is; nil when it was
	buf  []byte
	n    int
	err  error
}

func newTrip(nc net.Conn) *trip {
	raw := newRaw(nc)
	if raw == nil {
		return nil
	}
	t := &trip{nc: nc, raw: raw}
	t.try = t.step
	return t
}

func (t *trip) step(fd uintptr) bool {
	if t.sent != nil {
		if t.out, t.err = send(t.nc, fd, t.out); t.err != nil || len(t.out) > 0 {
			return true
		}
		t.sent()
		t.sent = nil
		return false
	}
	t.n, t.err = syscall.Read(int(fd), t.buf)
	return t.err != syscall.EAGAIN && t.err != syscall.EINTR
}

// do writes out, calls sent and reads what comes then into b. When the socket does not take all of out at once, or is not to be
// read any more, rest is what is left, sent was not called and nothing is read; err is of writing then.
func (t *trip) do(b, out []byte, sent func()) (n int, rest []byte, err error) {
	t.buf, t.out, t.sent, t.n, t.err = b, out, sent, 0, nil
	err = t.raw.Read(t.try)
	rest, unsent := t.out, t.sent != nil
	t.buf, t.out, t.sent = nil, nil, nil
	switch {
	case unsent:
		return 0, rest, t.err
	case err != nil:
		return 0, nil, err
	case t.err != nil:
		return 0, nil, failed(t.nc, "read", t.err)
	case t.n == 0:
		return 0, nil, io.EOF
	}
	return t.n, nil, nil
}

// Turns answers frames that come one at a time, with one system call less for each than a [Reader] and a write take: after a
// reading that did not fill the buffer and a reply, it waits at once for what comes next.
type Turns struct {
	nc   net.Conn
	raw  syscall.RawConn
	in   *Reader
	take func() ([]byte, error)
	try  func(fd uintptr) bool
	rest []byte
	err  error
}

// NewTurns makes one of nc, which in reads. take answers whole frames that in has buffered and returns what is to be written,
// valid until the next call; beside an error, too. NewTurns returns nil where nc is no socket of the system's.
func NewTurns(nc net.Conn, in *Reader, take func() ([]byte, error)) *Turns {
	raw := newRaw(nc)
	if raw == nil {
		return nil
	}
	t := &Turns{nc: nc, raw: raw, in: in, take: take}
	t.try = t.step
	return t
}

// Run answers until reading, writing or take fails; with rest, until the socket did not take all of a reply: it is for the
// caller to write. Without rest and error, so many frames come at a time that [Reader.Next] is the quicker way. An end of a peer that
// still reads, when it came with its last request, is not noticed: whoever runs it has to end connections on which nothing comes.
func (t *Turns) Run() (rest []byte, err error) {
	t.rest, t.err = nil, nil
	if err := t.raw.Read(t.try); err != nil {
		return nil, err
	}
	return t.rest, t.err
}

// step is called first and then whenever something may have come since it last read: nothing is forgotten in between.
func (t *Turns) step(fd uintptr) bool {
	for {
		full, over := true, false
		if !t.in.Buffered() {
			if full, over = t.fill(fd); over {
				return t.err != nil
			}
		}
		wrote := false
		for t.in.Buffered() {
			out, err := t.take()
			if len(out) > 0 {
				wrote = true
				if t.rest, t.err = send(t.nc, fd, out); t.err != nil {
					t.rest = nil
				}
			}
			if t.err == nil {
				t.err = err
			}
			if t.err != nil || len(t.rest) > 0 {
				return true
			}
		}
		if !t.in.alone() {
			return true
		}
		if wrote && !full {
			return false
		}
	}
}

// fill reads once. over means that nothing is there, or that reading failed.
func (t *Turns) fill(fd uintptr) (full, over bool) {
	in := t.in
	need, _, _ := in.size()
	in.room(need)
	n, err := syscall.Read(int(fd), in.buf[in.w:])
	switch {
	case err == syscall.EAGAIN:
		return false, true
	case err == syscall.EINTR:
		return true, false
	case err != nil:
		t.err = failed(t.nc, "read", err)
	case n == 0 && in.w > in.r:
		t.err = fmt.Errorf("%d bytes of a frame of %d: %w", in.w-in.r, need, io.ErrUnexpectedEOF)
	case n == 0:
		t.err = io.EOF
	}
	if t.err != nil {
		return false, true
	}
	in.w += n
	return in.w == len(in.buf), false
}
