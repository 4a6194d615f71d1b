package system

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"toll/system/bus"
	"toll/system/opserver"
)

// The carriers of the bus, as the contenders of its benchmark are named: over a connection of our own without and with an
// agent's mailbox behind it, through a router, through NATS, over ZeroMQ's protocol directly and through a proxy; beside
// them NATS as its own client has it, and a socket with nothing on it.
const (
	Inproc        = "inproc"
	Direct        = "direct"
	DirectMailbox = "direct-mailbox"
	Routed        = "routed"
	NATS          = "nats"
	ZMTP          = "zmtp"
	ZMTPProxy     = "zmtp-proxy"
	NATSGo        = "nats-go"
	SocketFloor   = "floor"
)

// Carriers returns them.
func Carriers() []string {
	return []string{Inproc, Direct, DirectMailbox, Routed, NATS, ZMTP, ZMTPProxy, NATSGo, SocketFloor}
}

// BusProcesses returns the arguments behind "toll serve" of the processes that a caller needs, in the order in which they are
// started; a later one is told where the earlier is.
func BusProcesses(carrier string) [][]string {
	worker := []string{"bus-worker", "--carrier", carrier}
	switch {
	case carrier == SocketFloor:
		return [][]string{{"echo"}}
	case carrier == Inproc:
		return nil
	case brokered(carrier):
		return [][]string{{"bus-broker", "--carrier", carrier}, worker}
	}
	return [][]string{worker}
}

// busBase is the port from which on a host of the bus benchmark has its carriers, two ports each.
const busBase = 7410

// BusHost parses host:port, host or nothing: where a host of the bus benchmark listens or is reached.
func BusHost(addr string) (host string, base int, err error) {
	if addr == "" {
		return "127.0.0.1", busBase, nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return strings.Trim(addr, "[]"), busBase, nil
	}
	base, err = strconv.Atoi(port)
	if err != nil || base < 1 || base > 65535-2*len(Carriers()) {
		return "", 0, fmt.Errorf("port %q: want 1 to %d, with %d free ones behind it", port, 65535-2*len(Carriers()), 2*len(Carriers()))
	}
	return host, base, nil
}

// BusAddr is where such a host has a carrier.
func BusAddr(host string, base int, carrier string) string {
	return net.JoinHostPort(host, strconv.Itoa(base+2*slices.Index(Carriers(), carrier)))
}

// brokered reports whether a third process stands between caller and worker.
func brokered(carrier string) bool {
	return carrier == Routed || carrier == NATS || carrier == NATSGo || carrier == ZMTPProxy
}

// busNode is the one node, and agent, that a worker of the benchmark serves.
const busNode = "target"

// busConfig is that of every process of the benchmark. Its heartbeats are rare: a machine that is measured is busy.
func busConfig(token string) bus.Config { return bus.Config{Heartbeat: 5 * time.Second, Token: token} }

// LongestToken bounds a bus' token, bytes.
const LongestToken = bus.LongestToken

// echo is the operation of the bus benchmark: the body comes back.
func echo(dst []byte, r *bus.Request) ([]byte, error) { return append(dst, r.Body...), nil }

// A service is what a bus process does until it is shut down.
type service struct {
	shutdown func(ctx context.Context) error
	once     sync.Once
	over     chan struct{}
}

func newService(shutdown func(ctx context.Context) error) *service {
	return &service{shutdown: shutdown, over: make(chan struct{})}
}

// Serve waits: what a bus process does, it does already.
func (s *service) Serve(net.Listener) error {
	<-s.over
	return nil
}

// Shutdown ends it.
func (s *service) Shutdown(ctx context.Context) error {
	err := s.shutdown(ctx)
	s.once.Do(func() { close(s.over) })
	return err
}

func running(addr string, s *service) *Running {
	r := &Running{Addr: addr, server: s, done: make(chan struct{})}
	go func() {
		r.err = s.Serve(nil)
		close(r.done)
	}()
	return r
}

