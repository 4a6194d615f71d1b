package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"toll/wire/frame"
	"toll/wire/mux"
)

// Direct is a link over one connection of our own, shared by all callers.
type Direct struct {
	conn   *mux.Conn
	clock  *clock
	offset int64 // of their clock, ahead of ours
	calls  atomic.Int64
	beat   sync.WaitGroup
}

// DialDirect connects to a direct server at tcp://host:port or unix:/path and returns when it answers. With tls the
// connection is encrypted, and the server's name is verified.
func DialDirect(ctx context.Context, addr string, secure *tls.Config, cfg Config) (*Direct, error) {
	cfg = cfg.withDefaults()
	nc, err := dial(ctx, addr, secure, cfg)
	if err != nil {
		return nil, err
	}
	d, err := newDirect(ctx, nc, cfg)
	switch {
	case err == nil:
		return d, nil
	case secure == nil && strings.HasSuffix(err.Error(), io.EOF.Error()):
		return nil, fmt.Errorf("connecting to %s: %w: it hung up on what is not encrypted; perhaps it listens over TLS", addr, err)
	}
	return nil, fmt.Errorf("connecting to %s: %w", addr, err)
}

func newDirect(ctx context.Context, nc net.Conn, cfg Config) (*Direct, error) {
	cfg = cfg.withDefaults()
	idle := cfg.Heartbeat
	d := &Direct{clock: newClock(), conn: mux.New(nc, frame.Framing{Max: cfg.MaxFrame}, mux.Config{InFlight: cfg.InFlight, WriteTimeout: cfg.Write, IdleRead: idle})}
	var err error
	if d.offset, err = probe(ctx, d.call, d.clock, probes); err != nil {
		d.conn.Close()
		return nil, err
	}
	if cfg.Heartbeat > 0 {
		d.beat.Go(func() { d.heartbeat(cfg.Heartbeat) })
	}
	return d, nil
}

// probes is how often a new link asks for the other end's clock.
const probes = 4

// dial connects and shows the token, where there is one.
func dial(ctx context.Context, addr string, secure *tls.Config, cfg Config) (net.Conn, error) {
	network, where, err := splitAddr(addr)
	if err != nil {
		return nil, err
	}
	var nc net.Conn
	if secure != nil {
		nc, err = (&tls.Dialer{Config: secure}).DialContext(ctx, network, where)
	} else {
		nc, err = (&net.Dialer{}).DialContext(ctx, network, where)
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", addr, err)
	}
	if err := cfg.show(ctx, nc); err != nil {
		nc.Close()
		return nil, fmt.Errorf("connecting to %s: %w", addr, err)
	}
	return nc, nil
}

func splitAddr(addr string) (network, where string, err error) {
	if where, ok := strings.CutPrefix(addr, "tcp://"); ok {
		return "tcp", where, nil
	}
	if where, ok := strings.CutPrefix(addr, "unix:"); ok {
		return "unix", where, nil
	}
	return "", "", fmt.Errorf("address %q: want tcp://host:port or unix:/path", addr)
}

func (d *Direct) call(ctx context.Context, c *Call) error { return d.conn.Call(ctx, c) }

// Call sends c and waits for its reply or ctx's end.
func (d *Direct) Call(ctx context.Context, c *Call) error {
	if err := c.prepare(ctx, d.clock, d.offset); err != nil {
		return err
	}
	err := d.conn.Call(ctx, c)
	d.calls.Add(1)
	return c.outcome(err)
}

// Tell sends r and returns when the other end has taken it or has said why not.
func (d *Direct) Tell(ctx context.Context, r *frame.Request) error {
	c := Call{Request: *r}
	if err := c.prepare(ctx, d.clock, d.offset); err != nil {
		return err
	}
	c.Kind = frame.Tell
	err := d.conn.Call(ctx, &c)
	return c.outcome(err)
}

// Done is closed when the connection is dead.
func (d *Direct) Done() <-chan struct{} { return d.conn.Done() }

// Close ends the connection; calls in flight fail.
func (d *Direct) Close() error {
	err := d.conn.Close()
	d.beat.Wait()
	return err
}

// heartbeat asks the other end while no call says that it lives, and ends the connection when it does not answer.
func (d *Direct) heartbeat(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for seen := int64(0); ; {
		select {
		case <-d.conn.Done():
			return
		case <-tick.C:
		}
		now := d.calls.Load()
		if now != seen {
			seen = now
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*every)
		_, err := probe(ctx, d.call, d.clock, 1)
		cancel()
		if err != nil && d.calls.Load() == seen {
			go d.conn.Close() // it waits for who reads; we are waited for
			return
		}
	}
}

// A Server answers over connections: direct ones, and ours to a router.
type Server struct {
	responder *Responder
	// quick: the handler waits for nothing, so requests are answered on the goroutine that reads them.
	quick  bool
	relay  mux.Handler                               // a router's, in place of the responder's; nil for none
	attach func(nc net.Conn, q *frame.Received) bool // takes a worker's connection, if it can; nil for none

	mu       sync.Mutex
	stopping bool                     // guarded by mu
	ln       map[net.Listener]bool    // guarded by mu
	conns    map[net.Conn]*serverConn // guarded by mu
	all      sync.WaitGroup           // added to under mu
	quit     chan struct{}
}

