package opserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// maxSocketPath is how long the kernel lets a socket's path be: sun_path without the NUL at its end.
func maxSocketPath() int {
	if runtime.GOOS == "linux" || runtime.GOOS == "windows" {
		return 107
	}
	return 103
}

func listenUnix(path string) (net.Listener, error) {
	if n := len(path); n > maxSocketPath() {
		return nil, fmt.Errorf("socket %s: path of %d bytes, and the system takes %d", path, n, maxSocketPath())
	}
	if err := privateFolder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l, err := bindPrivately(path)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it would remove whatever is there by then
	made, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, err
	}
	return &unixListener{l, path, made}, nil
}

// privateFolder makes the folder with mode 0700 if it is missing, and otherwise refuses one in which another user could
// put something else in the socket's place: one that others can write to, unless its sticky bit keeps them from that.
func privateFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("other users can write to %s (mode %#o)", dir, info.Mode().Perm())
	}
	return nil
}

// removeStale removes a socket that nobody answers. Anything else that is in the way is an error and stays.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("in the way is a file that is no socket")
	}
	nc, err := net.Dial("unix", path)
	if err == nil {
		nc.Close()
		return fmt.Errorf("a server answers there: %w", syscall.EADDRINUSE)
	}
	if !errors.Is(err, refused) {
		return fmt.Errorf("in the way is a socket that may be in use: %w", err)
	}
	return os.Remove(path)
}

// A unixListener accepts connections of its own user and of root, where the system can tell (see peerUID).
type unixListener struct {
	*net.UnixListener
	path string
	made fs.FileInfo // the socket that we bound
}

// Accept waits for a connection by a user who may connect.
func (l *unixListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, known := peerUID(nc)
		if !known || welcome(uid, os.Geteuid()) {
			return nc, nil
		}
		nc.Close()
	}
}

// welcome reports whether a peer may connect to a server that runs as self.
func welcome(uid, self int) bool { return uid == self || uid == 0 }

// Close stops listening and removes the socket, if it is still ours.
func (l *unixListener) Close() error {
	err := l.UnixListener.Close()
	if now, statErr := os.Lstat(l.path); statErr == nil && os.SameFile(now, l.made) {
		err = errors.Join(err, os.Remove(l.path))
	}
	return err
}

// bind binds the path. What control does to the unbound socket comes first.
func bind(path string, control func(network, address string, c syscall.RawConn) error) (*net.UnixListener, error) {
	l, err := (&net.ListenConfig{Control: control}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}
