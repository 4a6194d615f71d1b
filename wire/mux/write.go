package mux

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// unwritten reports whether something waits to be written and nobody does. mu is held.
func (c *Conn) unwritten() bool { return !c.writing && len(c.out) > 0 && c.err == nil }

// write writes until nothing waits, or until the caller's own call is over and another can go on. A failure ends the
// connection; every caller learns it where it waits. mu is held, but not while writing.
func (c *Conn) write(ctx context.Context, mine *slot, now time.Time) {
	c.writing = true
	c.hand()
	if c.inFlight > 1 {
		// Callers that are about to send get to add theirs to this write; alone it would only cost.
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	for first := true; len(c.out) > 0 && c.err == nil; first = false {
		b := c.out
		c.out, c.spare = c.spare[:0], nil
		c.mu.Unlock()
		if !first {
			now = time.Now()
		}
		err := c.flush(b, now)
		c.mu.Lock()
		if cap(b) <= keptBuffer {
			c.spare = b
		}
		if err != nil {
			c.end(fmt.Errorf("writing: %w", err))
		}
		if len(c.parked) > 0 && (mine.state != waiting || ended(ctx) != nil) {
			break
		}
	}
	c.writing = false
}

func (c *Conn) flush(b []byte, now time.Time) error {
	// Moving a deadline costs as much as setting one, so it is moved when an eighth of it is gone.
	if until := now.Add(c.cfg.WriteTimeout); until.Sub(c.writeUntil) > c.cfg.WriteTimeout/8 {
		c.writeUntil = until
		if err := c.nc.SetWriteDeadline(until); err != nil {
			return err
		}
	}
	_, err := c.nc.Write(b)
	return err
}
