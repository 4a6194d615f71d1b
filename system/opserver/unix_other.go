//go:build !linux

package opserver

import (
	"fmt"
	"net"
	"os"
)

// bindPrivately binds a socket and takes it away from other users. Between the two they could connect, if they can enter
// the folder: give the socket a folder of mode 0700 here, as Listen does where the folder is missing.
func bindPrivately(path string) (*net.UnixListener, error) {
	l, err := bind(path, nil)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return l, nil
}

// peerUID knows nothing here: the folder's and the socket's modes are what keeps others out.
func peerUID(*net.UnixConn) (uid int, known bool) { return 0, false }
