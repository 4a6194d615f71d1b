package opserver

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"toll/wire/http1"
)

// An Every serves a registry over every envelope from one process and one listener: a connection whose first byte is zero
// speaks ZAP-HTTP (a frame's length), any other HTTP. It exists to reproduce published methods in which all rows share one
// server process; a comparison of ours gives each contender its own.
type Every struct {
	rest *REST
	zap  *Floor
	head time.Duration

	mu       sync.Mutex
	listener net.Listener  // guarded by mu
	done     chan struct{} // guarded by mu: closed by Shutdown
}

// NewEvery makes a server of ops.
func NewEvery(cfg Config, ops Registry) *Every {
	return &Every{rest: NewREST(cfg, ops), zap: NewZAP(cfg, ops), head: cfg.withDefaults().HeadTimeout, done: make(chan struct{})}
}

// Serve answers on l until Shutdown, and then returns nil.
func (e *Every) Serve(l net.Listener) error {
	l = &onceListener{Listener: l, close: sync.OnceValue(l.Close)}
	e.mu.Lock()
	e.listener = l
	e.mu.Unlock()
	if e.stopped() {
		return l.Close()
	}
	http, zap := http1.NewGiven(l.Addr()), http1.NewGiven(l.Addr())
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
func (e *Every) sort(nc net.Conn, http, zap *http1.Given) {
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
	to.Give(http1.Replay(nc, first[:]))
}

// Shutdown shuts both servers down.
func (e *Every) Shutdown(ctx context.Context) error {
	e.mu.Lock()
	if !e.stopped() {
		close(e.done)
	}
	var err error
	if e.listener != nil {
		err = e.listener.Close()
	}
	e.mu.Unlock()
	return errors.Join(err, e.rest.Shutdown(ctx), e.zap.Shutdown(ctx))
}