type serverConn struct {
	frames atomic.Int64
	seen   int64 // owned by sweep
	missed int   // owned by sweep
}

// NewServer makes a server that answers with r. quick says that its handler waits for nothing, not even another agent.
func NewServer(r *Responder, quick bool) *Server {
	s := &Server{responder: r, quick: quick, ln: make(map[net.Listener]bool), conns: make(map[net.Conn]*serverConn), quit: make(chan struct{})}
	if r.cfg.Heartbeat > 0 {
		s.all.Go(s.sweep)
	}
	return s
}

// errStopped is for what is begun on a server that was shut down.
var errStopped = errors.New("bus: the server was shut down")

// Serve answers on l, which is the server's from now on, until Shutdown; then it returns nil.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	stopping := s.stopping
	s.ln[l] = true
	s.mu.Unlock()
	if stopping {
		l.Close()
		return nil
	}
	for {
		nc, err := l.Accept()
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.stopping {
				return nil
			}
			return err
		}
		if s.start(nc) != nil {
			return nil
		}
	}
}

// start serves nc in the background.
func (s *Server) start(nc net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		nc.Close()
		return errStopped
	}
	c := new(serverConn)
	s.conns[nc] = c
	s.all.Go(func() {
		if kept := s.serve(nc, c); !kept {
			nc.Close()
		}
		s.mu.Lock()
		delete(s.conns, nc)
		s.mu.Unlock()
	})
	return nil
}

// serve answers the requests on nc until it ends. When the first one asks for it, the router takes nc and keeps it.
func (s *Server) serve(nc net.Conn, c *serverConn) (kept bool) {
	if err := s.responder.cfg.admit(nc); err != nil {
		if errors.Is(err, ErrRefused) {
			s.responder.refused.Add(1)
		}
		return false
	}
	s.mu.Lock()
	stopping := s.stopping // it may have bounded our reading, which admit has undone
	s.mu.Unlock()
	if stopping {
		return false
	}
	if s.attach == nil {
		s.answerOn(nc, c)
		return false
	}
	first, err := readFrame(nc, s.responder.cfg.MaxFrame)
	if err != nil {
		return false
	}
	var q frame.Received
	if err := q.Parse(first); err == nil && len(q.To) == 0 && string(q.Op) == opAttach {
		return s.attach(nc, &q)
	}
	s.answerOn(&begun{nc, first}, c)
	return false
}

// answerOn answers the requests on nc until it ends.
func (s *Server) answerOn(nc net.Conn, c *serverConn) error {
	if s.quick && s.relay == nil {
		return s.answerHere(nc, c)
	}
	m := mux.Server{
		Framing:      frame.Framing{Max: s.responder.cfg.MaxFrame},
		Handle:       s.responder.respond,
		InFlight:     s.responder.cfg.InFlight,
		WriteTimeout: s.responder.cfg.Write,
		Answered:     func(n int) { c.frames.Add(int64(n)) },
	}
	handle := m.Handle
	if s.relay != nil {
		handle = s.relay
	}
	// Quick runs on the goroutine that reads, in the order of the frames; Handle may not.
	seen := new(seen)
	m.Quick = func(b []byte) bool {
		seen.mark(b)
		return s.quick
	}
	m.Handle = func(dst, b []byte) ([]byte, error) {
		if marked(b) {
			s.responder.replayed.Add(1)
			return dst, nil
		}
		return handle(dst, b)
	}
	return m.Serve(nc)
}

// sweep ends connections on which no whole request has come for three heartbeats: the other end, which asks when it has
// nothing to say, is gone, or does not finish a frame.
func (s *Server) sweep() {
	tick := time.NewTicker(s.responder.cfg.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-tick.C:
		}
		var gone []net.Conn
		s.mu.Lock()
		for nc, c := range s.conns {
			if now := c.frames.Load(); now != c.seen {
				c.seen, c.missed = now, 0
			} else if c.missed++; c.missed > 3 {
				gone = append(gone, nc)
			}
		}
		s.mu.Unlock()
		for _, nc := range gone {
			nc.Close() // it waits for a request that is being answered where it was read
		}
	}
}

// Shutdown stops accepting, answers what has arrived until ctx ends, and then breaks off the rest.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.stopping {
		s.stopping = true
		close(s.quit)
	}
	for l := range s.ln {
		l.Close()
	}
	for nc := range s.conns {
		nc.SetReadDeadline(time.Unix(1, 0))
	}
	s.mu.Unlock()
	gone := make(chan struct{})
	go func() {
		s.all.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	left := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, nc := range left {
		nc.Close()
	}
	<-gone
	return ctx.Err()
}

// Connections returns how many are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
