//go:build !linux

package receipt

import "net"

// checkPeer leaves it to the socket's mode, which only its user passes.
func checkPeer(net.Conn, int) error { return nil }
