package mls

import "bytes"

// ExternalOptions say how to join by an external commit (§12.4.3.2).
type ExternalOptions struct {
	Tree       []byte   // the ratchet tree, when the group info does not carry it
	Remove     bool     // resync: remove the member that has our signature key
	Leaf       uint32   // the leaf to remove when our old leaf has another signature key; needs RemoveLeaf
	RemoveLeaf bool     // remove Leaf
	PSKs       []*PSKID // to be mixed in
	Data       []byte   // authenticated_data

	replace bool // remove the member that has our signature key, if there is one
}

// JoinExternal makes a commit with which we add ourselves to the group that a group info describes. The message is to be
// sent; when the delivery service puts another commit before it, the group that is returned is of no use.
func JoinExternal(config Config, info []byte, o ExternalOptions) (*Group, []byte, error) {
	s, err := config.suite()
	if err != nil {
		return nil, nil, err
	}
	g, err := parseGroupInfo(info, s)
	if err != nil {
		return nil, nil, err
	}
	c := config.checker()
	t, err := g.checkedTree(c, o.Tree)
	if err != nil {
		return nil, nil, err
	}
	external, err := g.externalKey()
	if err != nil {
		return nil, nil, err
	}
	to, err := s.publicKey(external)
	if err != nil {
		return nil, nil, refuseFor(ErrGroupInfo, err, "its external key")
	}
	kem, init, err := s.externalInit(to)
	if err != nil {
		return nil, nil, err
	}
	e := &epoch{context: g.context, tree: t, keys: privateKeys{}, confirmation: g.confirmation}
	e.encoded = e.context.append(nil)
	e.interim = s.interimHash(e.context.transcript, g.confirmation)
	d := &draft{s: s, config: &config, e: e, sender: Sender{Type: SenderNewMemberCommit}, o: CommitOptions{Data: o.Data}, init: init, psk: config.psk}
	d.propose(Proposal{Type: ProposeExternalInit, KEMOutput: kem})
	switch leaf, ok := o.replaces(t, config.Identity.signer.public); {
	case ok:
		d.propose(Remove(leaf))
	case o.Remove:
		return nil, nil, refuse(ErrArgument, "a resync, and no member has our signature key")
	}
	for _, id := range o.PSKs {
		d.propose(Proposal{Type: ProposePSK, PSK: id})
	}
	st, err := d.stage()
	if err != nil {
		return nil, nil, err
	}
	out := d.a.protectPublic(s, e)
	group, err := newGroup(config, s, st.next)
	return group, out, err
}

func (d *draft) propose(p Proposal) {
	d.list = append(d.list, proposed{Proposal: &p, sender: d.sender})
}

// replaces finds the leaf that a resync removes.
func (o *ExternalOptions) replaces(t *tree, signatureKey []byte) (uint32, bool) {
	if o.RemoveLeaf {
		return o.Leaf, true
	}
	if o.Remove || o.replace {
		for i, l := range t.leaves {
			if bytes.Equal(l.SignatureKey, signatureKey) {
				return i, true
			}
		}
	}
	return 0, false
}

func parseGroupInfo(data []byte, s *suite) (*groupInfo, error) {
	m, err := parseMessage(bytes.Clone(data))
	switch {
	case err != nil:
		return nil, err
	case m.groupInfo == nil:
		return nil, refuse(ErrGroupInfo, "wire format %d where a group info is expected", m.wire)
	case m.groupInfo.context.suite != s.id || m.groupInfo.context.version != versionMLS10:
		return nil, refuseFor(ErrGroupInfo, ErrSuite, "version %d, ciphersuite %d", m.groupInfo.context.version, m.groupInfo.context.suite)
	}
	return m.groupInfo, nil
}

func (g *groupInfo) externalKey() ([]byte, error) {
	data, ok := findExtension(g.extensions, ExternalPub)
	if !ok {
		return nil, refuse(ErrGroupInfo, "it has no external_pub")
	}
	return decode(data, (*reader).vector)
}

// A Place names an epoch of a group to someone outside it.
type Place struct {
	GroupID []byte
	Epoch   uint64
}

// ProposeExternal signs a proposal as one of a group's external senders (§12.1.8), by its place in their list.
func ProposeExternal(id *Identity, at Place, sender uint32, p Proposal) ([]byte, error) {
	if !p.Type.fromExternal() {
		return nil, refuse(ErrSender, "a proposal of type %d from outside the group", p.Type)
	}
	return proposeOutside(id, at, Sender{SenderExternal, sender}, p)
}

// ProposeJoin signs a request to be added (§12.1.8).
func ProposeJoin(id *Identity, at Place, k *KeyPackage) ([]byte, error) {
	return proposeOutside(id, at, Sender{Type: SenderNewMemberProposal}, Add(k))
}

func proposeOutside(id *Identity, at Place, sender Sender, p Proposal) ([]byte, error) {
	a := &authenticated{wire: wirePublic, content: &framedContent{
		groupID: at.GroupID, epoch: at.Epoch, sender: sender, kind: ContentProposal, proposal: &p,
	}}
	if err := a.sign(id.suite, id.signer, nil); err != nil {
		return nil, err
	}
	return a.protectPublic(id.suite, nil), nil
}
