package mux

import (
	"context"
	"fmt"
)

// A slot is a call's place.
type slot struct {
	generation uint32
	state      state
	place      int // in parked, from 1; 0 when not there
	lost       int // earlier calls here that were given up and are not answered yet
	exchange   Exchange
	err        error
	wake       chan struct{} // capacity 1; who takes the slot out of parked sends
}

type state uint8

const (
	vacant     state = iota
	waiting          // for its reply
	delivering       // its Reply is running on the reader's goroutine
	answered         // err is the outcome
)

// acquire takes a slot whose next number is one that no reply can come with. mu is held, but not while waiting.
func (c *Conn) acquire(ctx context.Context) (uint16, error) {
	for c.err == nil {
		index, err := c.place(ctx)
		if err != nil {
			return 0, err
		}
		s := c.slots[index]
		if s.generation != 0 && s.generation>>(32-c.bits) == 0 {
			return index, nil
		}
		if s.generation = 1; s.lost == 0 {
			return index, nil
		}
		if c.spent++; c.spent == c.cfg.InFlight {
			c.end(errNumbers)
		}
	}
	return 0, c.err
}

// place takes a free slot, or makes one, or waits for one. mu is held, but not while waiting.
func (c *Conn) place(ctx context.Context) (uint16, error) {
	select {
	case i := <-c.free:
		return i, nil
	default:
	}
	if n := len(c.slots); n < c.cfg.InFlight {
		c.slots = append(c.slots, &slot{generation: 1, wake: make(chan struct{}, 1)})
		return uint16(n), nil
	}
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case i := <-c.free:
		return i, nil
	case <-c.dead:
		return 0, c.Err()
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
	}
}

// release gives a slot back under a new generation, so that a reply to the call that had it is nobody's, and sees to it
// that what the caller did for others goes on. mu is held.
func (c *Conn) release(s *slot, index uint16) {
	s.generation++
	s.state, s.exchange, s.err = vacant, nil, nil
	c.inFlight--
	c.free <- index
	c.hand()
}

// hand wakes a parked caller to read and one to write, if nobody does. The last that was parked is the one whose reply is
// furthest away, so it can do so for long. mu is held.
func (c *Conn) hand() {
	for _, missing := range [...]bool{!c.reading, c.unwritten()} {
		if n := len(c.parked); missing && n > 0 {
			c.unpark(c.slots[c.parked[n-1]])
		}
	}
}

// park waits until the caller is woken or ctx ends. mu is held, but not while waiting.
func (c *Conn) park(ctx context.Context, s *slot, index uint16) {
	c.parked = append(c.parked, index)
	s.place = len(c.parked)
	done := ctx.Done()
	if s.state == delivering {
		done = nil // it is over in a moment, and the reply's memory is the caller's
	}
	c.mu.Unlock()
	select {
	case <-s.wake:
		c.mu.Lock()
	case <-done:
		c.mu.Lock()
		if s.place != 0 {
			c.unpark(s)
		}
		<-s.wake
	}
}

// unpark wakes a parked caller. mu is held.
func (c *Conn) unpark(s *slot) {
	last := len(c.parked) - 1
	moved := c.parked[last]
	c.parked[s.place-1] = moved
	c.slots[moved].place = s.place
	c.parked = c.parked[:last]
	s.place = 0
	s.wake <- struct{}{}
}
