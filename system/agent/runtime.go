package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"toll/wire/envelope"
)

// A Full says what a mailbox without a free place does with a message.
type Full uint8

// The policies. The control lane never blocks: it rejects.
const (
	Reject     Full = iota // the caller gets MailboxFull
	Block                  // the caller waits for a place, as long as its context lets it
	DropOldest             // the oldest message makes room: its caller gets MailboxFull, a tell is a dead letter
)

// A Spec is what agents of one kind have in common. It must not be changed once it has been used.
type Spec struct {
	Mailbox  int           // places; 1000 when 0
	Control  int           // places for messages with a priority, which are served first; 100 when 0
	Full     Full          // what a full mailbox does
	Shutdown time.Duration // how long a handler may go on after a stop before it is left behind; 5 s when 0

	// Inline promises that the handler never blocks. An ask of an idle agent then runs on the caller's goroutine, which can't
	// be answered before the handler returns.
	Inline bool
}

func (s Spec) withDefaults() Spec {
	if s.Mailbox <= 0 {
		s.Mailbox = 1000
	}
	if s.Control <= 0 {
		s.Control = 100
	}
	if s.Shutdown <= 0 {
		s.Shutdown = 5 * time.Second
	}
	return s
}

// A Carrier brings messages to agents in other processes. m.Recipient says to whom; ctx bounds the call, and its deadline
// travels as the message's time to live. Errors carry an envelope.Code.
type Carrier interface {
	Ask(ctx context.Context, m *envelope.Message) (*envelope.Message, error)
	Tell(ctx context.Context, m *envelope.Message) error
}

// A Codec is how wire parity writes and reads a message.
type Codec interface {
	Append(b []byte, m *envelope.Message) ([]byte, error)
	Decode(data []byte) (*envelope.Message, error)
}

// Config is what a runtime needs; the zero value is good.
type Config struct {
	Carrier     Carrier     // to names that no agent here has; nil for none
	Parity      Codec       // every message within the process goes through it once, and every answer; nil copies nothing
	Events      func(Event) // nil for none
	Observer    Observer    // nil for none
	DeadLetters int         // how many are kept to be looked at; 128 when 0, none when negative
	MaxAgents   int         // more are refused; 1 << 20 when 0
}

// A Runtime is where agents live.
type Runtime struct {
	cfg      Config
	registry *registry
	slots    slots
	counts   counts
	letters  letters
	observer Observer
	ctx      context.Context // ends with the runtime
	closed   atomic.Bool     // nothing is spawned any more
	cancel   context.CancelFunc

	mu          sync.Mutex
	supervisors map[string]*Supervisor // guarded by mu: by name, static ones
	dynamic     map[string]*Dynamic    // guarded by mu
}

// New makes a runtime without agents.
func New(cfg Config) *Runtime {
	switch {
	case cfg.DeadLetters == 0:
		cfg.DeadLetters = 128
	case cfg.DeadLetters < 0:
		cfg.DeadLetters = 0
	}
	if cfg.MaxAgents == 0 {
		cfg.MaxAgents = 1 << 20
	}
	rt := &Runtime{cfg: cfg, registry: newRegistry(), observer: cfg.Observer}
	rt.supervisors, rt.dynamic = make(map[string]*Supervisor), make(map[string]*Dynamic)
	rt.ctx, rt.cancel = context.WithCancel(context.Background())
	return rt
}

// Spawn starts an agent without a supervisor and returns when it is ready. When ctx ends first the agent is stopped, and no
// process of the name is left behind.
func (rt *Runtime) Spawn(ctx context.Context, name string, h Handler, spec Spec) (Ref, error) {
	s := spec.withDefaults()
	p, err := rt.start(ctx, birth{name: name, handler: h, spec: &s})
	if err != nil {
		return Ref{}, err
	}
	return Ref{p}, nil
}

// Lookup returns the process that has name now.
func (rt *Runtime) Lookup(name string) (Ref, bool) {
	p := rt.registry.get(name)
	return Ref{p}, p != nil
}

