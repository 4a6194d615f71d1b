package mux

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"sync"
	"time"
)

// A Framing knows where a frame ends and whose it is.
type Framing interface {
	Lengths
	// ID returns the number of the call that a reply answers.
	ID(frame []byte) (uint32, error)
}

// An Exchange is one call of a caller: its request and what becomes of the reply. AppendRequest runs while other callers
// wait to add theirs: it only copies. It uses id, which is never 0, as the call's number. Reply may run on another caller's
// goroutine while this one waits; frame is valid until it returns. Neither may call the connection.
type Exchange interface {
	AppendRequest(dst []byte, id uint32) []byte
	Reply(frame []byte) error
}

var (
	// ErrBusy is for calls that found every slot taken until their context ended, or too many bytes waiting to be written.
	ErrBusy = errors.New("too many calls in flight")
	// ErrClosed is for calls on a connection that was closed by us.
	ErrClosed = errors.New("connection closed")
	// ErrTooLong is for a request that the framing would not let us read either; nothing of it was sent.
	ErrTooLong = errors.New("request too long")

	errNumbers = errors.New("no number is left for a call: a reply with it may still come")
)

// Config bounds a connection; each zero value means its default.
type Config struct {
	InFlight     int           // calls at a time; 256, at most 65536
	Queued       int           // bytes that may wait while a write is in progress; 4 MiB
	WriteTimeout time.Duration // of one write; 30 s
	IdleRead     time.Duration // without a call for so long, we read to learn that the peer is gone; 1 s; negative: never
}

func (c Config) withDefaults() Config {
	if c.InFlight <= 0 {
		c.InFlight = 256
	}
	c.InFlight = min(c.InFlight, 1<<16)
	if c.Queued <= 0 {
		c.Queued = 4 << 20
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = 30 * time.Second
	}
	if c.IdleRead == 0 {
		c.IdleRead = time.Second
	}
	return c
}

// A Conn is the calling side of a connection. Its methods are safe for concurrent use.
type Conn struct {
	nc      net.Conn
	framing Framing
	cfg     Config
	bits    int         // of a call's number that are its slot's index; the others are its generation
	free    chan uint16 // indices of free slots
	dead    chan struct{}
	watcher sync.WaitGroup

	in         *Reader   // owned by who reads
	trip       *trip     // owned by who reads; nil where nc is no socket
	left       func()    // of who trips: what it sent has left
	readUntil  time.Time // owned by who reads
	writeUntil time.Time // owned by who writes

	mu       sync.Mutex
	slots    []*slot  // guarded by mu: as many as were ever needed at a time, at most cfg.InFlight
	spent    int      // guarded by mu: slots without numbers
	parked   []uint16 // guarded by mu: slots whose callers wait to be woken
	inFlight int      // guarded by mu
	calls    uint64   // guarded by mu: made so far
	reading  bool     // guarded by mu: somebody reads
	writing  bool     // guarded by mu: somebody writes
	out      []byte   // guarded by mu: waits to be written
	spare    []byte   // guarded by mu: the other buffer
	err      error    // guarded by mu: why the connection is dead
}

// New makes the calling side of nc, which is its own from now on.
func New(nc net.Conn, f Framing, cfg Config) *Conn {
	c := &Conn{nc: nc, framing: f, cfg: cfg.withDefaults(), in: NewReader(nc, f), dead: make(chan struct{})}
	c.in.Eager(nc)
	c.trip, c.left = newTrip(nc), c.written
	c.bits = bits.Len(uint(c.cfg.InFlight - 1))
	c.free = make(chan uint16, c.cfg.InFlight)
	if c.cfg.IdleRead > 0 {
		c.watcher.Go(c.watch)
	}
	return c
}

// Close ends the connection; calls in flight fail with ErrClosed.
func (c *Conn) Close() error {
	c.fail(ErrClosed)
	c.watcher.Wait()
	return nil
}

// Done is closed when the connection is dead.
func (c *Conn) Done() <-chan struct{} { return c.dead }

// Err returns why the connection is dead, nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Call sends x's request and returns when its reply has been handled, or when ctx ends; the connection and the other calls
// go on all the same. The error of x.Reply is returned as it is. While the caller reads for all, it learns that ctx was
// cancelled at most a hundredth of a second late; deadlines are kept.
func (c *Conn) Call(ctx context.Context, x Exchange) error {
	now := time.Now()
	if err := endedAt(ctx, now); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	full := len(c.free) == 0 && len(c.slots) == c.cfg.InFlight
	index, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	if full { // it has waited
		now = time.Now()
	}
	s := c.slots[index]
	if err := c.enqueue(s, index, x); err != nil {
		c.free <- index
		return err
	}
	return c.await(ctx, s, index, now)
}

// enqueue puts the request of a call with what waits to be written. mu is held.
func (c *Conn) enqueue(s *slot, index uint16, x Exchange) error {
	if len(c.out) > c.cfg.Queued {
		return fmt.Errorf("%w: %d bytes wait to be written", ErrBusy, len(c.out))
	}
	before := len(c.out)
	out := x.AppendRequest(c.out, s.generation<<c.bits|uint32(index))
	if h := c.framing.Header(); len(out)-before >= h {
		if _, err := c.framing.Length(out[before : before+h]); err != nil {
			return fmt.Errorf("%w: %w", ErrTooLong, err)
		}
	}
	c.out = out
	s.state, s.exchange = waiting, x
	c.inFlight++
	c.calls++
	return nil
}

// await returns the outcome of the call in s. The caller writes when nobody does and something waits, and reads when
// nobody does. The call's own time is good for the deadlines of its first write and read: reading the clock for each would
// cost as much as all else here. mu is held.
func (c *Conn) await(ctx context.Context, s *slot, index uint16, now time.Time) error {
	for fresh := true; ; {
		switch {
		case fresh && c.lone(s):
			c.there(ctx, s, now)
			fresh = false
		case c.unwritten() && (s.state == waiting || len(c.parked) == 0):
			if !fresh {
				now = time.Now()
			}
			c.write(ctx, s, now)
		case s.state == answered:
			err := s.err
			c.release(s, index)
			return err
		case s.state == delivering:
			c.park(ctx, s, index)
		case c.err != nil:
			c.release(s, index)
			return c.err
		case !fresh && ended(ctx) != nil:
			s.lost++
			c.release(s, index)
			return ended(ctx)
		case !c.reading:
			if !fresh {
				now = time.Now()
			}
			c.read(ctx, s, now) // until ctx ends, at the latest
			fresh = false
		default:
			c.park(ctx, s, index)
			fresh = false
		}
	}
}

// ended is why a caller may wait no longer. A deadline counts by the clock: some contexts are late to say so.
func ended(ctx context.Context) error { return endedAt(ctx, time.Now()) }

func endedAt(ctx context.Context, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d, ok := ctx.Deadline(); ok && !now.Before(d) {
		return context.DeadlineExceeded
	}
	return nil
}

// fail ends the connection for the first reason given and wakes every caller.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(err)
}

// end is fail with mu held. Closing may take its time, as TLS says goodbye; nobody waits for it with mu held.
func (c *Conn) end(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	close(c.dead)
	for len(c.parked) > 0 {
		c.unpark(c.slots[c.parked[0]])
	}
	c.mu.Unlock()
	c.nc.Close()
	c.mu.Lock()
}
