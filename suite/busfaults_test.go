package suite_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toll/contender/faults"
	"toll/system/bus"
	"toll/wire/envelope"
	"toll/wire/frame"
)

func echo(dst []byte, r *bus.Request) ([]byte, error) { return append(dst, r.Body...), nil }

// A target answers in this process, behind a proxy that spoils the connection.
type target struct {
	responder *bus.Responder
	server    *bus.Server
	proxy     *faults.Proxy
	addr      string // of the proxy
	behind    string // of the server
}

// frames finds frames of the bus in a stream.
func frames(data []byte) int {
	if len(data) < 4 {
		return 0
	}
	return int(binary.LittleEndian.Uint32(data)) + 4
}

func newTarget(t *testing.T, h bus.Handler, quick bool, cfg bus.Config) *target {
	t.Helper()
	x := &target{responder: bus.NewResponder(h, cfg)}
	x.server = bus.NewServer(x.responder, quick)
	l := listen(t)
	var wg sync.WaitGroup
	wg.Go(func() { x.server.Serve(l) })
	front := listen(t)
	x.behind = l.Addr().String()
	x.proxy = faults.Start(front, faults.Config{Frame: frames, Seed: 1, Dial: func() (net.Conn, error) { return net.Dial("tcp", x.behind) }}, faults.Faults{})
	x.addr = "tcp://" + front.Addr().String()
	t.Cleanup(func() {
		x.proxy.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		x.server.Shutdown(ctx)
		wg.Wait()
	})
	return x
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (x *target) dial(t *testing.T, cfg bus.Config) *bus.Direct {
	t.Helper()
	d, err := bus.DialDirect(within(t, 60*time.Second), x.addr, nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for ctx := within(t, 60*time.Second); !ok(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it never came to be that %s", what)
		}
	}
}

// ask makes a call whose body is told from all others, and says what was wrong with its reply.
func ask(ctx context.Context, l bus.Link, c *bus.Call, n uint64) error {
	var body [16]byte
	binary.LittleEndian.PutUint64(body[:], n)
	c.Body = body[:]
	if err := l.Call(ctx, c); err != nil {
		return err
	}
	if string(c.Answer) != string(body[:]) {
		return &wrongReply{n, c.Answer}
	}
	return nil
}

type wrongReply struct {
	n   uint64
	got []byte
}

func (w *wrongReply) Error() string { return fmt.Sprintf("call %d got %x", w.n, w.got) }

func codeOf(err error) envelope.Code {
	c, _ := envelope.CodeOf(err)
	return c
}

// Faults 5 and 6: a connection on which one direction is dead, or both without a word, is noticed by heartbeats on both
// sides; calls in flight fail and nothing is left.
func TestADeadDirectionIsNoticed(t *testing.T) {
	t.Parallel()
	cfg := bus.Config{Heartbeat: 50 * time.Millisecond}
	for name, f := range map[string]faults.Faults{
		"up": {Up: faults.Way{Drop: 1}}, "down": {Down: faults.Way{Drop: 1}},
		"half open": {Up: faults.Way{Stall: true}, Down: faults.Way{Stall: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTarget(t, echo, true, cfg)
			d := x.dial(t, cfg)
			if err := ask(within(t, 60*time.Second), d, bus.NewCall("a", "b", "c"), 1); err != nil {
				t.Fatal(err)
			}
			x.proxy.Set(f)
			if err := ask(within(t, 60*time.Second), d, bus.NewCall("a", "b", "c"), 2); codeOf(err) != envelope.Unreachable {
				t.Errorf("a call in flight: %v", err)
			}
			<-d.Done()
			until(t, "the server has let go", func() bool { return x.server.Connections() == 0 })
		})
	}
}

// Fault 7: a handler that is slower than it is asked makes callers hear so before their deadline, in bounded memory, and
// others are answered meanwhile.
func TestASlowHandlerIsOverloadedNotLate(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	slow := bus.NewResponder(func(dst []byte, r *bus.Request) ([]byte, error) {
		if string(r.To) == "slow" {
			<-gate
		}
		return append(dst, r.Body...), nil
	}, bus.Config{InFlight: 16})
	s, err := bus.NewZMTPServer(slow, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	if err := s.Serve(l); err != nil {
		t.Fatal(err)
	}
	fast, err := bus.NewZMTPServer(bus.NewResponder(echo, bus.Config{}), true, nil)
	if err != nil {
		t.Fatal(err)
	}
	lf := listen(t)
	if err := fast.Serve(lf); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fast.Shutdown(context.Background()) })
	link := func(l net.Listener) *bus.ZMTP {
		z, err := bus.DialZMTP(within(t, 60*time.Second), "tcp://"+l.Addr().String(), nil, bus.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { z.Close() })
		return z
	}
	z, other := link(l), link(lf)
	var wg sync.WaitGroup
	var full, answered atomic.Int64
	for i := range 200 {
		wg.Go(func() {
			err := ask(within(t, 60*time.Second), z, bus.NewCall("slow", "b", "c"), uint64(i))
			switch codeOf(err) {
			case envelope.MailboxFull:
				full.Add(1)
			case 0:
				answered.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	until(t, "184 callers were told", func() bool { return full.Load() == 184 })
	for i := range 100 {
		if err := ask(within(t, 60*time.Second), other, bus.NewCall("fast", "b", "c"), uint64(i)); err != nil {
			t.Error(err)
		}
	}
	close(gate)
	wg.Wait()
	if answered.Load() != 16 {
		t.Errorf("%d answered", answered.Load())
	}
	s.Shutdown(within(t, 60*time.Second))
}

// Fault 8: a peer that does not read its replies loses its connection when a write has waited long enough; what waits for it
// is bounded.
func TestASlowReaderLosesItsConnection(t *testing.T) {
	t.Parallel()
	cfg := bus.Config{Write: 200 * time.Millisecond, Heartbeat: -1}
	x := newTarget(t, func(dst []byte, r *bus.Request) ([]byte, error) { return append(dst, make([]byte, 1<<19)...), nil }, true, cfg)
	nc, err := net.Dial("tcp", x.behind)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	q := frame.Request{Header: frame.Header{Kind: frame.Ask}, To: "a", Body: []byte("x")}
	var stream []byte
	for i := range uint32(200) { // 100 MiB of replies
		stream = q.Append(stream, i+1)
	}
	if _, err := nc.Write(stream); err != nil {
		t.Fatal(err)
	}
	d := x.dial(t, cfg)
	until(t, "the connection is closed", func() bool { return x.server.Connections() == 1 })
	if err := d.Call(within(t, 60*time.Second), bus.NewCall("a", "b", "c")); err != nil {
		t.Errorf("another connection: %v", err)
	}
}

// Fault 9: what is replayed on the way runs once, with a key because its answer is known, without one because its number is.
func TestReplayedFramesRunOnce(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		var runs atomic.Int64
		x := newTarget(t, func(dst []byte, r *bus.Request) ([]byte, error) {
			runs.Add(1)
			return append(dst, r.Body...), nil
		}, quick, bus.Config{})
		d := x.dial(t, bus.Config{})
		x.proxy.Set(faults.Faults{Up: faults.Way{Replay: 1}, Down: faults.Way{Replay: .5}})
		c := bus.NewCall("a", "b", "c")
		for i := range uint64(200) {
			if i >= 100 {
				c.Key = frame.Key{Sender: 1, Number: i}
			}
			if err := ask(within(t, 60*time.Second), d, c, i); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "every replay was flagged", func() bool { return x.responder.Counts().Replayed >= 200 })
		if runs.Load() != 200 {
			t.Errorf("%d runs of 200 requests, each sent twice", runs.Load())
		}
		// A keyed request that comes again on another connection is known.
		x.proxy.Set(faults.Faults{})
		again := x.dial(t, bus.Config{})
		if err := ask(within(t, 60*time.Second), again, c, 199); err != nil || runs.Load() != 200 {
			t.Errorf("%v, %d runs", err, runs.Load())
		}
	}
}

// Faults 11 and 13: what a frame declares is not set aside; bytes that are no frames end their connection, half a frame does
// when it is not completed, and nobody else notices.
func TestMalformedBytesCostTheirConnection(t *testing.T) {
	cfg := bus.Config{Heartbeat: 300 * time.Millisecond}
	x := newTarget(t, echo, true, cfg)
	d := x.dial(t, cfg)
	q := frame.Request{Header: frame.Header{Kind: frame.Ask}, To: "a", Body: []byte("x")}
	good := q.Append(nil, 1)
	edit := func(at int, b ...byte) string {
		out := append([]byte(nil), good...)
		copy(out[at:], b)
		return string(out)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, bytes := range []string{
		"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01", strings.Repeat("\x00", 100),
		"\xff\xff\xff\xff", "\x00\x00\x00\x40", "\x01\x00\x10\x00" + "\x01\x00\x00\x00",
		edit(0, 0, 16, 16, 0), edit(8, 9), edit(9, 7), edit(10, 0xff), string(good[:len(good)-1]), "\x0b\x00\x00\x00", string(good[:3]), "",
	} {
		nc, err := net.Dial("tcp", x.behind)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(nc, bytes); err != nil {
			t.Fatal(err)
		}
		nc.SetReadDeadline(time.Now().Add(60 * time.Second))
		for err == nil {
			_, err = nc.Read(make([]byte, 1000))
		}
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Errorf("%.60q: still open", bytes)
		}
		nc.Close()
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if err := ask(within(t, 60*time.Second), d, bus.NewCall("a", "b", "c"), 1); err != nil {
		t.Error(err)
	}
}

// Fault 14: however frames are split on their way, the results are the same.
func TestOneByteAtATime(t *testing.T) {
	t.Parallel()
	x := newTarget(t, echo, false, bus.Config{})
	x.proxy.Set(faults.Faults{Up: faults.Way{Split: 1}, Down: faults.Way{Split: 1}})
	d := x.dial(t, bus.Config{})
	var wg sync.WaitGroup
	for i := range uint64(8) {
		wg.Go(func() {
			c := bus.NewCall("a", "b", "c")
			for j := range uint64(30) {
				if err := ask(within(t, 60*time.Second), d, c, i<<32|j); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// Fault 15: connections that come and go under load leave no goroutine, descriptor or slot.
func TestConnectionsComeAndGo(t *testing.T) {
	many := 500
	if os.Getenv("TOLL_LONG") != "" {
		many = 10_000
	}
	path := filepath.Join(t.TempDir(), "s")
	r := bus.NewResponder(echo, bus.Config{})
	s := bus.NewServer(r, true)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { s.Serve(l) })
	dial := func() *bus.Direct {
		d, err := bus.DialDirect(within(t, 60*time.Second), "unix:"+path, nil, bus.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	load := dial()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		c := bus.NewCall("a", "b", "c")
		for i := uint64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := ask(within(t, 60*time.Second), load, c, i); err != nil {
				t.Error(err)
				return
			}
		}
	})
	dial().Close()
	goroutines, files := runtime.NumGoroutine(), descriptors()
	for range many / 8 {
		var batch sync.WaitGroup
		for range 8 {
			batch.Go(func() {
				d := dial()
				if err := ask(within(t, 60*time.Second), d, bus.NewCall("a", "b", "c"), 7); err != nil {
					t.Error(err)
				}
				d.Close()
			})
		}
		batch.Wait()
	}
	until(t, "the server has let go", func() bool { return s.Connections() == 1 })
	until(t, "goroutines and descriptors are as before", func() bool {
		return runtime.NumGoroutine() <= goroutines+2 && descriptors() <= files+2
	})
	close(stop)
	wg.Wait()
	load.Close()
	s.Shutdown(within(t, 60*time.Second))
	served.Wait()
}

// descriptors counts open files, where the system says so.
func descriptors() int {
	files, _ := os.ReadDir("/proc/self/fd")
	return len(files)
}

// Fault 19: over stalls, resets, new connections and restarts of the process that answers, no call ever gets another's reply.
// TOLL_LONG asks for ten million calls, or for as many as it says.
func TestNoReplyIsEverAnothers(t *testing.T) {
	t.Parallel()
	calls := int64(30_000)
	if long := os.Getenv("TOLL_LONG"); long != "" {
		calls = 10_000_000
		if n, err := strconv.ParseInt(long, 10, 64); err == nil && n > 1 {
			calls = n
		}
	}
	w := newWeather(t)
	var made, failed, wrong atomic.Int64
	calm := within(t, 60*time.Second) // a quick machine has made its calls before the first stall: then it goes on
	more := func() bool { return made.Load() < calls || failed.Load() == 0 && calm.Err() == nil }
	stop := make(chan struct{})
	var wg, chaos sync.WaitGroup
	chaos.Go(func() { w.blow(stop) })
	for crew := range uint64(4) { // callers that share a connection, as those of a process do
		link := &shared{addr: w.addr}
		for v := range uint64(32) {
			wg.Go(func() {
				c := bus.NewCall("a", "b", "c")
				for n := uint64(0); more(); n++ {
					ctx, cancel := context.WithTimeout(context.Background(), 15*time.Millisecond)
					err := link.ask(ctx, c, crew<<56|v<<48|n)
					cancel()
					made.Add(1)
					if _, bad := err.(*wrongReply); bad {
						wrong.Add(1)
						t.Error(err)
					} else if err != nil {
						failed.Add(1)
					}
				}
			})
		}
		t.Cleanup(link.close)
	}
	wg.Wait()
	close(stop)
	chaos.Wait()
	if wrong.Load() != 0 || failed.Load() == 0 {
		t.Errorf("%d of %d replies were wrong, %d calls failed", wrong.Load(), made.Load(), failed.Load())
	}
	t.Logf("%d calls, %d failed, %d wrong; %d stalls, %d resets, %d restarts; %d expired and not run, %d replayed and not run",
		made.Load(), failed.Load(), wrong.Load(), w.stalls, w.resets, w.restarts, w.expired, w.replayed)
}

// A shared link is one that its callers make anew when it is dead.
type shared struct {
	addr string
	mu   sync.Mutex
	d    *bus.Direct // guarded by mu
}

func (s *shared) ask(ctx context.Context, c *bus.Call, n uint64) error {
	s.mu.Lock()
	for s.d == nil || closed(s.d) {
		dial, cancel := context.WithTimeout(context.Background(), time.Second)
		s.d, _ = bus.DialDirect(dial, s.addr, nil, bus.Config{Heartbeat: 200 * time.Millisecond})
		cancel()
	}
	d := s.d
	s.mu.Unlock()
	return ask(ctx, d, c, n)
}

func (s *shared) close() {
	if s.d != nil {
		s.d.Close()
	}
}

// A weather is a process that answers behind a proxy, and what befalls both. The counts are owned by blow.
type weather struct {
	t      *testing.T
	proxy  *faults.Proxy
	addr   string                 // of the proxy
	behind atomic.Pointer[string] // of the server
	end    func()                 // of the server

	stalls, resets, restarts int
	expired, replayed        int64
}

func newWeather(t *testing.T) *weather {
	w := &weather{t: t}
	w.start()
	front := listen(t)
	w.addr = "tcp://" + front.Addr().String()
	w.proxy = faults.Start(front, faults.Config{Frame: frames, Seed: 1, Dial: func() (net.Conn, error) { return net.Dial("tcp", *w.behind.Load()) }}, faults.Faults{})
	t.Cleanup(func() {
		w.proxy.Close()
		w.end()
	})
	return w
}

// start starts a server that knows nothing of those before it.
func (w *weather) start() {
	r := bus.NewResponder(echo, bus.Config{Heartbeat: 200 * time.Millisecond})
	s := bus.NewServer(r, true)
	l := listen(w.t)
	addr := l.Addr().String()
	w.behind.Store(&addr)
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(l) })
	w.end = func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		s.Shutdown(now)
		wg.Wait()
		w.expired += r.Counts().Expired
		w.replayed += r.Counts().Replayed
	}
}

// blow changes the weather until stop is closed.
func (w *weather) blow(stop chan struct{}) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-stop:
			w.proxy.Set(faults.Faults{})
			return
		case <-tick.C:
		}
		switch i % 16 {
		case 4:
			w.stalls++
			w.proxy.Set(faults.Faults{Down: faults.Way{Stall: true}})
		case 6:
			w.proxy.Set(faults.Faults{Up: faults.Way{Replay: .05}, Down: faults.Way{Replay: .2}})
		case 8:
			w.proxy.Set(faults.Faults{Up: faults.Way{Drop: .01}, Down: faults.Way{Delay: time.Millisecond}})
		case 9:
			w.proxy.Set(faults.Faults{})
			switch i / 16 % 4 {
			case 1:
				w.resets++
				w.proxy.Reset()
			case 3:
				w.restarts++
				w.end()
				w.start()
			}
		}
	}
}

func closed(d *bus.Direct) bool {
	select {
	case <-d.Done():
		d.Close()
		return true
	default:
		return false
	}
}

// Fault 4: a router that is killed fails what is in flight, and callers and workers find the one that takes its place; no
// request without a key runs twice.
func TestARouterIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	runs := make(map[uint64]int)
	var mu sync.Mutex
	worker := bus.NewServer(bus.NewResponder(func(dst []byte, r *bus.Request) ([]byte, error) {
		mu.Lock()
		runs[binary.LittleEndian.Uint64(r.Body)]++
		mu.Unlock()
		return append(dst, r.Body...), nil
	}, bus.Config{}), true)
	stay, leave := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { worker.Stay(stay, "unix:"+path, nil, []bus.Name{{Name: "target", Epoch: 1}}, nil) })
	var asked, failed atomic.Int64
	stop := make(chan struct{})
	wg.Go(func() {
		var d *bus.Direct
		for n := uint64(1); ; n++ {
			select {
			case <-stop:
				if d != nil {
					d.Close()
				}
				return
			default:
			}
			if d == nil || closed(d) {
				d, _ = bus.DialDirect(within(t, time.Second), "unix:"+path, nil, bus.Config{})
			}
			if d == nil {
				continue
			}
			if err := ask(within(t, 60*time.Second), d, bus.NewCall("target", "b", "c"), n); err != nil {
				failed.Add(1)
			} else {
				asked.Add(1)
			}
		}
	})
	for range 3 {
		r := bus.NewRouter(bus.Config{})
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		var served sync.WaitGroup
		served.Go(func() { r.Serve(l) })
		from := asked.Load()
		until(t, "asks are answered again", func() bool { return asked.Load() > from+100 })
		dead, cancel := context.WithCancel(context.Background())
		cancel()
		r.Shutdown(dead)
		served.Wait()
	}
	close(stop)
	leave()
	worker.Shutdown(within(t, 60*time.Second))
	wg.Wait()
	for n, times := range runs {
		if times != 1 {
			t.Errorf("request %d ran %d times", n, times)
		}
	}
}
