package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"toll/wire/frame"
	"toll/wire/zmtp"
)

// PubSub is a process in the published ZeroMQ topology: one PUB and one SUB socket, both connected to a proxy's XSUB and
// XPUB. A message is a topic, the topic that the reply goes to (empty for none) and a frame. Topics end in a zero, so that
// none is another's beginning.
type PubSub struct {
	pub, sub *zmtp.Socket
	pending  *pending
	clock    *clock
	inbox    string
	buffers  sync.Pool // of *[]byte

	mu    sync.Mutex
	serve map[string]*jobs // guarded by mu: by topic
}

// DialPubSub connects to a proxy: in is where publishers connect, out where subscribers do.
func DialPubSub(ctx context.Context, in, out string, plain *zmtp.Plain, cfg Config) (*PubSub, error) {
	cfg = cfg.withDefaults()
	p := &PubSub{pending: newPending(cfg.InFlight), clock: newClock(), serve: make(map[string]*jobs)}
	p.inbox = "r." + strconv.FormatUint(rand.Uint64(), 36) + "\x00"
	var err error
	// Sockets try again for ever; a proxy that refuses us will again.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	failed := func(_ string, err error) {
		if errors.Is(err, zmtp.ErrRefused) || errors.Is(err, zmtp.ErrProtocol) {
			cancel(err)
		}
	}
	pc := cfg.socket(zmtp.Pub, plain)
	pc.Failed = failed
	if p.pub, err = zmtp.New(pc); err != nil {
		return nil, err
	}
	sc := cfg.socket(zmtp.Sub, plain)
	sc.Failed = failed
	sc.Handle = func(_ *zmtp.Peer, m zmtp.Message) { p.take(m) }
	// A proxy that is gone takes the replies that were under way with it.
	sc.Closed = func(_ *zmtp.Peer, err error) { p.pending.fail(err, false) }
	if p.sub, err = zmtp.New(sc); err != nil {
		p.pub.Close()
		return nil, err
	}
	err = errors.Join(p.sub.Subscribe(p.inbox), p.pub.Connect(in), p.sub.Connect(out), p.pub.Wait(ctx, 1), p.sub.Wait(ctx, 1))
	if err != nil {
		err = cmp.Or(context.Cause(ctx), err)
		p.Close()
		return nil, fmt.Errorf("connecting to the proxy at %s and %s: %w", in, out, err)
	}
	return p, nil
}

// take takes a message for one of our topics.
func (p *PubSub) take(m zmtp.Message) {
	if len(m) != 3 {
		return
	}
	if string(m[0]) == p.inbox {
		p.pending.resolve(m[2])
		return
	}
	p.mu.Lock()
	jobs := p.serve[string(m[0])]
	p.mu.Unlock()
	if jobs == nil {
		return
	}
	if jobs.quick {
		jobs.inline(m[2], func(reply []byte) { p.pub.Send(context.Background(), m[1], nil, reply) })
		return
	}
	to := append([]byte(nil), m[1]...)
	jobs.run(m[2], func(reply []byte) { p.pub.Send(context.Background(), to, nil, reply) })
}

func topic(node string) string { return "q." + node + "\x00" }

// Serve answers with r what is asked of a node until Withdraw.
func (p *PubSub) Serve(node string, r *Responder, quick bool) error {
	p.mu.Lock()
	p.serve[topic(node)] = newJobs(r, quick)
	p.mu.Unlock()
	return p.sub.Subscribe(topic(node))
}

// Withdraw takes a Serve back and lets what is being answered be answered until ctx ends.
func (p *PubSub) Withdraw(ctx context.Context, node string) error {
	err := p.sub.Unsubscribe(topic(node))
	p.mu.Lock()
	jobs := p.serve[topic(node)]
	p.mu.Unlock()
	if jobs == nil {
		return err
	}
	return errors.Join(err, jobs.drain(ctx))
}

// Close ends both sockets; calls in flight fail.
func (p *PubSub) Close() error {
	p.pending.fail(zmtp.ErrClosed, true)
	return errors.Join(p.pub.Close(), p.sub.Close())
}

