package opserver_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"toll/system/opserver"
)

func TestEchoGivesBackWhatItReads(t *testing.T) {
	both(t, func(t *testing.T, cfg opserver.Config) {
		l := listen(t, cfg)
		start(t, opserver.NewEcho(cfg), l)
		nc := dial(t, l)
		for _, n := range []int{1, 8, 96, 4096, 65536} {
			msg := strings.Repeat("0123456789abcdef", n/16+1)[:n]
			if got := echo(t, nc, msg); got != msg {
				t.Errorf("%d bytes came back changed", n)
			}
		}
	})
}

const canned = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"

func TestNullAnswersEveryCompleteRequest(t *testing.T) {
	requests := []string{
		get("/"), post("/v1/note", "{}"), post("/", strings.Repeat("b", 200<<10)), "DELETE * HTTP/1.0\r\ncontent-LENGTH:3\r\n\r\nxyz",
		"anything\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length:  0 \r\n\r\n",
	}
	both(t, func(t *testing.T, cfg opserver.Config) {
		cfg.Reply = []byte(canned)
		l := listen(t, cfg)
		start(t, opserver.NewNull(cfg), l)
		r := func(nc net.Conn) *bufio.Reader { return bufio.NewReader(nc) }
		one := dial(t, l)
		for _, request := range requests {
			if status, body := ask(t, one, request); status != 200 || body != "done" {
				t.Errorf("%.40q: got %d %q", request, status, body)
			}
		}
		all := strings.Join(requests, "")
		for name, src := range map[string]io.Reader{"at once": strings.NewReader(all), "bytewise": iotest.OneByteReader(strings.NewReader(all[:300]))} {
			nc := dial(t, l)
			go io.Copy(struct{ io.Writer }{nc}, src)
			replies, want := r(nc), len(requests)
			if name == "bytewise" {
				want = 2
			}
			for i := range want {
				if status, body := readReply(t, replies); status != 200 || body != "done" {
					t.Errorf("%s, reply %d: got %d %q", name, i, status, body)
				}
			}
		}
	})
}

func TestNullHangsUpOnWhatItCannotDelimit(t *testing.T) {
	cfg := opserver.Config{MaxHead: 1000, MaxBody: 100}
	l := listen(t, cfg)
	start(t, opserver.NewNull(cfg), l)
	for _, request := range []string{
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"POST / HTTP/1.1\r\nContent-Length: -2\r\n\r\n{}",
		"POST / HTTP/1.1\r\nContent-Length: 9999999999999999999\r\n\r\n{}",
		"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n",
		"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 1000),
	} {
		nc := dial(t, l)
		io.WriteString(nc, request)
		if !closed(nc) {
			t.Errorf("%.80q is answered", request)
		}
	}
	nc := dial(t, l)
	if status, body := ask(t, nc, get("/")); status != 200 || body != "{}" {
		t.Errorf("by default: got %d %q", status, body)
	}
}

func floors(cfg opserver.Config) map[string]func() server {
	return map[string]func() server{
		"echo": func() server { return opserver.NewEcho(cfg) },
		"null": func() server { return opserver.NewNull(cfg) },
	}
}

func TestFloorsHangUpOnIdlePeers(t *testing.T) {
	for name, floor := range floors(short) {
		t.Run(name, func(t *testing.T) {
			serveInBubble(t, floor, func(t *testing.T, p pipes) {
				busy, idle, began := p.dial(t), p.dial(t), time.Now()
				stop := make(chan struct{})
				go func() {
					defer close(stop)
					for range 10 {
						<-time.After(6 * time.Second)
						io.WriteString(busy, get("/"))
						if _, err := busy.Read(make([]byte, 4096)); err != nil {
							t.Errorf("the busy connection: %v", err)
						}
					}
				}()
				if !closed(idle) {
					t.Error("the idle connection is answered")
				}
				if took := time.Since(began); took < 20*time.Second || took > 40*time.Second {
					t.Errorf("idle for %v, want 20 s to 40 s", took)
				}
				<-stop
			})
		})
	}
}

func TestNullHangsUpOnASlowRequest(t *testing.T) {
	serveInBubble(t, floors(short)["null"], func(t *testing.T, p pipes) {
		nc, began := p.dial(t), time.Now()
		for {
			<-time.After(time.Second)
			if _, err := nc.Write([]byte("x")); err != nil {
				break
			}
		}
		if took := time.Since(began); took > 41*time.Second {
			t.Errorf("dribbled for %v", took)
		}
	})
}

