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

// answerHere is answerOn for handlers that wait for nothing: one goroutine reads, answers and writes, so nothing is handed over
// and nothing is locked. Replies to requests that arrived together leave together.
func (s *Server) answerHere(nc net.Conn, c *serverConn) error {
	r := s.responder
	in := mux.NewReader(nc, frame.Framing{Max: r.cfg.MaxFrame})
	in.Eager(nc)
	seen, q := new(seen), &Request{responder: r}
	var out []byte
	var until int64 // of the write deadline, on our clock
	for {
		b, err := in.Next()
		if err != nil {
			return err
		}
		if seen.mark(b); marked(b) {
			r.replayed.Add(1)
		} else if out, err = r.respondTo(q, out, b); err == nil {
			c.frames.Add(1)
		}
		if err == nil && len(out) < enough && in.Buffered() {
			continue
		}
		if len(out) > 0 {
			until, err = s.put(nc, out, until, err)
			if out = out[:0]; cap(out) > kept {
				out = nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// put writes replies. The deadline is moved when an eighth of its time is gone. failed is what ends the connection behind
// them, nil for nothing.
func (s *Server) put(nc net.Conn, out []byte, until int64, failed error) (int64, error) {
	limit := s.responder.cfg.Write.Microseconds()
	if now := s.responder.clock.now(); now+limit-until > limit/8 {
		until = now + limit
		if err := nc.SetWriteDeadline(s.responder.clock.time(until)); err != nil {
			return until, err
		}
	}
	_, err := nc.Write(out)
	if failed != nil {
		err = failed
	}
	return until, err
}
