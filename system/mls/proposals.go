package mls

import (
	"bytes"
	"slices"
)

// Proposal lists, RFC 9420 §12.2 and §12.3: the committer and the members run the same code.

// A proposed is a proposal with who made it.
type proposed struct {
	*Proposal
	sender Sender
	ref    []byte // nil when the commit carries it by value
}

// A change is what a list of proposals does to a group.
type change struct {
	tree       *tree
	extensions []Extension
	added      []uint32
	packages   []*KeyPackage // of the added, in order
	updated    []uint32
	removed    []uint32
	psks       []*PSKID
	kemOutput  []byte
	reinit     *ReInit
	needsPath  bool
}

// A purpose is what a commit is made for: 0 for a regular one, ForReInit and ForBranch for the first of a new group.
type purpose = PSKUsage

// apply checks a list of proposals and applies it to a copy of the epoch's tree and extensions.
func (e *epoch) apply(c *checker, list []proposed, by Sender, why purpose) (*change, error) {
	ch := &change{tree: e.tree.clone(), extensions: e.context.extensions, needsPath: len(list) == 0}
	check := e.checkRegular
	if by.Type == SenderNewMemberCommit {
		check = e.checkExternal
	}
	if err := check(list, by); err != nil && !c.lax {
		return nil, err
	}
	c.docket.collect(c.s)
	for _, p := range list {
		if err := e.checkOne(c, p, why); err != nil && !c.lax {
			return nil, err
		}
		ch.needsPath = ch.needsPath || p.Type.needsPath()
		switch p.Type {
		case ProposeExtensions:
			ch.extensions = p.Extensions
		case ProposePSK:
			ch.psks = append(ch.psks, p.PSK)
		case ProposeExternalInit:
			ch.kemOutput = p.KEMOutput
		case ProposeReInit:
			ch.reinit = p.ReInit
		}
	}
	if err := c.docket.settle(c.s); err != nil && !c.lax {
		return nil, err
	}
	return ch, ch.applyTree(list)
}

// applyTree makes the changes of the tree in the order of §12.3: updates, removes, adds.
func (ch *change) applyTree(list []proposed) error {
	for _, p := range list {
		if p.Type == ProposeUpdate {
			ch.tree.update(p.sender.Index, p.Update)
			ch.updated = append(ch.updated, p.sender.Index)
		}
	}
	for _, p := range list {
		if p.Type == ProposeRemove {
			ch.tree.remove(p.Remove)
			ch.removed = append(ch.removed, p.Remove)
		}
	}
	if len(ch.removed) > 0 {
		ch.tree.truncate()
	}
	for _, p := range list {
		if p.Type == ProposeAdd {
			if ch.tree.size >= nodeWidth(maxLeaves) && ch.tree.crowded() {
				return refuse(ErrProposals, "more than %d members", maxLeaves)
			}
			ch.added = append(ch.added, ch.tree.add(p.Add.Leaf))
			ch.packages = append(ch.packages, p.Add)
		}
	}
	return nil
}

// checkRegular checks what the proposals of a member's commit owe each other.
func (e *epoch) checkRegular(list []proposed, by Sender) error {
	touched := make(map[uint32]bool)
	var extensions int
	var psks []*PSKID
	for _, p := range list {
		leaf, touches := uint32(0), false
		switch p.Type {
		case ProposeUpdate:
			leaf, touches = p.sender.Index, true
			if p.sender.Type == SenderMember && leaf == by.Index {
				return refuse(ErrProposals, "an Update of the committer")
			}
		case ProposeRemove:
			leaf, touches = p.Remove, true
			if leaf == by.Index {
				return refuse(ErrProposals, "a Remove of the committer")
			}
		case ProposeExtensions:
			if extensions++; extensions > 1 {
				return refuse(ErrProposals, "two GroupContextExtensions")
			}
		case ProposeReInit:
			if len(list) > 1 {
				return refuse(ErrProposals, "a ReInit with other proposals")
			}
		case ProposeExternalInit:
			return refuse(ErrProposals, "an ExternalInit in a member's commit")
		case ProposePSK:
			if slices.ContainsFunc(psks, p.PSK.same) {
				return refuse(ErrProposals, "two PreSharedKeys with one ID")
			}
			psks = append(psks, p.PSK)
		}
		if touches && touched[leaf] {
			return refuse(ErrProposals, "two changes of leaf %d", leaf)
		}
		if touches {
			touched[leaf] = true
		}
	}
	return nil
}

