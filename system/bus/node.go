package bus

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"toll/wire/envelope"
	"toll/wire/frame"
)

// A Local is the agents of this process. agent.Runtime's Inbound is one.
type Local interface {
	Ask(ctx context.Context, m *envelope.Message) (*envelope.Message, error)
	Tell(ctx context.Context, m *envelope.Message) error
}

// An Owner is who answers for a name: the node, where it is reached, and the epoch under which it has the name.
type Owner struct {
	Node  string `json:"node"`
	Addr  string `json:"addr"` // as the node's Dial takes it
	Epoch uint64 `json:"epoch"`
}

// A Directory knows who owns which name. A name has one owner at a time; whoever takes it has a higher epoch than all before.
type Directory interface {
	// Claim makes node the owner of name and returns the epoch. lost is called, once, when another has become the owner.
	Claim(ctx context.Context, name string, o Owner, lost func()) (epoch uint64, err error)
	// Release gives up a claim.
	Release(ctx context.Context, name string, epoch uint64) error
	// Lookup returns the owner; fresh asks past what is remembered. An error carries envelope.NotFound when there is none.
	Lookup(ctx context.Context, name string, fresh bool) (Owner, error)
}

// NodeConfig is what a node needs; Name and Dial are required.
type NodeConfig struct {
	Name      string        // of the process, unique among those that share the directory
	Addr      string        // where others reach it, as their Dial takes it
	Directory Directory     // nil: names are announced to Peers, and by them
	Peers     []string      // addresses of other nodes; one that can be reached is enough
	Every     time.Duration // between announcements; 1 s
	Dial      func(ctx context.Context, o Owner) (Link, error)
	Local     Local    // nil for a process without agents of its own
	Durable   *Durable // carries durable tells; nil for none
	Limits    envelope.Limits
	Config
}

// A Node is a process on the bus: it sends envelopes to agents by name, wherever they are, and hands those that come to its
// own agents. It is an agent.Carrier.
type Node struct {
	cfg       NodeConfig
	responder *Responder
	sender    uint64
	serial    atomic.Uint64
	announced *Announced // nil with another directory

	mu       sync.Mutex
	names    map[string]uint64    // guarded by mu: ours, with their epochs
	consumes map[string]func()    // guarded by mu: what stops the durable messages for a name
	links    map[string]*dialling // guarded by mu: by address
	draining bool                 // guarded by mu
	closed   bool                 // guarded by mu
}

// dialling is a link that is there when ready is closed, or will never be.
type dialling struct {
	ready chan struct{}
	link  Link
	err   error
}

// NewNode makes a node. Its Responder is to be served by whatever carries frames to cfg.Addr.
func NewNode(cfg NodeConfig) *Node {
	n := &Node{cfg: cfg, names: make(map[string]uint64), consumes: make(map[string]func()), links: make(map[string]*dialling)}
	n.responder = NewResponder(n.handle, cfg.Config)
	n.responder.Only(n.owns)
	n.sender = n.responder.boot
	if cfg.Directory == nil {
		n.announced = NewAnnounced(Owner{Node: cfg.Name, Addr: cfg.Addr}, cfg.Peers, cfg.Every, n.responder, n.link)
		n.cfg.Directory = n.announced
	}
	return n
}

// Responder answers what comes for the node's agents.
func (n *Node) Responder() *Responder { return n.responder }

