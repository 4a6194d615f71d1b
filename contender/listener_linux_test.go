package contender

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestListeningSocketsAreFoundInTheKernelsTable(t *testing.T) {
	t.Parallel()
	const rest = " 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0"
	for _, c := range []struct {
		line, at string
		want     bool
	}{
		{"0: 0100007F:1F90 00000000:0000 0A" + rest, "127.0.0.1:8080", true},
		{"0: 0100007F:1F90 00000000:0000 0A" + rest, "127.0.0.2:8080", false},
		{"0: 0100007F:1F90 00000000:0000 0A" + rest, "127.0.0.1:8081", false},
		{"0: 0100007F:1F90 0100007F:9C40 01" + rest, "127.0.0.1:8080", false},
		{"0: 00000000:1F90 00000000:0000 0A" + rest, "127.0.0.1:8080", true},
		{"0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A" + rest, "127.0.0.1:8080", true},
		{"0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A" + rest, "[::1]:8080", true},
		{"0: 0000000000000000FFFF00000100007F:1F90 00000000000000000000000000000000:0000 0A" + rest, "127.0.0.1:8080", true},
		{"0: zz00007F:1F90 00000000:0000 0A" + rest, "127.0.0.1:8080", false},
		{"  sl  local_address rem_address   st tx_queue", "127.0.0.1:8080", false},
		{"", "127.0.0.1:8080", false},
	} {
		inode, ok := listens(c.line, netip.MustParseAddrPort(c.at))
		if ok != c.want || ok && inode != "4711" {
			t.Errorf("%.40q at %s: %q, %v", c.line, c.at, inode, ok)
		}
	}
}

func FuzzListens(f *testing.F) {
	f.Add("0: 0100007F:1F90 00000000:0000 0A 0 0 0 0 0 4711")
	f.Fuzz(func(t *testing.T, line string) {
		if inode, ok := listens(line, netip.MustParseAddrPort("127.0.0.1:8080")); ok && !strings.Contains(line, inode) {
			t.Errorf("%q gives the inode %q", line, inode)
		}
	})
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	for _, at := range [][2]string{{"tcp", "127.0.0.1:1"}, {"tcp", "nonsense"}, {"unix", "/nowhere"}} {
		if l, err := Listening(at[0], at[1]); err == nil {
			t.Errorf("%v: %+v listens", at, l)
		}
	}
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	if _, err := Listening("tcp", here.Addr().String()); err == nil || !strings.Contains(err.Error(), "this process itself") {
		t.Errorf("our own listener: %v", err)
	}
}