// checkExternal checks the proposals of a commit from outside (§12.2, §12.4.3.2).
func (e *epoch) checkExternal(list []proposed, _ Sender) error {
	var inits, removes int
	var psks []*PSKID
	for _, p := range list {
		if p.ref != nil {
			return refuse(ErrProposals, "a proposal by reference in an external commit")
		}
		switch p.Type {
		case ProposeExternalInit:
			inits++
		case ProposeRemove:
			removes++
		case ProposePSK:
			if slices.ContainsFunc(psks, p.PSK.same) {
				return refuse(ErrProposals, "two PreSharedKeys with one ID")
			}
			psks = append(psks, p.PSK)
		default:
			return refuse(ErrProposals, "a proposal of type %d in an external commit", p.Type)
		}
	}
	if inits != 1 || removes > 1 {
		return refuse(ErrProposals, "%d ExternalInits and %d Removes in an external commit", inits, removes)
	}
	return nil
}

// checkOne checks a proposal by itself (§12.1).
func (e *epoch) checkOne(c *checker, p proposed, why purpose) error {
	if err := e.checkProposer(p); err != nil {
		return err
	}
	switch p.Type {
	case ProposeAdd:
		return c.keyPackage(p.Add, func(err error) error { return refuseFor(ErrProposal, err, "an Add") })
	case ProposeUpdate:
		return e.checkUpdate(c, p)
	case ProposeRemove:
		if e.tree.leaf(p.Remove) == nil {
			return refuse(ErrProposal, "a Remove of leaf %d, which is no member", p.Remove)
		}
	case ProposePSK:
		return e.checkPSK(p.PSK, why)
	case ProposeReInit:
		if p.ReInit.Version < versionMLS10 {
			return refuse(ErrProposal, "a ReInit to version %d", p.ReInit.Version)
		}
	case ProposeExtensions:
		if _, _, err := decodeKnown(p.Extensions); err != nil {
			return refuseFor(ErrProposal, err, "a GroupContextExtensions")
		}
	}
	return nil
}

func (e *epoch) checkProposer(p proposed) error {
	switch p.sender.Type {
	case SenderMember:
		if e.tree.leaf(p.sender.Index) == nil {
			return refuse(ErrSender, "a proposal of leaf %d, which is no member", p.sender.Index)
		}
	case SenderExternal:
		if !p.Type.fromExternal() {
			return refuse(ErrSender, "a proposal of type %d from outside the group", p.Type)
		}
	case SenderNewMemberProposal:
		if p.Type != ProposeAdd {
			return refuse(ErrSender, "a proposal of type %d from a new member", p.Type)
		}
	case SenderNewMemberCommit:
	}
	return nil
}

func (e *epoch) checkUpdate(c *checker, p proposed) error {
	if p.sender.Type != SenderMember {
		return refuse(ErrSender, "an Update from outside the group")
	}
	err := c.leaf(p.Update, FromUpdate, e.context.groupID, p.sender.Index, func(err error) error {
		return refuseFor(ErrProposal, err, "an Update")
	})
	if err != nil {
		return err
	}
	return e.checkSuccessor(c, p.sender.Index, p.Update, ErrProposal)
}

// checkSuccessor checks a leaf node that takes the place of a member's.
func (e *epoch) checkSuccessor(c *checker, index uint32, leaf *LeafNode, kind error) error {
	old := e.tree.leaf(index)
	if bytes.Equal(old.EncryptionKey, leaf.EncryptionKey) {
		return refuseFor(kind, ErrDuplicate, "leaf %d keeps its encryption key", index)
	}
	if !c.succeeds(old.Credential, leaf.Credential) {
		return refuseFor(kind, ErrCredential, "leaf %d changes who it is", index)
	}
	return nil
}

func (e *epoch) checkPSK(id *PSKID, why purpose) error {
	if len(id.Nonce) != e.tree.s.nh {
		return refuse(ErrPSK, "a nonce of %d bytes", len(id.Nonce))
	}
	if id.Resumption && id.Usage != ForApplication && id.Usage != why {
		return refuse(ErrPSK, "a resumption PSK of usage %d in a commit that is not for it", id.Usage)
	}
	return nil
}

// fresh lists the leaves that a commit brings new content to.
func (ch *change) fresh(committer uint32, path bool) []uint32 {
	out := slices.Concat(ch.added, ch.updated)
	if path {
		out = append(out, committer)
	}
	return out
}

// demands says whether a commit asks of all members what they were not asked before: other extensions of the group, or a
// credential type that nobody had.
func (ch *change) demands(e *epoch) bool {
	return !equalExtensions(e.context.extensions, ch.extensions) || ch.tree.kinds.beyond(e.tree.kinds)
}
