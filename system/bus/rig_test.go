package bus_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"toll/system/bus"
	"toll/wire/frame"
)

// A way is one of the ways in which frames travel, for tests that hold over all of them.
type way struct {
	t    testing.TB
	name string
	cfg  bus.Config

	url      string // of a NATS server
	in, out  string // of a proxy
	router   string
	path     string
	listener net.Listener // reserved
	broker   *bus.Broker
	durable  *bus.Durable // of nodes to come

	responders sync.Map // of the way inproc, by node
}

func newWay(t testing.TB, name string, cfg bus.Config) *way {
	t.Helper()
	w := &way{t: t, name: name, cfg: cfg, path: t.TempDir()}
	switch name {
	case "nats":
		b, err := bus.StartBroker(bus.BrokerConfig{Store: filepath.Join(w.path, "js"), Max: cfg.MaxFrame, Token: cfg.Token})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		w.url, w.broker = b.URL(), b
	case "zmtp-proxy":
		p, err := bus.NewProxy(nil, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		in, out := listener(t), listener(t)
		if err := p.Serve(in, out); err != nil {
			t.Fatal(err)
		}
		w.in, w.out = "tcp://"+in.Addr().String(), "tcp://"+out.Addr().String()
	case "routed":
		r := bus.NewRouter(cfg)
		l := listener(t)
		background(t, func() { r.Serve(l) }, func() { shutdown(t, r.Shutdown) })
		w.router = "tcp://" + l.Addr().String()
	}
	return w
}

func listener(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// background runs f until the test ends; stop makes it return.
func background(t testing.TB, f, stop func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
}

func shutdown(t testing.TB, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := f(ctx); err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// inprocess is a responder in this process, whose links end with it as connections do.
type inprocess struct {
	responder *bus.Responder

	mu    sync.Mutex
	links []bus.Link
}

func (p *inprocess) link() bus.Link {
	l := bus.NewInproc(p.responder)
	p.mu.Lock()
	p.links = append(p.links, l)
	p.mu.Unlock()
	return l
}

func (p *inprocess) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.links {
		l.Close()
	}
}

// A served responder is reached by links.
type served struct {
	addr string // as dial takes it
	stop func() // gracefully
}

// serve has r answer at a new address, for node.
func (w *way) serve(node string, r *bus.Responder, quick bool) served {
	w.t.Helper()
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	end := func(f func()) func() {
		var once sync.Once
		stop := func() { once.Do(f) }
		w.t.Cleanup(stop)
		return stop
	}
	switch w.name {
	case "inproc":
		here := &inprocess{responder: r}
		w.responders.Store(node, here)
		return served{node, end(func() {
			w.responders.Delete(node)
			here.stop()
		})}
	case "direct":
		s, l := bus.NewServer(r, quick), listener(w.t)
		var wg sync.WaitGroup
		wg.Go(func() { s.Serve(l) })
		return served{"tcp://" + l.Addr().String(), end(func() { shutdown(w.t, s.Shutdown); wg.Wait() })}
	case "routed":
		s := bus.NewServer(r, quick)
		ctx, cancel := context.WithCancel(context.Background())
		ready, once := make(chan struct{}), sync.Once{}
		var wg sync.WaitGroup
		wg.Go(func() {
			s.Stay(ctx, w.router, nil, []bus.Name{{Name: node, Epoch: 1}}, func() { once.Do(func() { close(ready) }) })
		})
		<-ready
		return served{w.router, end(func() { shutdown(w.t, s.Shutdown); cancel(); wg.Wait() })}
	case "nats":
		n, err := bus.DialNATS(within(w.t, 60*time.Second), bus.NATSConfig{URL: w.url}, w.cfg)
		must(err)
		s, err := n.Serve(within(w.t, 60*time.Second), node, r, quick)
		must(err)
		return served{node, end(func() { shutdown(w.t, s.Shutdown); n.Close() })}
	case "zmtp":
		s, err := bus.NewZMTPServer(r, quick, nil)
		must(err)
		l := listener(w.t)
		must(s.Serve(l))
		return served{"tcp://" + l.Addr().String(), end(func() { shutdown(w.t, s.Shutdown) })}
	case "zmtp-proxy":
		p := w.pubsub()
		must(p.Serve(node, r, quick))
		return served{node, end(func() {
			shutdown(w.t, func(ctx context.Context) error { return p.Withdraw(ctx, node) })
			p.Close()
		})}
	}
	w.t.Fatal(w.name)
	return served{}
}

func (w *way) pubsub() *bus.PubSub {
	w.t.Helper()
	p, err := bus.DialPubSub(within(w.t, 60*time.Second), w.in, w.out, nil, w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { p.Close() })
	return p
}

// dialer returns how another process would connect.
func (w *way) dialer() func(ctx context.Context, addr string) (bus.Link, error) {
	w.t.Helper()
	switch w.name {
	case "inproc":
		return func(_ context.Context, addr string) (bus.Link, error) {
			here, ok := w.responders.Load(addr)
			if !ok {
				return nil, net.ErrClosed
			}
			return here.(*inprocess).link(), nil
		}
	case "nats":
		n, err := bus.DialNATS(within(w.t, 60*time.Second), bus.NATSConfig{URL: w.url}, w.cfg)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { n.Close() })
		return func(ctx context.Context, addr string) (bus.Link, error) { return n.Link(ctx, addr) }
	case "zmtp-proxy":
		p := w.pubsub()
		return func(ctx context.Context, addr string) (bus.Link, error) { return p.Link(ctx, addr, w.cfg) }
	case "zmtp":
		return func(ctx context.Context, addr string) (bus.Link, error) { return bus.DialZMTP(ctx, addr, nil, w.cfg) }
	}
	return func(ctx context.Context, addr string) (bus.Link, error) { return bus.DialDirect(ctx, addr, nil, w.cfg) }
}

// link connects to what is served at addr.
func (w *way) link(addr string) bus.Link {
	w.t.Helper()
	l, err := w.dialer()(within(w.t, 60*time.Second), addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { l.Close() })
	return l
}

func newCall(to, body string) *bus.Call {
	return &bus.Call{Request: frame.Request{To: to, From: "test", Op: "op", Body: []byte(body)}}
}

// reserve returns an address to be served at by serveAt.
func (w *way) reserve() string {
	l := listener(w.t)
	addr := "tcp://" + l.Addr().String()
	w.listener = l
	return addr
}

// serveAt has r answer directly at the address that was reserved last.
func (w *way) serveAt(addr string, r *bus.Responder) served {
	s, l := bus.NewServer(r, false), w.listener
	var once sync.Once
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(l) })
	stop := func() { once.Do(func() { shutdown(w.t, s.Shutdown); wg.Wait() }) }
	w.t.Cleanup(stop)
	return served{addr, stop}
}
