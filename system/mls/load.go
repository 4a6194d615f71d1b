package mls

import "bytes"

// Load restores a group. The identity of config must be the one that the group knows us by.
func Load(config Config, data []byte) (*Group, error) {
	s, err := config.suite()
	if err != nil {
		return nil, err
	}
	if err := bounded(data); err != nil {
		return nil, err
	}
	r := newReader(bytes.Clone(data))
	if string(r.take(len(storeMagic))) != storeMagic {
		return nil, refuse(ErrState, "it is not a group's, or of another version")
	}
	if id := Suite(r.u16()); id != s.id {
		return nil, refuseFor(ErrState, ErrSuite, "it is of ciphersuite %d, the identity of %d", id, s.id)
	}
	l := &loader{reader: &r, s: s, w: config.window()}
	g := l.group()
	if err := r.finish(); err != nil {
		return nil, refuseFor(ErrState, err, "decode")
	}
	g.s, g.config = s, config
	g.bench.padding = config.Padding
	own := g.epoch.tree.leaf(g.epoch.self)
	if own == nil || !g.removed && !bytes.Equal(own.SignatureKey, config.Identity.signer.public) {
		return nil, refuse(ErrState, "leaf %d is not our identity's", g.epoch.self)
	}
	return g, nil
}

// A loader decodes a stored state.
type loader struct {
	*reader
	s *suite
	w Window
}

func (l *loader) group() *Group {
	g := &Group{resumed: make(map[uint64][]byte)}
	g.removed = l.optional()
	if l.optional() {
		g.reinit = readReInit(l.reader)
	}
	g.epoch = l.epoch(nil)
	g.past = readList(l.reader, func(r *reader) past { return l.over(r).past(g.epoch.tree) })
	g.proposals = readList(l.reader, readProposed)
	for _, key := range readList(l.reader, (*reader).vector) {
		k, err := l.s.privateKey(key)
		if err != nil {
			l.fail("a private key of an Update")
			return g
		}
		g.updates = append(g.updates, ownUpdate{k})
	}
	sub := l.list()
	for sub.more() {
		n := sub.u64()
		g.resumed[n] = sub.vector()
	}
	l.adopt(&sub)
	if l.optional() {
		g.staged = l.staged(g.epoch)
	}
	return g
}

func (l *loader) over(r *reader) *loader { return &loader{reader: r, s: l.s, w: l.w} }

// tree reads a tree, whole or by what it has that base has not.
func (l *loader) tree(base *tree) *tree {
	if l.optional() {
		if base == nil {
			l.fail("a tree's difference from none")
			return treeOf(l.s, make([]node, 1))
		}
		return l.treeSince(base)
	}
	// A tree on the wire has its own length, which is read again as a whole.
	nodes := readTreeNodes(l.reader)
	return treeOf(l.s, nodes)
}

func (l *loader) epoch(base *tree) *epoch {
	e := &epoch{context: readGroupContext(l.reader), keys: make(privateKeys)}
	e.encoded = e.context.append(nil)
	e.tree, e.self = l.tree(base), l.u32()
	sub := l.list()
	for sub.more() {
		x, raw := sub.u32(), sub.vector()
		k, err := l.s.privateKey(raw)
		if err != nil {
			sub.fail("a private key")
			break
		}
		e.keys[x] = k
	}
	l.adopt(&sub)
	for _, secret := range e.secrets.list() {
		*secret = l.vector()
	}
	e.interim, e.confirmation = l.vector(), l.vector()
	if l.optional() {
		e.ratchets = l.ratchets(e.tree.width())
	}
	if err := e.decodeExtensions(); err != nil && l.err == nil {
		l.fail("the group's extensions")
	}
	return e
}

func (l *loader) past(base *tree) past {
	p := past{number: l.u64(), authenticator: l.vector(), encoded: l.vector()}
	p.tree, p.self, p.senderData = l.tree(base), l.u32(), l.vector()
	p.ratchets = l.ratchets(p.tree.width())
	return p
}

func (l *loader) staged(base *epoch) *Staged {
	st := &Staged{base: base, Sender: readSender(l.reader), Message: l.vector(), Welcome: l.vector(), Data: l.vector()}
	for _, list := range []*[]uint32{&st.Added, &st.Updated, &st.Removed} {
		*list = readList(l.reader, (*reader).u32)
	}
	if l.optional() {
		st.ReInit = readReInit(l.reader)
	}
	st.next = l.epoch(base.tree)
	return st
}

func (l *loader) ratchets(width uint32) *secretTree {
	t := newSecretTree(l.s, width, nil, l.w)
	clear(t.nodes)
	if l.u32() != width {
		l.fail("a secret tree that is not as wide as the ratchet tree")
	}
	sub := l.list()
	for sub.more() {
		x, secret := sub.u32(), sub.vector()
		if x >= nodeWidth(width) || len(secret) != l.s.nh {
			sub.fail("a node of the secret tree")
		}
		t.nodes[x] = secret
	}
	l.adopt(&sub)
	sub = l.list()
	for sub.more() {
		leaf := sub.u32()
		pair := new([2]ratchet)
		for i := range pair {
			l.over(&sub).ratchet(&pair[i])
			t.kept += len(pair[i].skipped)
		}
		t.ratchets[leaf] = pair
	}
	l.adopt(&sub)
	return t
}

func (l *loader) ratchet(r *ratchet) {
	r.secret, r.next, r.spent = l.vector(), l.u32(), l.optional()
	if l.err == nil && len(r.secret) != l.s.nh {
		l.fail("a ratchet's secret")
	}
	sub := l.list()
	for sub.more() {
		g, k := sub.u32(), new(messageKey)
		copy(k.key[:], sub.take(l.s.nk))
		copy(k.nonce[:], sub.take(nonceSize))
		if r.skipped == nil {
			r.skipped = make(map[uint32]*messageKey)
		}
		r.skipped[g] = k
	}
	l.adopt(&sub)
}
