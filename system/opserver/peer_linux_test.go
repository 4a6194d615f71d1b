package opserver_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"toll/system/opserver"
)

// Another user is turned away even where the file modes would let them in.
func TestOtherUsersAreTurnedAway(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l := listen(t, opserver.Config{Unix: path})
	start(t, opserver.NewEcho(opserver.Config{}), l)
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(path, 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		uid  int
		want string
	}{{0, "hi"}, {65534, ""}} {
		got, err := echoAs(tt.uid, path)
		if err != nil || got != tt.want {
			t.Errorf("user %d: got %q, %v, want %q", tt.uid, got, err, tt.want)
		}
	}
}

// echoAs says hi to the socket as another user. It does so on a thread of its own, the only one that becomes that user,
// and which ends with it.
func echoAs(uid int, path string) (got string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
			err = errno
			return
		}
		fd, e := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if e != nil {
			err = e
			return
		}
		defer unix.Close(fd)
		if err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			return
		}
		// To a peer that has hung up this fails, which is no error of ours.
		unix.SendmsgN(fd, []byte("hi"), nil, nil, unix.MSG_NOSIGNAL)
		b := make([]byte, 2)
		n, _ := unix.Read(fd, b)
		got = string(b[:max(n, 0)])
	}()
	<-done
	return got, err
}