// A Topic is a link to one node through a proxy.
type Topic struct {
	process *PubSub
	topic   []byte
	offset  int64
	replies atomic.Int64
	beat    sync.WaitGroup
	once    sync.Once
	done    chan struct{}
}

// again is how long a probe may take before it is sent once more: before subscriptions have travelled, messages are lost.
const again = 50 * time.Millisecond

// Link returns when the node answers.
func (p *PubSub) Link(ctx context.Context, node string, cfg Config) (*Topic, error) {
	cfg = cfg.withDefaults()
	l := &Topic{process: p, topic: []byte(topic(node)), done: make(chan struct{})}
	for {
		try, cancel := context.WithTimeout(ctx, again)
		offset, err := probe(try, l.call, p.clock, probes)
		cancel()
		if err == nil {
			l.offset = offset
			break
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("node %s does not answer: %w", node, err)
		}
		if p.pub.Peers() == 0 {
			return nil, fmt.Errorf("node %s: the proxy is not there", node)
		}
	}
	if cfg.Heartbeat > 0 {
		l.beat.Go(func() {
			heartbeat(cfg.Heartbeat, l.done, l.replies.Load, l.ask, func(error) { l.end() })
		})
	}
	return l, nil
}

func (l *Topic) ask(ctx context.Context) error {
	_, err := probe(ctx, l.call, l.process.clock, 1)
	return err
}

func (l *Topic) call(ctx context.Context, c *Call) error {
	p := l.process
	id, err := p.pending.open(ctx, c)
	if err != nil {
		return err
	}
	buf, _ := p.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	// The reply's topic stands in the same memory, so that a call allocates nothing.
	at := len(p.inbox)
	*buf = c.AppendRequest(append((*buf)[:0], p.inbox...), id)
	err = p.pub.Send(ctx, l.topic, (*buf)[:at], (*buf)[at:])
	p.buffers.Put(buf)
	if err != nil {
		p.pending.abandon(id)
		return err
	}
	err = p.pending.wait(ctx, id)
	if err == nil {
		l.replies.Add(1)
	}
	return err
}

// Call sends c and waits for its reply or ctx's end. A node that is gone is not noticed at once: messages to it are lost.
func (l *Topic) Call(ctx context.Context, c *Call) error {
	if err := c.prepare(ctx, l.process.clock, l.offset); err != nil {
		return err
	}
	return c.outcome(l.call(ctx, c))
}

// Tell sends r and returns when the node has taken it or has said why not.
func (l *Topic) Tell(ctx context.Context, r *frame.Request) error {
	c := Call{Request: *r}
	if err := c.prepare(ctx, l.process.clock, l.offset); err != nil {
		return err
	}
	c.Kind = frame.Tell
	return c.outcome(l.call(ctx, &c))
}

func (l *Topic) end() { l.once.Do(func() { close(l.done) }) }

// Done is closed when the node no longer answers.
func (l *Topic) Done() <-chan struct{} { return l.done }

// Close ends the link; the process' sockets stay.
func (l *Topic) Close() error {
	l.end()
	l.beat.Wait()
	return nil
}

// A Proxy is the coordinator of the published topology.
type Proxy struct{ front, back *zmtp.Socket }

// NewProxy makes a proxy.
func NewProxy(plain *zmtp.Plain, cfg Config) (*Proxy, error) {
	cfg = cfg.withDefaults()
	f, b, err := zmtp.NewProxy(zmtp.XSub, zmtp.XPub, cfg.socket(zmtp.XSub, plain))
	return &Proxy{f, b}, err
}

// Serve takes publishers on in and subscribers on out until Close; both are the proxy's own from now on.
func (p *Proxy) Serve(in, out net.Listener) error {
	return errors.Join(p.front.Serve(in), p.back.Serve(out))
}

// Close ends the proxy.
func (p *Proxy) Close() error { return errors.Join(p.front.Close(), p.back.Close()) }
