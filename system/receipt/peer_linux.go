package receipt

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// checkPeer refuses a process of another user on a unix socket.
func checkPeer(nc net.Conn, allowed int) error {
	u, ok := nc.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) { cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if cerr != nil {
		return cerr
	}
	if allowed == 0 {
		allowed = os.Getuid()
	}
	if int(cred.Uid) != allowed {
		return fmt.Errorf("the peer is user %d; only %d may ask", cred.Uid, allowed)
	}
	return nil
}
