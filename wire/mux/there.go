package mux

import (
	"context"
	"fmt"
	"time"
)

// lone reports whether the caller in s is alone on the connection, with its request still to be written and nothing before
// its reply in the buffer: then writing and waiting can be one. mu is held.
func (c *Conn) lone(s *slot) bool {
	return c.trip != nil && c.inFlight == 1 && s.state == waiting && c.unwritten() && !c.reading && c.in.Pending() == 0
}

// there writes a lone caller's request and reads until its reply has come, it is time to look at ctx or the connection
// ends. Where a trip would miss that the peer is gone, the glance that bounds it does not: the next reading is a plain one.
// mu is held, but not while writing and reading.
func (c *Conn) there(ctx context.Context, mine *slot, now time.Time) {
	c.reading, c.writing = true, true
	b := c.out
	c.out, c.spare = c.spare[:0], nil
	if cap(b) <= keptBuffer {
		c.spare = b // nobody takes it while somebody writes
	}
	c.mu.Unlock()
	err := c.boundBy(ctx, now, true)
	if err != nil {
		c.take(mine, err)
		return
	}
	rest, err := c.in.after(c.trip, b, c.left)
	if rest == nil {
		c.take(mine, err)
		return
	}
	// Who is stuck with writing is not the one to read.
	c.mu.Lock()
	c.reading = false
	c.hand()
	c.mu.Unlock()
	if err == nil {
		err = c.flush(rest, now)
	}
	c.mu.Lock()
	if err != nil {
		c.end(fmt.Errorf("writing: %w", err))
	}
	c.writing = false
	c.hand()
}

// written lets others write behind a trip's request.
func (c *Conn) written() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = false
	c.hand()
}