// Register claims a name for an agent of this process. Messages for it are refused from when another owns it; lost is then
// called, nil for none.
func (n *Node) Register(ctx context.Context, name string, lost func()) (epoch uint64, err error) {
	if name == "" || len(name) > frame.MaxName || strings.HasPrefix(name, reserved) {
		return 0, fmt.Errorf("bus: name %.40q: want 1 to %d bytes that do not begin with %s", name, frame.MaxName, reserved)
	}
	epoch, err = n.cfg.Directory.Claim(ctx, name, Owner{Node: n.cfg.Name, Addr: n.cfg.Addr}, func() {
		n.mu.Lock()
		delete(n.names, name)
		n.mu.Unlock()
		if lost != nil {
			lost()
		}
	})
	if err != nil {
		return 0, fmt.Errorf("bus: registering %s: %w", name, err)
	}
	n.mu.Lock()
	if n.draining {
		n.mu.Unlock()
		return 0, errors.Join(envelope.Stopped, n.cfg.Directory.Release(ctx, name, epoch))
	}
	n.names[name] = epoch
	n.mu.Unlock()
	if n.cfg.Durable == nil {
		return epoch, nil
	}
	stop, err := n.cfg.Durable.Consume(context.WithoutCancel(ctx), name, n.responder)
	if err != nil {
		return 0, errors.Join(err, n.Deregister(ctx, name))
	}
	n.mu.Lock()
	old := n.consumes[name]
	n.consumes[name] = stop
	n.mu.Unlock()
	if old != nil {
		old()
	}
	return epoch, nil
}

// unconsume stops taking durable messages for names, and waits for those that are being run.
func (n *Node) unconsume(names ...string) {
	for _, name := range names {
		n.mu.Lock()
		stop := n.consumes[name]
		delete(n.consumes, name)
		n.mu.Unlock()
		if stop != nil {
			stop()
		}
	}
}

// TellDurable returns when m is stored. It is delivered at least once to whoever owns its recipient's name then, after
// failures again, and becomes a dead letter in the end; two messages with one ID are one.
func (n *Node) TellDurable(ctx context.Context, m *envelope.Message) error {
	if n.cfg.Durable == nil {
		return &envelope.Failure{Code: envelope.Failed, Agent: m.Recipient, Detail: "this node has nothing that stores messages"}
	}
	var c Call
	if err := n.fill(&c, m); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(m.ID))
	c.Key = frame.Key{Sender: binary.LittleEndian.Uint64(sum[:]), Number: binary.LittleEndian.Uint64(sum[8:])}
	return n.cfg.Durable.Tell(ctx, &c.Request)
}

// Deregister gives a name up.
func (n *Node) Deregister(ctx context.Context, name string) error {
	n.mu.Lock()
	epoch, ok := n.names[name]
	delete(n.names, name)
	n.mu.Unlock()
	if !ok {
		return nil
	}
	n.unconsume(name)
	return n.cfg.Directory.Release(ctx, name, epoch)
}

// owns says why a request for a name is not run here.
func (n *Node) owns(name []byte, epoch uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	have, ok := n.names[string(name)]
	switch {
	case n.draining:
		return &envelope.Failure{Code: envelope.Stopped, Detail: "moved: the node is being drained"}
	case !ok:
		return &envelope.Failure{Code: envelope.NotFound, Detail: "the node does not own this name"}
	case epoch != 0 && epoch != have:
		return &envelope.Failure{Code: envelope.NotFound, Detail: fmt.Sprintf("epoch %d was meant, this is %d", epoch, have)}
	}
	return nil
}

// handle has a local agent answer.
func (n *Node) handle(dst []byte, r *Request) ([]byte, error) {
	if n.cfg.Local == nil {
		return dst, envelope.NotFound
	}
	m, err := envelope.DecodeMsgpack(r.Body, n.cfg.Limits)
	if err != nil {
		return dst, err
	}
	ctx, cancel := context.Background(), func() {}
	if at, ok := r.Expires(); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, at)
		cancel = func() { stop() }
	}
	defer cancel()
	m.TTL = 0 // the frame's deadline is on our own clock
	m.Epoch = 0
	if r.Kind == frame.Tell {
		return dst, n.cfg.Local.Tell(ctx, m)
	}
	reply, err := n.cfg.Local.Ask(ctx, m)
	if err == nil {
		err = reply.Err()
	}
	if err != nil {
		return dst, err
	}
	return reply.AppendMsgpack(dst)
}

