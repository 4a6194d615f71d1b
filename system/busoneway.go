package system

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"toll/wire/engine"
)

// oneWay begins the names of cases without a reply: messages are published in a row, and a stretch is over when the
// subscriber has the last of them.
const oneWay = "one-way/"

// The subjects of such a stretch: what is published, and who asks how much of it has come.
const (
	oneWaySubject = "bench.one-way"
	arrivedAsked  = "bench.arrived"
)

// arrivals is what a worker has got of a stretch: how many messages, and the sum of their numbers.
type arrivals struct{ count, sum atomic.Uint64 }

// countArrivals makes nc count what is published to it one way, and answer whoever asks.
func countArrivals(nc *nats.Conn) error {
	var got arrivals
	_, err := nc.Subscribe(oneWaySubject, func(m *nats.Msg) {
		if len(m.Data) >= 8 {
			got.sum.Add(binary.LittleEndian.Uint64(m.Data))
		}
		got.count.Add(1)
	})
	if err != nil {
		return err
	}
	_, err = nc.Subscribe(arrivedAsked, func(m *nats.Msg) {
		m.Respond(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, got.count.Load()), got.sum.Load()))
	})
	return err
}

// publishes prepares a stretch of messages one way, over NATS' own client: it alone publishes without asking whether
// anything came of it.
func (b *BusClient) publishes(ctx context.Context, q engine.Question, size string) (engine.Work, error) {
	if b.carrier != NATSGo || size != "128B" || q.Due != nil {
		return engine.Work{}, fmt.Errorf("case %q over %s: only one-way/128B over nats-go has no replies, in a row", q.Case, b.carrier)
	}
	if b.publisher == nil {
		nc, err := nats.Connect(natsURL(b.at), natsToken(b.token)...)
		if err != nil {
			return engine.Work{}, err
		}
		b.publisher = nc
		b.closing(func() error { nc.Close(); return nil })
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	before, err := arrived(ctx, b.publisher)
	if err != nil {
		cancel()
		return engine.Work{}, err
	}
	p := &publishing{nc: b.publisher, ctx: ctx, calls: q.Calls, before: before, bodies: make([][128]byte, q.Callers)}
	p.left.Store(int64(q.Calls))
	return engine.Work{Call: p.call, Check: p.check, Close: func() error { cancel(); return nil }}, nil
}

// A publishing is a stretch of messages one way.
type publishing struct {
	nc     *nats.Conn
	ctx    context.Context // of the stretch
	calls  int
	bodies [][128]byte
	left   atomic.Int64
	before count

	after count // owned by the last call
}

type count struct{ messages, sum uint64 }

// call publishes a message; the last one waits until the subscriber has all, so that what is still under way is in the time.
func (p *publishing) call(_ context.Context, caller, i int, _ *engine.Parts) error {
	body := p.bodies[caller][:]
	binary.LittleEndian.PutUint64(body, uint64(i))
	if err := p.nc.Publish(oneWaySubject, body); err != nil {
		return err
	}
	if p.left.Add(-1) > 0 {
		return nil
	}
	return p.land()
}

func (p *publishing) land() (err error) {
	for tick := time.Duration(0); ; tick = time.Millisecond {
		if p.after, err = arrived(p.ctx, p.nc); err != nil || p.after.messages >= p.before.messages+uint64(p.calls) {
			return err
		}
		select { // the subscriber is behind
		case <-time.After(tick):
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
	}
}

// check compares what came with what was sent.
func (p *publishing) check() (int, error) {
	n := uint64(p.calls)
	if got := p.after.messages - p.before.messages; got != n {
		return 0, fmt.Errorf("%d messages came, %d were sent", got, n)
	}
	if sum := p.after.sum - p.before.sum; sum != n*(n-1)/2 {
		return 0, errors.New("the messages that came are not those that were sent")
	}
	return p.calls, nil
}

// arrived asks how many messages have come.
func arrived(ctx context.Context, nc *nats.Conn) (count, error) {
	m, err := nc.RequestWithContext(ctx, arrivedAsked, nil)
	if err != nil {
		return count{}, fmt.Errorf("asking how many messages came: %w", err)
	}
	if len(m.Data) != 16 {
		return count{}, fmt.Errorf("asking how many messages came: an answer of %d bytes", len(m.Data))
	}
	return count{binary.LittleEndian.Uint64(m.Data), binary.LittleEndian.Uint64(m.Data[8:])}, nil
}
