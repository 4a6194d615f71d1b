package opserver

import (
	"context"
	"sync"
	"sync/atomic"
)

// A drain counts the requests in flight, and lets no more in once it has begun.
type drain struct {
	state  atomic.Int64  // requests in flight, and begun
	empty  chan struct{} // closed when begun and the last request has left
	signal func()        // closes empty, once
}

func newDrain() *drain {
	empty := make(chan struct{})
	return &drain{empty: empty, signal: sync.OnceFunc(func() { close(empty) })}
}

const begun = 1 << 62

// enter counts a request in. When it reports false the request is to be refused; leave is called all the same.
func (d *drain) enter() bool { return d.state.Add(1)&begun == 0 }

func (d *drain) leave() {
	if d.state.Add(-1) == begun {
		d.signal()
	}
}

// begin lets no more requests in. It may be called more than once.
func (d *drain) begin() {
	if d.state.Or(begun)&^begun == 0 {
		d.signal()
	}
}

func (d *drain) started() bool { return d.state.Load()&begun != 0 }

// wait waits until no request is in flight, or until ctx ends.
func (d *drain) wait(ctx context.Context) error {
	select {
	case <-d.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
