package mls

import "bytes"

// An Event is what a message turned out to be.
type Event struct {
	Kind        ContentType
	Sender      Sender
	Epoch       uint64
	Data        []byte    // authenticated with it
	Application []byte    // the plaintext of an application message
	Proposal    *Proposal // kept until the epoch ends, and covered by our next commit
	Ref         []byte    // of the proposal
	Commit      *Staged   // to be accepted or discarded
	Own         bool      // the commit is the echo of our own, and Commit is the Staged that made it
}

// Seal appends to dst the encryption of an application message, an MLSMessage. data is authenticated and not encrypted.
func (g *Group) Seal(dst, data, plaintext []byte) ([]byte, error) {
	if err := g.Active(); err != nil {
		return nil, err
	}
	if len(g.proposals) > 0 {
		return nil, refuse(ErrPending, "%d of them", len(g.proposals))
	}
	if len(plaintext)+len(data) > maxMessage {
		return nil, refuse(ErrArgument, "a message of more than %d bytes", maxMessage)
	}
	a := &g.bench.message
	g.bench.content = framedContent{
		groupID: g.epoch.context.groupID, epoch: g.epoch.context.epoch, sender: Sender{SenderMember, g.epoch.self},
		data: data, kind: ContentApplication, application: plaintext,
	}
	*a = authenticated{wire: wirePrivate, content: &g.bench.content}
	if err := g.bench.sign(g.s, g.config.Identity.signer, a, g.epoch.encoded); err != nil {
		return nil, err
	}
	if err := g.reserve(ContentApplication); err != nil {
		return nil, err
	}
	return g.bench.sealPrivate(dst, g.s, g.epoch.ratchets, g.epoch.secrets.senderData, a)
}

// sign signs a on the workbench.
func (w *workbench) sign(s *suite, key *signer, a *authenticated, context []byte) (err error) {
	a.auth.signature, err = s.signContent(key, w.appendSigned(a, context))
	return err
}

// Open reads a message. An error leaves the group as it was; so does a commit, until it is accepted. An application
// message's key is gone afterwards. data is not kept.
func (g *Group) Open(data []byte) (Event, error) {
	if g.removed {
		return Event{}, g.Active()
	}
	if g.staged != nil && bytes.Equal(data, g.staged.Message) {
		return Event{Kind: ContentCommit, Sender: g.staged.Sender, Epoch: g.Epoch(), Data: g.staged.Data, Commit: g.staged, Own: true}, nil
	}
	if err := bounded(data); err != nil {
		return Event{}, err
	}
	r := newReader(data)
	if version, wire := r.u16(), wireFormat(r.u16()); r.err == nil && version == versionMLS10 && wire == wirePrivate {
		m := &g.bench.private
		m.read(&r)
		if err := r.finish(); err != nil {
			return Event{}, err
		}
		return g.openPrivate(data, m)
	}
	m, err := parseMessage(bytes.Clone(data))
	if err != nil {
		return Event{}, err
	}
	if m.public == nil {
		return Event{}, refuse(ErrMalformed, "wire format %d where a group's message is expected", m.wire)
	}
	return g.openPublic(m.public)
}

// place checks the group and epoch of a message and returns the past epoch it is from, nil for the current one.
func (g *Group) place(id []byte, epoch uint64) (*past, error) {
	now := g.Epoch()
	switch {
	case !bytes.Equal(id, g.epoch.context.groupID):
		return nil, refuse(ErrWrongGroup, "%x", id)
	case epoch > now:
		return nil, refuse(ErrFutureEpoch, "epoch %d, ours is %d", epoch, now)
	case epoch == now:
		return nil, nil
	}
	if p := g.pastEpoch(epoch); p != nil {
		return p, nil
	}
	return nil, refuse(ErrPastEpoch, "epoch %d is not kept, ours is %d", epoch, now)
}

