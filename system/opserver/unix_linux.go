package opserver

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// refused is what dialling a socket that nobody listens on gives.
const refused = unix.ECONNREFUSED

// bindPrivately binds a socket whose mode is 0600 from its first instant: Linux gives the file the mode of the unbound
// socket, less the umask. The umask itself belongs to the whole process and is left alone.
func bindPrivately(path string) (*net.UnixListener, error) {
	return bind(path, func(_, _ string, c syscall.RawConn) error {
		var modeErr error
		err := c.Control(func(fd uintptr) { modeErr = unix.Fchmod(int(fd), 0o600) })
		return errors.Join(err, modeErr)
	})
}

// peerUID returns the user at the other end, as the kernel recorded it when it connected.
func peerUID(nc *net.UnixConn) (uid int, known bool) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return -1, true
	}
	uid = -1
	err = raw.Control(func(fd uintptr) {
		if cred, credErr := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); credErr == nil {
			uid = int(cred.Uid)
		}
	})
	if err != nil {
		uid = -1
	}
	return uid, true
}
