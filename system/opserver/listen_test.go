package opserver_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"toll/system/opserver"
)

func TestListenIsOnLoopbackUnlessToldOtherwise(t *testing.T) {
	for addr, want := range map[string]string{"": "127.0.0.1", ":0": "127.0.0.1", "127.0.0.1:0": "127.0.0.1", "0.0.0.0:0": "0.0.0.0"} {
		host, port, err := net.SplitHostPort(listen(t, opserver.Config{Addr: addr}).Addr().String())
		if err != nil || port == "0" || host != want && !(want == "0.0.0.0" && host == "::") {
			t.Errorf("%q: on %s:%s, %v, want %s", addr, host, port, err, want)
		}
	}
}

func TestListenRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o770)); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		cfg  opserver.Config
		want string
	}{
		{opserver.Config{Addr: "127.0.0.1:0", Unix: filepath.Join(dir, "s")}, "both an address"},
		{opserver.Config{Addr: "nowhere"}, "missing port"},
		{opserver.Config{MaxBody: -1}, "below zero"},
		{opserver.Config{IdleTimeout: -1}, "below zero"},
		{opserver.Config{Unix: filepath.Join(dir, strings.Repeat("x", 108))}, "and the system takes 10"},
		{opserver.Config{Unix: file}, "a file that is no socket"},
		{opserver.Config{Unix: dir}, "a file that is no socket"},
		{opserver.Config{Unix: filepath.Join(file, "s")}, "not a directory"},
		{opserver.Config{Unix: filepath.Join(open, "s")}, "other users can write to"},
	}
	if runtime.GOOS == "windows" {
		tests = tests[:5]
	}
	for _, tt := range tests {
		l, err := opserver.Listen(tt.cfg)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want an error that says %q", tt.cfg, err, tt.want)
		}
	}
	if b, err := os.ReadFile(file); string(b) != "precious" {
		t.Errorf("the file in the way now holds %q, %v", b, err)
	}
}

func TestSocketPathMayBeAsLongAsTheSystemTakes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the length is Linux's")
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	fits := filepath.Join(dir, strings.Repeat("x", 107-len(dir)-1))
	listen(t, opserver.Config{Unix: fits})
	if _, err := opserver.Listen(opserver.Config{Unix: fits + "x"}); err == nil || !strings.Contains(err.Error(), "path of 108 bytes, and the system takes 107") {
		t.Errorf("got %v", err)
	}
}

func TestStaleSocketIsReplacedAndALiveOneIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	if _, err := opserver.Listen(opserver.Config{Unix: path}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("beside a live socket: got %v, want address in use", err)
	}
	dead.Close()
	l := listen(t, opserver.Config{Unix: path})
	start(t, opserver.NewEcho(opserver.Config{}), l)
	if got := echo(t, dial(t, l), "hi"); got != "hi" {
		t.Errorf("got %q", got)
	}
}

func TestSocketThatIsNoStreamStays(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no datagram sockets")
	}
	path := filepath.Join(t.TempDir(), "s")
	other, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := opserver.Listen(opserver.Config{Unix: path}); err == nil || !strings.Contains(err.Error(), "may be in use") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

func TestSymlinkInTheWayStays(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), path); err != nil {
		t.Skip(err)
	}
	if _, err := opserver.Listen(opserver.Config{Unix: path}); err == nil {
		t.Error("the socket was bound through a symlink")
	}
	if _, err := os.Readlink(path); err != nil {
		t.Error(err)
	}
}

func TestSocketGoesAwayWithItsListener(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	listen(t, opserver.Config{Unix: path}).Close()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after closing: %v", err)
	}
	l := listen(t, opserver.Config{Unix: path})
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("another's"), 0o600)); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if b, err := os.ReadFile(path); string(b) != "another's" {
		t.Errorf("what had taken its place now holds %q, %v", b, err)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	cfg := opserver.Config{MaxConns: 2}
	l := listen(t, cfg)
	start(t, opserver.NewEcho(cfg), l)
	first, second := dial(t, l), dial(t, l)
	for _, nc := range []net.Conn{first, second} {
		if got := echo(t, nc, "hi"); got != "hi" {
			t.Errorf("got %q", got)
		}
	}
	if !closed(dial(t, l)) {
		t.Error("a third connection is served")
	}
	first.Close()
	// The place is free as soon as the server has seen the end, which it does in its own time.
	for range 1000 {
		nc := dial(t, l)
		io.WriteString(nc, "hi")
		if n, _ := io.ReadFull(nc, make([]byte, 2)); n == 2 {
			return
		}
	}
	t.Error("the place of a closed connection stays taken")
}

// echo sends msg and returns what comes back.
func echo(t *testing.T, nc net.Conn, msg string) string {
	t.Helper()
	if _, err := io.WriteString(nc, msg); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(msg))
	if _, err := io.ReadFull(nc, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}