func TestFloorsDrain(t *testing.T) {
	for name, floor := range floors(opserver.Config{}) {
		t.Run(name, func(t *testing.T) {
			l := listen(t, opserver.Config{})
			s := floor()
			start(t, s, l)
			idle, used := dial(t, l), dial(t, l)
			io.WriteString(used, get("/"))
			if _, err := used.Read(make([]byte, 4096)); err != nil {
				t.Fatal(err)
			}
			if err := s.Shutdown(context.Background()); err != nil {
				t.Errorf("shutdown: %v", err)
			}
			if !closed(idle) || !closed(used) {
				t.Error("a connection goes on")
			}
			if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
				t.Error("a new connection is accepted")
			}
			if err := s.Shutdown(context.Background()); err != nil {
				t.Errorf("second shutdown: %v", err)
			}
		})
	}
}

// A pipe's write lasts until it is read, so the answer is in flight until the test reads it.
func TestFloorsFinishTheAnswerInFlight(t *testing.T) {
	for name, floor := range floors(opserver.Config{Reply: []byte(canned)}) {
		t.Run(name, func(t *testing.T) {
			p, s := make(pipes), floor()
			start(t, s, p)
			nc := p.dial(t)
			io.WriteString(nc, get("/"))
			first := make([]byte, 1)
			if _, err := io.ReadFull(nc, first); err != nil {
				t.Fatal(err)
			}
			drained := make(chan error, 1)
			go func() { drained <- s.Shutdown(context.Background()) }()
			rest, err := io.ReadAll(nc)
			want := canned
			if name == "echo" {
				want = get("/")
			}
			if got := string(first) + string(rest); err != nil || got != want {
				t.Errorf("got %q, %v", got, err)
			}
			if err := <-drained; err != nil {
				t.Errorf("shutdown: %v", err)
			}
		})
	}
}

func TestFloorsBreakOffAWriteThatNobodyReads(t *testing.T) {
	p, s := make(pipes), opserver.NewEcho(opserver.Config{})
	start(t, s, p)
	nc := p.dial(t)
	io.WriteString(nc, "hi")
	if _, err := io.ReadFull(nc, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestShutdownBeforeServe(t *testing.T) {
	all := floors(opserver.Config{})
	all["rest"] = func() server { return opserver.NewREST(opserver.Config{}, registry(t)) }
	for name, s := range all {
		s, l := s(), listen(t, opserver.Config{})
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Serve(l); err != nil {
			t.Errorf("%s: serving then: %v", name, err)
		}
		if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
			t.Errorf("%s still listens", name)
		}
	}
}

// This measures the whole process, so it does not run in parallel.
func TestFloorsDoNotAllocate(t *testing.T) {
	request, reply := []byte(post("/v1/note", `{"id":1}`)), []byte(canned)
	for name, floor := range floors(opserver.Config{Reply: reply}) {
		l := listen(t, opserver.Config{})
		start(t, floor(), l)
		nc, want := dial(t, l), reply
		if name == "echo" {
			want = request
		}
		got := make([]byte, len(want))
		allocs := testing.AllocsPerRun(500, func() {
			nc.Write(request)
			if _, err := io.ReadFull(nc, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: got %q, %v", name, got, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations an exchange", name, allocs)
		}
	}
}

func BenchmarkServers(b *testing.B) {
	ops, err := opserver.NewRegistry(opserver.Note())
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{32, 65536} {
		request := []byte(post("/v1/note", fmt.Sprintf(`{"id":1,"note":%q}`, strings.Repeat("n", size))))
		for name, s := range map[string]server{
			"rest": opserver.NewREST(opserver.Config{}, ops),
			"null": opserver.NewNull(opserver.Config{}),
		} {
			b.Run(fmt.Sprintf("%s/%dB", name, size), func(b *testing.B) {
				l, err := opserver.Listen(opserver.Config{})
				if err != nil {
					b.Fatal(err)
				}
				go s.Serve(l)
				defer s.Shutdown(context.Background())
				nc, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					b.Fatal(err)
				}
				defer nc.Close()
				r := bufio.NewReaderSize(nc, 1<<17)
				b.ReportAllocs()
				for b.Loop() {
					nc.Write(request)
					skipReply(b, r)
				}
			})
		}
	}
}

// skipReply reads past a reply that gives its length first, or says so somewhere.
func skipReply(b *testing.B, r *bufio.Reader) {
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			b.Fatal(err)
		}
		if len(line) == 2 {
			break
		}
		if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			for _, c := range bytes.TrimSpace(v) {
				length = 10*length + int(c-'0')
			}
		}
	}
	if _, err := r.Discard(length); err != nil {
		b.Fatal(err)
	}
}
