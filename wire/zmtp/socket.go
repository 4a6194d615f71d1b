package zmtp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Message is the frames of one message, without delimiters or envelopes of our own.
type Message [][]byte

var (
	// ErrClosed is for a socket that was closed.
	ErrClosed = errors.New("zmtp: socket closed")
	// ErrUnroutable is for a ROUTER's message to an identity that no peer has now.
	ErrUnroutable = errors.New("zmtp: no peer has this identity")
)

// Config says what a socket is; each zero value but Type's means its default.
type Config struct {
	Type     Type
	Identity string // shown to peers; a ROUTER on the other side addresses us by it
	Plain    *Plain // nil: mechanism NULL

	MaxFrame   int // bytes of a frame; 1 MiB
	MaxFrames  int // frames of a message; 64
	MaxMessage int // bytes of a message's frames together; 4 MiB
	MaxTopics  int // bytes of one peer's subscriptions, 64 added for each; 4 MiB
	MaxPeers   int // connections at a time; 16384

	Queued int // bytes that may wait to be written to a peer: beyond it DEALER waits, ROUTER fails, PUB and XPUB drop; 4 MiB
	Inbox  int // messages that may wait for Recv; then reading pauses; 1024

	HandshakeTimeout time.Duration // 5 s
	WriteTimeout     time.Duration // of one write; 10 s
	Heartbeat        time.Duration // without a whole frame for so long we ask, after three times so long we close; 10 s; negative: never
	RetryMin         time.Duration // between attempts to connect, doubled up to RetryMax, with jitter; 50 ms
	RetryMax         time.Duration // 2 s

	// Handle gets each message on the goroutine that reads the peer, in place of Recv; frames are valid until it returns.
	// What it sends with [Peer.Queue] leaves with the other replies to what arrived together.
	Handle func(p *Peer, frames Message)
	Opened func(p *Peer)                                            // called when a peer can be spoken to; nil for none
	Closed func(p *Peer, err error)                                 // called when it can't any more; nil for none
	Failed func(addr string, err error)                             // called when connecting or a handshake failed; nil for none
	Dialer func(ctx context.Context, addr string) (net.Conn, error) // nil: tcp://host:port and unix:/path
}

func (c Config) withDefaults() Config {
	c.MaxFrame = cmp.Or(c.MaxFrame, 1<<20)
	c.MaxFrames = cmp.Or(c.MaxFrames, 64)
	c.MaxMessage = cmp.Or(c.MaxMessage, 4<<20)
	c.MaxTopics = cmp.Or(c.MaxTopics, 4<<20)
	c.MaxPeers = cmp.Or(c.MaxPeers, 1<<14)
	c.Queued = cmp.Or(c.Queued, 4<<20)
	c.Inbox = cmp.Or(c.Inbox, 1024)
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, 5*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 10*time.Second)
	c.RetryMin = cmp.Or(c.RetryMin, 50*time.Millisecond)
	c.RetryMax = max(cmp.Or(c.RetryMax, 2*time.Second), c.RetryMin)
	if c.Dialer == nil {
		c.Dialer = dial
	}
	return c
}

// check finds what can't work.
func (c Config) check() error {
	switch {
	case c.Type.speaksWith() == nil:
		return fmt.Errorf("zmtp: type %q is none of DEALER, ROUTER, PUB, SUB, XPUB and XSUB", c.Type)
	case len(c.Identity) > maxIdentity || c.Identity != "" && c.Identity[0] == 0:
		return fmt.Errorf("zmtp: identity of %d bytes; want at most %d, the first not zero", len(c.Identity), maxIdentity)
	case c.Plain != nil && max(len(c.Plain.User), len(c.Plain.Password)) > 255:
		return errors.New("zmtp: PLAIN's user and password may have 255 bytes each")
	}
	return nil
}

