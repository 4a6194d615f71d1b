package mux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

// A Framing knows where a frame ends and whose it is.
type Framing interface {
	// Header is the number of bytes from which Length can be told.
	Header() int
	// Length returns the length of a whole frame, header included, or an error when no frame begins so. It is what bounds
	// the memory a peer can ask for: it is checked before anything is made to hold the frame.
	Length(header []byte) (int, error)
	// ID returns the number of the call that a reply answers.
	ID(frame []byte) (uint32, error)
}

// An Exchange is one call of a caller: its request and what becomes of the reply. Reply may run on another caller's
// goroutine while this one waits; frame is valid until it returns.
type Exchange interface {
	AppendRequest(dst []byte, id uint32) []byte
	Reply(frame []byte) error
}

var (
	// ErrBusy is for calls that found every slot taken until their context ended, or too many bytes waiting to be written.
	ErrBusy = errors.New("too many calls in flight")
	// ErrClosed is for calls on a connection that was closed by us.
	ErrClosed = errors.New("connection closed")
)

// Config bounds a connection; each zero value means its default.
type Config struct {
	InFlight     int           // calls at a time; 256, at most 65536
	Queued       int           // bytes that may wait while a write is in progress; 4 MiB
	WriteTimeout time.Duration // of one write; 30 s
}

func (c Config) withDefaults() Config {
	if c.InFlight == 0 {
		c.InFlight = 256
	}
	if c.Queued == 0 {
		c.Queued = 4 << 20
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = 30 * time.Second
	}
	return c
}

// A Conn is the calling side of a connection. Its methods are safe for concurrent use.
type Conn struct {
	nc      net.Conn
	framing Framing
	cfg     Config
	free    chan uint16 // indices of free slots

	in         frames    // owned by who holds the reading token
	readUntil  time.Time // owned by who holds the reading token
	writeUntil time.Time // owned by who writes

	mu       sync.Mutex
	slots    []slot // guarded by mu, but for exchange and wake of a slot in use
	inFlight int    // guarded by mu
	reading  bool   // guarded by mu: somebody reads
	writing  bool   // guarded by mu: somebody writes
	out      []byte // guarded by mu: waits to be written
	spare    []byte // guarded by mu: the other buffer
	err      error  // guarded by mu: why the connection is dead
}

// A slot is a call's place. Its state says who may touch it.
type slot struct {
	generation uint16
	state      state
	exchange   Exchange
	err        error
	wake       chan struct{} // capacity 1: the state changed, or it is this caller's turn to read
}

type state uint8

const (
	vacant     state = iota
	waiting          // for its reply
	delivering       // its Reply is running on the reader's goroutine
	answered         // err is the outcome
)

// New makes the calling side of nc, which is its own from now on.
func New(nc net.Conn, f Framing, cfg Config) *Conn {
	c := &Conn{nc: nc, framing: f, cfg: cfg.withDefaults()}
	c.in = frames{src: nc, framing: f}
	c.slots = make([]slot, c.cfg.InFlight)
	c.free = make(chan uint16, c.cfg.InFlight)
	for i := range c.slots {
		c.slots[i].wake = make(chan struct{}, 1)
		c.free <- uint16(i)
	}
	return c
}

// Close ends the connection; calls in flight fail with ErrClosed.
func (c *Conn) Close() error {
	c.fail(ErrClosed)
	return nil
}

// Err returns why the connection is dead, nil while it lives.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Call sends x's request and returns when its reply has been handled, or when ctx ends; the connection and the other calls
// go on all the same. The error of x.Reply is returned as it is.
func (c *Conn) Call(ctx context.Context, x Exchange) error {
	index, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	s := &c.slots[index]
	if err := c.send(s, index, x); err != nil {
		return err
	}
	return c.await(ctx, s, index)
}

// acquire takes a free slot.
func (c *Conn) acquire(ctx context.Context) (uint16, error) {
	select {
	case i := <-c.free:
		return i, nil
	default:
	}
	select {
	case i := <-c.free:
		return i, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: %w", ErrBusy, ctx.Err())
	}
}

// release gives a slot back under a new generation: a reply to the call that had it is nobody's.
func (c *Conn) release(s *slot, index uint16) {
	s.generation++
	s.state, s.exchange, s.err = vacant, nil, nil
	c.inFlight--
	select {
	case <-s.wake:
	default:
	}
	c.free <- index
}

// send queues the request, and writes what is queued unless somebody else does already.
func (c *Conn) send(s *slot, index uint16, x Exchange) error {
	c.mu.Lock()
	if err := c.err; err != nil || len(c.out) > c.cfg.Queued {
		c.mu.Unlock()
		c.free <- index
		if err == nil {
			err = fmt.Errorf("%w: %d bytes wait to be written", ErrBusy, c.cfg.Queued)
		}
		return err
	}
	s.state, s.exchange = waiting, x
	c.inFlight++
	c.out = x.AppendRequest(c.out, uint32(s.generation)<<16|uint32(index))
	if c.writing {
		c.mu.Unlock()
		return nil
	}
	c.writing = true
	crowd := c.inFlight > 1
	c.mu.Unlock()
	if crowd {
		// Callers that are about to send get to add theirs to this write; alone it would only cost.
		runtime.Gosched()
	}
	c.flush()
	return nil
}

