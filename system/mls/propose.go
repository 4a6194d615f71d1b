package mls

import (
	"bytes"
	"crypto/rand"
	"slices"
)

// Making and keeping proposals, RFC 9420 §12.1.

// keep checks a proposal by itself and keeps it until the epoch ends.
func (g *Group) keep(p proposed) error {
	if slices.ContainsFunc(g.proposals, func(o proposed) bool { return bytes.Equal(o.ref, p.ref) }) {
		return refuse(ErrReplayed, "a proposal that is kept already")
	}
	if p.Type == ProposeExternalInit {
		return refuse(ErrProposal, "an ExternalInit outside an external commit")
	}
	if err := g.epoch.checkOne(g.checker(), p, 0); err != nil {
		return err
	}
	if len(g.proposals) >= maxProposals {
		return refuse(ErrProposals, "more than %d in one epoch", maxProposals)
	}
	g.proposals = append(g.proposals, p)
	return g.kept(&p)
}

// Propose signs a proposal, keeps it and returns it as an MLSMessage to be sent. For an Update, use ProposeUpdate.
func (g *Group) Propose(p Proposal, data []byte) ([]byte, error) {
	if err := g.Active(); err != nil {
		return nil, err
	}
	sender := Sender{SenderMember, g.epoch.self}
	own := proposed{Proposal: &p, sender: sender}
	if p.Type == ProposeExternalInit {
		return nil, refuse(ErrProposal, "an ExternalInit outside an external commit")
	}
	if err := g.epoch.checkOne(g.checker(), own, 0); err != nil {
		return nil, err
	}
	wire := wirePrivate
	if g.config.Public {
		wire = wirePublic
	}
	a := &authenticated{wire: wire, content: &framedContent{
		groupID: g.epoch.context.groupID, epoch: g.epoch.context.epoch, sender: sender, data: data, kind: ContentProposal, proposal: &p,
	}}
	if err := a.sign(g.s, g.config.Identity.signer, g.epoch.encoded); err != nil {
		return nil, err
	}
	own.ref = a.ref(g.s)
	if wire == wirePublic {
		return g.keepOwn(a.protectPublic(g.s, g.epoch), own)
	}
	out, err := g.sealHandshake(a)
	if err != nil {
		return nil, err
	}
	return g.keepOwn(out, own)
}

// keepOwn keeps a proposal of ours and returns its message, once it may leave.
func (g *Group) keepOwn(message []byte, own proposed) ([]byte, error) {
	if err := g.keep(own); err != nil {
		return nil, err
	}
	return message, g.Flush()
}

// ProposeUpdate proposes a fresh leaf node for ourselves (§12.1.2). Its private key waits until somebody commits it.
func (g *Group) ProposeUpdate(data []byte) ([]byte, error) {
	if err := g.Active(); err != nil {
		return nil, err
	}
	key, err := g.s.generateKeyPair()
	if err != nil {
		return nil, err
	}
	l := g.config.leaf()
	l.Source, l.EncryptionKey = FromUpdate, key.public
	if err := l.sign(g.s, g.config.Identity.signer, g.epoch.context.groupID, g.epoch.self); err != nil {
		return nil, err
	}
	if err := g.journal.later(appendVector([]byte{deltaUpdate}, key.Bytes())); err != nil {
		return nil, err
	}
	out, err := g.Propose(Proposal{Type: ProposeUpdate, Update: l}, data)
	if err == nil {
		g.updates = append(g.updates, ownUpdate{key})
	}
	return out, err
}

// Add, Remove, ExternalPSK, ResumptionPSK, SetExtensions and Reinitialise make proposals.
func Add(k *KeyPackage) Proposal { return Proposal{Type: ProposeAdd, Add: k} }

// Remove proposes that a member leave.
func Remove(index uint32) Proposal { return Proposal{Type: ProposeRemove, Remove: index} }

// ExternalPSK proposes that a key which the members have otherwise be mixed in.
func (g *Group) ExternalPSK(id []byte) Proposal {
	return Proposal{Type: ProposePSK, PSK: &PSKID{ID: id, Nonce: g.nonce()}}
}

// ResumptionPSK proposes that a past epoch's resumption PSK be mixed in.
func (g *Group) ResumptionPSK(groupID []byte, epoch uint64) Proposal {
	return Proposal{Type: ProposePSK, PSK: &PSKID{Resumption: true, Usage: ForApplication, GroupID: groupID, Epoch: epoch, Nonce: g.nonce()}}
}

func (g *Group) nonce() []byte {
	n := make([]byte, g.s.nh)
	rand.Read(n)
	return n
}

// SetExtensions proposes a new list of group context extensions, all of them.
func SetExtensions(list ...Extension) Proposal {
	return Proposal{Type: ProposeExtensions, Extensions: list}
}

// Reinitialise proposes that the group end and another follow it (§11.2).
func Reinitialise(r ReInit) Proposal {
	if r.Version == 0 {
		r.Version = versionMLS10
	}
	return Proposal{Type: ProposeReInit, ReInit: &r}
}

// selectProposals picks from what was received a list that is valid (§12.2): a Remove before an Update of the same leaf,
// the latest Update, no ReInit beside others, none of our own Updates.
func selectProposals(list []proposed, self uint32) []proposed {
	final := make(map[uint32]int) // leaf to the proposal that stands
	for i, p := range list {
		switch {
		case p.Type == ProposeRemove:
			final[p.Remove] = i
		case p.Type == ProposeUpdate:
			if at, ok := final[p.sender.Index]; !ok || list[at].Type == ProposeUpdate {
				final[p.sender.Index] = i
			}
		}
	}
	var out []proposed
	reinit := -1
	lastExtensions := -1
	for i, p := range list {
		if p.Type == ProposeExtensions {
			lastExtensions = i
		}
	}
	for i, p := range list {
		keep := true
		switch p.Type {
		case ProposeRemove:
			keep = final[p.Remove] == i && p.Remove != self
		case ProposeUpdate:
			keep = final[p.sender.Index] == i && p.sender.Index != self
		case ProposeExtensions:
			keep = i == lastExtensions
		case ProposeReInit:
			reinit, keep = i, false
		case ProposePSK:
			keep = !slices.ContainsFunc(out, func(o proposed) bool { return o.Type == ProposePSK && o.PSK.same(p.PSK) })
		case ProposeAdd:
			keep = !slices.ContainsFunc(out, func(o proposed) bool {
				return o.Type == ProposeAdd && bytes.Equal(o.Add.Leaf.SignatureKey, p.Add.Leaf.SignatureKey)
			})
		}
		if keep {
			out = append(out, p)
		}
	}
	if len(out) == 0 && reinit >= 0 {
		out = append(out, list[reinit])
	}
	return out
}
