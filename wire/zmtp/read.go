package zmtp

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// read takes what the peer sends until the connection is over, and says why.
func (p *Peer) read() error {
	p.flush() // subscriptions, of a socket that has some
	for {
		flags, body, err := p.in.next()
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		if !p.seen.Load() {
			p.seen.Store(true)
		}
		if flags&flagCommand != 0 {
			err = p.command(body)
		} else {
			err = p.message(flags&flagMore != 0, body)
		}
		if err != nil {
			return err
		}
		if !p.in.buffered() {
			p.flushQueued()
		}
	}
}

// flushQueued writes what Handle has queued.
func (p *Peer) flushQueued() {
	p.mu.Lock()
	waits := len(p.out) > 0 && !p.writing
	p.mu.Unlock()
	if waits {
		p.flush()
	}
}

func (p *Peer) command(body []byte) error {
	if len(p.ends) > 0 {
		return fmt.Errorf("%w: a command between the frames of a message", ErrProtocol)
	}
	name, data, err := parseCommand(body)
	if err != nil {
		return err
	}
	switch string(name) {
	case "PING":
		return p.pong(data)
	case "PONG":
		return nil
	case "SUBSCRIBE", "CANCEL":
		return p.socket.subscribed(p, string(data), name[0] == 'S')
	case "ERROR":
		reason, _, _ := cut8(data)
		return fmt.Errorf("%w: %.255q", ErrRefused, reason)
	}
	return nil // RFC 37: what is not known is passed over
}

// pong answers a heartbeat: two bytes of time to live, which our own beat makes needless, and up to 16 of context.
func (p *Peer) pong(data []byte) error {
	if len(data) < 2 || len(data) > 18 {
		return fmt.Errorf("%w: PING with %d bytes, want 2 to 18", ErrProtocol, len(data))
	}
	p.mu.Lock()
	if len(p.out) <= p.socket.cfg.Queued {
		p.out = appendCommand(p.out, "PONG", data[2:])
	}
	p.mu.Unlock()
	p.flush()
	return nil
}

// message takes a frame of a message; the last one completes it. One alone is handed on where it was read.
func (p *Peer) message(more bool, body []byte) error {
	if more || len(p.ends) > 0 {
		if len(p.ends) == p.socket.cfg.MaxFrames {
			return fmt.Errorf("%w: message of more than %d frames", ErrTooLong, len(p.ends))
		}
		if len(p.parts)+len(body) > p.socket.cfg.MaxMessage {
			return fmt.Errorf("%w: message of more than %d bytes", ErrTooLong, p.socket.cfg.MaxMessage)
		}
		p.parts = append(p.parts, body...)
		p.ends = append(p.ends, len(p.parts))
		if more {
			return nil
		}
	}
	p.frames = p.frames[:0]
	if len(p.ends) == 0 {
		p.frames = append(p.frames, body)
	}
	from := 0
	for _, end := range p.ends {
		p.frames = append(p.frames, p.parts[from:end:end])
		from = end
	}
	err := p.socket.take(p, p.frames)
	p.parts, p.ends = p.parts[:0], p.ends[:0]
	if cap(p.parts) > keptBuffer {
		p.parts = nil
	}
	return err
}

// take hands a message on, as the socket's type wants it.
func (s *Socket) take(p *Peer, frames Message) error {
	switch s.cfg.Type {
	case Pub, XPub:
		// ZMTP 3.0 peers subscribe by messages.
		if f := frames[0]; len(frames) == 1 && len(f) > 0 && f[0] <= 1 {
			return s.subscribed(p, string(f[1:]), f[0] == 1)
		}
		if s.cfg.Type == Pub {
			return nil
		}
	case Sub:
		s.mu.Lock()
		wanted := s.topics.match(frames[0])
		s.mu.Unlock()
		if !wanted {
			return nil
		}
	}
	return s.give(p, frames)
}

var errHandler = errors.New("zmtp: the message's handler panicked")

// give hands frames, valid for now, to Handle or, as a copy, to Recv.
func (s *Socket) give(p *Peer, frames Message) (err error) {
	if s.cfg.Handle != nil {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("%w: %v", errHandler, r)
			}
		}()
		s.cfg.Handle(p, frames)
		return nil
	}
	m := make(Message, 0, len(frames)+1)
	if s.cfg.Type == Router {
		m = append(m, []byte(p.identity))
	}
	for _, f := range frames {
		m = append(m, bytes.Clone(f))
	}
	select {
	case s.inbox <- m:
		return nil
	default:
	}
	select {
	case s.inbox <- m:
		return nil
	case <-p.done:
		return p.reason()
	case <-s.ctx.Done():
		return ErrClosed
	}
}

// beat asks silent peers whether they live and ends those that do not answer.
func (s *Socket) beat() {
	tick := time.NewTicker(s.cfg.Heartbeat)
	defer tick.Stop()
	missed := make(map[*Peer]int)
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		peers := *s.all.Load()
		now := make(map[*Peer]int, len(peers))
		for _, p := range peers {
			if p.seen.Swap(false) {
				continue
			}
			if now[p] = missed[p] + 1; now[p] >= 3 {
				p.end(fmt.Errorf("zmtp: no whole frame for %v", 3*s.cfg.Heartbeat))
				continue
			}
			p.ping()
		}
		missed = now
	}
}

func (p *Peer) ping() {
	ttl := min(3*p.socket.cfg.Heartbeat/(100*time.Millisecond), 0xffff)
	p.mu.Lock()
	// A write in progress is bounded by its own timeout, and what waits behind it asks as well as a PING does.
	ask := p.err == nil && !p.writing && len(p.out) <= p.socket.cfg.Queued
	if ask {
		p.out = appendCommand(p.out, "PING", []byte{byte(ttl >> 8), byte(ttl)})
	}
	p.mu.Unlock()
	if ask && p.socket.writesApart() {
		p.flush()
	} else if ask {
		p.socket.wg.Go(p.write) // a write to a peer that does not read must not hold up the others' beats
	}
}
