package mux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// glance is how often a caller that reads looks whether its context was cancelled. Being told of it would take a goroutine
// or a registration per call.
const glance = 10 * time.Millisecond

// read reads frames and hands them out until the caller's own reply has come (without a call of its own: until any has), it
// is time to look at ctx or the connection ends. What is in the buffer is handed out to the last frame: it costs no reading.
// mu is held, but not while reading.
func (c *Conn) read(ctx context.Context, mine *slot, now time.Time) {
	c.reading = true
	c.mu.Unlock()
	c.take(mine, c.bound(ctx, now))
}

// take goes on with reading; err is what became of it so far. mu is not held and then is.
func (c *Conn) take(mine *slot, err error) {
	for done := false; err == nil && (!done || c.in.Buffered()); {
		var frame []byte
		if frame, err = c.in.Next(); err == nil {
			var to *slot
			to, err = c.deliver(frame)
			done = done || to == mine || mine == nil
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// What was read so far is kept, and whoever reads next sets the deadline anew.
		c.readUntil, err = time.Unix(0, 0), nil
	}
	c.mu.Lock()
	c.reading = false
	if err != nil {
		c.end(fmt.Errorf("reading: %w", err))
	}
}

// bound makes reading end when ctx does, and from time to time. A deadline that is early costs a look at ctx; one that
// will do is left as it is.
func (c *Conn) bound(ctx context.Context, now time.Time) error { return c.boundBy(ctx, now, false) }

// boundBy is bound; always bounds reading for a ctx that has no end, too.
func (c *Conn) boundBy(ctx context.Context, now time.Time, always bool) error {
	deadline, has := ctx.Deadline()
	if !has && ctx.Done() == nil && !always {
		if c.readUntil.IsZero() {
			return nil
		}
		c.readUntil = time.Time{}
		return c.nc.SetReadDeadline(c.readUntil)
	}
	until := now.Add(glance)
	if has && deadline.Before(until) {
		until = deadline
	}
	if c.readUntil.After(now.Add(glance/4)) && !c.readUntil.After(until) {
		return nil
	}
	c.readUntil = until
	return c.nc.SetReadDeadline(until)
}

// deliver hands a frame to the call it answers and returns that call's slot, nil when it was given up.
func (c *Conn) deliver(frame []byte) (*slot, error) {
	id, err := c.framing.ID(frame)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	index := int(id & (1<<c.bits - 1))
	if index >= len(c.slots) {
		return nil, nil
	}
	s := c.slots[index]
	if s.generation != id>>c.bits || s.state != waiting {
		s.lost = max(0, s.lost-1)
		return nil, nil
	}
	s.state = delivering
	c.mu.Unlock()
	err = reply(s.exchange, frame)
	c.mu.Lock()
	s.state, s.err = answered, err
	if s.place != 0 {
		c.unpark(s)
	}
	return s, nil
}

// reply contains a panic of x: it must not unwind the caller that happens to read.
func reply(x Exchange, frame []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handling a reply: panic: %v", p)
		}
	}()
	return x.Reply(frame)
}

// watch reads while there is nothing to do, so that the peer's end is noticed before the next call. A call that comes then
// is answered through this goroutine and reads for itself again afterwards.
func (c *Conn) watch() {
	tick := time.NewTicker(c.cfg.IdleRead)
	defer tick.Stop()
	var seen uint64
	for {
		select {
		case <-c.dead:
			return
		case <-tick.C:
		}
		c.mu.Lock()
		if c.calls == seen && c.inFlight == 0 && !c.reading {
			c.read(context.Background(), nil, time.Now())
			c.hand()
			// A tick that came meanwhile would make this goroutine read again at once, behind the call that has just ended it.
			tick.Reset(c.cfg.IdleRead)
		}
		seen = c.calls
		c.mu.Unlock()
	}
}
