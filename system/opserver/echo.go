package opserver

import (
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
