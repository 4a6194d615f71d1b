package bus

import (
	"context"
	"fmt"
	"sync"

	"toll/wire/envelope"
	"toll/wire/frame"
	"toll/wire/mux"
)

const (
	slotBits    = 12
	maxInFlight = 1 << slotBits
)

// pending is the calls in flight over something that is not a connection of ours. A call's number is its slot's index and,
// above, the slot's generation. Slots are used in turn, so a number comes again after four thousand million calls.
type pending struct {
	mu    sync.Mutex
	slots []*waiter   // guarded by mu
	free  chan uint16 // indices of free slots, longest free first
	err   error       // guarded by mu: why nothing can be called any more
	late  int64       // guarded by mu: replies that reached nobody
}

// A waiter is a call's place.
type waiter struct {
	generation uint32
	call       *Call         // nil when free
	done       chan struct{} // capacity 1
	err        error
}

func newPending(inFlight int) *pending {
	p := &pending{slots: make([]*waiter, inFlight), free: make(chan uint16, inFlight)}
	for i := range p.slots {
		p.slots[i] = &waiter{generation: 1, done: make(chan struct{}, 1)}
		p.free <- uint16(i)
	}
	return p
}

// open takes a slot for c and returns the call's number.
func (p *pending) open(ctx context.Context, c *Call) (uint32, error) {
	var index uint16
	select {
	case index = <-p.free:
	default:
		select {
		case index = <-p.free:
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", mux.ErrBusy, ctx.Err())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		p.free <- index
		return 0, p.err
	}
	w := p.slots[index]
	w.call, w.err = c, nil
	return w.generation<<slotBits | uint32(index), nil
}

// wait returns the outcome of call id.
func (p *pending) wait(ctx context.Context, id uint32) error {
	w := p.slots[id&(maxInFlight-1)]
	select {
	case <-w.done:
		err := w.err
		p.release(id)
		return err
	case <-ctx.Done():
		p.abandon(id)
		return ctx.Err()
	}
}

// abandon gives up call id, whose reply may have come meanwhile.
func (p *pending) abandon(id uint32) {
	p.mu.Lock()
	w := p.slots[id&(maxInFlight-1)]
	w.call = nil
	select {
	case <-w.done:
	default:
	}
	p.mu.Unlock()
	p.release(id)
}

func (p *pending) release(id uint32) {
	index := id & (maxInFlight - 1)
	p.mu.Lock()
	w := p.slots[index]
	w.call = nil
	w.generation = max(1, (w.generation+1)&(1<<(32-slotBits)-1))
	p.mu.Unlock()
	p.free <- uint16(index)
}

// resolve hands a reply's frame to the call that it answers and reports whether there was one.
func (p *pending) resolve(b []byte) bool {
	id, err := frame.Framing{}.ID(b)
	if err != nil {
		return false
	}
	return p.settle(id, func(c *Call) error { return c.Reply(b) })
}

// refuse ends call id with a failure that no frame brought.
func (p *pending) refuse(id uint32, code envelope.Code, detail string) bool {
	return p.settle(id, func(c *Call) error {
		c.code, c.detail = code, detail
		return nil
	})
}

func (p *pending) settle(id uint32, with func(*Call) error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	index := id & (maxInFlight - 1)
	if int(index) >= len(p.slots) || p.slots[index].call == nil || p.slots[index].generation != id>>slotBits {
		p.late++
		return false
	}
	w := p.slots[index]
	w.err = with(w.call)
	w.call = nil
	w.done <- struct{}{}
	return true
}

// fail ends the calls in flight; with forever, later ones fail too.
func (p *pending) fail(err error, forever bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if forever && p.err == nil {
		p.err = err
	}
	for _, w := range p.slots {
		if w.call != nil {
			w.err, w.call = err, nil
			w.done <- struct{}{}
		}
	}
}
