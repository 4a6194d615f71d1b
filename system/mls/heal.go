package mls

import (
	"bytes"
	"slices"
)

// Coming back into a group that went on without us: because we missed a commit, because the group split and the others kept
// the other half, or because our state is lost. CheckAuthenticator finds the split; Open gives back our own commits.

// retire is what is kept of an epoch when it is over.
func (e *epoch) retire() past {
	return past{
		number: e.context.epoch, authenticator: e.secrets.authenticator, encoded: e.encoded,
		tree: e.tree, self: e.self, senderData: e.secrets.senderData, ratchets: e.ratchets,
	}
}

// Rejoin is JoinExternal into our own group: it takes our old leaf out if it is there still, and the group that it returns
// can read what is late of the epochs that g can read, and has its resumption PSKs. The message is to be sent; once the
// delivery service has accepted it, g is not to be used any more, and a group in a store is to be stored again (Persist).
func (g *Group) Rejoin(info []byte, o ExternalOptions) (*Group, []byte, error) {
	described, err := parseGroupInfo(info, g.s)
	if err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(described.context.groupID, g.epoch.context.groupID) {
		return nil, nil, refuse(ErrWrongGroup, "the group info is of %x", described.context.groupID)
	}
	o.replace = !o.Remove && !o.RemoveLeaf
	n, message, err := JoinExternal(g.config, info, o)
	if err != nil {
		return nil, nil, err
	}
	kept := slices.Clone(g.past)
	if !g.removed && g.epoch.ratchets != nil {
		kept = append(kept, g.epoch.retire())
	}
	kept = slices.DeleteFunc(kept, func(p past) bool { return p.number >= n.Epoch() })
	n.past = kept[max(0, len(kept)-g.config.window().Past):]
	for epoch, psk := range g.resumed {
		if epoch < n.Epoch() {
			n.resumed[epoch] = bytes.Clone(psk)
		}
	}
	return n, message, nil
}

// Readd proposes that the member with a key package's identity be taken out and added again, for a member that cannot come
// back by itself. Both proposals belong into one commit.
func (g *Group) Readd(k *KeyPackage) ([]Proposal, error) {
	for i, l := range g.epoch.tree.leaves {
		if i != g.epoch.self && l.Credential.Equal(&k.Leaf.Credential) {
			return []Proposal{Remove(i), Add(k)}, nil
		}
	}
	return nil, refuse(ErrSender, "no other member has the credential of the key package")
}

// A Report is what a member says of where it is.
type Report struct {
	Index         uint32
	Epoch         uint64
	Authenticator []byte
}

// A Split is members by where they are, seen from here.
type Split struct {
	With    []uint32 // in the same epoch and state
	Behind  []uint32 // in an epoch that is over, with the state that we had then
	Ahead   []uint32 // in an epoch that we have not seen
	Forked  []uint32 // in another state of an epoch that we know
	Unknown []uint32 // in an epoch so old that it can't be told
}

// Compare sorts what other members report.
func (g *Group) Compare(reports []Report) Split {
	var s Split
	for _, r := range reports {
		err := g.CheckAuthenticator(r.Epoch, r.Authenticator)
		list := &s.With
		switch kind := kindOf(err); {
		case kind == ErrForked:
			list = &s.Forked
		case kind == ErrFutureEpoch:
			list = &s.Ahead
		case kind == ErrPastEpoch:
			list = &s.Unknown
		case r.Epoch < g.Epoch():
			list = &s.Behind
		}
		*list = append(*list, r.Index)
	}
	return s
}

// kindOf is what something was refused for.
func kindOf(err error) error {
	if r, ok := err.(*refusal); ok {
		return r.kind
	}
	return err
}
