package mls

import (
	"maps"
	"math/bits"
	"slices"
)

// The secret tree, RFC 9420 §9. A key that was used is gone, and so is all that it could be derived from again.
//
// Forward secrecy has a price list. Keys of skipped generations are kept, so that a late message can be read: whoever takes
// the state can read those that have not arrived, at most Reorder of each sender's ratchet. Secret trees of past epochs are
// kept for the same reason: whoever takes the state can read what was sent in them and had not been read.

// A Window bounds what is kept for messages that come late or out of order.
type Window struct {
	Past    int    // epochs before the current one whose messages can still be read
	Reorder uint32 // skipped generations kept per sender and ratchet
	Ahead   uint32 // how far a generation may be ahead of the last one seen
	Skipped int    // skipped generations kept in one epoch, over all senders
}

// DefaultWindow keeps three past epochs, a hundred late messages of each sender and follows a jump of a thousand.
func DefaultWindow() Window { return Window{Past: 3, Reorder: 100, Ahead: 1000, Skipped: 1 << 16} }

// A messageKey encrypts one message.
type messageKey struct {
	key   [maxKey]byte
	nonce [nonceSize]byte
}

// A ratchet gives a sender's keys in order (§9.1).
type ratchet struct {
	secret  []byte
	next    uint32 // generation of secret
	spent   bool   // the last generation was used
	skipped map[uint32]*messageKey
}

// The ratchets of a leaf, by content.
const (
	handshakes   = 0
	applications = 1
)

func ratchetOf(kind ContentType) int {
	if kind == ContentApplication {
		return applications
	}
	return handshakes
}

type secretTree struct {
	s        *suite
	width    uint32
	window   Window
	nodes    map[uint32][]byte // secrets that nothing was derived from
	ratchets map[uint32]*[2]ratchet
	kept     int // skipped keys
}

func newSecretTree(s *suite, width uint32, encryption []byte, w Window) *secretTree {
	t := &secretTree{s: s, width: width, window: w, nodes: make(map[uint32][]byte, bits.Len32(width)), ratchets: make(map[uint32]*[2]ratchet)}
	t.nodes[rootOf(width)] = encryption
	return t
}

// A candidate is a key that is looked at and not yet used: it changes nothing until it is consumed.
type candidate struct {
	leaf       uint32
	kind       int
	generation uint32
	key        messageKey
	pair       *[2]ratchet  // the leaf's
	fresh      []nodeSecret // on the way to a leaf that is new; nil otherwise
	top        uint32       // the node they were derived from
}

// A nodeSecret is a secret of the tree that nothing was derived from.
type nodeSecret struct {
	node   uint32
	secret []byte
}

// ratchetsOf returns a leaf's ratchets, derived if need be without changing the tree.
func (t *secretTree) ratchetsOf(leaf uint32) (pair *[2]ratchet, fresh []nodeSecret, top uint32, err error) {
	if pair = t.ratchets[leaf]; pair != nil {
		return pair, nil, 0, nil
	}
	if leaf >= t.width {
		return nil, nil, 0, refuse(ErrSender, "leaf %d of %d", leaf, t.width)
	}
	top = 2 * leaf
	for root := rootOf(t.width); t.nodes[top] == nil; top = parentOf(top) {
		if top == root {
			return nil, nil, 0, refuse(ErrState, "leaf %d of the secret tree has no ancestor", leaf)
		}
	}
	nh, depth := t.s.nh, int(level(top))
	b := make([]byte, (depth+2)*nh) // one piece of memory for all
	piece := func() []byte {
		out := b[:nh:nh]
		b = b[nh:]
		return out
	}
	fresh = make([]nodeSecret, 0, depth)
	var way [maxHash]byte
	secret := way[:nh]
	copy(secret, t.nodes[top])
	for x := top; x != 2*leaf; {
		left, right := leftOf(x), rightOf(x)
		other := right
		if x = left; under(2*leaf, right) {
			x, other = right, left
		}
		beside := nodeSecret{node: other, secret: piece()}
		t.s.expandLabel(beside.secret, secret, "tree", sideOf(other, x))
		t.s.expandLabel(secret, secret, "tree", sideOf(x, other))
		fresh = append(fresh, beside)
	}
	pair = &[2]ratchet{{secret: piece()}, {secret: piece()}}
	t.s.expandLabel(pair[handshakes].secret, secret, "handshake", nil)
	t.s.expandLabel(pair[applications].secret, secret, "application", nil)
	clear(secret)
	return pair, fresh, top, nil
}