// Ask asks the agent that m.Recipient names: at most once. When the name has moved since it was looked up, the new owner is
// asked, because the old one has refused and not run it.
func (n *Node) Ask(ctx context.Context, m *envelope.Message) (*envelope.Message, error) {
	return n.ask(ctx, m, frame.Key{})
}

// AskAgain asks like Ask and may send the request several times within ctx, with one key: an owner that has answered it
// answers again and does not run it again. It is for operations that may be tried until they have succeeded.
func (n *Node) AskAgain(ctx context.Context, m *envelope.Message) (*envelope.Message, error) {
	key := frame.Key{Sender: n.sender, Number: n.serial.Add(1)}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		try, cancel := n.share(ctx)
		reply, err := n.ask(try, m, key)
		cancel()
		if code, _ := envelope.CodeOf(err); err == nil || ctx.Err() != nil || code != envelope.Unreachable && code != envelope.Deadline && code != envelope.NotFound {
			return reply, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

// share gives one try a quarter of what is left, so that a lost reply leaves time to ask again.
func (n *Node) share(ctx context.Context) (context.Context, context.CancelFunc) {
	at, ok := ctx.Deadline()
	if !ok {
		return context.WithTimeout(ctx, 5*time.Second)
	}
	return context.WithTimeout(ctx, max(time.Until(at)/4, 20*time.Millisecond))
}

func (n *Node) ask(ctx context.Context, m *envelope.Message, key frame.Key) (*envelope.Message, error) {
	c := Call{}
	if err := n.fill(&c, m); err != nil {
		return nil, err
	}
	c.Key = key
	err := n.deliver(ctx, m, func(l Link, epoch uint64) error {
		c.Epoch = epoch
		return l.Call(ctx, &c)
	})
	if err != nil {
		return nil, err
	}
	reply, err := envelope.DecodeMsgpack(c.Answer, n.cfg.Limits)
	if err != nil {
		return nil, &envelope.Failure{Code: envelope.Failed, Agent: m.Recipient, Detail: err.Error()}
	}
	return reply, nil
}

// Tell tells the agent that m.Recipient names, and returns when its mailbox has the message.
func (n *Node) Tell(ctx context.Context, m *envelope.Message) error {
	var c Call
	if err := n.fill(&c, m); err != nil {
		return err
	}
	return n.deliver(ctx, m, func(l Link, epoch uint64) error {
		c.Epoch = epoch
		return l.Tell(ctx, &c.Request)
	})
}

func (n *Node) fill(c *Call, m *envelope.Message) (err error) {
	m.Stamp(time.Now())
	c.To, c.From, c.Op = m.Recipient, m.Sender, m.Type
	if c.To == "" {
		return &envelope.Failure{Code: envelope.NotFound, Detail: "the message has no recipient"}
	}
	if c.Body, err = m.AppendMsgpack(nil); err != nil {
		return &envelope.Failure{Code: envelope.Failed, Agent: m.Recipient, Detail: err.Error()}
	}
	return nil
}

// deliver finds the owner and sends. What was refused because the name has moved, or could not be sent because nobody is
// there, goes to the new owner, if there is another.
func (n *Node) deliver(ctx context.Context, m *envelope.Message, send func(l Link, epoch uint64) error) error {
	var asked Owner
	var err error
	for try := range 2 {
		o, lookup := n.cfg.Directory.Lookup(ctx, m.Recipient, try > 0)
		if lookup != nil || try > 0 && o == asked {
			return errors.Join(err, n.failure(ctx, m, lookup))
		}
		asked = o
		if m.Epoch != 0 && m.Epoch != o.Epoch {
			return &envelope.Failure{Code: envelope.NotFound, Agent: m.Recipient, Detail: fmt.Sprintf("its epoch is %d, not %d", o.Epoch, m.Epoch)}
		}
		var l Link
		if l, err = n.link(ctx, o); err == nil {
			err = send(l, o.Epoch)
		} else {
			err = n.failure(ctx, m, err)
		}
		if code, _ := envelope.CodeOf(err); err == nil || !moved(code, l == nil) {
			return err
		}
	}
	return err
}

// moved says whether a refusal means that the request was not run and that another may own the name.
func moved(code envelope.Code, unsent bool) bool {
	return code == envelope.NotFound || code == envelope.Stopped || code == envelope.Unreachable && unsent
}

// failure is err as the caller of an ask sees it.
func (n *Node) failure(ctx context.Context, m *envelope.Message, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := envelope.CodeOf(err); ok {
		return envelope.FailureOf(err, m.Recipient)
	}
	code := envelope.Unreachable
	if ctx.Err() != nil {
		code = envelope.FromContext(ctx)
	}
	return &envelope.Failure{Code: code, Agent: m.Recipient, Detail: err.Error()}
}

// link returns the link to an owner's node, which all that speak to it share, and makes it when it is not there.
func (n *Node) link(ctx context.Context, o Owner) (Link, error) {
	for {
		n.mu.Lock()
		if n.closed {
			n.mu.Unlock()
			return nil, envelope.Stopped
		}
		d := n.links[o.Addr]
		mine := d == nil
		if mine {
			d = &dialling{ready: make(chan struct{})}
			n.links[o.Addr] = d
		}
		n.mu.Unlock()
		if mine {
			n.dial(ctx, o, d)
		}
		select {
		case <-d.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if d.err == nil {
			select {
			case <-d.link.Done():
				n.drop(o.Addr, d)
				continue
			default:
				return d.link, nil
			}
		}
		if mine || ctx.Err() != nil {
			return nil, d.err
		}
		// Who dialled may have had less time than we have.
		if !errors.Is(d.err, context.Canceled) && !errors.Is(d.err, context.DeadlineExceeded) {
			return nil, d.err
		}
	}
}

func (n *Node) dial(ctx context.Context, o Owner, d *dialling) {
	d.link, d.err = n.cfg.Dial(ctx, o)
	if d.err != nil {
		d.link = nil // it may be an interface that holds a nil pointer
		n.drop(o.Addr, d)
	}
	close(d.ready)
	if d.err != nil {
		return
	}
	n.mu.Lock()
	closed := n.closed
	n.mu.Unlock()
	if closed {
		d.link.Close()
	}
}

func (n *Node) drop(addr string, d *dialling) {
	n.mu.Lock()
	if n.links[addr] == d {
		delete(n.links, addr)
	}
	n.mu.Unlock()
	if d.link != nil {
		d.link.Close()
	}
}

func (n *Node) consuming() map[string]func() {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.consumes)
}

// Drain gives up every name, so that new messages go elsewhere, and waits until what is being answered is answered or ctx
// ends. What comes meanwhile is answered that it has moved, and has not been run.
func (n *Node) Drain(ctx context.Context) error {
	n.mu.Lock()
	names := make(map[string]uint64, len(n.names))
	for name, epoch := range n.names {
		names[name] = epoch
	}
	n.mu.Unlock()
	var errs []error
	for name, epoch := range names {
		n.unconsume(name)
		errs = append(errs, n.cfg.Directory.Release(ctx, name, epoch))
	}
	n.mu.Lock()
	n.draining = true
	clear(n.names)
	n.mu.Unlock()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n.responder.running.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(append(errs, ctx.Err())...)
		}
	}
	return errors.Join(errs...)
}

// Close ends the links to others, and the announcing. Serving is for its owner to end.
func (n *Node) Close() error {
	n.mu.Lock()
	n.closed = true
	links := n.links
	n.links = make(map[string]*dialling)
	n.mu.Unlock()
	n.unconsume(slices.Collect(maps.Keys(n.consuming()))...)
	var errs []error
	if n.announced != nil {
		errs = append(errs, n.announced.Close())
	}
	for _, d := range links {
		<-d.ready
		if d.link != nil {
			errs = append(errs, d.link.Close())
		}
	}
	return errors.Join(errs...)
}
