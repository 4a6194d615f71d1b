package hop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"toll/contender/owner"
)

// act makes the test binary play a part when it is in the environment.
const act = "HOP_TEST_ACT"

func TestMain(m *testing.M) {
	switch os.Getenv(act) {
	case "":
		os.Exit(m.Run())
	case "echo":
		l, err := net.Listen("tcp", os.Getenv("HOP_TEST_ADDR")+":0")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(l.Addr())
		go func() {
			for {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				go io.Copy(nc, nc)
			}
		}()
		io.Copy(io.Discard, os.Stdin)
	case "shuttle":
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
		d, _ := time.ParseDuration(os.Getenv("HOP_TEST_DELAY"))
		if err := Shuttle(ctx, os.NewFile(3, "a"), os.NewFile(4, "b"), d); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// playing is the test binary in one of its parts.
func playing(t *testing.T, part string, env ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), act+"="+part), env...)
	return cmd
}

// open makes a link where this machine can.
func open(t *testing.T, h Hop) *Link {
	t.Helper()
	l, err := Open(t.Context(), h, func() *exec.Cmd {
		return playing(t, "shuttle", "HOP_TEST_DELAY="+(h.RTT/2).String())
	})
	if errors.Is(err, ErrUnavailable) && os.Getenv("TOLL_RUN_ALL") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// echo starts an echo server inside and connects to it.
func echo(t *testing.T, l *Link) net.Conn {
	t.Helper()
	cmd := playing(t, "echo", "HOP_TEST_ADDR="+l.Addr)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	err = onThread(func() error {
		leave, err := l.Enter(cmd)
		if err != nil {
			return err
		}
		return errors.Join(cmd.Start(), leave())
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := net.DialTimeout("tcp", strings.TrimSpace(string(line[:n])), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

// roundTrips makes n and returns the shortest.
func roundTrips(t *testing.T, nc net.Conn, n int) time.Duration {
	t.Helper()
	best := time.Hour
	buf := make([]byte, 1)
	for range n {
		begin := time.Now()
		if _, err := nc.Write(buf); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(nc, buf); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(begin))
	}
	return best
}

// ours are the devices of this process' links in our own namespace: other tests make links at the same time.
func ours(t *testing.T) (out []string) {
	t.Helper()
	all, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if l.Attrs().Alias == aliasPrefix+string(owner.Self()) {
			out = append(out, l.Attrs().Name)
		}
	}
	return out
}

func TestALinkLeadsIntoAnotherNamespace(t *testing.T) {
	l := open(t, Hop{Kind: Netns})
	nc := echo(t, l)
	roundTrips(t, nc, 20)
	if host, _, _ := net.SplitHostPort(nc.RemoteAddr().String()); host != l.Addr || len(ours(t)) != 1 {
		t.Errorf("connected to %s; our devices %v", host, ours(t))
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left := ours(t); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// A delay is never less than what was asked for; how much more is what a run measures.
func TestADelayIsKept(t *testing.T) {
	h := Hop{Kind: Netns, RTT: 5 * time.Millisecond}
	l := open(t, h)
	nc := echo(t, l)
	if best := roundTrips(t, nc, 40); best < h.RTT {
		t.Errorf("a round trip of %v over a link of %v", best, h.RTT)
	} else {
		t.Logf("%s: the shortest of 40 round trips is %v", l.Delay, best)
	}
	if d, ok := l.Carried(); ok != (l.Mechanism() == TUN) || ok && d <= 0 {
		t.Errorf("%s: carrying packets took %v, %v", l.Mechanism(), d, ok)
	}
	// Much more than a packet at a time, and all of it arrives.
	sent := strings.Repeat("0123456789abcdef", 1<<14)
	go io.WriteString(nc, sent)
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(nc, got); err != nil || string(got) != sent {
		t.Errorf("256 KiB came back changed: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left := ours(t); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestTheThreadComesBack(t *testing.T) {
	l := open(t, Hop{Kind: Netns})
	defer l.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _ := os.Readlink("/proc/thread-self/ns/net")
	leave, err := l.Enter(nil)
	if err != nil {
		t.Fatal(err)
	}
	inside, _ := os.Readlink("/proc/thread-self/ns/net")
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Readlink("/proc/thread-self/ns/net"); before == inside || before != after {
		t.Errorf("%s, %s, %s", before, inside, after)
	}
}

func TestLoopbackIsNoLink(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.Context(), Hop{Kind: Loopback}, nil); err == nil || err.Error() != "loopback is no link" {
		t.Error(err)
	}
}

func TestOnlyDevicesOfRunsThatAreGoneAreRemoved(t *testing.T) {
	t.Parallel()
	self := string(owner.Self())
	gone := self[:strings.LastIndexByte(self, '-')] + "-1"
	there := map[string]string{"tollcleangone": aliasPrefix + gone, "tollcleanlive": aliasPrefix + self, "tollcleannone": "", "othercleangone": aliasPrefix + gone}
	for name, alias := range there {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = name
		d := &netlink.Ifb{LinkAttrs: attrs}
		if err := netlink.LinkAdd(d); err != nil {
			if os.Getenv("TOLL_RUN_ALL") != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
		defer netlink.LinkDel(d)
		if alias != "" {
			if err := netlink.LinkSetAlias(d, alias); err != nil {
				t.Fatal(err)
			}
		}
	}
	found := Clean()
	if !slices.Contains(found, owner.Found{What: "device", Name: "tollcleangone"}) {
		t.Errorf("removed: %v", found)
	}
	for name := range there {
		if _, err := netlink.LinkByName(name); (err == nil) != (name != "tollcleangone") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