func (g *Group) openPrivate(data []byte, m *privateMessage) (Event, error) {
	old, err := g.place(m.groupID, m.epoch)
	if err != nil {
		return Event{}, err
	}
	e := g.epoch
	ratchets, senderData, tree, context, self := e.ratchets, e.secrets.senderData, e.tree, e.encoded, e.self
	if old != nil {
		if m.kind != ContentApplication {
			return Event{}, refuse(ErrPastEpoch, "a handshake message of epoch %d, ours is %d", m.epoch, g.Epoch())
		}
		ratchets, senderData, tree, context, self = old.ratchets, old.senderData, old.tree, old.encoded, old.self
	}
	a, c, err := g.bench.openPrivate(g.s, ratchets, senderData, data, m, self)
	if err != nil {
		return Event{}, err
	}
	leaf := tree.leaf(c.leaf)
	if leaf == nil {
		return Event{}, refuse(ErrSender, "leaf %d is blank", c.leaf)
	}
	if err := g.ring.verify(g.s, leaf.SignatureKey, g.bench.appendSigned(&a, context), a.auth.signature); err != nil {
		return Event{}, refuseFor(ErrSignature, err, "of leaf %d", c.leaf)
	}
	if m.kind == ContentApplication {
		ratchets.consume(&c)
		if err := g.consumed(m.epoch, &c); err != nil {
			return Event{}, err
		}
		return Event{Kind: m.kind, Sender: a.content.sender, Epoch: m.epoch, Data: bytes.Clone(m.data), Application: a.content.application}, nil
	}
	a.content.groupID, a.content.data = e.context.groupID, bytes.Clone(m.data) // not stretches of the message
	event, err := g.handshake(&a)
	if err != nil {
		return Event{}, err
	}
	ratchets.consume(&c)
	return event, g.consumed(m.epoch, &c)
}

func (g *Group) openPublic(m *publicMessage) (Event, error) {
	c := m.content
	old, err := g.place(c.groupID, c.epoch)
	switch {
	case err != nil:
		return Event{}, err
	case old != nil:
		return Event{}, refuse(ErrPastEpoch, "a handshake message of epoch %d, ours is %d", c.epoch, g.Epoch())
	case c.kind == ContentApplication:
		return Event{}, refuse(ErrMalformed, "application data in a public message")
	}
	a := &authenticated{wire: wirePublic, content: c, auth: m.auth}
	key, err := g.senderKey(a)
	if err != nil {
		return Event{}, err
	}
	if c.sender.Type == SenderMember {
		if !equal(m.membership, g.s.tag(g.epoch.secrets.membership, a.appendTBM(g.epoch.encoded))) {
			return Event{}, refuseFor(ErrMAC, ErrMembership, "of a message of leaf %d", c.sender.Index)
		}
		if c.sender.Index == g.epoch.self {
			return Event{}, refuse(ErrOwnMessage, "a handshake message of epoch %d", c.epoch)
		}
	}
	if err := g.ring.verify(g.s, key, g.bench.appendSigned(a, g.epoch.encoded), m.auth.signature); err != nil {
		return Event{}, refuseFor(ErrSignature, err, "of a message of a sender of type %d", c.sender.Type)
	}
	return g.handshake(a)
}

// senderKey returns the key that must have signed a public message (§6.1).
func (g *Group) senderKey(a *authenticated) ([]byte, error) {
	c := a.content
	switch c.sender.Type {
	case SenderMember:
		if l := g.epoch.tree.leaf(c.sender.Index); l != nil {
			return l.SignatureKey, nil
		}
		return nil, refuse(ErrSender, "leaf %d is no member", c.sender.Index)
	case SenderExternal:
		switch {
		case int(c.sender.Index) >= len(g.epoch.external):
			return nil, refuse(ErrSender, "external sender %d of %d", c.sender.Index, len(g.epoch.external))
		case c.kind != ContentProposal || !c.proposal.Type.fromExternal():
			return nil, refuse(ErrSender, "an external sender may not send this")
		}
		return g.epoch.external[c.sender.Index].SignatureKey, nil
	case SenderNewMemberProposal:
		if c.kind != ContentProposal || c.proposal.Type != ProposeAdd {
			return nil, refuse(ErrSender, "a new member may propose no more than an Add")
		}
		return c.proposal.Add.Leaf.SignatureKey, nil
	}
	switch {
	case c.kind != ContentCommit:
		return nil, refuse(ErrSender, "a new member's commit that is no commit")
	case c.commit.Path == nil:
		return nil, refuse(ErrPath, "an external commit without one")
	}
	return c.commit.Path.Leaf.SignatureKey, nil
}

// handshake takes in a proposal or commit that is authentic.
func (g *Group) handshake(a *authenticated) (Event, error) {
	c := a.content
	event := Event{Kind: c.kind, Sender: c.sender, Epoch: c.epoch, Data: c.data}
	if err := g.Active(); err != nil {
		return Event{}, err
	}
	var err error
	if c.kind == ContentCommit {
		if event.Commit, err = g.process(a); err != nil {
			return Event{}, err
		}
		return event, nil
	}
	event.Proposal, event.Ref = c.proposal, a.ref(g.s)
	return event, g.keep(proposed{Proposal: c.proposal, sender: c.sender, ref: event.Ref})
}
