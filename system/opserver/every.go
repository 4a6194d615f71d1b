package opserver

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// An Every serves a registry over every envelope from one process and one listener: a connection whose first byte is zero
// speaks ZAP-HTTP (a frame's length), any other HTTP. It exists to reproduce published methods in which all rows share one
// server process; a comparison of ours gives each contender its own.
type Every struct {
	rest *REST
	zap  *Floor
	head time.Duration

	mu   sync.Mutex
	done chan struct{} // guarded by mu: closed by Shutdown
}

// NewEvery makes a server of ops.
func NewEvery(cfg Config, ops Registry) *Every {
	return &Every{rest: NewREST(cfg, ops), zap: NewZAP(cfg, ops), head: cfg.withDefaults().HeadTimeout, done: make(chan struct{})}
}

// Serve answers on l until Shutdown, and then returns nil.
func (e *Every) Serve(l net.Listener) error {
	http, zap := newHandOver(l), newHandOver(l)
	var wg sync.WaitGroup
	errs := make([]error, 2)
	wg.Go(func() { errs[0] = e.rest.Serve(http) })
	wg.Go(func() { errs[1] = e.zap.Serve(zap) })
	for {
		nc, err := l.Accept()
		if err != nil {
			http.Close()
			zap.Close()
			wg.Wait()
			if e.stopped() {
				return nil
			}
			return errors.Join(append(errs, err)...)
		}
		wg.Go(func() { e.sort(nc, http, zap) })
	}
}

func (e *Every) stopped() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// sort reads a connection's first byte and hands it over.
func (e *Every) sort(nc net.Conn, http, zap *handOver) {
	var first [1]byte
	nc.SetReadDeadline(time.Now().Add(e.head))
	if _, err := nc.Read(first[:]); err != nil {
		nc.Close()
		return
	}
	nc.SetReadDeadline(time.Time{})
	to := http
	if first[0] == 0 {
		to = zap
	}
	to.hand(&peeked{Conn: nc, first: first[:]})
}

// Shutdown shuts both servers down.
func (e *Every) Shutdown(ctx context.Context) error {
	e.mu.Lock()
	if !e.stopped() {
		close(e.done)
	}
	e.mu.Unlock()
	return errors.Join(e.rest.Shutdown(ctx), e.zap.Shutdown(ctx))
}

// A peeked is a connection of which one byte was read already.
type peeked struct {
	net.Conn
	first []byte
}

// Read returns that byte first.
func (c *peeked) Read(p []byte) (int, error) {
	if len(c.first) > 0 && len(p) > 0 {
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// A handOver is a listener whose connections somebody else accepted.
type handOver struct {
	over  net.Listener
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
}

func newHandOver(l net.Listener) *handOver {
	return &handOver{over: l, conns: make(chan net.Conn), gone: make(chan struct{})}
}

func (h *handOver) hand(nc net.Conn) {
	select {
	case h.conns <- nc:
	case <-h.gone:
		nc.Close()
	}
}

// Accept waits for a connection that is handed over.
func (h *handOver) Accept() (net.Conn, error) {
	select {
	case nc := <-h.conns:
		return nc, nil
	case <-h.gone:
		return nil, net.ErrClosed
	}
}

// Close closes the listener below too: both servers go together.
func (h *handOver) Close() error {
	var err error
	h.once.Do(func() {
		close(h.gone)
		err = h.over.Close()
	})
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Addr is that of the listener below.
func (h *handOver) Addr() net.Addr { return h.over.Addr() }
