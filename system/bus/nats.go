package bus

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"toll/wire/envelope"
	"toll/wire/frame"
)

// NATS is a process' connection to a NATS server or cluster. All its calls share one wildcard inbox.
type NATS struct {
	nc      *nats.Conn
	pending *pending
	clock   *clock
	inbox   string // with its last dot
	max     int
	buffers sync.Pool // of *[]byte
}

// NATSConfig says how to reach a server; only URL is required.
type NATSConfig struct {
	URL         string // one or several, separated by commas
	TLS         *tls.Config
	Credentials string // a file
	Token       string
	Name        string
	Conn        *nats.Conn // use this one and leave it open; URL is then not looked at
}

// Bounds of the library's own queue per subscription: beyond them messages would be dropped silently, so callers are told
// before (see jobs).
const (
	pendingMessages = 1 << 16
	pendingBytes    = 64 << 20
)

// DialNATS connects. When the connection is lost, calls in flight fail, and it is made again for as long as it takes;
// meanwhile calls fail at once, because a request that waits would be run late.
func DialNATS(ctx context.Context, nc NATSConfig, cfg Config) (*NATS, error) {
	cfg = cfg.withDefaults()
	n := &NATS{pending: newPending(cfg.InFlight), clock: newClock()}
	options := []nats.Option{
		nats.Name(nc.Name), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.ReconnectBufSize(-1), nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { n.lost(err) }),
		nats.FlusherTimeout(cfg.Write), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}
	if cfg.Heartbeat > 0 {
		options = append(options, nats.PingInterval(cfg.Heartbeat), nats.MaxPingsOutstanding(2))
	}
	if d, ok := ctx.Deadline(); ok {
		options = append(options, nats.Timeout(max(time.Until(d), time.Millisecond)))
	}
	if nc.TLS != nil {
		options = append(options, nats.Secure(nc.TLS))
	}
	if nc.Credentials != "" {
		options = append(options, nats.UserCredentials(nc.Credentials))
	}
	if token := cmp.Or(nc.Token, cfg.Token); token != "" {
		options = append(options, nats.Token(token))
	}
	var err error
	if n.nc, err = nats.Connect(nc.URL, options...); err != nil {
		return nil, fmt.Errorf("connecting to NATS at %s: %w", nc.URL, err)
	}
	n.max = min(cfg.MaxFrame, int(n.nc.MaxPayload()))
	n.inbox = nats.NewInbox() + "."
	sub, err := n.nc.Subscribe(n.inbox+"*", n.reply)
	if err == nil {
		err = errors.Join(sub.SetPendingLimits(pendingMessages, pendingBytes), n.nc.FlushWithContext(bounded(ctx)))
	}
	if err != nil {
		n.nc.Close()
		return nil, fmt.Errorf("subscribing to the inbox: %w", err)
	}
	return n, nil
}

// Connected reports whether the server can be reached now.
func (n *NATS) Connected() bool { return n.nc.IsConnected() }

// bounded is what the library wants where it waits: a context with a deadline.
func bounded(ctx context.Context) context.Context {
	if _, ok := ctx.Deadline(); ok {
		return ctx
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	context.AfterFunc(ctx, cancel)
	return ctx
}

func (n *NATS) lost(err error) {
	if err == nil {
		err = nats.ErrConnectionClosed
	}
	n.pending.fail(fmt.Errorf("the NATS server is gone: %w", err), false)
}

// nobody is the detail of a call that no process was there to take.
const nobody = "nobody listens there"

// noResponders is the status with which the server answers for a subject that nobody listens to.
const noResponders = "503"

func (n *NATS) reply(m *nats.Msg) {
	if len(m.Data) == 0 && m.Header.Get("Status") == noResponders {
		id, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, n.inbox), 36, 32)
		if err == nil {
			n.pending.refuse(uint32(id), envelope.NotFound, nobody)
		}
		return
	}
	n.pending.resolve(m.Data)
}

// Conn is the library's connection, for what the bus does not do.
func (n *NATS) Conn() *nats.Conn { return n.nc }

// Close ends the connection; calls in flight fail.
func (n *NATS) Close() error {
	n.pending.fail(nats.ErrConnectionClosed, true)
	n.nc.Close()
	return nil
}

// subject is where a node is asked.
func subject(node string) string { return "toll.node." + node }

// checkNode refuses a node's name that can't stand in a subject.
func checkNode(node string) error {
	if node == "" || len(node) > 200 || strings.ContainsFunc(node, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(".*>", r) }) {
		return fmt.Errorf("bus: node %.40q: want 1 to 200 printable ASCII characters without spaces, dots, * and >", node)
	}
	return nil
}