// startBus starts what a bus process is: a worker that answers, or the broker between callers and workers.
func startBus(ctx context.Context, name string, cfg Config) (*Running, error) {
	if name == "bus-broker" {
		return startBroker(cfg)
	}
	if brokered(cfg.Carrier) != (cfg.At != "") {
		return nil, fmt.Errorf("bus-worker: carrier %s: an address to connect to belongs to routed, nats, nats-go and zmtp-proxy, and only to them", cfg.Carrier)
	}
	switch cfg.Carrier {
	case Direct, DirectMailbox, ZMTP:
		return listenWorker(ctx, cfg)
	case Routed, NATS, NATSGo, ZMTPProxy:
		return connectWorker(ctx, cfg)
	}
	return nil, fmt.Errorf("bus-worker: carrier %q: want one of %s", cfg.Carrier, strings.Join(Carriers(), ", "))
}

// listenWorker starts a worker that callers connect to.
func listenWorker(ctx context.Context, cfg Config) (*Running, error) {
	handler, end, err := handlerOf(ctx, cfg.Carrier)
	if err != nil {
		return nil, err
	}
	l, err := opserver.Listen(opserver.Config{Addr: cfg.Addr, Unix: cfg.Unix, MaxConns: 1 << 14})
	if err != nil {
		return nil, fmt.Errorf("bus-worker: %w", err)
	}
	addr := address("tcp", l.Addr())
	if cfg.TLS != nil {
		if cfg.PostQuantum {
			cfg.TLS = opserver.PostQuantum(cfg.TLS)
		}
		addr, l = address("tls", l.Addr()), tls.NewListener(l, cfg.TLS)
	}
	r := bus.NewResponder(handler, busConfig(cfg.Token))
	if cfg.Carrier == ZMTP {
		s, err := bus.NewZMTPServer(r, true, nil)
		if err == nil {
			err = s.Serve(l)
		}
		return running(addr, newService(s.Shutdown)), err
	}
	s := bus.NewServer(r, true)
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(l) })
	return running(addr, newService(func(ctx context.Context) error {
		defer wg.Wait()
		return errors.Join(s.Shutdown(ctx), end())
	})), nil
}

// connectWorker starts a worker that connects to a broker.
func connectWorker(ctx context.Context, cfg Config) (*Running, error) {
	r := bus.NewResponder(echo, busConfig(cfg.Token))
	switch cfg.Carrier {
	case Routed:
		return attachWorker(ctx, cfg.At, r)
	case NATSGo:
		return natsWorker(cfg.At, cfg.Token)
	case NATS:
		n, err := bus.DialNATS(ctx, bus.NATSConfig{URL: natsURL(cfg.At)}, busConfig(cfg.Token))
		if err != nil {
			return nil, err
		}
		s, err := n.Serve(ctx, busNode, r, true)
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		return running(cfg.At, newService(func(ctx context.Context) error { return errors.Join(s.Shutdown(ctx), n.Close()) })), nil
	}
	in, out, err := proxyAddrs(cfg.At)
	if err != nil {
		return nil, err
	}
	p, err := bus.DialPubSub(ctx, in, out, nil, busConfig(cfg.Token))
	if err != nil {
		return nil, err
	}
	if err := p.Serve(busNode, r, true); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return running(cfg.At, newService(func(ctx context.Context) error { return errors.Join(p.Withdraw(ctx, busNode), p.Close()) })), nil
}

// attachWorker starts a worker that stays attached to a router, once it is there.
func attachWorker(ctx context.Context, at string, r *bus.Responder) (*Running, error) {
	s := bus.NewServer(r, true)
	stay, stop := context.WithCancel(context.Background())
	attached, refused := make(chan struct{}), make(chan error, 1)
	var once, wg = sync.Once{}, sync.WaitGroup{}
	wg.Go(func() {
		refused <- s.Stay(stay, at, nil, []bus.Name{{Name: busNode, Epoch: 1}}, func() { once.Do(func() { close(attached) }) })
	})
	end := func(ctx context.Context) error {
		err := s.Shutdown(ctx)
		stop()
		wg.Wait()
		return err
	}
	select {
	case <-attached:
		return running(at, newService(end)), nil
	case err := <-refused:
		return nil, errors.Join(fmt.Errorf("bus-worker: %w", err), end(ctx))
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("attaching to %s: %w", at, ctx.Err()), end(ctx))
	}
}

