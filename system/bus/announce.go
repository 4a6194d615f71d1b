package bus

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"sync"
	"time"

	"toll/wire/envelope"
	"toll/wire/frame"
)

// Operations by which nodes without a broker tell each other names: announce says what a node owns, query asks for what is
// known.
const (
	opAnnounce = reserved + "announce"
	opQuery    = reserved + "query"
)

// Announced is a directory without a broker: every node says what it owns to all others that it knows, again and again, and
// asks them when it joins or is asked for a name that it does not know. The higher epoch wins; of equal ones the node whose
// name is greater. Two nodes that can't reach each other may both own a name until they can.
type Announced struct {
	self  Owner // without an epoch
	every time.Duration
	link  func(ctx context.Context, o Owner) (Link, error)
	ctx   context.Context // ends with the directory
	end   context.CancelFunc
	wg    sync.WaitGroup

	mu    sync.Mutex
	peers map[string]peer  // guarded by mu: by address
	names map[string]heard // guarded by mu
}

// A peer is another node's address. What was only heard of is asked, but not told on: else the dead would live for ever.
type peer struct {
	given bool      // by the configuration: never forgotten
	heard time.Time // when it last spoke to us or answered
	since time.Time // when it was first heard of
}

type heard struct {
	owner Owner
	until time.Time // zero: ours
	lost  func()
}

// NewAnnounced makes the directory of a node. peers are addresses of others, of which one that can be reached is enough;
// every is how often names are said again, 1 s when 0, and a third of how long they are believed. link is the node's own
// way to reach others; r its responder.
func NewAnnounced(self Owner, peers []string, every time.Duration, r *Responder, link func(ctx context.Context, o Owner) (Link, error)) *Announced {
	if every <= 0 {
		every = time.Second
	}
	a := &Announced{self: self, every: every, link: link, peers: make(map[string]peer), names: make(map[string]heard)}
	for _, p := range peers {
		a.peers[p] = peer{given: true}
	}
	a.ctx, a.end = context.WithCancel(context.Background())
	h := Handler(a.handle)
	r.process.Store(&h)
	a.wg.Go(a.loop)
	return a
}

// Close stops announcing; the names expire.
func (a *Announced) Close() error {
	a.end()
	a.wg.Wait()
	return nil
}

// handle takes announcements and answers queries.
func (a *Announced) handle(dst []byte, q *Request) ([]byte, error) {
	switch string(q.Op) {
	case opAnnounce:
		owners, met, err := parseOwners(q.Body)
		if err != nil {
			return dst, err
		}
		a.meet(string(q.From), met)
		a.merge(owners)
		return dst, nil
	case opQuery:
		return a.appendKnown(dst), nil
	}
	return dst, &envelope.Failure{Code: envelope.NotFound, Detail: fmt.Sprintf("operation %.40q is none of the bus", q.Op)}
}

// meet notes that the node at from lives, and the addresses that it tells on.
func (a *Announced) meet(from string, met []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for i, addr := range append([]string{from}, met...) {
		p, ok := a.peers[addr]
		if addr == "" || !ok && len(a.peers) >= maxKnown {
			continue
		}
		if !ok {
			p.since = now
		}
		if i == 0 {
			p.heard = now
		}
		a.peers[addr] = p
	}
}

// merge takes what another node says. Names of ours that another has under a higher epoch are lost.
func (a *Announced) merge(owners map[string]Owner) {
	now := time.Now()
	var lost []func()
	a.mu.Lock()
	for name, o := range owners {
		if o.Node == a.self.Node {
			continue
		}
		have, ok := a.names[name]
		if ok && !better(o, have.owner) && (have.until.IsZero() || have.until.After(now)) {
			continue
		}
		if !ok && len(a.names) >= maxKnown {
			continue
		}
		if have.lost != nil && have.until.IsZero() {
			lost = append(lost, have.lost)
		}
		a.names[name] = heard{owner: o, until: now.Add(3 * a.every)}
	}
	a.mu.Unlock()
	for _, f := range lost {
		f()
	}
}

// better says whether o rather than p owns a name; the same owner is as good as before and keeps it.
func better(o, p Owner) bool {
	if o.Epoch != p.Epoch {
		return o.Epoch > p.Epoch
	}
	return o.Node >= p.Node
}

