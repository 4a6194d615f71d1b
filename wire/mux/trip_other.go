//go:build !unix

package mux

import "net"

// A trip needs a system's sockets that can be written and read without waiting.
type trip struct{}

func newTrip(net.Conn) *trip { return nil }

func (*trip) do(b, out []byte, sent func()) (n int, rest []byte, err error) { return 0, out, nil }

// Turns answers frames that come one at a time; here it does not exist.
type Turns struct{}

// NewTurns returns nil.
func NewTurns(net.Conn, *Reader, func() ([]byte, error)) *Turns { return nil }

// Run is never called.
func (*Turns) Run() (rest []byte, err error) { return nil, nil }
