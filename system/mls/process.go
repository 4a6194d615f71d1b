package mls

import "slices"

// Processing a commit, RFC 9420 §12.4.2.

// resolve looks up the proposals that a commit covers.
func (g *Group) resolve(c *Commit, sender Sender) ([]proposed, error) {
	list := make([]proposed, 0, len(c.Proposals))
	for _, p := range c.Proposals {
		if p.Proposal != nil {
			list = append(list, proposed{Proposal: p.Proposal, sender: sender})
			continue
		}
		at := slices.IndexFunc(g.proposals, func(o proposed) bool { return equal(o.ref, p.Ref) })
		if at < 0 {
			return nil, refuse(ErrUnknown, "%x", p.Ref)
		}
		list = append(list, g.proposals[at])
	}
	return list, nil
}

// process checks a commit whose signature was verified and stages it.
func (g *Group) process(a *authenticated) (*Staged, error) {
	commit, sender := a.content.commit, a.content.sender
	list, err := g.resolve(commit, sender)
	if err != nil {
		return nil, err
	}
	c := g.checker()
	ch, err := g.epoch.apply(c, list, sender, 0)
	if err != nil {
		return nil, err
	}
	if commit.Path == nil && (ch.needsPath || sender.Type == SenderNewMemberCommit) {
		return nil, refuse(ErrPath, "it is missing, and the proposals need one")
	}
	r := &receipt{g: g, a: a, c: c, ch: ch, commit: g.s.zero}
	r.committer = sender.Index
	if sender.Type == SenderNewMemberCommit {
		r.committer = ch.tree.free()
	}
	if err := r.mergePath(); err != nil {
		return nil, err
	}
	if err := c.members(ch.tree, ch.extensions, ch.fresh(r.committer, commit.Path != nil), ch.demands(g.epoch)); err != nil {
		return nil, refuseFor(ErrProposals, err, "after they are applied")
	}
	st := &Staged{
		base: g.epoch, Sender: sender, Data: a.content.data, Added: ch.added, Updated: ch.updated, Removed: ch.removed, ReInit: ch.reinit,
		Expels: slices.Contains(ch.removed, g.epoch.self),
	}
	if sender.Type == SenderNewMemberCommit {
		st.Added = append(st.Added, r.committer)
	}
	if st.Expels {
		return st, nil
	}
	st.next, err = r.follow()
	return st, err
}

// A receipt is a commit that is being processed.
type receipt struct {
	g         *Group
	a         *authenticated
	c         *checker
	ch        *change
	committer uint32
	steps     []step
	commit    []byte // commit_secret
}

// mergePath checks the update path and sets it in the new tree.
func (r *receipt) mergePath() (err error) {
	path := r.a.content.commit.Path
	if path == nil {
		return nil
	}
	e := r.g.epoch
	err = r.c.leaf(path.Leaf, FromCommit, e.context.groupID, r.committer, func(err error) error {
		return refuseFor(ErrPath, err, "its leaf node")
	})
	if err != nil {
		return err
	}
	if err := e.checkCommitter(r.c, r.a.content.sender, r.ch, path.Leaf); err != nil {
		return err
	}
	r.steps, err = r.ch.tree.mergePath(r.committer, path, r.ch.added)
	return err
}

// checkCommitter checks a path's leaf node against the one whose place it takes: the committer's own, or the one that an
// external commit removes.
func (e *epoch) checkCommitter(c *checker, sender Sender, ch *change, leaf *LeafNode) error {
	switch {
	case c.lax:
		return nil
	case sender.Type == SenderMember:
		return e.checkSuccessor(c, sender.Index, leaf, ErrPath)
	case len(ch.removed) > 0:
		return e.checkSuccessor(c, ch.removed[0], leaf, ErrPath)
	}
	return nil
}

// keys are the private keys that we still have in the new tree, before those of the path.
func (r *receipt) keys() (privateKeys, error) {
	keys := r.ch.tree.holds(r.g.epoch.keys)
	self := r.g.epoch.self
	if keys[2*self] != nil {
		return keys, nil
	}
	for _, u := range r.g.updates {
		if equal(u.key.public, r.ch.tree.leaf(self).EncryptionKey) {
			keys[2*self] = u.key
			return keys, nil
		}
	}
	return nil, refuse(ErrProposals, "our leaf has a key that is not ours")
}

// follow derives the new epoch and checks the confirmation tag.
func (r *receipt) follow() (*epoch, error) {
	g, e, content := r.g, r.g.epoch, r.a.content
	keys, err := r.keys()
	if err != nil {
		return nil, err
	}
	if content.commit.Path != nil {
		var above privateKeys
		above, r.commit, err = r.ch.tree.decryptPath(r.steps, content.commit.Path, e.self, keys, e.provisional(r.ch), r.ch.added)
		if err != nil {
			return nil, err
		}
		for x, k := range above {
			keys[x] = k
		}
	}
	psk, err := pskSecret(g.s, r.ch.psks, g.psk)
	if err != nil {
		return nil, err
	}
	init := e.secrets.init
	if r.ch.kemOutput != nil {
		if init, err = g.s.externalInitOf(e.secrets.external, r.ch.kemOutput); err != nil {
			return nil, refuseFor(ErrProposal, err, "an ExternalInit")
		}
	}
	next, joiner, _ := e.follow(r.ch, e.self, keys, r.a, init, r.commit, psk, g.config.window())
	clear(joiner)
	next.confirm()
	if !equal(next.confirmation, r.a.auth.confirmation) {
		return nil, refuseFor(ErrMAC, ErrConfirmation, "of the commit that begins epoch %d", next.context.epoch)
	}
	return next, next.decodeExtensions()
}