// sideOf is the context that tells two children apart.
func sideOf(x, other uint32) []byte {
	if x < other {
		return []byte("left")
	}
	return []byte("right")
}

// settle stores what ratchetsOf derived and deletes what it was derived from.
func (t *secretTree) settle(leaf uint32, pair *[2]ratchet, fresh []nodeSecret, top uint32) {
	if fresh == nil {
		return
	}
	clear(t.nodes[top])
	delete(t.nodes, top)
	for _, n := range fresh {
		t.nodes[n.node] = n.secret
	}
	t.ratchets[leaf] = pair
}

// keys derives generation g's key from its secret.
func (t *secretTree) keys(k *messageKey, secret []byte, g uint32) {
	t.s.treeSecret(k.key[:t.s.nk], secret, "key", g)
	t.s.treeSecret(k.nonce[:], secret, "nonce", g)
}

// next takes the next key of our own ratchet.
func (t *secretTree) next(k *messageKey, leaf uint32, kind ContentType) (uint32, error) {
	pair, fresh, top, err := t.ratchetsOf(leaf)
	if err != nil {
		return 0, err
	}
	t.settle(leaf, pair, fresh, top)
	r := &pair[ratchetOf(kind)]
	if r.spent {
		return 0, refuse(ErrGenerations, "leaf %d", leaf)
	}
	g := r.next
	t.keys(k, r.secret, g)
	t.advance(r)
	return g, nil
}

// advance moves a ratchet on by one; what it was is overwritten.
func (t *secretTree) advance(r *ratchet) {
	t.s.treeSecret(r.secret, r.secret, "secret", r.next)
	if r.next == maxGeneration {
		r.spent = true
		return
	}
	r.next++
}

// peek finds the key of a generation.
func (t *secretTree) peek(leaf uint32, kind ContentType, generation uint32) (c candidate, err error) {
	c = candidate{leaf: leaf, kind: ratchetOf(kind), generation: generation}
	if c.pair, c.fresh, c.top, err = t.ratchetsOf(leaf); err != nil {
		return c, err
	}
	r := &c.pair[c.kind]
	if generation < r.next || r.spent {
		k := r.skipped[generation]
		switch {
		case k != nil:
			c.key = *k
			return c, nil
		case r.next-generation > t.window.Reorder:
			return c, refuse(ErrTooOld, "generation %d of leaf %d, which is at %d", generation, leaf, r.next)
		}
		return c, refuse(ErrReplayed, "generation %d of leaf %d", generation, leaf)
	}
	if generation-r.next > t.window.Ahead {
		return c, refuse(ErrTooFarAhead, "generation %d of leaf %d, which is at %d", generation, leaf, r.next)
	}
	var secret [maxHash]byte
	copy(secret[:], r.secret)
	for g := r.next; g < generation; g++ {
		t.s.treeSecret(secret[:t.s.nh], secret[:t.s.nh], "secret", g)
	}
	t.keys(&c.key, secret[:t.s.nh], generation)
	return c, nil
}

// consume deletes the key of a candidate whose message was authentic, and keeps those that were skipped.
func (t *secretTree) consume(c *candidate) {
	t.settle(c.leaf, c.pair, c.fresh, c.top)
	r := &c.pair[c.kind]
	if k := r.skipped[c.generation]; k != nil {
		*k = messageKey{}
		delete(r.skipped, c.generation)
		t.kept--
		return
	}
	for r.next < c.generation {
		if c.generation-r.next <= t.window.Reorder {
			k := new(messageKey)
			t.keys(k, r.secret, r.next)
			if r.skipped == nil {
				r.skipped = make(map[uint32]*messageKey)
			}
			r.skipped[r.next] = k
			t.kept++
		}
		t.advance(r)
	}
	t.advance(r)
	if len(r.skipped) > 0 {
		t.evict(r)
	}
}

// evict deletes skipped keys that have left the window.
func (t *secretTree) evict(r *ratchet) {
	generations := slices.Sorted(maps.Keys(r.skipped))
	for _, g := range generations {
		if r.next-g <= t.window.Reorder && t.kept <= t.window.Skipped {
			return
		}
		*r.skipped[g] = messageKey{}
		delete(r.skipped, g)
		t.kept--
	}
}