// find returns the process that m is for.
func (rt *Runtime) find(m *envelope.Message) (Ref, error) {
	p := rt.registry.get(m.Recipient)
	if p == nil {
		return Ref{}, failure(envelope.NotFound, m.Recipient, "")
	}
	if m.Epoch != 0 && m.Epoch != p.epoch {
		return Ref{}, failure(envelope.NotFound, m.Recipient, fmt.Sprintf("its epoch is %d, not %d", p.epoch, m.Epoch))
	}
	return Ref{p}, nil
}

// Call asks the agent that m.Recipient names, here or through the carrier, and returns the value of its answer.
func (rt *Runtime) Call(ctx context.Context, m *envelope.Message) (any, error) {
	r, err := rt.find(m)
	if err == nil {
		return r.Ask(ctx, m)
	}
	if rt.cfg.Carrier == nil {
		return nil, err
	}
	reply, err := rt.cfg.Carrier.Ask(ctx, outbound(ctx, m))
	if err != nil {
		return nil, err
	}
	return reply.Payload, reply.Err()
}

// Tell tells the agent that m.Recipient names, here or through the carrier.
func (rt *Runtime) Tell(ctx context.Context, m *envelope.Message) error {
	r, err := rt.find(m)
	switch {
	case err == nil:
		return r.Tell(ctx, m)
	case rt.cfg.Carrier == nil:
		return err
	}
	return rt.cfg.Carrier.Tell(ctx, outbound(ctx, m))
}

// outbound stamps a message that leaves the process: an identity, a time, and what is left of the caller's time.
func outbound(ctx context.Context, m *envelope.Message) *envelope.Message {
	now := time.Now()
	m.Stamp(now)
	if at, ok := ctx.Deadline(); ok {
		m.TTL = max(at.Sub(now), time.Microsecond)
	}
	return m
}

// Inbound returns the runtime's agents as a carrier: what a bus delivers messages from other processes to. An expired message
// is not handled, and a message's time to live bounds its handling. Answers are replies to m; failures are errors.
func (rt *Runtime) Inbound() Carrier { return inbound{rt} }

type inbound struct{ rt *Runtime }

// Ask has an agent of this runtime answer m.
func (in inbound) Ask(ctx context.Context, m *envelope.Message) (*envelope.Message, error) {
	r, err := in.rt.find(m)
	if err != nil {
		return nil, err
	}
	ctx, cancel, err := in.bound(ctx, m)
	if err != nil {
		return nil, err
	}
	defer cancel()
	v, err := r.p.ask(ctx, m)
	if err != nil {
		return nil, err
	}
	return m.Reply(v), nil
}

// Tell puts m into the mailbox of an agent of this runtime.
func (in inbound) Tell(ctx context.Context, m *envelope.Message) error {
	r, err := in.rt.find(m)
	if err != nil {
		return err
	}
	ctx, cancel, err := in.bound(ctx, m)
	if err != nil {
		return err
	}
	defer cancel()
	return r.Tell(ctx, m)
}

// bound ends ctx with m's time to live, counted from its arrival: the sender's clock is not ours.
func (in inbound) bound(ctx context.Context, m *envelope.Message) (context.Context, context.CancelFunc, error) {
	switch {
	case m.TTL <= 0:
		return ctx, func() {}, nil
	case m.Expired(time.Now().Add(-maxSkew)):
		in.rt.counts.expired.Add(1)
		return nil, nil, failure(envelope.Deadline, m.Recipient, "it arrived after its time to live")
	}
	ctx, cancel := context.WithTimeout(ctx, m.TTL)
	return ctx, cancel, nil
}

// maxSkew is how far clocks of two processes may differ before a message looks expired that is not.
const maxSkew = time.Second

// Poison counts a frame from outside that could not be read; what carries messages calls it and goes on.
func (rt *Runtime) Poison() { rt.counts.poison.Add(1) }

