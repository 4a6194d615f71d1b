package mls

// Groups that follow from groups, RFC 9420 §11.2 and §11.3.

// Follow makes the group that a ReInit described, once its commit was accepted: config has an identity of the new
// ciphersuite, packages are the other members' fresh key packages. The Staged is accepted already; its welcome is to be
// sent.
func (g *Group) Follow(config Config, packages []*KeyPackage) (*Group, *Staged, error) {
	s, err := config.suite()
	if err != nil {
		return nil, nil, err
	}
	r := g.reinit
	if r == nil || g.removed {
		return nil, nil, refuse(ErrInactive, "no ReInit was committed")
	}
	if r.Version != versionMLS10 || r.Suite != s.id {
		return nil, nil, refuseFor(ErrArgument, ErrSuite, "the ReInit is to version %d, ciphersuite %d", r.Version, r.Suite)
	}
	return g.found(config, r.GroupID, r.Extensions, packages, ForReInit)
}

// Branch makes a group of some of this one's members (§11.3), whose fresh key packages are given. A nil id is drawn at
// random. The Staged is accepted already; its welcome is to be sent.
func (g *Group) Branch(config Config, id []byte, extensions []Extension, packages []*KeyPackage) (*Group, *Staged, error) {
	if err := g.Active(); err != nil {
		return nil, nil, err
	}
	return g.found(config, id, extensions, packages, ForBranch)
}

func (g *Group) found(config Config, id []byte, extensions []Extension, packages []*KeyPackage, why purpose) (*Group, *Staged, error) {
	own := config.PSK
	config.PSK = func(p PSKID) ([]byte, error) {
		if p.Resumption && p.Usage == why {
			return g.psk(&p)
		}
		return (&Config{PSK: own}).psk(&p)
	}
	n, err := Create(config, id, extensions...)
	if err != nil {
		return nil, nil, err
	}
	psk := PSKID{Resumption: true, Usage: why, GroupID: g.ID(), Epoch: g.Epoch(), Nonce: n.nonce()}
	o := CommitOptions{Proposals: []Proposal{{Type: ProposePSK, PSK: &psk}}}
	for _, k := range packages {
		o.Proposals = append(o.Proposals, Add(k))
	}
	st, err := n.commit(o, why)
	if err != nil {
		return nil, nil, err
	}
	n.config.PSK = own
	return n, st, n.Accept(st)
}
