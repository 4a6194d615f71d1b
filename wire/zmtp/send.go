package zmtp

import (
	"context"
	"fmt"
)

// writesApart reports whether peers have writers of their own, because who sends must never wait for one of them.
func (s *Socket) writesApart() bool { return s.cfg.Type == Pub || s.cfg.Type == XPub }

// fits checks a message against the limits that we hold a peer to.
func (s *Socket) fits(frames [][]byte) error {
	if len(frames) == 0 {
		return fmt.Errorf("%w: a message without frames", ErrProtocol)
	}
	if len(frames) > s.cfg.MaxFrames {
		return fmt.Errorf("%w: message of %d frames, at most %d", ErrTooLong, len(frames), s.cfg.MaxFrames)
	}
	total := 0
	for _, f := range frames {
		if len(f) > s.cfg.MaxFrame {
			return fmt.Errorf("%w: frame of %d bytes, at most %d", ErrTooLong, len(f), s.cfg.MaxFrame)
		}
		total += len(f)
	}
	if total > s.cfg.MaxMessage {
		return fmt.Errorf("%w: message of %d bytes, at most %d", ErrTooLong, total, s.cfg.MaxMessage)
	}
	return nil
}

// Send sends a message. A DEALER takes its peers in turn and waits for one; a ROUTER's first frame is the identity it is
// for; PUB and XPUB send it to those that subscribed to its beginning and never wait; XSUB and SUB send to every peer, which
// is how subscriptions travel.
func (s *Socket) Send(ctx context.Context, frames ...[]byte) error {
	if err := s.fits(frames); err != nil {
		return err
	}
	switch s.cfg.Type {
	case Dealer:
		p, err := s.next(ctx)
		if err != nil {
			return err
		}
		return p.Send(ctx, frames...)
	case Router:
		return s.route(ctx, frames)
	case Pub, XPub:
		s.publish(frames)
		return nil
	}
	return s.sendUp(ctx, frames)
}

// next returns the peer whose turn it is and waits for there to be one.
func (s *Socket) next(ctx context.Context) (*Peer, error) {
	for {
		if peers := *s.all.Load(); len(peers) > 0 {
			return peers[int(s.turn.Add(1))%len(peers)], nil
		}
		if err := s.Wait(ctx, 1); err != nil {
			return nil, fmt.Errorf("waiting for a peer: %w", err)
		}
	}
}

func (s *Socket) route(ctx context.Context, frames [][]byte) error {
	s.mu.Lock()
	p, closed := s.byName[string(frames[0])], s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case p == nil:
		return fmt.Errorf("%w: %.40q", ErrUnroutable, frames[0])
	case len(frames) == 1:
		return fmt.Errorf("%w: a ROUTER's message has an identity and at least one frame", ErrProtocol)
	}
	return p.Send(ctx, frames[1:]...)
}

func (s *Socket) publish(frames [][]byte) {
	for _, p := range *s.all.Load() {
		p.mu.Lock()
		wanted := p.err == nil && p.topics.match(frames[0])
		full := len(p.out) > s.cfg.Queued
		if wanted && !full {
			p.appendMessage(frames)
		}
		p.mu.Unlock()
		switch {
		case wanted && full:
			s.dropped.Add(1)
		case wanted:
			p.flush()
		}
	}
}

// sendUp sends what an XSUB or SUB says to its publishers: a subscription, or, from an XSUB, a message of its own.
func (s *Socket) sendUp(ctx context.Context, frames [][]byte) error {
	if f := frames[0]; len(frames) == 1 && len(f) > 0 && f[0] <= 1 {
		return s.subscribe(string(f[1:]), f[0] == 1)
	}
	if s.cfg.Type == Sub {
		return fmt.Errorf("%w: a SUB socket sends subscriptions only", ErrProtocol)
	}
	for _, p := range *s.all.Load() {
		if err := p.Send(ctx, frames...); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return nil
}