// loop announces, first of all by asking what others know.
func (a *Announced) loop() {
	tick := time.NewTicker(a.every)
	defer tick.Stop()
	a.query(a.ctx)
	for {
		a.announce()
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// each runs f with a link to every peer, at once, and gives it until the next announcement.
func (a *Announced) each(ctx context.Context, f func(ctx context.Context, l Link)) {
	a.mu.Lock()
	now := time.Now()
	maps.DeleteFunc(a.peers, func(_ string, p peer) bool {
		return !p.given && now.Sub(p.heard) > 30*a.every && now.Sub(p.since) > 30*a.every
	})
	peers := make([]string, 0, len(a.peers))
	for p := range a.peers {
		if p != a.self.Addr {
			peers = append(peers, p)
		}
	}
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, a.every)
	defer cancel()
	var wg sync.WaitGroup
	for _, p := range peers {
		wg.Go(func() {
			if l, err := a.link(ctx, Owner{Addr: p}); err == nil {
				f(ctx, l)
			}
		})
	}
	wg.Wait()
}

func (a *Announced) announce() {
	body := appendOwners(nil, a.ours(), a.alive())
	a.each(a.ctx, func(ctx context.Context, l Link) {
		l.Tell(ctx, &frame.Request{Header: frame.Header{Kind: frame.Tell}, From: a.self.Addr, Op: opAnnounce, Body: body})
	})
}

// alive are the addresses of those that have lately spoken to us.
func (a *Announced) alive() (addrs []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for addr, p := range a.peers {
		if time.Since(p.heard) < 3*a.every {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

func (a *Announced) query(ctx context.Context) {
	a.each(ctx, func(ctx context.Context, l Link) {
		c := NewCall("", "", opQuery)
		if l.Call(ctx, c) != nil {
			return
		}
		if owners, met, err := parseOwners(c.Answer); err == nil {
			a.meet("", met)
			a.merge(owners)
		}
	})
}

func (a *Announced) ours() map[string]Owner {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make(map[string]Owner)
	for name, h := range a.names {
		if h.until.IsZero() {
			out[name] = h.owner
		}
	}
	return out
}

func (a *Announced) appendKnown(dst []byte) []byte {
	alive := a.alive()
	a.mu.Lock()
	defer a.mu.Unlock()
	out, now := make(map[string]Owner), time.Now()
	for name, h := range a.names {
		if h.until.IsZero() || h.until.After(now) {
			out[name] = h.owner
		}
	}
	return appendOwners(dst, out, alive)
}

// Claim asks the others and makes o the owner under an epoch above all that are known.
func (a *Announced) Claim(ctx context.Context, name string, o Owner, lost func()) (uint64, error) {
	a.query(ctx)
	a.mu.Lock()
	have, ok := a.names[name]
	if ok && have.owner.Node != o.Node && have.until.After(time.Now()) {
		a.mu.Unlock()
		return 0, fmt.Errorf("%w: %s by %s", ErrTaken, name, have.owner.Node)
	}
	o.Epoch = have.owner.Epoch + 1
	a.names[name] = heard{owner: o, lost: lost}
	a.mu.Unlock()
	if have.lost != nil && have.until.IsZero() {
		have.lost()
	}
	a.announce()
	return o.Epoch, nil
}

// Release gives a claim up: the others forget it when it is not announced any more, and are refused until then.
func (a *Announced) Release(_ context.Context, name string, epoch uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if h := a.names[name]; h.until.IsZero() && h.owner.Epoch == epoch {
		// The epoch is kept, so that a later claim is above it.
		a.names[name] = heard{owner: Owner{Epoch: epoch}, until: time.Unix(1, 0)}
	}
	return nil
}

// Lookup returns the owner; of a name that is not known, and when fresh is true, the others are asked first.
func (a *Announced) Lookup(ctx context.Context, name string, fresh bool) (Owner, error) {
	for asked := false; ; asked = true {
		a.mu.Lock()
		h, ok := a.names[name]
		a.mu.Unlock()
		if ok && (h.until.IsZero() || h.until.After(time.Now())) && (!fresh || asked) {
			return h.owner, nil
		}
		if asked {
			return Owner{}, unknown(name)
		}
		a.query(ctx)
	}
}

// appendOwners appends names with their owners, and the addresses of other nodes, which stand without a name: lengths in a
// byte, epochs in eight.
func appendOwners(dst []byte, owners map[string]Owner, met []string) []byte {
	add := func(name string, o Owner) {
		if max(len(name), len(o.Node), len(o.Addr)) > frame.MaxName {
			return
		}
		for _, text := range [...]string{name, o.Node, o.Addr} {
			dst = append(append(dst, byte(len(text))), text...)
		}
		dst = binary.LittleEndian.AppendUint64(dst, o.Epoch)
	}
	for name, o := range owners {
		add(name, o)
	}
	for _, addr := range met {
		add("", Owner{Addr: addr})
	}
	return dst
}

func parseOwners(b []byte) (owners map[string]Owner, met []string, err error) {
	owners = make(map[string]Owner)
	for len(b) > 0 {
		var text [3]string
		for i := range text {
			if len(b) == 0 || len(b) < 1+int(b[0]) {
				return nil, nil, errNames
			}
			n := 1 + int(b[0])
			text[i], b = string(b[1:n]), b[n:]
		}
		if len(b) < 8 || text[0] != "" && text[1] == "" || text[0] == "" && text[2] == "" {
			return nil, nil, errNames
		}
		if text[0] == "" {
			met = append(met, text[2])
		} else {
			owners[text[0]] = Owner{Node: text[1], Addr: text[2], Epoch: binary.LittleEndian.Uint64(b)}
		}
		b = b[8:]
	}
	return owners, met, nil
}
