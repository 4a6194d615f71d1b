package opserver

import (
	"io"
	"net"
	"sync/atomic"
)

// NewEcho makes a server that writes back whatever it reads: one read and one write, no framing. It is the floor under
// every envelope: what sockets and kernel cost.
func NewEcho(cfg Config) *Floor {
	return newFloor(cfg.withDefaults(), func(nc net.Conn, done *atomic.Int64) {
		buf := make([]byte, 64<<10)
		for {
			n, err := nc.Read(buf)
			if err != nil {
				return
			}
			if _, err := nc.Write(buf[:n]); err != nil {
				return
			}
			done.Add(1)
		}
	})
}

// NewWork makes a server that reads a message of size bytes, works, and writes it back: the floor under everything that
// stands before a handler which does the same work. Work that fails ends the connection.
func NewWork(cfg Config, size int, work func() error) *Floor {
	return newFloor(cfg.withDefaults(), func(nc net.Conn, done *atomic.Int64) {
		buf := make([]byte, size)
		for {
			if _, err := io.ReadFull(nc, buf); err != nil {
				return
			}
			if work() != nil {
				return
			}
			if _, err := nc.Write(buf); err != nil {
				return
			}
			done.Add(1)
		}
	})
}
