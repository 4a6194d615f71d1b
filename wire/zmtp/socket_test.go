package zmtp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"toll/wire/zmtp"
)

func socket(t testing.TB, cfg zmtp.Config) *zmtp.Socket {
	t.Helper()
	s, err := zmtp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func listen(t testing.TB, s *zmtp.Socket) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l); err != nil {
		t.Fatal(err)
	}
	return "tcp://" + l.Addr().String()
}

// pair makes two sockets, the first of which listens, that can speak with each other.
func pair(t testing.TB, server, client zmtp.Config) (s, c *zmtp.Socket) {
	t.Helper()
	s, c = socket(t, server), socket(t, client)
	connect(t, c, listen(t, s))
	wait(t, s)
	wait(t, c)
	return s, c
}

func connect(t testing.TB, s *zmtp.Socket, addr string) {
	t.Helper()
	if err := s.Connect(addr); err != nil {
		t.Fatal(err)
	}
}

func wait(t testing.TB, s *zmtp.Socket) {
	t.Helper()
	if err := s.Wait(limit(t), 1); err != nil {
		t.Fatal(err)
	}
}

func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func recv(t testing.TB, s *zmtp.Socket) zmtp.Message {
	t.Helper()
	m, err := s.Recv(limit(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func send(t testing.TB, s *zmtp.Socket, frames ...string) {
	t.Helper()
	m := make(zmtp.Message, len(frames))
	for i, f := range frames {
		m[i] = []byte(f)
	}
	if err := s.Send(limit(t), m...); err != nil {
		t.Fatal(err)
	}
}

func text(m zmtp.Message) string { return string(bytes.Join(m, []byte("|"))) }

func TestARouterAnswersItsDealers(t *testing.T) {
	t.Parallel()
	router := socket(t, zmtp.Config{Type: zmtp.Router})
	addr := listen(t, router)
	var wg sync.WaitGroup
	for i := range 4 {
		dealer := socket(t, zmtp.Config{Type: zmtp.Dealer})
		connect(t, dealer, addr)
		wg.Go(func() {
			for n := range 100 {
				q := fmt.Sprintf("%d.%d", i, n)
				if err := dealer.Send(t.Context(), []byte(q), nil, make([]byte, n*10)); err != nil {
					t.Error(err)
					return
				}
				m, err := dealer.Recv(t.Context())
				if err != nil || len(m) != 2 || string(m[0]) != "re "+q || len(m[1]) != n*10 {
					t.Errorf("%s: %d frames, %v", q, len(m), err)
					return
				}
			}
		})
	}
	for range 400 {
		m := recv(t, router)
		if len(m) != 4 || len(m[2]) != 0 {
			t.Fatalf("%q", m)
		}
		if err := router.Send(t.Context(), m[0], append([]byte("re "), m[1]...), m[3]); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

func TestAnIdentityIsWhoConnectedLast(t *testing.T) {
	t.Parallel()
	router := socket(t, zmtp.Config{Type: zmtp.Router})
	addr := listen(t, router)
	for i := range 3 {
		dealer := socket(t, zmtp.Config{Type: zmtp.Dealer, Identity: "me"})
		connect(t, dealer, addr)
		send(t, dealer, fmt.Sprint(i))
		if got := text(recv(t, router)); got != fmt.Sprintf("me|%d", i) {
			t.Fatal(got)
		}
		send(t, router, "me", "yes")
		if got := text(recv(t, dealer)); got != "yes" {
			t.Fatal(got)
		}
		dealer.Close()
	}
	for {
		err := router.Send(limit(t), []byte("me"), []byte("gone"))
		if errors.Is(err, zmtp.ErrUnroutable) {
			return
		}
		runtime.Gosched()
	}
}

func TestSubscribersGetWhatTheyAskedFor(t *testing.T) {
	t.Parallel()
	pub, sub := pair(t, zmtp.Config{Type: zmtp.Pub}, zmtp.Config{Type: zmtp.Sub})
	for i := range 20 { // more than are compared one by one
		if err := sub.Subscribe(fmt.Sprintf("a%d.", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.WaitSubscribed(limit(t), "a19."); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"b", "a3.x", "a3", "a19.", "", "a1"} {
		send(t, pub, topic, "body")
	}
	send(t, pub, "a0.end")
	var got []string
	for len(got) == 0 || got[len(got)-1] != "a0.end" {
		got = append(got, text(recv(t, sub)))
	}
	if want := "a3.x|body a19.|body a0.end"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := sub.Unsubscribe("a3."); err != nil {
		t.Fatal(err)
	}
	if err := sub.Subscribe("c"); err != nil {
		t.Fatal(err)
	}
	if err := pub.WaitSubscribed(limit(t), "c"); err != nil {
		t.Fatal(err)
	}
	send(t, pub, "a3.gone")
	send(t, pub, "c")
	if got := text(recv(t, sub)); got != "c" {
		t.Errorf("got %q", got)
	}
}

// The published topology: publishers and subscribers connect to a coordinator's XSUB and XPUB.
func TestTheProxyJoinsPublishersAndSubscribers(t *testing.T) {
	t.Parallel()
	front, back, err := zmtp.NewProxy(zmtp.XSub, zmtp.XPub, zmtp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { front.Close(); back.Close() })
	in, out := listen(t, front), listen(t, back)
	pub, sub := socket(t, zmtp.Config{Type: zmtp.Pub}), socket(t, zmtp.Config{Type: zmtp.Sub})
	if err := sub.Subscribe("x"); err != nil {
		t.Fatal(err)
	}
	connect(t, pub, in)
	connect(t, sub, out)
	if err := pub.WaitSubscribed(limit(t), "x"); err != nil {
		t.Fatal(err)
	}
	send(t, pub, "y", "1")
	send(t, pub, "x", "2")
	if got := text(recv(t, sub)); got != "x|2" {
		t.Errorf("got %q", got)
	}
	late := socket(t, zmtp.Config{Type: zmtp.Pub})
	connect(t, late, in)
	if err := late.WaitSubscribed(limit(t), "x"); err != nil {
		t.Fatal(err)
	}
	send(t, late, "x", "3")
	if got := text(recv(t, sub)); got != "x|3" {
		t.Errorf("got %q", got)
	}
	sub.Close()
	other := socket(t, zmtp.Config{Type: zmtp.Sub})
	if err := other.Subscribe("z"); err != nil {
		t.Fatal(err)
	}
	connect(t, other, out)
	if err := pub.WaitSubscribed(limit(t), "z"); err != nil {
		t.Fatal(err)
	}
}

func TestASocketConnectsAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	dealer := socket(t, zmtp.Config{Type: zmtp.Dealer, RetryMin: time.Millisecond, RetryMax: 5 * time.Millisecond})
	connect(t, dealer, "unix:"+path)
	for i := range 3 {
		router := socket(t, zmtp.Config{Type: zmtp.Router})
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if err := router.Serve(l); err != nil {
			t.Fatal(err)
		}
		wait(t, router)
		for sent := false; !sent; { // the first may go to the connection that is just being lost
			send(t, dealer, fmt.Sprint(i))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, err := router.Recv(ctx)
			cancel()
			sent = err == nil
		}
		router.Close()
	}
}

func TestPlainAsksForThePassword(t *testing.T) {
	t.Parallel()
	accept := func(user, password string) error {
		if user != "u" || password != "p" {
			return errors.New("not known here")
		}
		return nil
	}
	server := zmtp.Config{Type: zmtp.Router, Plain: &zmtp.Plain{Accept: accept}}
	router, dealer := pair(t, server, zmtp.Config{Type: zmtp.Dealer, Plain: &zmtp.Plain{User: "u", Password: "p"}})
	send(t, dealer, "hello")
	if got := recv(t, router); len(got) != 2 || string(got[1]) != "hello" {
		t.Errorf("got %q", got)
	}
	for want, cfg := range map[string]zmtp.Config{
		`waiting for WELCOME: EOF|zmtp: refused by the peer: "not known here"`: {Type: zmtp.Dealer, Plain: &zmtp.Plain{User: "u", Password: "q"}},
		`zmtp: protocol violated: the peer's mechanism is "PLAIN", ours NULL`:  {Type: zmtp.Dealer},
	} {
		failed := make(chan error, 100)
		cfg.Failed = func(_ string, err error) { failed <- err }
		other := socket(t, cfg)
		connect(t, other, listen(t, socket(t, server)))
		if err := <-failed; !strings.Contains(want, err.Error()) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestTypesThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 100)
	cfg := zmtp.Config{Type: zmtp.Router, Failed: func(_ string, err error) { failed <- err }}
	router := socket(t, cfg)
	sub := socket(t, zmtp.Config{Type: zmtp.Sub})
	connect(t, sub, listen(t, router))
	if err := <-failed; err.Error() != `zmtp: protocol violated: a ROUTER socket can't be connected with a "SUB" socket` {
		t.Error(err)
	}
	for _, cfg := range []zmtp.Config{{}, {Type: "REQ"}, {Type: zmtp.Dealer, Identity: "\x00"}, {Type: zmtp.Dealer, Identity: strings.Repeat("x", 256)}} {
		if s, err := zmtp.New(cfg); err == nil {
			s.Close()
			t.Errorf("%+v was taken", cfg)
		}
	}
}

func TestWhatIsTooLongIsNotSent(t *testing.T) {
	t.Parallel()
	dealer := socket(t, zmtp.Config{Type: zmtp.Dealer, MaxFrame: 10, MaxMessage: 15, MaxFrames: 3})
	for want, frames := range map[string]zmtp.Message{
		"zmtp: too long: frame of 11 bytes, at most 10":     {make([]byte, 11)},
		"zmtp: too long: message of 16 bytes, at most 15":   {make([]byte, 8), make([]byte, 8)},
		"zmtp: too long: message of 4 frames, at most 3":    {nil, nil, nil, nil},
		"zmtp: protocol violated: a message without frames": {},
	} {
		if err := dealer.Send(t.Context(), frames...); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := dealer.Send(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("without a peer: %v", err)
	}
}

// Peers that break the protocol lose their connection; the others do not notice.
func TestHostilePeersCostOnlyTheirConnection(t *testing.T) {
	router := socket(t, zmtp.Config{Type: zmtp.Router, HandshakeTimeout: 500 * time.Millisecond, Heartbeat: 300 * time.Millisecond})
	addr := listen(t, router)
	dealer := socket(t, zmtp.Config{Type: zmtp.Dealer})
	connect(t, dealer, addr)
	wait(t, dealer)
	greeting := "\xff\x00\x00\x00\x00\x00\x00\x00\x00\x7f\x03\x01NULL" + strings.Repeat("\x00", 48)
	ready := "\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
	hello := greeting + ready
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, bytes := range []string{
		"GET / HTTP/1.1\r\n\r\n",
		"\xff\x00",
		greeting[:10] + "\x01" + greeting[11:],
		greeting + "\x00\x03abc",
		greeting + "\x04\x05\x05HELLO",
		greeting + "\x06\x40\x00\x00\x00\x00\x00\x00\x00",
		hello + "\x02\x40\x00\x00\x00\x00\x00\x00\x00",
		hello + "\x02\x00\x00\x01\x00\x00\x00\x00\x00",
		hello + "\x02\x00\x00\x00\x00\xff\xff\xff\xff",
		hello + "\x02\x00\x00\x00\x00\x00\x10\x00\x01",
		hello + "\x09\x00",
		hello + "\x01\x00\x04\x05\x04PING",
		hello + "\x04\x05\x04PING",
		hello + "\x04\x0a\x09SUBSCRIBE",
		hello + strings.Repeat("\x01\x00", 65),
		hello + "\x00\x09half",
		hello,
	} {
		nc, err := net.Dial("tcp", strings.TrimPrefix(addr, "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write([]byte(bytes)); err != nil {
			t.Fatal(err)
		}
		nc.SetReadDeadline(time.Now().Add(60 * time.Second))
		for err == nil {
			_, err = nc.Read(make([]byte, 1000))
		}
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Errorf("%.90q: still open", bytes)
		}
		nc.Close()
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("heap grew by %d bytes", grown)
	}
	send(t, dealer, "still here")
	if m := recv(t, router); string(m[len(m)-1]) != "still here" {
		t.Errorf("got %q", m)
	}
}

// A publisher never waits for a subscriber: what it can't take is dropped and counted.
func TestASlowSubscriberLosesMessages(t *testing.T) {
	t.Parallel()
	pub := socket(t, zmtp.Config{Type: zmtp.Pub, Queued: 1 << 16})
	sub := socket(t, zmtp.Config{Type: zmtp.Sub, Inbox: 1})
	if err := sub.Subscribe(""); err != nil {
		t.Fatal(err)
	}
	connect(t, sub, listen(t, pub))
	if err := pub.WaitSubscribed(limit(t), ""); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 1<<14)
	sent := 0
	for pub.Dropped() == 0 && sent < 100_000 {
		if err := pub.Send(t.Context(), body); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	if pub.Dropped() == 0 {
		t.Errorf("%d messages of 16 KiB were sent and none dropped", sent)
	}
}

func TestHandlersAreContained(t *testing.T) {
	t.Parallel()
	closed := make(chan error, 10)
	router := socket(t, zmtp.Config{Type: zmtp.Router,
		Handle: func(p *zmtp.Peer, m zmtp.Message) {
			if string(m[0]) == "panic" {
				panic("on purpose")
			}
			p.Queue(m...)
		},
		Closed: func(_ *zmtp.Peer, err error) { closed <- err },
	})
	dealer := socket(t, zmtp.Config{Type: zmtp.Dealer, RetryMin: time.Millisecond})
	connect(t, dealer, listen(t, router))
	send(t, dealer, "a", "b")
	if got := text(recv(t, dealer)); got != "a|b" {
		t.Errorf("got %q", got)
	}
	send(t, dealer, "panic")
	if err := <-closed; err.Error() != "zmtp: the message's handler panicked: on purpose" {
		t.Error(err)
	}
}

// Nothing of a socket runs on when it is closed, whatever it was doing.
func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 50 {
		router, err := zmtp.New(zmtp.Config{Type: zmtp.Router})
		if err != nil {
			t.Fatal(err)
		}
		addr := listen(t, router)
		for range 4 {
			dealer, err := zmtp.New(zmtp.Config{Type: zmtp.Dealer})
			if err != nil {
				t.Fatal(err)
			}
			connect(t, dealer, addr)
			send(t, dealer, "x")
			recv(t, router)
			if err := dealer.Close(); err != nil {
				t.Fatal(err)
			}
		}
		router.Close()
		if err := router.Send(t.Context(), []byte("x"), nil); !errors.Is(err, zmtp.ErrClosed) {
			t.Errorf("sending on a closed socket: %v", err)
		}
	}
	for deadline := time.Now().Add(60 * time.Second); runtime.NumGoroutine() > before+2 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before+2 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}
