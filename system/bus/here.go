package bus

import (
	"net"

	"toll/wire/frame"
	"toll/wire/mux"
)

const (
	enough = 64 << 10 // bytes of replies leave, though more requests have arrived
	kept   = 1 << 20  // a larger buffer is let go
)

// A here answers the requests of one connection where they are read.
type here struct {
	server *Server
	conn   *serverConn
	nc     net.Conn
	in     *mux.Reader
	seen   seen
	q      Request
	out    []byte
	until  int64 // of the write deadline, on our clock
}

// answerHere is answerOn for handlers that wait for nothing: one goroutine reads, answers and writes, so nothing is handed over
// and nothing is locked. Replies to requests that arrived together leave together.
func (s *Server) answerHere(nc net.Conn, c *serverConn) error {
	r := s.responder
	h := &here{server: s, conn: c, nc: nc, in: mux.NewReader(nc, frame.Framing{Max: r.cfg.MaxFrame}), q: Request{responder: r}}
	h.in.Eager(nc)
	var turns *mux.Turns
	if r.cfg.Heartbeat > 0 { // sweep ends what turns leave open
		turns = mux.NewTurns(nc, h.in, h.take)
	}
	for {
		var out []byte
		var err error
		if turns != nil && h.in.Alone() {
			out, err = turns.Run()
		} else {
			out, err = h.take()
		}
		if len(out) > 0 {
			err = h.put(out, err)
		}
		if err != nil {
			return err
		}
	}
}

// take answers the next request and those that came with it and returns the replies, beside an error, too.
func (h *here) take() (out []byte, err error) {
	r := h.server.responder
	if h.out = h.out[:0]; cap(h.out) > kept {
		h.out = nil
	}
	for {
		b, err := h.in.Next()
		if err != nil {
			return h.out, err
		}
		if h.seen.mark(b); marked(b) {
			r.replayed.Add(1)
		} else if h.out, err = r.respondTo(&h.q, h.out, b); err != nil {
			return h.out, err
		} else {
			h.conn.frames.Add(1)
		}
		if len(h.out) >= enough || !h.in.Buffered() {
			return h.out, nil
		}
	}
}

// put writes replies. The deadline is moved when an eighth of its time is gone. failed is what ends the connection behind
// them, nil for nothing.
func (h *here) put(out []byte, failed error) error {
	r := h.server.responder
	limit := r.cfg.Write.Microseconds()
	if now := r.clock.now(); now+limit-h.until > limit/8 {
		h.until = now + limit
		if err := h.nc.SetWriteDeadline(r.clock.time(h.until)); err != nil {
			return err
		}
	}
	_, err := h.nc.Write(out)
	if failed != nil {
		err = failed
	}
	return err
}
