package faults_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/contender/faults"
)

func TestParse(t *testing.T) {
	t.Parallel()
	f, err := faults.Parse("delay=5ms, jitter=1ms,up.drop=0.25,down.replay=1,split=3,down.delay=1s,reset=0")
	want := faults.Faults{
		Up:   faults.Way{Delay: 2500 * time.Microsecond, Jitter: 500 * time.Microsecond, Drop: .25, Split: 3},
		Down: faults.Way{Delay: time.Second, Jitter: 500 * time.Microsecond, Replay: 1, Split: 3},
	}
	if err != nil || f != want {
		t.Errorf("got %+v, %v", f, err)
	}
	if again, err := faults.Parse(f.String()); err != nil || again != f {
		t.Errorf("%s: %s, %v", f, cmp.Diff(f, again), err)
	}
	for in, want := range map[string]string{
		"":                 `fault "": want name=value, such as delay=5ms`,
		"delay":            `fault "delay": want name=value, such as delay=5ms`,
		"delay=5":          `fault delay=5: "5" is not a time from 0s to 1m0s`,
		"delay=-1s":        `fault delay=-1s: "-1s" is not a time from 0s to 1m0s`,
		"delay=2m":         `fault delay=2m: "2m" is not a time from 0s to 1m0s`,
		"drop=1.5":         `fault drop=1.5: "1.5" is not a share from 0 to 1`,
		"drop=NaN":         `fault drop=NaN: "NaN" is not a share from 0 to 1`,
		"split=0":          `fault split=0: "0" is not a number of bytes from 1`,
		"sideways.drop=1":  `fault sideways.drop=1: "sideways.drop" is none of delay, jitter, drop, replay, reset and split, each perhaps behind up. or down`,
		"delay=1ms,lose=1": `fault lose=1: "lose" is none of delay, jitter, drop, replay, reset and split, each perhaps behind up. or down`,
	} {
		if _, err := faults.Parse(in); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}

// pipes is a listener whose connections are pipes, so that all of a test can run in virtual time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return nil }
func (p *pipes) dial() (net.Conn, error) {
	a, b := net.Pipe()
	p.conns <- b
	return a, nil
}

// between returns both ends of a connection through a proxy.
func between(t *testing.T, cfg faults.Config, f faults.Faults) (proxy *faults.Proxy, client, server net.Conn) {
	t.Helper()
	in, out := newPipes(), newPipes()
	cfg.Dial = out.dial
	proxy = faults.Start(in, cfg, f)
	client, _ = in.dial()
	server, _ = out.Accept()
	t.Cleanup(func() { client.Close(); server.Close(); proxy.Close() })
	return proxy, client, server
}

func TestDelayIsALatencyNotARate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, client, server := between(t, faults.Config{}, faults.Faults{Up: faults.Way{Delay: 3 * time.Second}, Down: faults.Way{Delay: time.Second}})
		start := time.Now()
		for range 10 {
			if _, err := client.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.ReadFull(server, make([]byte, 10)); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("up took %v, %v", time.Since(start), err)
		}
		server.Write([]byte("y"))
		if _, err := io.ReadFull(client, make([]byte, 1)); err != nil || time.Since(start) != 4*time.Second {
			t.Errorf("up and down took %v, %v", time.Since(start), err)
		}
	})
}

// lines finds frames that end in a newline.
func lines(data []byte) int { return bytes.IndexByte(data, '\n') + 1 }

func TestPiecesAreDroppedReplayedAndSplit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, client, server := between(t, faults.Config{Frame: lines, Seed: 7}, faults.Faults{Up: faults.Way{Drop: .3, Replay: .3, Split: 2}})
		go func() {
			for i := range 100 {
				client.Write([]byte{byte('0' + i%10)})
				client.Write([]byte("abcd\n"))
			}
			client.Close()
		}()
		count := 0
		in := bufio.NewScanner(server)
		for in.Scan() {
			if line := in.Text(); len(line) != 5 || line[1:] != "abcd" {
				t.Fatalf("got %q", line)
			}
			count++
		}
		c := p.Counts()
		if c.Passed+c.Dropped != 100 || c.Dropped < 10 || c.Replayed < 10 || int64(count) != c.Passed+c.Replayed {
			t.Errorf("%d lines, %+v", count, c)
		}
	})
}

func TestADeadDirectionAndAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, client, server := between(t, faults.Config{}, faults.Faults{Down: faults.Way{Drop: 1}})
		go io.Copy(server, server)
		client.Write([]byte("lost"))
		synctest.Wait()
		if c := p.Counts(); c.Passed != 1 || c.Dropped != 1 {
			t.Errorf("%+v", c)
		}
		p.Set(faults.Faults{Up: faults.Way{Stall: true}})
		client.Write([]byte("late"))
		time.Sleep(time.Hour)
		p.Set(faults.Faults{})
		got := make([]byte, 4)
		if _, err := io.ReadFull(client, got); err != nil || string(got) != "late" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestReset(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(nc, nc)
		}
	}()
	p, err := faults.Listen("tcp", l.Addr().String(), faults.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	for _, spoil := range []func(net.Conn){
		func(net.Conn) { p.Reset() },
		func(nc net.Conn) {
			p.Set(faults.Faults{Up: faults.Way{Reset: 1}})
			nc.Write([]byte("x"))
		},
	} {
		nc, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		nc.Write([]byte("hello"))
		if _, err := io.ReadFull(nc, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		spoil(nc)
		if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) && runtime.GOOS != "windows" {
			t.Errorf("got %v", err)
		}
		nc.Close()
	}
	if c := p.Counts(); c.Connections != 2 || c.Resets != 2 {
		t.Errorf("%+v", c)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// Whatever is passed on is passed on whole and in order.
func TestEverythingArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, client, server := between(t, faults.Config{}, faults.Faults{Up: faults.Way{Delay: time.Millisecond, Jitter: time.Second, Split: 7}})
		text := strings.Repeat("0123456789", 10_000)
		go func() {
			for at := 0; at < len(text); at += 1000 {
				client.Write([]byte(text[at : at+1000]))
			}
			client.Close()
		}()
		got, err := io.ReadAll(server)
		if err != nil || string(got) != text {
			t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("delay=5ms,drop=0.5,up.split=1")
	f.Add("down.reset=1e-3,jitter=1us")
	f.Fuzz(func(t *testing.T, text string) {
		one, err := faults.Parse(text)
		if err != nil {
			return
		}
		if one == (faults.Faults{}) {
			return
		}
		if again, err := faults.Parse(one.String()); err != nil || again != one {
			t.Fatalf("%q: %s, %v", text, cmp.Diff(one, again), err)
		}
	})
}
