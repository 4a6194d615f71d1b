package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Config says where a proxy stands. Dial is required.
type Config struct {
	Dial func() (net.Conn, error) // reaches the server
	Seed uint64                   // of what is drawn
	// Frame returns the length of the first frame of data, 0 when that can't be told yet. nil: pieces are what a read brought.
	Frame func(data []byte) int
}

// Counts are pieces, but for Connections.
type Counts struct{ Connections, Passed, Dropped, Replayed, Resets int64 }

// A Proxy relays connections. Its faults can be changed while it runs.
type Proxy struct {
	cfg      Config
	listener net.Listener
	wg       sync.WaitGroup

	connections, passed, dropped, replayed, resets atomic.Int64

	mu      sync.Mutex
	faults  Faults         // guarded by mu
	changed chan struct{}  // guarded by mu: closed and replaced when faults change
	pairs   map[*pair]bool // guarded by mu
	serial  uint64         // guarded by mu: of connections
	closed  bool           // guarded by mu
}

// Start relays what connects to l, which is the proxy's own from now on, until Close.
func Start(l net.Listener, cfg Config, f Faults) *Proxy {
	p := &Proxy{cfg: cfg, listener: l, faults: f, changed: make(chan struct{}), pairs: make(map[*pair]bool)}
	p.wg.Go(p.accept)
	return p
}

// Listen is Start on a free port of this machine for the server at addr: host:port, or a path when network is unix.
func Listen(network, addr string, f Faults) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fault proxy for %s: %w", addr, err)
	}
	dial := func() (net.Conn, error) { return net.DialTimeout(network, addr, 5*time.Second) }
	return Start(l, Config{Dial: dial}, f), nil
}

// Addr is where clients connect.
func (p *Proxy) Addr() net.Addr { return p.listener.Addr() }

// Counts returns what has passed so far.
func (p *Proxy) Counts() Counts {
	return Counts{p.connections.Load(), p.passed.Load(), p.dropped.Load(), p.replayed.Load(), p.resets.Load()}
}

// Set changes the faults, of connections that are there as well.
func (p *Proxy) Set(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) now(d Direction) (Way, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d == Up {
		return p.faults.Up, p.changed
	}
	return p.faults.Down, p.changed
}

// Reset resets every connection that is there.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		p.resets.Add(1)
		c.reset()
	}
}

// Close ends the proxy and its connections and returns when nothing of it runs any more.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	for c := range p.pairs {
		c.close()
	}
	p.mu.Unlock()
	err := p.listener.Close()
	p.wg.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.mu.Lock()
			closed := p.closed
			p.mu.Unlock()
			if closed {
				return
			}
			continue
		}
		p.wg.Go(func() { p.relay(client) })
	}
}

// relay carries a connection in both directions until one side is gone.
func (p *Proxy) relay(client net.Conn) {
	defer client.Close()
	server, err := p.cfg.Dial()
	if err != nil {
		return
	}
	defer server.Close()
	c := &pair{proxy: p, ends: [2]net.Conn{client, server}, over: make(chan struct{})}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.serial++
	p.pairs[c] = true
	serial := p.serial
	p.mu.Unlock()
	p.connections.Add(1)
	var wg sync.WaitGroup
	for d, ends := range [][2]net.Conn{{client, server}, {server, client}} {
		t := &tube{pair: c, way: Direction(d), from: ends[0], to: ends[1], rand: rand.New(rand.NewPCG(p.cfg.Seed, 2*serial+uint64(d)))}
		wg.Go(t.run)
	}
	wg.Wait()
	p.mu.Lock()
	delete(p.pairs, c)
	p.mu.Unlock()
}

// A pair is a relayed connection.
type pair struct {
	proxy *Proxy
	ends  [2]net.Conn
	once  sync.Once
	over  chan struct{}
}

func (c *pair) close() {
	c.once.Do(func() {
		close(c.over)
		for _, nc := range c.ends {
			nc.Close()
		}
	})
}

// reset closes both ends so that the peers see a reset, where the connection knows such a thing.
func (c *pair) reset() {
	for _, nc := range c.ends {
		if t, ok := nc.(*net.TCPConn); ok {
			t.SetLinger(0)
		}
	}
	c.close()
}
