package mls

import (
	"bytes"
	"slices"
)

// An ownUpdate is the private key of an Update of ours that nobody has committed yet.
type ownUpdate struct{ key *privateKey }

// A Staged is a commit that is checked and not in force: Group.Accept makes it so.
type Staged struct {
	Message []byte   // the commit, an MLSMessage to be sent; empty when it was received
	Welcome []byte   // an MLSMessage for all new members; nil when there are none, or when it was received
	Sender  Sender   // the committer
	Data    []byte   // authenticated with the commit
	Added   []uint32 // leaf indices in the new tree
	Updated []uint32
	Removed []uint32 // leaf indices in the old tree
	ReInit  *ReInit  // the group ends with this commit
	Expels  bool     // we are among the removed

	base *epoch
	next *epoch // nil when it expels us
}

// Epoch returns the number of the epoch that the commit begins.
func (st *Staged) Epoch() uint64 { return st.base.context.epoch + 1 }

// EpochAuthenticator returns the new epoch's, nil when we are not in it.
func (st *Staged) EpochAuthenticator() []byte {
	if st.next == nil {
		return nil
	}
	return bytes.Clone(st.next.secrets.authenticator)
}

// CommitOptions say what a commit is to cover.
type CommitOptions struct {
	Proposals   []Proposal // carried by value, behind those that were received in this epoch
	SkipPending bool       // leave the received proposals out
	NoPath      bool       // leave the update path out where that is allowed (§12.4): no fresh secrets from the committer
	OmitTree    bool       // leave the ratchet tree out of the welcome: joiners get it otherwise
	Data        []byte     // authenticated_data
}

// Commit stages a commit. It is to be sent, and accepted once the delivery service has put it before all others of its
// epoch; else discarded. The private keys it needs are in the Staged, so the live epoch stays what it was, but for the
// generation of our handshake ratchet that the message used.
func (g *Group) Commit(o CommitOptions) (*Staged, error) { return g.commit(o, 0) }

func (g *Group) commit(o CommitOptions, why purpose) (*Staged, error) {
	if err := g.Active(); err != nil {
		return nil, err
	}
	d := &draft{s: g.s, config: &g.config, e: g.epoch, sender: Sender{SenderMember, g.epoch.self}, o: o, why: why, psk: g.psk, ring: &g.ring, init: g.epoch.secrets.init}
	if !o.SkipPending {
		d.list = selectProposals(g.proposals, g.epoch.self)
	}
	for i := range o.Proposals {
		d.list = append(d.list, proposed{Proposal: &o.Proposals[i], sender: d.sender})
	}
	st, err := d.stage()
	if err != nil {
		return nil, err
	}
	if g.config.Public {
		st.Message = d.a.protectPublic(g.s, g.epoch)
	} else if st.Message, err = g.sealHandshake(&d.a); err != nil {
		return nil, err
	}
	if err := g.stages(st); err != nil {
		return nil, err
	}
	g.staged = st
	return st, nil
}

// sealHandshake encrypts a handshake message of ours.
func (g *Group) sealHandshake(a *authenticated) ([]byte, error) {
	if err := g.reserve(a.content.kind); err != nil {
		return nil, err
	}
	return g.bench.sealPrivate(nil, g.s, g.epoch.ratchets, g.epoch.secrets.senderData, a)
}

// A draft is a commit that is being made, by a member or by one who joins with it.
type draft struct {
	s      *suite
	config *Config
	e      *epoch
	sender Sender
	list   []proposed
	o      CommitOptions
	why    purpose
	psk    func(*PSKID) ([]byte, error)
	ring   *keyring // nil for one who is outside
	init   []byte   // the init secret that the new epoch starts from

	invited []encapsulation // to those that the list adds, in its order
	sealing *crew           // that makes them

	self uint32
	ch   *change
	path *pathDraft
	leaf *LeafNode
	a    authenticated
}

