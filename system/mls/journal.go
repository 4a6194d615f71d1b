package mls

import (
	"bytes"
	"fmt"
	"slices"
)

// A group that is kept in a store, so that a crash costs nothing but reserved generations.
//
// Whatever leaves a method as its result can be sent: what must be remembered of it was made durable before. Of messages
// that are sent, that is a block of generations, once per block; of a staged commit, the epoch that it leads to; of an
// accepted one, the same. What is received is written down with the next of these, or by Flush: until then, a crash can
// bring keys back that were used to read, and never ones that were used to write.

// A Store keeps the last snapshot of one group and what changed since.
type Store interface {
	// Load returns them; a nil snapshot when there is none.
	Load() (snapshot []byte, deltas [][]byte, err error)
	// Append adds deltas, all or none. They are durable when it returns.
	Append(deltas ...[]byte) error
	// Snapshot takes the place of the last snapshot and all deltas, at once. It is durable when it returns, and what it
	// replaced is gone, as far as the medium allows.
	Snapshot(state []byte) error
}

// StoreOptions say how a group is kept. The zero value has the defaults.
type StoreOptions struct {
	Block uint32 // generations reserved at a time; 0 for 32
	Every int    // accepted commits between snapshots; 0 for 64, negative for never
}

const (
	defaultBlock = 32
	defaultEvery = 64
	maxUnwritten = 256 // deltas that may wait for the next that must be durable
)

// A journal is where a group's changes are written to. A nil journal writes nothing.
type journal struct {
	store     Store
	o         StoreOptions
	reserved  [2]uint32 // generations before these of our ratchets may be used, in the current epoch
	unwritten [][]byte
	accepted  int // commits since the last snapshot
}

// The kinds of deltas.
const (
	deltaReserve  = 1 // a generation that our ratchet may be used up to
	deltaConsume  = 2 // a key that was used to read
	deltaProposal = 3
	deltaUpdate   = 4 // the private key of an Update of ours
	deltaStage    = 5 // a commit of ours
	deltaAccept   = 6 // a commit of another's
	deltaOwn      = 7 // the commit of ours that is staged is accepted
	deltaDiscard  = 8
)

// Persist writes a snapshot of the group to a store and keeps it there from now on.
func (g *Group) Persist(store Store, o StoreOptions) error {
	if o.Block == 0 {
		o.Block = defaultBlock
	}
	if o.Every == 0 {
		o.Every = defaultEvery
	}
	if o.Block > g.config.window().Ahead {
		return refuse(ErrArgument, "blocks of %d generations, more than the window of %d that others follow", o.Block, g.config.window().Ahead)
	}
	j := &journal{store: store, o: o}
	if err := store.Snapshot(g.snapshot([2]uint32{})); err != nil {
		return refuseFor(ErrStore, err, "the first snapshot")
	}
	g.journal = j
	return nil
}

// Restore brings a group back from its store, and keeps it there from now on.
func Restore(config Config, store Store, o StoreOptions) (*Group, error) {
	snapshot, deltas, err := store.Load()
	if err != nil {
		return nil, refuseFor(ErrStore, err, "load")
	}
	g, err := Load(config, snapshot)
	if err != nil {
		return nil, err
	}
	for i, d := range deltas {
		if err := g.replay(d); err != nil {
			return nil, refuseFor(ErrState, err, "delta %d of %d", i, len(deltas))
		}
	}
	return g, g.Persist(store, o)
}

// Pending returns our own commit that is staged, which may be one from before a crash; nil when there is none.
func (g *Group) Pending() *Staged { return g.staged }

// Flush makes what was received durable.
func (g *Group) Flush() error {
	if g.journal == nil {
		return nil
	}
	return g.journal.write()
}

// write makes a delta durable, behind those that wait.
func (j *journal) write(delta ...[]byte) error {
	all := slices.Concat(j.unwritten, delta)
	if len(all) == 0 {
		return nil
	}
	if err := j.store.Append(all...); err != nil {
		return refuseFor(ErrStore, err, "%d deltas", len(all))
	}
	j.unwritten = j.unwritten[:0]
	return nil
}

// later writes a delta with the next that must be durable.
func (j *journal) later(delta []byte) error {
	if j == nil {
		return nil
	}
	j.unwritten = append(j.unwritten, delta)
	if len(j.unwritten)%maxUnwritten > 0 {
		return nil
	}
	// What was read is read, whether or not the store works; but not for ever.
	if err := j.write(); err != nil && len(j.unwritten) >= 16*maxUnwritten {
		return err
	}
	return nil
}

// reserve sees to it that our ratchet's next generation was reserved in the store.
func (g *Group) reserve(kind ContentType) error {
	j := g.journal
	if j == nil {
		return nil
	}
	r, next := ratchetOf(kind), uint32(0)
	if pair := g.epoch.ratchets.ratchets[g.epoch.self]; pair != nil {
		next = pair[r].next
	}
	if next < j.reserved[r] {
		return nil
	}
	to := next + min(j.o.Block, maxGeneration-next)
	if err := j.write(appendU32(append(appendU64([]byte{deltaReserve}, g.Epoch()), byte(r)), to)); err != nil {
		return err
	}
	j.reserved[r] = to
	return nil
}

// consumed notes a key that was used to read.
func (g *Group) consumed(epoch uint64, c *candidate) error {
	if g.journal == nil {
		return nil
	}
	d := append(appendU32(appendU64([]byte{deltaConsume}, epoch), c.leaf), byte(c.kind))
	return g.journal.later(appendU32(d, c.generation))
}

