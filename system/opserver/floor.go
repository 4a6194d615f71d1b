package opserver

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Floor serves connections by one loop each and nothing else. See NewEcho and NewNull.
type Floor struct {
	loop func(nc net.Conn, done *atomic.Int64) // serves until a read or write fails; counts what it has answered
	idle time.Duration

	mu       sync.Mutex
	stopping bool               // guarded by mu
	listener net.Listener       // guarded by mu
	conns    map[net.Conn]*conn // guarded by mu
	all      sync.WaitGroup     // the connections' goroutines; added to under mu
}

// A conn is what the sweep knows of a connection.
type conn struct {
	done atomic.Int64 // exchanges answered
	seen int64        // done at the last sweep; guarded by Floor.mu
}

func newFloor(cfg Config, loop func(net.Conn, *atomic.Int64)) *Floor {
	return &Floor{loop: loop, idle: cfg.IdleTimeout, conns: map[net.Conn]*conn{}}
}

// Serve answers on l until Shutdown, and then returns nil.
func (f *Floor) Serve(l net.Listener) error {
	f.mu.Lock()
	f.listener = l
	stopping := f.stopping
	f.mu.Unlock()
	if stopping {
		return l.Close()
	}
	stop := make(chan struct{})
	var sweeper sync.WaitGroup
	sweeper.Go(func() { f.sweep(stop) })
	defer sweeper.Wait()
	defer close(stop)
	for {
		nc, err := l.Accept()
		if err != nil {
			return f.stopped(err)
		}
		f.start(nc)
	}
}

// stopped returns nil if we are being stopped, else err.
func (f *Floor) stopped(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopping {
		return nil
	}
	return err
}

func (f *Floor) start(nc net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopping {
		nc.Close()
		return
	}
	c := &conn{seen: -1}
	f.conns[nc] = c
	f.all.Go(func() {
		f.loop(nc, &c.done)
		nc.Close()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.conns, nc)
	})
}

// sweep closes the connections on which nothing has been answered between two ticks, that is for one to two idle
// timeouts. So a slow or silent peer is got rid of at no cost to an exchange.
func (f *Floor) sweep(stop <-chan struct{}) {
	t := time.NewTicker(f.idle)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		f.mu.Lock()
		for nc, c := range f.conns {
			if now := c.done.Load(); now == c.seen {
				nc.Close()
			} else {
				c.seen = now
			}
		}
		f.mu.Unlock()
	}
}

// Shutdown stops accepting, lets the exchanges that have been read be answered until ctx ends, then breaks them off.
func (f *Floor) Shutdown(ctx context.Context) error {
	err := f.stopReading()
	gone := make(chan struct{})
	go func() {
		f.all.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return err
	case <-ctx.Done():
	}
	f.mu.Lock()
	for nc := range f.conns {
		nc.Close()
	}
	f.mu.Unlock()
	<-gone
	return ctx.Err()
}

func (f *Floor) stopReading() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listener != nil && !f.stopping {
		err = f.listener.Close()
	}
	f.stopping = true
	for nc := range f.conns {
		nc.SetReadDeadline(time.Unix(1, 0))
	}
	return err
}
