package zmtp

import (
	"context"
	"fmt"
)

// topics is a set of prefixes, each counted.
type topics struct {
	of      map[string]int
	bytes   int
	longest int // of those that are or were there
}

// few is how many prefixes are compared one by one; more are looked up, one look for each length.
const few = 8

func (t *topics) match(topic []byte) bool {
	if len(t.of) <= few {
		for prefix := range t.of {
			if len(topic) >= len(prefix) && string(topic[:len(prefix)]) == prefix {
				return true
			}
		}
		return false
	}
	for n := range min(len(topic), t.longest) + 1 {
		if t.of[string(topic[:n])] > 0 {
			return true
		}
	}
	return false
}

// add counts a prefix once more and reports whether it is new.
func (t *topics) add(prefix string) bool {
	if t.of == nil {
		t.of = make(map[string]int)
	}
	t.of[prefix]++
	if t.of[prefix] > 1 {
		return false
	}
	t.bytes += len(prefix) + perTopic
	t.longest = max(t.longest, len(prefix))
	return true
}

// perTopic is what a subscription costs beside its bytes.
const perTopic = 64

// drop counts a prefix once less and reports whether that was the last.
func (t *topics) drop(prefix string) bool {
	n := t.of[prefix]
	if n != 1 {
		if n > 1 {
			t.of[prefix]--
		}
		return false
	}
	delete(t.of, prefix)
	t.bytes -= len(prefix) + perTopic
	return true
}

// Subscribe asks every publisher, those to come included, for messages that begin with topic. It counts.
func (s *Socket) Subscribe(topic string) error { return s.subscribe(topic, true) }

// Unsubscribe takes one Subscribe back.
func (s *Socket) Unsubscribe(topic string) error { return s.subscribe(topic, false) }

func (s *Socket) subscribe(topic string, on bool) error {
	if s.cfg.Type != Sub && s.cfg.Type != XSub {
		return fmt.Errorf("zmtp: a %s socket has no subscriptions of its own", s.cfg.Type)
	}
	if len(topic)+len("\x09SUBSCRIBE") > s.cfg.MaxFrame {
		return fmt.Errorf("%w: topic of %d bytes", ErrTooLong, len(topic))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if on && !s.topics.add(topic) || !on && !s.topics.drop(topic) {
		return nil
	}
	for _, p := range s.peers {
		p.appendSubscription(topic, on)
		s.wg.Go(p.flush)
	}
	return nil
}

// appendSubscription adds a subscription to what waits to be written, as the peer's version has it.
func (p *Peer) appendSubscription(topic string, on bool) {
	name, sign := "CANCEL", byte(0)
	if on {
		name, sign = "SUBSCRIBE", 1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
	case p.minor >= 1:
		p.out = appendCommand(p.out, name, []byte(topic))
	default:
		p.out = append(append(appendHeader(p.out, 0, 1+len(topic)), sign), topic...)
	}
}

// subscribed takes a peer's subscription. An XPUB hands on the first of a topic and the last to leave it.
func (s *Socket) subscribed(p *Peer, topic string, on bool) error {
	if !s.writesApart() {
		return fmt.Errorf("%w: a subscription to a %s socket", ErrProtocol, s.cfg.Type)
	}
	p.mu.Lock()
	changed := false
	if on {
		p.topics.add(topic)
		changed = true
	} else if _, had := p.topics.of[topic]; had {
		p.topics.drop(topic)
		changed = true
	}
	bytes := p.topics.bytes
	p.mu.Unlock()
	if bytes > s.cfg.MaxTopics {
		return fmt.Errorf("%w: subscriptions of %d bytes, at most %d", ErrTooLong, bytes, s.cfg.MaxTopics)
	}
	if !changed {
		return nil
	}
	return s.count(p, topic, on)
}

// count keeps how many peers want a topic and tells who reads an XPUB when the first comes and the last goes.
func (s *Socket) count(p *Peer, topic string, on bool) error {
	s.mu.Lock()
	tell := on && s.topics.add(topic) || !on && s.topics.drop(topic)
	s.change()
	s.mu.Unlock()
	if !tell || s.cfg.Type != XPub {
		return nil
	}
	sign := byte(0)
	if on {
		sign = 1
	}
	return s.give(p, Message{append([]byte{sign}, topic...)})
}

// forgetTopics takes back what a peer that is gone had subscribed to.
func (s *Socket) forgetTopics(p *Peer) {
	p.mu.Lock()
	of := p.topics.of
	p.topics = topics{}
	p.mu.Unlock()
	for topic, n := range of {
		for range n {
			s.count(p, topic, false)
		}
	}
}

// WaitSubscribed returns when some peer has subscribed to exactly topic.
func (s *Socket) WaitSubscribed(ctx context.Context, topic string) error {
	return s.until(ctx, func() bool { return s.writesApart() && s.topics.of[topic] > 0 })
}