// stage makes the commit, the new epoch and the welcome.
func (d *draft) stage() (*Staged, error) {
	c := d.config.checker()
	c.docket.ring = d.ring
	d.invite()
	defer d.sealing.stop()
	var err error
	if d.ch, err = d.e.apply(c, d.list, d.sender, d.why); err != nil {
		return nil, err
	}
	commit := &Commit{Proposals: make([]ProposalOrRef, len(d.list))}
	for i, p := range d.list {
		if commit.Proposals[i] = (ProposalOrRef{Ref: p.ref}); p.ref == nil {
			commit.Proposals[i].Proposal = p.Proposal
		}
	}
	d.self = d.sender.Index
	if d.sender.Type == SenderNewMemberCommit {
		d.self = d.ch.tree.free()
	}
	keys, commitSecret := d.ch.tree.holds(d.e.keys), d.s.zero
	if d.ch.needsPath && !c.lax || !d.o.NoPath || d.sender.Type == SenderNewMemberCommit {
		if keys, commitSecret, err = d.makePath(keys, commit); err != nil {
			return nil, err
		}
		if err := d.e.checkCommitter(c, d.sender, d.ch, d.leaf); err != nil {
			return nil, err
		}
	}
	if err := c.members(d.ch.tree, d.ch.extensions, d.ch.fresh(d.self, d.path != nil), d.ch.demands(d.e)); err != nil {
		return nil, refuseFor(ErrProposals, err, "after they are applied")
	}
	d.config.forged("commit", commit)
	psk, err := pskSecret(d.s, d.ch.psks, d.psk)
	if err != nil {
		return nil, err
	}
	if err := d.sign(commit); err != nil {
		return nil, err
	}
	next, joiner, member := d.e.follow(d.ch, d.self, keys, &d.a, d.init, commitSecret, psk, d.config.window())
	next.confirm()
	d.a.auth.confirmation = next.confirmation
	d.config.forged("authenticated", &d.a)
	st := &Staged{base: d.e, next: next, Sender: d.sender, Data: d.o.Data, Added: d.ch.added, Updated: d.ch.updated, Removed: d.ch.removed, ReInit: d.ch.reinit}
	if err := next.decodeExtensions(); err != nil {
		return nil, err
	}
	if len(d.ch.added) > 0 {
		st.Welcome, err = d.welcome(next, joiner, member)
	}
	clear(joiner)
	return st, err
}

// invite begins to make the encapsulations for new members, of which nothing leaves before their key packages are checked.
func (d *draft) invite() {
	var keys [][]byte
	for _, p := range d.list {
		if p.Type == ProposeAdd {
			keys = append(keys, p.Add.InitKey)
		}
	}
	d.invited = make([]encapsulation, len(keys))
	d.sealing = d.s.begin(len(keys), func(i int) error {
		to, err := d.s.publicKey(keys[i])
		if err == nil {
			err = d.s.encapsulate(&d.invited[i], to)
		}
		if err != nil {
			return refuseFor(ErrKeyPackage, err, "the init key of new member %d", i)
		}
		return nil
	})
}

// makePath gives our direct path new keys and encrypts them to the others.
func (d *draft) makePath(keys privateKeys, commit *Commit) (privateKeys, []byte, error) {
	d.leaf = d.config.leaf()
	var err error
	if d.path, err = d.ch.tree.draftPath(d.self, d.leaf, d.config.Identity.signer, d.e.context.groupID); err != nil {
		return nil, nil, err
	}
	if commit.Path, err = d.path.encrypt(d.ch.tree, d.leaf, d.e.provisional(d.ch), d.ch.added); err != nil {
		return nil, nil, err
	}
	keys = d.ch.tree.holds(keys)
	for x, k := range d.path.keys {
		keys[x] = k
	}
	return keys, d.path.commit, nil
}

// provisional is the encoded group context that path secrets are encrypted under: the new epoch's with the old transcript.
func (e *epoch) provisional(ch *change) []byte {
	c := e.context
	c.epoch++
	c.treeHash, c.extensions = ch.tree.hash(), ch.extensions
	return c.append(make([]byte, 0, 256))
}

