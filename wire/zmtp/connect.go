package zmtp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"
)

// dial connects to tcp://host:port or unix:/path.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	if hostport, ok := strings.CutPrefix(addr, "tcp://"); ok {
		return d.DialContext(ctx, "tcp", hostport)
	}
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return d.DialContext(ctx, "unix", path)
	}
	return nil, fmt.Errorf("zmtp: address %q: want tcp://host:port or unix:/path", addr)
}

// keep holds a connection to addr. Attempts come further apart while they fail.
func (s *Socket) keep(addr string) {
	wait := s.cfg.RetryMin
	for s.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.HandshakeTimeout)
		nc, err := s.cfg.Dialer(ctx, addr)
		cancel()
		if err == nil {
			err = s.run(nc, false)
		}
		if err == nil {
			wait = s.cfg.RetryMin
		} else if s.cfg.Failed != nil && s.ctx.Err() == nil {
			s.cfg.Failed(addr, err)
		}
		if !s.pause(wait/2 + rand.N(wait)) {
			return
		}
		wait = min(2*wait, s.cfg.RetryMax)
	}
}

// pause waits and reports whether the socket still lives.
func (s *Socket) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// run is a connection's whole life. Its error is why there was no peer: the handshake failed.
func (s *Socket) run(nc net.Conn, listening bool) error {
	defer nc.Close()
	if err := s.open(nc); err != nil {
		return err
	}
	in := &frameReader{src: nc, max: s.cfg.MaxFrame}
	g, m, err := s.cfg.handshake(nc, in, listening)
	s.mu.Lock()
	delete(s.opening, nc)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	p := newPeer(s, nc, in, g, m)
	if err := s.add(p); err != nil {
		return err
	}
	if s.writesApart() {
		s.wg.Go(p.writer)
	}
	if s.cfg.Opened != nil {
		s.cfg.Opened(p)
	}
	p.end(p.read())
	s.remove(p)
	if s.cfg.Closed != nil {
		s.cfg.Closed(p, p.reason())
	}
	return nil
}

var errPeers = errors.New("zmtp: as many peers as the socket may have")

func (s *Socket) open(nc net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if len(s.opening)+len(s.peers) >= s.cfg.MaxPeers {
		return errPeers
	}
	s.opening[nc] = true
	return nil
}

// add makes p one of the peers. One that comes with an identity that another has takes its place: it is that peer, connected
// again before we noticed that it was gone.
func (s *Socket) add(p *Peer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.cfg.Type == Router {
		if old := s.byName[p.identity]; old != nil {
			defer old.end(errors.New("zmtp: another connection has taken this identity"))
		}
		s.byName[p.identity] = p
	}
	for topic := range s.topics.of {
		if s.cfg.Type == Sub || s.cfg.Type == XSub {
			p.appendSubscription(topic, true)
		}
	}
	s.setPeers(append(slices.Clip(s.peers), p))
	return nil
}

func (s *Socket) setPeers(peers []*Peer) {
	s.peers = peers
	s.all.Store(&peers)
	s.change()
}

func (s *Socket) remove(p *Peer) {
	s.mu.Lock()
	if s.byName[p.identity] == p {
		delete(s.byName, p.identity)
	}
	s.setPeers(slices.DeleteFunc(slices.Clone(s.peers), func(o *Peer) bool { return o == p }))
	s.mu.Unlock()
	s.forgetTopics(p)
}
