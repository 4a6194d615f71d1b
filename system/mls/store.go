package mls

import (
	"bytes"
	"maps"
	"slices"
)

// The stored state of a group. It is secret. It has no key that was used and nothing that one could be derived from, so
// forward secrecy is as good as the deletion of old snapshots.

// storeMagic begins a stored state; its last byte is the format's version.
const storeMagic = "toll mls\x02"

// Snapshot encodes the group's state, with a commit of ours that is staged and the proposals received in this epoch.
//
// A message must not leave before a snapshot that knows its generation is stored, or a crash could use a key twice. With
// reserve, the stored state has our ratchets that many generations further on: so many messages may leave until the next
// snapshot is due, and after a crash the rest of them is skipped.
func (g *Group) Snapshot(reserve uint32) ([]byte, error) {
	if reserve > g.config.window().Ahead {
		return nil, refuse(ErrArgument, "%d generations reserved, more than the window of %d that others follow", reserve, g.config.window().Ahead)
	}
	return g.snapshot([2]uint32{reserve, reserve}), nil
}

// snapshot is Snapshot with so many generations reserved of each of our ratchets.
func (g *Group) snapshot(reserve [2]uint32) []byte {
	dst := appendU16(append(make([]byte, 0, 8192), storeMagic...), uint16(g.s.id))
	dst = appendOptional(dst, g.removed)
	dst = appendOptional(dst, g.reinit != nil)
	if g.reinit != nil {
		dst = g.reinit.append(dst)
	}
	dst = g.epoch.appendState(dst, nil, reserve)
	start := len(dst)
	for i := range g.past {
		dst = g.past[i].append(dst, g.epoch.tree)
	}
	dst = closeVector(dst, start)
	start = len(dst)
	for _, p := range g.proposals {
		dst = p.append(dst)
	}
	dst = closeVector(dst, start)
	start = len(dst)
	for _, u := range g.updates {
		dst = appendVector(dst, u.key.Bytes())
	}
	dst = closeVector(dst, start)
	start = len(dst)
	for _, n := range slices.Sorted(maps.Keys(g.resumed)) {
		dst = appendVector(appendU64(dst, n), g.resumed[n])
	}
	dst = closeVector(dst, start)
	dst = appendOptional(dst, g.staged != nil)
	if g.staged != nil {
		dst = g.staged.append(dst)
	}
	return dst
}

func (p *proposed) append(dst []byte) []byte {
	return appendVector(p.sender.append(p.Proposal.append(dst)), p.ref)
}

func readProposed(r *reader) proposed {
	return proposed{Proposal: readProposal(r), sender: readSender(r), ref: r.vector()}
}

// appendState encodes an epoch; its tree by what it has that base has not, or the whole of it when base is nil.
func (e *epoch) appendState(dst []byte, base *tree, reserve [2]uint32) []byte {
	dst = e.context.append(dst)
	dst = appendU32(e.tree.appendSince(dst, base), e.self)
	start := len(dst)
	for _, x := range slices.Sorted(maps.Keys(e.keys)) {
		dst = appendVector(appendU32(dst, x), e.keys[x].Bytes())
	}
	dst = closeVector(dst, start)
	for _, secret := range e.secrets.list() {
		dst = appendVector(dst, *secret)
	}
	dst = appendVector(appendVector(dst, e.interim), e.confirmation)
	dst = appendOptional(dst, e.ratchets != nil)
	if e.ratchets != nil {
		dst = e.ratchets.append(dst, e.self, reserve)
	}
	return dst
}

// list names the secrets that are stored, in their order.
func (x *secrets) list() []*[]byte {
	return []*[]byte{&x.senderData, &x.exporter, &x.external, &x.confirm, &x.membership, &x.resumption, &x.authenticator, &x.init}
}

func (p *past) append(dst []byte, base *tree) []byte {
	dst = appendVector(appendVector(appendU64(dst, p.number), p.authenticator), p.encoded)
	dst = appendU32(p.tree.appendSince(dst, base), p.self)
	return p.ratchets.append(appendVector(dst, p.senderData), p.self, [2]uint32{})
}

func (st *Staged) append(dst []byte) []byte {
	dst = appendVector(appendVector(appendVector(st.Sender.append(dst), st.Message), st.Welcome), st.Data)
	for _, list := range [][]uint32{st.Added, st.Updated, st.Removed} {
		dst = appendLength(dst, 4*len(list))
		for _, i := range list {
			dst = appendU32(dst, i)
		}
	}
	dst = appendOptional(dst, st.ReInit != nil)
	if st.ReInit != nil {
		dst = st.ReInit.append(dst)
	}
	return st.next.appendState(dst, st.base.tree, [2]uint32{})
}

func (t *secretTree) append(dst []byte, self uint32, reserve [2]uint32) []byte {
	dst = appendU32(dst, t.width)
	nodes, ratchets := t.nodes, t.ratchets
	if reserve != [2]uint32{} {
		// Our own leaf's ratchets must be there to be moved on: derive them on a copy.
		ahead := &secretTree{s: t.s, width: t.width, window: t.window, nodes: make(map[uint32][]byte), ratchets: maps.Clone(t.ratchets)}
		for x, secret := range t.nodes {
			ahead.nodes[x] = bytes.Clone(secret)
		}
		ahead.reserve(self, reserve)
		nodes, ratchets = ahead.nodes, ahead.ratchets
	}
	start := len(dst)
	for _, x := range slices.Sorted(maps.Keys(nodes)) {
		dst = appendVector(appendU32(dst, x), nodes[x])
	}
	dst = closeVector(dst, start)
	start = len(dst)
	for _, leaf := range slices.Sorted(maps.Keys(ratchets)) {
		dst = appendU32(dst, leaf)
		for i := range ratchets[leaf] {
			dst = ratchets[leaf][i].append(dst, t.s)
		}
	}
	return closeVector(dst, start)
}

// reserve moves a leaf's ratchets on, by so many generations each.
func (t *secretTree) reserve(leaf uint32, n [2]uint32) {
	pair, fresh, top, err := t.ratchetsOf(leaf)
	if err != nil {
		return // a damaged state, in which nothing can be sent either
	}
	t.settle(leaf, pair, fresh, top)
	moved := new([2]ratchet)
	for i := range pair {
		moved[i] = ratchet{secret: bytes.Clone(pair[i].secret), next: pair[i].next, spent: pair[i].spent}
		for k := uint32(0); k < n[i] && !moved[i].spent; k++ {
			t.advance(&moved[i])
		}
	}
	t.ratchets[leaf] = moved
}

func (r *ratchet) append(dst []byte, s *suite) []byte {
	dst = appendOptional(appendU32(appendVector(dst, r.secret), r.next), r.spent)
	start := len(dst)
	for _, g := range slices.Sorted(maps.Keys(r.skipped)) {
		k := r.skipped[g]
		dst = append(append(appendU32(dst, g), k.key[:s.nk]...), k.nonce[:]...)
	}
	return closeVector(dst, start)
}
