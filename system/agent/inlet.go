package agent

import (
	"context"
	"fmt"
	"sync"

	"toll/wire/envelope"
)

// An Inlet takes frames from peers outside the process and hands the messages in them to a runtime. A frame that can't be read
// is counted, dropped and answered; a peer that keeps sending such frames is quarantined: nothing of it is read any more.
type Inlet struct {
	rt    *Runtime
	codec Codec
	limit int // bad frames in a row

	mu    sync.Mutex
	peers map[string]int // guarded by mu: bad frames in a row, of peers whose last one was bad
}

// maxPeers bounds how many misbehaving peers an inlet remembers.
const maxPeers = 10_000

// NewInlet makes an inlet whose peers are quarantined after limit bad frames in a row, 8 when 0.
func NewInlet(rt *Runtime, codec Codec, limit int) *Inlet {
	if limit <= 0 {
		limit = 8
	}
	return &Inlet{rt: rt, codec: codec, limit: limit, peers: make(map[string]int)}
}

// ErrQuarantined is the answer to every frame of a peer in quarantine.
var ErrQuarantined = fmt.Errorf("agent: the peer is quarantined for its bad frames: %w", envelope.Unreachable)

// Receive handles one frame of a peer. A message with a correlation id is asked, and its answer or failure returned as a
// message; others are told, and the reply is nil. The error says that the frame was not read; the inlet goes on.
func (in *Inlet) Receive(ctx context.Context, peer string, frame []byte) (*envelope.Message, error) {
	if in.badFrames(peer) >= in.limit {
		in.rt.Poison()
		return nil, ErrQuarantined
	}
	m, err := in.codec.Decode(frame)
	if err != nil {
		in.rt.Poison()
		in.blame(peer, err)
		return nil, err
	}
	in.pardon(peer)
	if m.CorrelationID == "" {
		if err := in.rt.Inbound().Tell(ctx, m); err != nil {
			in.rt.deadLetter(m, err)
		}
		return nil, nil
	}
	reply, err := in.rt.Inbound().Ask(ctx, m)
	if err != nil {
		return envelope.FailureReply(m, err), nil
	}
	return reply, nil
}

func (in *Inlet) badFrames(peer string) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.peers[peer]
}

func (in *Inlet) blame(peer string, err error) {
	in.mu.Lock()
	if _, known := in.peers[peer]; known || len(in.peers) < maxPeers {
		in.peers[peer]++
	}
	last := in.peers[peer] == in.limit
	in.mu.Unlock()
	if last {
		in.rt.event(Event{Kind: PeerQuarantined, Name: peer, Err: err})
	}
}

// pardon forgets the bad frames of a peer that sent a good one.
func (in *Inlet) pardon(peer string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.peers, peer)
}

// Release ends a peer's quarantine.
func (in *Inlet) Release(peer string) { in.pardon(peer) }