// Counts returns what has been counted so far.
func (rt *Runtime) Counts() Counts {
	c := &rt.counts
	out := Counts{
		Live: rt.registry.count.Load(), Handled: c.handled.Load(), Crashes: c.crashes.Load(), Dropped: c.dropped.Load(),
		Expired: c.expired.Load(), LateReplies: c.lateReplies.Load(), DeadLetters: c.deadLetters.Load(),
		Poison: c.poison.Load(), Zombies: c.zombies.Load(),
	}
	for p := range rt.registry.all() {
		p.mu.Lock()
		out.Handled += int64(p.handled)
		p.mu.Unlock()
	}
	return out
}

// DeadLetters returns the latest ones, the oldest first.
func (rt *Runtime) DeadLetters() []DeadLetter { return rt.letters.list() }

// parity sends m through the codec.
func (rt *Runtime) parity(m *envelope.Message) (*envelope.Message, error) {
	data, err := rt.cfg.Parity.Append(nil, m)
	if err != nil {
		return nil, &envelope.Failure{Code: envelope.Failed, Agent: m.Recipient, Detail: err.Error()}
	}
	back, err := rt.cfg.Parity.Decode(data)
	if err != nil {
		return nil, &envelope.Failure{Code: envelope.Failed, Agent: m.Recipient, Detail: err.Error()}
	}
	return back, nil
}

// Msgpack is the codec that processes use among themselves.
type Msgpack struct{}

// Append appends m.
func (Msgpack) Append(b []byte, m *envelope.Message) ([]byte, error) { return m.AppendMsgpack(b) }

// Decode reads one message.
func (Msgpack) Decode(data []byte) (*envelope.Message, error) {
	return envelope.DecodeMsgpack(data, envelope.Limits{})
}

// JSON is the codec for eyes.
type JSON struct{}

// Append appends m.
func (JSON) Append(b []byte, m *envelope.Message) ([]byte, error) { return m.AppendJSON(b) }

// Decode reads one message.
func (JSON) Decode(data []byte) (*envelope.Message, error) {
	return envelope.DecodeJSON(data, envelope.Limits{})
}

func (rt *Runtime) event(e Event) {
	if rt.cfg.Events != nil {
		rt.cfg.Events(e)
	}
}

func (rt *Runtime) deadLetter(m *envelope.Message, err error) {
	rt.counts.deadLetters.Add(1)
	rt.letters.add(DeadLetter{m, err}, rt.cfg.DeadLetters)
	rt.event(Event{Kind: DeadLettered, Name: m.Recipient, Err: err})
}

// bury makes dead letters of what a process left behind.
func (rt *Runtime) bury(e Exit, rest []item) {
	err := failureOf(e)
	if e.Poison != nil {
		rt.deadLetter(e.Poison, err)
	}
	for _, it := range rest {
		rt.deadLetter(it.m, err)
	}
}

// Close stops every agent: supervisors first, each with its children in reverse order, then the rest, all at once. When ctx
// ends before they have gone they are stopped hard. Afterwards nothing can be spawned.
func (rt *Runtime) Close(ctx context.Context) error {
	defer rt.cancel()
	rt.mu.Lock()
	rt.closed.Store(true)
	var tops []*Supervisor
	for _, s := range rt.supervisors {
		if s.parent == nil {
			tops = append(tops, s)
		}
	}
	var ds []*Dynamic
	for _, d := range rt.dynamic {
		if d.parent == nil {
			ds = append(ds, d)
		}
	}
	rt.mu.Unlock()
	var errs []error
	for _, s := range tops {
		errs = append(errs, s.Stop(ctx))
	}
	for _, d := range ds {
		errs = append(errs, d.Close(ctx, All))
	}
	var left []Ref
	for p := range rt.registry.all() {
		p.stop(All, nil)
		left = append(left, Ref{p})
	}
	for _, r := range left {
		if err := r.Wait(ctx); err != nil {
			r.p.stop(Now, nil)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
