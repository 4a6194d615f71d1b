package driver_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"toll/driver"
	"toll/lab/record"
)

// serveEcho echoes, but for the first message of the first connection, which goes through first.
func serveEcho(t *testing.T, network string, first func(nc net.Conn, msg []byte) (more bool)) string {
	t.Helper()
	var messages atomic.Int64
	return accepting(t, network, func(nc net.Conn) {
		buf := make([]byte, 1<<16)
		for {
			n, err := nc.Read(buf)
			if err != nil {
				return
			}
			if messages.Add(1) == 1 && first != nil {
				if !first(nc, buf[:n]) {
					return
				}
				continue
			}
			nc.Write(buf[:n])
		}
	})
}

func TestEchoNamesEachFailureAndRecovers(t *testing.T) {
	damage := func(at int) func(net.Conn, []byte) bool {
		return func(nc net.Conn, msg []byte) bool {
			msg[at] ^= 1
			nc.Write(msg)
			return true
		}
	}
	tests := []struct {
		name  string
		first func(net.Conn, []byte) bool
		want  string
	}{
		{"right", nil, ""},
		{"in two pieces", func(nc net.Conn, msg []byte) bool { nc.Write(msg[:5]); nc.Write(msg[5:]); return true }, ""},
		{"wrong id", damage(7), record.WrongID},
		{"wrong byte", damage(8), record.WrongContent},
		{"wrong last byte", damage(95), record.WrongContent},
		{"closed", func(net.Conn, []byte) bool { return false }, record.Closed},
		{"short", func(nc net.Conn, msg []byte) bool { nc.Write(msg[:95]); return false }, record.ShortBody},
		{"silent", func(nc net.Conn, _ []byte) bool { io.Copy(io.Discard, nc); return false }, record.Timeout},
	}
	for _, network := range []string{"tcp", "unix"} {
		for _, tt := range tests {
			t.Run(network+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				timeout := 10 * time.Second
				if tt.want == record.Timeout {
					timeout = 500 * time.Millisecond
				}
				c := open(t, &driver.Echo{Addr: serveEcho(t, network, tt.first), Timeout: timeout})
				if err := call(t, c); kind(err) != tt.want {
					t.Errorf("first call: %v, want kind %q", err, tt.want)
				}
				for range 2 {
					if err := call(t, c); err != nil {
						t.Errorf("a later call: %v", err)
					}
				}
			})
		}
	}
}

func TestEchoSizes(t *testing.T) {
	addr := serveEcho(t, "tcp", nil)
	for _, size := range []int{8, 9, 96, 65536} {
		var wire driver.Wire
		c := open(t, &driver.Echo{Addr: addr, Size: size, Wire: &wire})
		for range 3 {
			if err := call(t, c); err != nil {
				t.Errorf("size %d: %v", size, err)
			}
		}
		if n := int64(3 * size); wire.Out.Load() != n || wire.In.Load() != n {
			t.Errorf("size %d: %d bytes out and %d in, want %d", size, wire.Out.Load(), wire.In.Load(), n)
		}
	}
	for _, size := range []int{-1, 7, 65537} {
		if _, err := (&driver.Echo{Addr: addr, Size: size}).Open(t.Context()); err == nil {
			t.Errorf("size %d was taken", size)
		}
	}
}
