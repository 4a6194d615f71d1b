package mux

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// A Handler answers one request frame by appending the reply's frame to dst. frame is valid until it returns. An error or a
// panic ends the connection.
type Handler func(dst, frame []byte) ([]byte, error)

// enough bytes of replies leave, though more requests have arrived.
const enough = 64 << 10

// A Server is the answering side of connections.
type Server struct {
	Framing Lengths
	Handle  Handler
	// Quick reports whether a request may be answered on the goroutine that reads: it waits for nothing. Others get a
	// goroutine each, so that they do not hold up what comes behind them. nil: none may.
	Quick        func(frame []byte) bool
	InFlight     int           // requests that may be answered at a time; then reading pauses; 256
	WriteTimeout time.Duration // of one write; 30 s
	Answered     func(n int)   // called with the number of replies that a write carried; nil for none
}

// Serve answers requests on nc until reading or writing fails or a request can't be framed, and returns why; io.EOF when
// the peer is done. Replies to requests that arrived together leave together. It does not close nc, but when a handler
// fails. A read deadline in the past stops it gracefully: what is being answered is answered, then Serve returns
// os.ErrDeadlineExceeded.
func (s *Server) Serve(nc net.Conn) error {
	limit, timeout := s.InFlight, s.WriteTimeout
	if limit <= 0 {
		limit = 256
	}
	if timeout <= 0 {
		timeout = 30 * time.Second
	}
	c := &serving{server: s, nc: nc, timeout: timeout, jobs: make(chan *job, limit), writing: make(chan struct{}, 1)}
	for range limit {
		c.jobs <- nil
	}
	defer c.wg.Wait()
	return c.loop()
}

// serving is one connection being served.
type serving struct {
	server  *Server
	nc      net.Conn
	timeout time.Duration
	jobs    chan *job // free places for requests that are not quick; nil is one that was never used
	wg      sync.WaitGroup

	quick int    // owned by loop: replies in batch
	batch []byte // owned by loop: quick replies

	writing chan struct{} // capacity 1: full while a write is in progress
	until   time.Time     // owned by who writes

	mu    sync.Mutex
	err   error  // guarded by mu: of the first handler that failed
	count int    // guarded by mu: replies in out
	out   []byte // guarded by mu: replies of jobs
	spare []byte // guarded by mu: the other buffer
}

// A job is the memory of a request that has a goroutine.
type job struct{ frame, reply []byte }

func (c *serving) loop() error {
	in := NewReader(c.nc, c.server.Framing)
	in.Eager(c.nc)
	for {
		frame, err := in.Next()
		if err != nil {
			return c.reason(err)
		}
		if c.server.Quick != nil && c.server.Quick(frame) {
			err = c.answer(frame)
		} else {
			err = c.start(frame)
		}
		if err == nil && (len(c.batch) > enough || !in.Buffered()) {
			err = c.flush()
		}
		if err != nil {
			return c.reason(err)
		}
	}
}

// answer answers a quick request. When that ends the connection, what was answered before still leaves.
func (c *serving) answer(frame []byte) error {
	reply, err := c.handle(c.batch, frame)
	if err != nil {
		c.flush()
		return err
	}
	c.batch, c.quick = reply, c.quick+1
	return nil
}

// reason is why serving ends: a handler's failure closes nc, which is what reading says then.
func (c *serving) reason(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	return err
}

func (c *serving) handle(dst, frame []byte) (reply []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			reply, err = dst, fmt.Errorf("handling a request: panic: %v", p)
		}
	}()
	return c.server.Handle(dst, frame)
}

// start answers a request on a goroutine of its own. Before it waits for a place, what is answered leaves.
func (c *serving) start(frame []byte) error {
	var j *job
	select {
	case j = <-c.jobs:
	default:
		if err := c.flush(); err != nil {
			return err
		}
		j = <-c.jobs
	}
	if j == nil {
		j = new(job)
	}
	j.frame = append(j.frame[:0], frame...)
	c.wg.Go(func() { c.run(j) })
	return nil
}

// run answers a job's request. Its place is free when the reply is written, which bounds what a peer that does not read can
// make us keep.
func (c *serving) run(j *job) {
	reply, err := c.handle(j.reply[:0], j.frame)
	if err == nil {
		j.reply = reply
		err = c.add(reply)
	}
	if err != nil {
		c.fail(err)
	}
	if cap(j.reply)+cap(j.frame) > enough {
		j = nil
	}
	c.jobs <- j
}

func (c *serving) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.nc.Close()
}

// add queues a job's reply and sees to it that it is written, perhaps by another's write.
func (c *serving) add(reply []byte) error {
	c.mu.Lock()
	c.out, c.count = append(c.out, reply...), c.count+1
	c.mu.Unlock()

	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	c.mu.Lock()
	b, n := c.out, c.count
	c.out, c.spare, c.count = c.spare[:0], nil, 0
	c.mu.Unlock()
	err := c.write(b, n)
	c.mu.Lock()
	if cap(b) <= keptBuffer {
		c.spare = b
	}
	c.mu.Unlock()
	return err
}

// flush writes the quick replies.
func (c *serving) flush() error {
	if len(c.batch) == 0 {
		return nil
	}
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	err := c.write(c.batch, c.quick)
	if c.batch = c.batch[:0]; cap(c.batch) > keptBuffer {
		c.batch = nil
	}
	c.quick = 0
	return err
}

// write writes n replies.
func (c *serving) write(b []byte, n int) error {
	if len(b) == 0 {
		return nil
	}
	if until := time.Now().Add(c.timeout); until.Sub(c.until) > c.timeout/8 {
		c.until = until
		if err := c.nc.SetWriteDeadline(until); err != nil {
			return err
		}
	}
	if _, err := c.nc.Write(b); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if c.server.Answered != nil {
		c.server.Answered(n)
	}
	return nil
}