// sign frames the commit and signs it under the old context.
func (d *draft) sign(commit *Commit) error {
	wire := wirePrivate
	if d.config.Public || d.sender.Type == SenderNewMemberCommit {
		wire = wirePublic
	}
	d.a = authenticated{wire: wire, content: &framedContent{
		groupID: d.e.context.groupID, epoch: d.e.context.epoch, sender: d.sender, data: d.o.Data, kind: ContentCommit, commit: commit,
		body: commit.append(make([]byte, 0, 1024)),
	}}
	return d.a.sign(d.s, d.config.Identity.signer, d.e.encoded)
}

// sign signs a's content; context is the encoded group context.
func (a *authenticated) sign(s *suite, key *signer, context []byte) (err error) {
	a.auth.signature, err = s.sign(key, labelFramed, a.appendTBS(make([]byte, 0, 512), context))
	return err
}

// follow derives the epoch that a commit begins; all but its confirmation tag. member is the joiner secret with the PSKs.
func (e *epoch) follow(ch *change, self uint32, keys privateKeys, a *authenticated, init, commit, psk []byte, w Window) (next *epoch, joiner, member []byte) {
	s := ch.tree.s
	next = &epoch{tree: ch.tree, self: self, keys: keys, context: e.context}
	next.context.epoch++
	next.context.treeHash, next.context.extensions = ch.tree.hash(), ch.extensions
	next.context.transcript = s.confirmedHash(e.interim, a)
	next.encoded = next.context.append(make([]byte, 0, 256))
	joiner = s.joinerSecret(init, commit, next.encoded)
	member = s.memberSecret(joiner, psk)
	next.begin(s.epochSecret(member, next.encoded), w)
	return next, joiner, member
}

// protectPublic encodes a as a PublicMessage.
func (a *authenticated) protectPublic(s *suite, e *epoch) []byte {
	m := &publicMessage{content: a.content, auth: a.auth}
	if a.content.sender.Type == SenderMember {
		m.membership = s.tag(e.secrets.membership, a.appendTBM(e.encoded))
	}
	return (&message{wire: wirePublic, public: m}).append(nil)
}

// appendTBM encodes AuthenticatedContentTBM (§6.2).
func (a *authenticated) appendTBM(context []byte) []byte {
	return a.auth.append(a.appendTBS(make([]byte, 0, 512), context), a.content.kind)
}

// Accept puts a staged commit in force. The old epoch's secrets are gone, but for what reads its late messages.
func (g *Group) Accept(st *Staged) error {
	if st.base != g.epoch || g.removed || st.next == nil && !st.Expels {
		return refuse(ErrStale, "it follows epoch %d and may be discarded, we are in epoch %d", st.base.context.epoch, g.Epoch())
	}
	if err := g.accepts(st); err != nil {
		return err
	}
	if err := g.accept(st); err != nil {
		return err
	}
	return g.settled()
}

func (g *Group) accept(st *Staged) error {
	old := g.epoch
	g.proposals, g.updates, g.staged = nil, nil, nil
	if st.Expels {
		g.removed = true
		g.forget()
		return nil
	}
	if keep := g.config.window().Past; keep > 0 {
		g.past = append(slices.Delete(g.past, 0, max(0, len(g.past)-keep+1)), old.retire())
	}
	for _, secret := range [][]byte{old.secrets.init, old.secrets.exporter, old.secrets.external, old.secrets.confirm, old.secrets.membership} {
		clear(secret)
	}
	g.epoch, g.reinit = st.next, st.ReInit
	g.remember()
	return nil
}

// forget drops every secret of a group that we are no member of any more.
func (g *Group) forget() {
	g.past, g.resumed = nil, nil
	e := *g.epoch
	e.secrets, e.keys, e.ratchets = secrets{}, nil, nil
	g.epoch = &e
}

// Discard drops a staged commit: a race was lost, or the group is not to change. The epoch is as it was.
func (g *Group) Discard(st *Staged) {
	if g.staged == st {
		g.staged = nil
		if g.journal != nil {
			g.journal.unwritten = append(g.journal.unwritten, []byte{deltaDiscard})
		}
	}
	if st.next != nil && st.next != g.epoch {
		st.next.secrets, st.next.keys, st.next.ratchets = secrets{}, nil, nil
		st.next = nil
	}
}
