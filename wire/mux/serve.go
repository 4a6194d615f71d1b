package mux

import (
	"net"
	"sync"
	"time"
)

// A Handler answers one request frame by appending the reply's frame to dst. frame is valid until it returns. An error ends
// the connection.
type Handler func(dst, frame []byte) ([]byte, error)

// A Server is the answering side of connections.
type Server struct {
	Framing Framing
	Handle  Handler
	// Quick reports whether a request may be answered on the goroutine that reads: it waits for nothing. Others get a
	// goroutine each, so that they do not hold up what comes behind them. nil: none may.
	Quick        func(frame []byte) bool
	InFlight     int           // requests that may be answered at a time; then reading pauses; 256
	WriteTimeout time.Duration // of one write; 30 s
	Answered     func(n int)   // called with the number of replies that a write carried; nil for none
}

// Serve answers requests on nc until reading or writing fails or a request can't be framed, and returns why; io.EOF when
// the peer is done. Replies to requests that arrived together leave together. It does not close nc.
func (s *Server) Serve(nc net.Conn) error {
	w := &replies{nc: nc, timeout: s.WriteTimeout, answered: s.Answered}
	if w.timeout == 0 {
		w.timeout = 30 * time.Second
	}
	limit := s.InFlight
	if limit == 0 {
		limit = 256
	}
	in := frames{src: nc, framing: s.Framing}
	tokens := make(chan struct{}, limit)
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		frame, err := in.next()
		if err != nil {
			return err
		}
		if s.Quick != nil && s.Quick(frame) {
			err = w.handle(s.Handle, frame)
		} else {
			tokens <- struct{}{}
			own := append([]byte(nil), frame...)
			wg.Go(func() {
				defer func() { <-tokens }()
				reply, err := s.Handle(nil, own)
				if err != nil || w.add(reply) != nil {
					nc.Close()
				}
			})
		}
		if err == nil && !in.buffered() {
			err = w.flush()
		}
		if err != nil {
			return err
		}
	}
}

// replies collects replies and writes them.
type replies struct {
	nc       net.Conn
	timeout  time.Duration
	answered func(int)
	until    time.Time // owned by who holds writing

	writing sync.Mutex // held while a write is in progress
	mu      sync.Mutex
	out     []byte // guarded by mu
	spare   []byte // guarded by mu
	count   int    // guarded by mu
}

// handle runs h, which must be quick, on the memory that is to be written.
func (w *replies) handle(h Handler, frame []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	out, err := h(w.out, frame)
	if err == nil {
		w.out, w.count = out, w.count+1
	}
	return err
}

// add queues a reply and sees to it that it is written.
func (w *replies) add(reply []byte) error {
	w.mu.Lock()
	w.out, w.count = append(w.out, reply...), w.count+1
	w.mu.Unlock()
	return w.flush()
}

// flush writes what is queued.
func (w *replies) flush() error {
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.Lock()
	b, n := w.out, w.count
	w.out, w.spare, w.count = w.spare[:0], nil, 0
	w.mu.Unlock()
	err := w.write(b)
	w.mu.Lock()
	w.spare = b
	w.mu.Unlock()
	if err == nil && n > 0 && w.answered != nil {
		w.answered(n)
	}
	return err
}

func (w *replies) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if until := time.Now().Add(w.timeout); until.Sub(w.until) > w.timeout/8 {
		w.until = until
		if err := w.nc.SetWriteDeadline(until); err != nil {
			return err
		}
	}
	_, err := w.nc.Write(b)
	return err
}