// kept notes a proposal.
func (g *Group) kept(p *proposed) error {
	if g.journal == nil {
		return nil
	}
	return g.journal.later(p.append([]byte{deltaProposal}))
}

// stages makes a commit of ours durable.
func (g *Group) stages(st *Staged) error {
	if g.journal == nil {
		return nil
	}
	return g.journal.write(st.append([]byte{deltaStage}))
}

// accepts makes an accepted commit durable.
func (g *Group) accepts(st *Staged) error {
	switch {
	case g.journal == nil || st.Expels:
		return nil
	case st == g.staged:
		return g.journal.write([]byte{deltaOwn})
	}
	return g.journal.write(st.append([]byte{deltaAccept}))
}

// settled makes a snapshot when one is due after a commit was accepted. The commit is durable already, so that a snapshot
// that fails is made after the next; but for our own removal, which must take the secrets away.
func (g *Group) settled() error {
	j := g.journal
	if j == nil {
		return nil
	}
	j.reserved = [2]uint32{}
	if j.accepted++; g.removed || j.o.Every > 0 && j.accepted >= j.o.Every {
		if err := g.Compact(); err != nil && g.removed {
			return err
		}
	}
	return nil
}

// Compact replaces what the store has with a snapshot, and with it the secrets of epochs that are over.
func (g *Group) Compact() error {
	j := g.journal
	if j == nil {
		return refuse(ErrArgument, "the group is not in a store")
	}
	var ahead [2]uint32
	if g.epoch.ratchets != nil {
		pair := g.epoch.ratchets.ratchets[g.epoch.self]
		for r := range ahead {
			next := uint32(0)
			if pair != nil {
				next = pair[r].next
			}
			ahead[r] = max(j.reserved[r], next) - next
		}
	}
	if err := j.store.Snapshot(g.snapshot(ahead)); err != nil {
		return refuseFor(ErrStore, err, "a snapshot")
	}
	j.unwritten, j.accepted = j.unwritten[:0], 0
	return nil
}

// replay makes a stored change again.
func (g *Group) replay(delta []byte) error {
	r := newReader(bytes.Clone(delta))
	l := &loader{reader: &r, s: g.s, w: g.config.window()}
	var then func() error
	switch kind := r.u8(); kind {
	case deltaReserve:
		epoch, ratchet, to := r.u64(), r.u8(), r.u32()
		then = func() error { return g.skipTo(epoch, ratchet, to) }
	case deltaConsume:
		epoch, leaf, ratchet, generation := r.u64(), r.u32(), r.u8(), r.u32()
		then = func() error { return g.forgetKey(epoch, leaf, ratchet, generation) }
	case deltaProposal:
		p := readProposed(&r)
		then = func() error {
			g.proposals = append(g.proposals, p)
			return nil
		}
	case deltaUpdate:
		k, err := g.s.privateKey(r.vector())
		then = func() error {
			g.updates = append(g.updates, ownUpdate{k})
			return err
		}
	case deltaStage:
		st := l.staged(g.epoch)
		then = func() error {
			g.staged = st
			return nil
		}
	case deltaAccept:
		st := l.staged(g.epoch)
		then = func() error { return g.accept(st) }
	case deltaOwn:
		then = func() error {
			if g.staged == nil {
				return refuse(ErrState, "the commit that was accepted is not there")
			}
			return g.accept(g.staged)
		}
	case deltaDiscard:
		then = func() error {
			g.staged = nil
			return nil
		}
	default:
		r.fail(fmt.Sprintf("a delta of kind %d", kind))
	}
	if err := r.finish(); err != nil {
		return err
	}
	return then()
}

// skipTo moves our ratchet on to what was reserved.
func (g *Group) skipTo(epoch uint64, ratchet uint8, to uint32) error {
	e := g.epoch
	if epoch != g.Epoch() || ratchet > applications || e.ratchets == nil {
		return refuse(ErrState, "generations of epoch %d reserved in epoch %d", epoch, g.Epoch())
	}
	next := uint32(0)
	if pair := e.ratchets.ratchets[e.self]; pair != nil {
		next = pair[ratchet].next
	}
	if to < next || to-next > g.config.window().Ahead {
		return refuse(ErrState, "generation %d reserved, we are at %d", to, next)
	}
	var n [2]uint32
	n[ratchet] = to - next
	e.ratchets.reserve(e.self, n)
	return nil
}

// forgetKey deletes a key that was used to read.
func (g *Group) forgetKey(epoch uint64, leaf uint32, ratchet uint8, generation uint32) error {
	t := g.epoch.ratchets
	if epoch != g.Epoch() {
		p := g.pastEpoch(epoch)
		if p == nil {
			return nil
		}
		t = p.ratchets
	}
	kind := ContentApplication
	if ratchet == handshakes {
		kind = ContentCommit
	}
	c, err := t.peek(leaf, kind, generation)
	if err == nil {
		t.consume(&c)
	}
	return err
}

// Memory is a Store that a crash of the process takes away.
type Memory struct {
	snapshot []byte
	deltas   [][]byte
}

// Load returns what was stored.
func (m *Memory) Load() (snapshot []byte, deltas [][]byte, err error) {
	return m.snapshot, m.deltas, nil
}

// Append adds deltas.
func (m *Memory) Append(deltas ...[]byte) error {
	for _, d := range deltas {
		m.deltas = append(m.deltas, bytes.Clone(d))
	}
	return nil
}

// Snapshot replaces everything.
func (m *Memory) Snapshot(state []byte) error {
	for _, d := range m.deltas {
		clear(d)
	}
	clear(m.snapshot)
	m.snapshot, m.deltas = bytes.Clone(state), nil
	return nil
}