// A Subject is a link to one node through NATS.
type Subject struct {
	nats    *NATS
	subject string
	offset  int64
	done    chan struct{}
	once    sync.Once
}

// Link returns when the node answers.
func (n *NATS) Link(ctx context.Context, node string) (*Subject, error) {
	if err := checkNode(node); err != nil {
		return nil, err
	}
	l := &Subject{nats: n, subject: subject(node), done: make(chan struct{})}
	var err error
	if l.offset, err = probe(ctx, l.call, n.clock, probes); err != nil {
		return nil, fmt.Errorf("node %s: %w", node, err)
	}
	return l, nil
}

func (l *Subject) call(ctx context.Context, c *Call) error {
	n := l.nats
	id, err := n.pending.open(ctx, c)
	if err != nil {
		return err
	}
	buf, _ := n.buffers.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	*buf = c.AppendRequest((*buf)[:0], id)
	if len(*buf) > n.max {
		err = fmt.Errorf("%w: frame of %d bytes, at most %d are carried", frame.ErrTooLong, len(*buf), n.max)
	} else {
		var name [64]byte
		reply := strconv.AppendUint(append(name[:0], n.inbox...), uint64(id), 36)
		err = n.nc.PublishRequest(l.subject, string(reply), *buf)
	}
	n.buffers.Put(buf)
	if err != nil {
		n.pending.abandon(id)
		return err
	}
	return n.pending.wait(ctx, id)
}

// Call sends c and waits for its reply or ctx's end. A node that nobody answers for is told at once.
func (l *Subject) Call(ctx context.Context, c *Call) error {
	if err := c.prepare(ctx, l.nats.clock, l.offset); err != nil {
		return err
	}
	err := c.outcome(l.call(ctx, c))
	if c.code == envelope.NotFound && c.detail == nobody {
		l.Close() // what answers there next may have another clock
	}
	return err
}

// Tell sends r and returns when the node has taken it or has said why not.
func (l *Subject) Tell(ctx context.Context, r *frame.Request) error {
	c := Call{Request: *r}
	if err := c.prepare(ctx, l.nats.clock, l.offset); err != nil {
		return err
	}
	c.Kind = frame.Tell
	return c.outcome(l.call(ctx, &c))
}

// Done is closed when the node was found not to be there.
func (l *Subject) Done() <-chan struct{} { return l.done }

// Close ends the link; the connection stays.
func (l *Subject) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// A NATSServer answers what is asked of a node through NATS.
type NATSServer struct {
	nats *NATS
	sub  *nats.Subscription
	jobs *jobs
}

// Serve answers with r what is asked of a node. Two servers of one node share its requests; each is answered once.
func (n *NATS) Serve(ctx context.Context, node string, r *Responder, quick bool) (*NATSServer, error) {
	if err := checkNode(node); err != nil {
		return nil, err
	}
	s := &NATSServer{nats: n, jobs: newJobs(r, quick)}
	var err error
	if s.sub, err = n.nc.QueueSubscribe(subject(node), "node", s.handle); err != nil {
		return nil, fmt.Errorf("node %s: %w", node, err)
	}
	return s, errors.Join(s.sub.SetPendingLimits(pendingMessages, pendingBytes), n.nc.FlushWithContext(bounded(ctx)))
}

func (s *NATSServer) handle(m *nats.Msg) {
	if s.jobs.quick {
		s.jobs.inline(m.Data, func(reply []byte) { s.send(m.Reply, reply) })
		return
	}
	s.jobs.run(m.Data, func(reply []byte) { s.send(m.Reply, reply) })
}

// send publishes a reply. One that is too long becomes a failure: else its caller would only see time run out.
func (s *NATSServer) send(to string, reply []byte) {
	if to == "" {
		return
	}
	if len(reply) > s.nats.max {
		id, _ := frame.Framing{}.ID(reply)
		s.jobs.responder.oversized.Add(1)
		reply = frame.AppendFailure(nil, id, uint8(envelope.Failed), fmt.Sprintf("the reply has %d bytes, at most %d are carried", len(reply), s.nats.max))
	}
	s.nats.nc.Publish(to, reply)
}

// Shutdown stops taking requests, answers those that have come until ctx ends, and returns when the replies have left.
func (s *NATSServer) Shutdown(ctx context.Context) error {
	if err := s.sub.Drain(); err != nil {
		return fmt.Errorf("draining: %w", err)
	}
	ctx = bounded(ctx)
	for s.sub.IsValid() {
		tick := time.NewTimer(time.Millisecond)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), s.sub.Unsubscribe())
		}
	}
	return errors.Join(s.jobs.drain(ctx), s.nats.nc.FlushWithContext(ctx))
}
