package zmtp

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A Peer is the other end of one connection.
type Peer struct {
	socket   *Socket
	nc       net.Conn
	identity string
	minor    byte // of the version that both speak
	in       *frameReader
	seen     atomic.Bool   // a whole frame came since the last beat
	done     chan struct{} // closed when the connection is over

	parts  []byte  // owned by read: frames of a message before its last
	ends   []int   // owned by read: where each of them ends
	frames Message // owned by read

	mu         sync.Mutex
	out        []byte        // guarded by mu: waits to be written
	spare      []byte        // guarded by mu: the other buffer
	queued     int           // guarded by mu: messages in out
	last       int           // guarded by mu: messages that the last write carried
	writing    bool          // guarded by mu: somebody writes
	room       chan struct{} // guarded by mu: closed when there is room again; nil when nobody waits
	wake       chan struct{} // capacity 1: the writer has something to do
	writeUntil time.Time     // owned by who writes
	topics     topics        // guarded by mu: what the peer has subscribed to
	err        error         // guarded by mu
}

func newPeer(s *Socket, nc net.Conn, in *frameReader, g greeting, m metadata) *Peer {
	p := &Peer{socket: s, nc: nc, identity: m.identity, minor: min(g.minor, 1), in: in, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	if p.identity == "" {
		// As libzmq names peers without an identity: a zero and a number.
		p.identity = string(binary.BigEndian.AppendUint32([]byte{0}, s.serial.Add(1)))
	}
	return p
}

// Identity is what a ROUTER addresses the peer by: its own or one that we made.
func (p *Peer) Identity() string { return p.identity }

// RemoteAddr is where the peer is.
func (p *Peer) RemoteAddr() net.Addr { return p.nc.RemoteAddr() }

// Done is closed when the peer can't be spoken to any more.
func (p *Peer) Done() <-chan struct{} { return p.done }

// Close ends the connection. A socket that connected will connect again.
func (p *Peer) Close() { p.end(net.ErrClosed) }

func (p *Peer) reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *Peer) end(err error) {
	p.mu.Lock()
	first := p.err == nil
	if first {
		p.err = err
		close(p.done)
		p.out, p.spare = nil, nil
	}
	p.mu.Unlock()
	if first {
		p.nc.Close()
	}
}

// Send sends a message to this peer and waits while too much waits to be written to it.
func (p *Peer) Send(ctx context.Context, frames ...[]byte) error {
	if err := p.socket.fits(frames); err != nil {
		return err
	}
	for {
		p.mu.Lock()
		if p.err != nil {
			defer p.mu.Unlock()
			return p.err
		}
		if len(p.out) <= p.socket.cfg.Queued {
			break
		}
		if p.room == nil {
			p.room = make(chan struct{})
		}
		room := p.room
		p.mu.Unlock()
		select {
		case <-room:
		case <-p.done:
			return p.reason()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.appendMessage(frames)
	p.mu.Unlock()
	p.flush()
	return nil
}

// Queue adds a message to what is written when the messages that arrived together have been handled. It does not wait: when
// too much waits to be written, it fails. It is for Handle.
func (p *Peer) Queue(frames ...[]byte) error {
	if err := p.socket.fits(frames); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return p.err
	case len(p.out) > p.socket.cfg.Queued:
		return fmt.Errorf("zmtp: %d bytes wait to be written to the peer: %w", len(p.out), ErrTooLong)
	}
	p.appendMessage(frames)
	return nil
}

// appendMessage adds a message to what waits. mu is held.
func (p *Peer) appendMessage(frames [][]byte) {
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		p.out = appendFrame(p.out, flags, f)
	}
	p.queued++
}

// flush writes what waits, or leaves it to who is writing, or to the peer's writer.
func (p *Peer) flush() {
	if p.socket.writesApart() {
		select {
		case p.wake <- struct{}{}:
		default:
		}
		return
	}
	p.write()
}

// writer writes for sockets whose senders must never wait for a peer.
func (p *Peer) writer() {
	for {
		select {
		case <-p.done:
			return
		case <-p.wake:
			p.write()
		}
	}
}

// write writes until nothing waits, unless somebody else does.
func (p *Peer) write() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writing {
		return
	}
	p.writing = true
	if p.last > 1 && len(p.out) > 0 {
		// Others that are about to send get to add theirs; alone it would only cost.
		p.mu.Unlock()
		runtime.Gosched()
		p.mu.Lock()
	}
	for len(p.out) > 0 && p.err == nil {
		b := p.out
		p.out, p.spare, p.last, p.queued = p.spare[:0], nil, p.queued, 0
		if p.room != nil {
			close(p.room)
			p.room = nil
		}
		p.mu.Unlock()
		err := p.put(b)
		if err != nil {
			p.end(fmt.Errorf("writing: %w", err))
		}
		p.mu.Lock()
		if cap(b) <= keptBuffer {
			p.spare = b
		}
	}
	p.writing = false
}

func (p *Peer) put(b []byte) error {
	limit := p.socket.cfg.WriteTimeout
	if until := time.Now().Add(limit); until.Sub(p.writeUntil) > limit/8 {
		p.writeUntil = until
		if err := p.nc.SetWriteDeadline(until); err != nil {
			return err
		}
	}
	_, err := p.nc.Write(b)
	return err
}