// natsWorker answers as a program would that uses NATS' own client and nothing of ours.
func natsWorker(at, token string) (*Running, error) {
	nc, err := nats.Connect(natsURL(at), natsToken(token)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS at %s: %w", at, err)
	}
	_, err = nc.Subscribe("bench."+busNode, func(m *nats.Msg) { m.Respond(m.Data) })
	if err = errors.Join(err, countArrivals(nc), nc.Flush()); err != nil {
		nc.Close()
		return nil, err
	}
	return running(at, newService(func(context.Context) error { nc.Close(); return nil })), nil
}

// natsToken is the token as NATS' own client has it.
func natsToken(token string) []nats.Option {
	if token == "" {
		return nil
	}
	return []nats.Option{nats.Token(token)}
}

// natsURL is how NATS' client writes an address.
func natsURL(at string) string {
	if hostport, ok := strings.CutPrefix(at, "tcp://"); ok {
		return "nats://" + hostport
	}
	return at
}

// startBroker starts what stands between callers and workers.
func startBroker(cfg Config) (*Running, error) {
	switch cfg.Carrier {
	case NATS, NATSGo:
		b, err := bus.StartBroker(bus.BrokerConfig{Addr: cfg.Addr, Token: cfg.Token, Store: cfg.Store})
		if err != nil {
			return nil, err
		}
		addr := strings.Replace(b.URL(), "nats://", "tcp://", 1)
		return running(addr, newService(func(context.Context) error { return b.Close() })), nil
	case Routed:
		l, err := opserver.Listen(opserver.Config{Addr: cfg.Addr, Unix: cfg.Unix, MaxConns: 1 << 14})
		if err != nil {
			return nil, err
		}
		r := bus.NewRouter(busConfig(cfg.Token))
		var wg sync.WaitGroup
		wg.Go(func() { r.Serve(l) })
		return running(address("tcp", l.Addr()), newService(func(ctx context.Context) error {
			defer wg.Wait()
			return r.Shutdown(ctx)
		})), nil
	case ZMTPProxy:
		in, out, err := listenTwice(cfg.Addr)
		if err != nil {
			return nil, err
		}
		p, err := bus.NewProxy(nil, busConfig(cfg.Token))
		if err == nil {
			err = p.Serve(in, out)
		}
		return running(address("tcp", in.Addr()), newService(func(context.Context) error { return p.Close() })), err
	}
	return nil, fmt.Errorf("bus-broker: carrier %q: want one of routed, nats and zmtp-proxy", cfg.Carrier)
}

// listenTwice opens the two listeners of a proxy: publishers connect to a port, subscribers to the next one.
func listenTwice(addr string) (in, out net.Listener, err error) {
	for range 100 {
		if in, err = opserver.Listen(opserver.Config{Addr: addr}); err != nil {
			return nil, nil, err
		}
		_, next, err := proxyAddrs(address("tcp", in.Addr()))
		if err != nil {
			return nil, nil, errors.Join(err, in.Close())
		}
		if out, err = opserver.Listen(opserver.Config{Addr: strings.TrimPrefix(next, "tcp://")}); err == nil {
			return in, out, nil
		}
		if in.Close(); addr != "" {
			return nil, nil, fmt.Errorf("the proxy's second port: %w", err)
		}
	}
	return nil, nil, errors.New("no two free ports stand beside each other")
}

// proxyAddrs returns where a proxy's publishers and subscribers connect.
func proxyAddrs(at string) (in, out string, err error) {
	host, port, err := net.SplitHostPort(strings.TrimPrefix(at, "tcp://"))
	n, errPort := strconv.Atoi(port)
	if err = errors.Join(err, errPort); err != nil {
		return "", "", fmt.Errorf("proxy at %q: %w", at, err)
	}
	return at, "tcp://" + net.JoinHostPort(host, strconv.Itoa(n+1)), nil
}
