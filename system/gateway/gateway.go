package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"toll/wire/http1"
)

// A Gateway answers requests until it is shut down.
type Gateway struct {
	cfg      Config
	made     time.Time
	table    *table
	lender   Lender // the Asker, if it is one
	clients  *clients
	own      map[string]func() ([]byte, error) // by path: what the gateway answers itself
	current  atomic.Pointer[material]
	inFlight atomic.Int64
	ready    atomic.Bool

	loops *http1.Server
	std   *http.Server
	given *http1.Given // connections that std is to answer

	ending context.Context // ends streams when the gateway drains
	end    context.CancelFunc

	slots chan struct{} // one per connection
	dials sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // guarded by mu
	stopped  bool         // guarded by mu
}

// New makes a gateway; it listens nowhere yet.
func New(c Config) (*Gateway, error) {
	if err := errors.Join(c.check(), c.TLS.check()); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	table, err := newTable(c.Routes, c)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g := &Gateway{cfg: c, made: time.Now(), table: table, clients: newClients(c), slots: make(chan struct{}, c.Connections)}
	g.lender, _ = c.Asker.(Lender)
	if err := g.Reload(); err != nil {
		return nil, err
	}
	document, err := openAPI(c, table)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g.own = map[string]func() ([]byte, error){
		"/health":       func() ([]byte, error) { return []byte(`{"status":"ok"}`), nil },
		"/ready":        g.readiness,
		"/openapi.json": func() ([]byte, error) { return document, nil },
	}
	g.ending, g.end = context.WithCancel(context.Background())
	g.loops = http1.New(http1.Config{
		MaxHead: c.MaxHead, MaxBody: c.MaxBody, HeadTimeout: c.HeadTimeout, ReadTimeout: c.ReadTimeout,
		IdleTimeout: c.IdleTimeout, Refused: g.unreadable,
	}, g.loop)
	g.std = g.newHTTP()
	return g, nil
}

func (g *Gateway) material() *material { return g.current.Load() }

// Reload reads the certificate, the authorities and the allow-list again. Connections that are open keep their certificate
// and are measured by the new list; sessions can't be resumed across it. On an error everything stays as it was.
func (g *Gateway) Reload() error {
	m, err := g.cfg.TLS.read()
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	g.current.Store(m)
	return nil
}

func (g *Gateway) readiness() ([]byte, error) {
	if !g.ready.Load() {
		return nil, &problem{status: http.StatusServiceUnavailable, text: "draining", retry: true}
	}
	return []byte(`{"status":"ready"}`), nil
}

func (g *Gateway) draining() bool { return g.ending.Err() != nil }

// Serve accepts connections until l fails or the gateway is shut down, and then returns nil.
func (g *Gateway) Serve(l net.Listener) error {
	g.mu.Lock()
	if g.stopped {
		g.mu.Unlock()
		return l.Close()
	}
	g.listener, g.given = l, http1.NewGiven(l.Addr())
	g.mu.Unlock()
	g.ready.Store(true)
	var std sync.WaitGroup
	std.Go(func() { g.std.Serve(g.given) })
	defer std.Wait()
	defer g.given.Close()
	for {
		nc, err := l.Accept()
		if err != nil {
			if g.draining() {
				return nil
			}
			return fmt.Errorf("gateway: accepting connections: %w", err)
		}
		select {
		case g.slots <- struct{}{}:
			g.welcome(&slotted{Conn: nc, leave: sync.OnceFunc(func() { <-g.slots })})
		default:
			nc.Close()
		}
	}
}

// welcome greets a connection unless the gateway has been stopped meanwhile.
func (g *Gateway) welcome(nc net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		nc.Close()
		return
	}
	g.dials.Go(func() { g.greet(nc) })
}

// greet finishes a connection's handshake, reads who its client is and gives it to the server that answers it.
func (g *Gateway) greet(nc net.Conn) {
	config := g.material().config
	if config == nil {
		if g.cfg.NetHTTP {
			g.given.Give(nc)
			return
		}
		g.loops.ServeConn(nc, newPeer(nc))
		return
	}
	secured := tls.Server(nc, config)
	ctx, cancel := context.WithTimeout(g.ending, g.cfg.HeadTimeout)
	defer cancel()
	if secured.HandshakeContext(ctx) != nil {
		linger(nc)
		return
	}
	if g.cfg.NetHTTP || secured.ConnectionState().NegotiatedProtocol == "h2" {
		g.given.Give(secured)
		return
	}
	g.loops.ServeConn(secured, g.peerOf(secured))
}

// linger closes a connection whose client is still sending. Closing at once would reset it and take the reason with it.
func linger(nc net.Conn) {
	defer nc.Close()
	if w, ok := nc.(interface{ CloseWrite() error }); ok && w.CloseWrite() == nil {
		nc.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		io.CopyN(io.Discard, nc, 64<<10)
	}
}

// A known connection was read from already, and so was who is at its other end.
type known struct {
	net.Conn
	peer *peer
}

// peerOf reads who is at the other end of a connection, whose handshake is done.
func (g *Gateway) peerOf(nc net.Conn) *peer {
	if k, ok := nc.(*known); ok {
		return k.peer
	}
	p := newPeer(nc)
	if secured, ok := nc.(*tls.Conn); ok {
		if chains := secured.ConnectionState().VerifiedChains; len(chains) > 0 {
			p.names = names(chains[0][0])
		}
	}
	return p
}

// Shutdown stops accepting, says that it is not ready, ends streams, lets calls in flight be answered until ctx ends, then
// breaks off the rest.
func (g *Gateway) Shutdown(ctx context.Context) error {
	g.ready.Store(false)
	g.end()
	g.mu.Lock()
	g.stopped = true
	var err error
	if g.listener != nil {
		if err = g.listener.Close(); errors.Is(err, net.ErrClosed) {
			err = nil // by whoever gave it to us
		}
		g.listener = nil
	}
	g.mu.Unlock()
	g.dials.Wait()
	loops := make(chan error, 1)
	go func() { loops <- g.loops.Shutdown(ctx) }()
	std := g.std.Shutdown(ctx)
	if std != nil {
		g.std.Close()
	}
	return errors.Join(err, std, <-loops)
}

// A slotted connection gives up its place when it is closed.
type slotted struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *slotted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite says that nothing more will be sent, where the connection can.
func (c *slotted) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}
