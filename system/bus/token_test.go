package bus_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toll/system/bus"
	"toll/wire/frame"
)

const secret = "correct horse battery staple"

// Where a token is wanted, who has it gets through, over every way, and a stranger is told why not and reaches no handler.
func TestAStrangerIsRefused(t *testing.T) {
	over(t, bus.Config{Token: secret}, func(t *testing.T, w *way) {
		if w.name == "inproc" {
			return // nobody comes from outside
		}
		var runs atomic.Int64
		s := w.serve("target", bus.NewResponder(func(dst []byte, r *bus.Request) ([]byte, error) {
			runs.Add(1)
			return append(dst, r.Body...), nil
		}, w.cfg), true)
		c := newCall("target", "hello")
		if err := w.link(s.addr).Call(within(t, 60*time.Second), c); err != nil || string(c.Answer) != "hello" {
			t.Fatalf("with the token: %q, %v", c.Answer, err)
		}
		for _, token := range []string{"", secret[:len(secret)-1], secret + "x", "x" + secret[1:]} {
			if err := w.knock(s.addr, token); err == nil {
				t.Errorf("token %q: it was let in", token)
			} else if text := err.Error(); !strings.Contains(text, "refused") && !strings.Contains(text, "Authorization") && !strings.Contains(text, "mechanism") {
				t.Errorf("token %q: %v", token, err)
			}
		}
		if runs.Load() != 1 {
			t.Errorf("the handler ran %d times", runs.Load())
		}
	})
}

// knock connects with a token and asks.
func (w *way) knock(addr, token string) error {
	ctx := within(w.t, 60*time.Second)
	stranger := bus.Config{Token: token}
	var l bus.Link
	var err error
	switch w.name {
	case "nats":
		var n *bus.NATS
		if n, err = bus.DialNATS(ctx, bus.NATSConfig{URL: w.url}, stranger); err == nil {
			defer n.Close()
			l, err = n.Link(ctx, addr)
		}
	case "zmtp":
		l, err = bus.DialZMTP(ctx, addr, nil, stranger)
	case "zmtp-proxy":
		var p *bus.PubSub
		if p, err = bus.DialPubSub(ctx, w.in, w.out, nil, stranger); err == nil {
			defer p.Close()
			l, err = p.Link(ctx, addr, stranger)
		}
	default:
		l, err = bus.DialDirect(ctx, addr, nil, stranger)
	}
	if err != nil {
		return err
	}
	defer l.Close()
	return l.Call(ctx, newCall("target", "let me in"))
}

// A stranger can't attach to a router, nor take a name there that another has.
func TestAStrangerCantAttach(t *testing.T) {
	t.Parallel()
	w := newWay(t, "routed", bus.Config{Token: secret})
	s := w.serve("target", bus.NewResponder(echo, w.cfg), true)
	for _, token := range []string{"", "guess"} {
		stranger := bus.NewServer(bus.NewResponder(func(dst []byte, _ *bus.Request) ([]byte, error) { return append(dst, "mine now"...), nil }, bus.Config{Token: token}), true)
		err := stranger.Attach(within(t, 60*time.Second), w.router, nil, []bus.Name{{Name: "target", Epoch: 1 << 40}}, nil)
		if err == nil || !strings.Contains(err.Error(), "refused: this bus wants a token, and the one given is missing or wrong") {
			t.Errorf("token %q: %v", token, err)
		}
		shutdown(t, stranger.Shutdown)
	}
	c := newCall("target", "hello")
	if err := w.link(s.addr).Call(within(t, 60*time.Second), c); err != nil || string(c.Answer) != "hello" {
		t.Errorf("%q, %v", c.Answer, err)
	}
}

// What comes before the token is bounded, in bytes and in time.
func TestWhatAStrangerMaySend(t *testing.T) {
	t.Parallel()
	r := bus.NewResponder(echo, bus.Config{Token: secret, Write: 300 * time.Millisecond})
	s, l := bus.NewServer(r, true), listener(t)
	background(t, func() { s.Serve(l) }, func() { shutdown(t, s.Shutdown) })
	long := frame.Request{Header: frame.Header{Kind: frame.Ask}, Op: "_bus.token", Body: make([]byte, 2000)}
	other := frame.Request{Header: frame.Header{Kind: frame.Ask}, To: "target", Op: "_bus.token", Body: []byte(secret)}
	for name, bytes := range map[string]string{
		"silence": "", "half": "\x10\x00", "garbage": "GET / HTTP/1.1\r\n\r\n", "long": string(long.Append(nil, 1)), "to an agent": string(other.Append(nil, 1)),
	} {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(nc, bytes); err != nil {
			t.Fatal(err)
		}
		nc.SetReadDeadline(time.Now().Add(60 * time.Second))
		for err == nil {
			_, err = nc.Read(make([]byte, 4096))
		}
		if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			t.Errorf("%s: still open", name)
		}
		nc.Close()
	}
	if n := r.Counts().Answered; n != 0 {
		t.Errorf("%d requests were answered", n)
	}
	d, err := bus.DialDirect(within(t, 60*time.Second), "tcp://"+l.Addr().String(), nil, bus.Config{Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Call(context.Background(), newCall("target", "x")); err != nil {
		t.Error(err)
	}
}