// flush writes until nothing waits. A failure ends the connection; every caller learns it where it waits.
func (c *Conn) flush() {
	for {
		c.mu.Lock()
		if len(c.out) == 0 || c.err != nil {
			c.writing = false
			c.mu.Unlock()
			return
		}
		b := c.out
		c.out = c.spare[:0]
		c.spare = nil
		c.mu.Unlock()
		err := c.write(b)
		c.mu.Lock()
		c.spare = b
		c.mu.Unlock()
		if err != nil {
			c.fail(fmt.Errorf("writing: %w", err))
		}
	}
}

func (c *Conn) write(b []byte) error {
	// Moving a deadline costs as much as setting one, so it is moved when an eighth of it is gone.
	if until := time.Now().Add(c.cfg.WriteTimeout); until.Sub(c.writeUntil) > c.cfg.WriteTimeout/8 {
		c.writeUntil = until
		if err := c.nc.SetWriteDeadline(until); err != nil {
			return err
		}
	}
	_, err := c.nc.Write(b)
	return err
}

// await returns the outcome of the call in s. Whenever nobody reads, the caller does.
func (c *Conn) await(ctx context.Context, s *slot, index uint16) error {
	for {
		c.mu.Lock()
		switch {
		case s.state == answered:
			err := s.err
			c.release(s, index)
			c.promote()
			c.mu.Unlock()
			return err
		case c.err != nil:
			// A reader that is delivering to us will set the state; until then the slot is not ours to give back.
			if s.state != delivering {
				err := c.err
				c.release(s, index)
				c.mu.Unlock()
				return err
			}
		case s.state == waiting && ended(ctx) != nil:
			c.release(s, index)
			c.promote()
			c.mu.Unlock()
			return ended(ctx)
		case !c.reading:
			c.reading = true
			c.mu.Unlock()
			c.lead(ctx, s)
			continue
		}
		c.mu.Unlock()
		select {
		case <-s.wake:
		case <-ctx.Done():
			if c.delivering(s) {
				<-s.wake
			}
		}
	}
}

func (c *Conn) delivering(s *slot) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.state == delivering
}

// promote wakes a caller that waits to read in the place of one that has left. mu is held.
func (c *Conn) promote() {
	if c.reading || c.inFlight == 0 {
		return
	}
	for i := range c.slots {
		if c.slots[i].state == waiting {
			wake(&c.slots[i])
			return
		}
	}
}

func wake(s *slot) {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// lead reads frames and hands them out until the caller's own reply has come, its context ends or the connection does.
// The caller holds the reading token and gives it up here.
func (c *Conn) lead(ctx context.Context, mine *slot) {
	stop := c.bound(ctx)
	var broken error
	for {
		frame, err := c.in.next()
		if err == nil && !c.deliver(frame, mine) {
			continue
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			broken = fmt.Errorf("reading: %w", err)
		}
		stop()
		if err != nil {
			// Our own time is up, or somebody's before us: what was read so far is kept, and whoever reads next sets the
			// deadline anew.
			c.readUntil = unknown
		}
		break
	}
	c.leave()
	if broken != nil {
		c.fail(broken)
	}
}

// unknown stands for a read deadline that may be any.
var unknown = time.Unix(1, 0)

// ended is why a caller may wait no longer. A deadline counts by the clock: some contexts are late to say so.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return nil
}

func (c *Conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
}

// bound makes reading end with ctx.
func (c *Conn) bound(ctx context.Context) (stop func()) {
	until, has := ctx.Deadline()
	if until != c.readUntil {
		c.readUntil = until
		c.nc.SetReadDeadline(until)
	}
	if has || ctx.Done() == nil {
		return func() {}
	}
	cancel := context.AfterFunc(ctx, func() { c.nc.SetReadDeadline(unknown) })
	return func() {
		cancel()
		c.readUntil = unknown // the function may run late
	}
}

// deliver hands a frame to the call it answers and reports whether that is mine.
func (c *Conn) deliver(frame []byte, mine *slot) bool {
	id, err := c.framing.ID(frame)
	if err != nil {
		c.fail(fmt.Errorf("reading: %w", err))
		return true
	}
	index := int(id & 0xffff)
	c.mu.Lock()
	if index >= len(c.slots) || c.slots[index].generation != uint16(id>>16) || c.slots[index].state != waiting {
		c.mu.Unlock()
		return false // to a call that was given up
	}
	s := &c.slots[index]
	s.state = delivering
	c.mu.Unlock()
	err = s.exchange.Reply(frame)
	c.mu.Lock()
	s.state, s.err = answered, err
	if s != mine {
		wake(s)
	}
	c.mu.Unlock()
	return s == mine
}

// fail ends the connection for the first reason given and wakes every caller.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	c.nc.Close()
	for i := range c.slots {
		if c.slots[i].state == waiting {
			wake(&c.slots[i])
		}
	}
}