// A Socket is one end of a topology: it listens and connects, to any number of peers, and connects again when a connection
// is lost. Its methods are safe for concurrent use.
type Socket struct {
	cfg     Config
	ctx     context.Context // ends with the socket
	stop    context.CancelFunc
	wg      sync.WaitGroup
	inbox   chan Message
	dropped atomic.Int64
	serial  atomic.Uint32

	mu        sync.Mutex
	listeners map[net.Listener]bool   // guarded by mu
	opening   map[net.Conn]bool       // guarded by mu: in the handshake
	peers     []*Peer                 // guarded by mu; replaced, never changed in place
	byName    map[string]*Peer        // guarded by mu: a ROUTER's
	topics    topics                  // guarded by mu: SUB and XSUB: our own; XPUB: of all peers
	changed   chan struct{}           // guarded by mu: closed and replaced when peers or topics change
	turn      atomic.Uint32           // of a DEALER
	closed    bool                    // guarded by mu
	all       atomic.Pointer[[]*Peer] // peers, to be read without mu
}

// New makes a socket, unconnected.
func New(cfg Config) (*Socket, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Socket{cfg: cfg.withDefaults(), listeners: make(map[net.Listener]bool), opening: make(map[net.Conn]bool),
		byName: make(map[string]*Peer), changed: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.inbox = make(chan Message, s.cfg.Inbox)
	s.all.Store(new([]*Peer))
	if s.cfg.Heartbeat > 0 {
		s.wg.Go(s.beat)
	}
	return s, nil
}

// Serve accepts connections on l, which is the socket's own from now on, until the socket is closed.
func (s *Socket) Serve(l net.Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		l.Close()
		return ErrClosed
	}
	s.listeners[l] = true
	s.wg.Go(func() { s.accept(l) })
	return nil
}

// accept is patient with errors that pass, such as too many open files.
func (s *Socket) accept(l net.Listener) {
	for wait := s.cfg.RetryMin; ; {
		nc, err := l.Accept()
		switch {
		case err == nil:
			wait = s.cfg.RetryMin
			s.wg.Go(func() {
				if err := s.run(nc, true); err != nil && s.cfg.Failed != nil {
					s.cfg.Failed(nc.RemoteAddr().String(), err)
				}
			})
			continue
		case s.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		}
		if !s.pause(wait) {
			return
		}
		wait = min(2*wait, s.cfg.RetryMax)
	}
}

// Connect connects to addr in the background and again whenever that connection is lost, until the socket is closed.
func (s *Socket) Connect(addr string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.wg.Go(func() { s.keep(addr) })
	return nil
}

// Peers returns how many peers can be spoken to.
func (s *Socket) Peers() int { return len(*s.all.Load()) }

// Dropped returns how many messages were dropped because a peer did not read them in time.
func (s *Socket) Dropped() int64 { return s.dropped.Load() }

// Wait returns when at least n peers can be spoken to.
func (s *Socket) Wait(ctx context.Context, n int) error {
	return s.until(ctx, func() bool { return len(s.peers) >= n })
}

// until waits for a state of the socket; what is called with mu held.
func (s *Socket) until(ctx context.Context, what func() bool) error {
	for {
		s.mu.Lock()
		ok, changed, closed := what(), s.changed, s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return ErrClosed
		case ok:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change wakes those who wait for a state. mu is held.
func (s *Socket) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Recv returns the next message. A ROUTER's begins with the peer's identity, an XPUB's is 1 or 0 and the topic that the first
// peer has subscribed to or the last one left.
func (s *Socket) Recv(ctx context.Context) (Message, error) {
	select {
	case m := <-s.inbox:
		return m, nil
	default:
	}
	select {
	case m := <-s.inbox:
		return m, nil
	case <-s.ctx.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends all connections and returns when nothing of the socket runs any more. What waits to be written is lost.
func (s *Socket) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.stop()
		s.change()
	}
	for l := range s.listeners {
		l.Close()
	}
	for nc := range s.opening {
		nc.Close()
	}
	peers := s.peers
	s.mu.Unlock()
	for _, p := range peers {
		p.end(ErrClosed)
	}
	s.wg.Wait()
	return nil
}
