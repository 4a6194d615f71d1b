package mls

// A ProposalType names a kind of proposal (§17.4).
type ProposalType uint16

// The proposal types of RFC 9420.
const (
	ProposeAdd          ProposalType = 1
	ProposeUpdate       ProposalType = 2
	ProposeRemove       ProposalType = 3
	ProposePSK          ProposalType = 4
	ProposeReInit       ProposalType = 5
	ProposeExternalInit ProposalType = 6
	ProposeExtensions   ProposalType = 7
)

func (t ProposalType) isDefault() bool { return t >= ProposeAdd && t <= ProposeExtensions }

// needsPath says whether a commit that covers such a proposal must have an update path (§12.4).
func (t ProposalType) needsPath() bool {
	return t == ProposeUpdate || t == ProposeRemove || t == ProposeExternalInit || t == ProposeExtensions
}

// fromExternal says whether a party outside the group may send it (§12.1.8).
func (t ProposalType) fromExternal() bool {
	switch t {
	case ProposeAdd, ProposeRemove, ProposePSK, ProposeReInit, ProposeExtensions:
		return true
	}
	return false
}

// A Proposal is one change of a group (§12.1): the field that its type names is set.
type Proposal struct {
	Type       ProposalType
	Add        *KeyPackage
	Update     *LeafNode
	Remove     uint32 // a leaf index
	PSK        *PSKID
	ReInit     *ReInit
	KEMOutput  []byte // of an external init
	Extensions []Extension
}

// A ReInit describes the group that is to follow this one (§12.1.5).
type ReInit struct {
	GroupID    []byte
	Version    uint16
	Suite      Suite
	Extensions []Extension
}

func (p *Proposal) append(dst []byte) []byte {
	dst = appendU16(dst, uint16(p.Type))
	switch p.Type {
	case ProposeAdd:
		return p.Add.append(dst)
	case ProposeUpdate:
		return p.Update.append(dst)
	case ProposeRemove:
		return appendU32(dst, p.Remove)
	case ProposePSK:
		return p.PSK.append(dst)
	case ProposeReInit:
		return p.ReInit.append(dst)
	case ProposeExternalInit:
		return appendVector(dst, p.KEMOutput)
	case ProposeExtensions:
		return appendExtensions(dst, p.Extensions)
	}
	panic("mls: a proposal of no type")
}

func (i *ReInit) append(dst []byte) []byte {
	dst = appendVector(dst, i.GroupID)
	dst = appendU16(appendU16(dst, i.Version), uint16(i.Suite))
	return appendExtensions(dst, i.Extensions)
}

func readReInit(r *reader) *ReInit {
	return &ReInit{GroupID: r.vector(), Version: r.u16(), Suite: Suite(r.u16()), Extensions: readExtensions(r)}
}

func readProposal(r *reader) *Proposal {
	p := &Proposal{Type: ProposalType(r.u16())}
	switch p.Type {
	case ProposeAdd:
		p.Add = readKeyPackage(r)
	case ProposeUpdate:
		p.Update = readLeafNode(r)
	case ProposeRemove:
		p.Remove = r.u32()
	case ProposePSK:
		p.PSK = readPSKID(r)
	case ProposeReInit:
		p.ReInit = readReInit(r)
	case ProposeExternalInit:
		p.KEMOutput = r.vector()
	case ProposeExtensions:
		p.Extensions = readExtensions(r)
	default:
		r.fail("a proposal of an unknown type")
	}
	return p
}

// A ProposalOrRef is a proposal in a commit, by value or by reference (§12.4).
type ProposalOrRef struct {
	Proposal *Proposal // nil for a reference
	Ref      []byte
}

func (p ProposalOrRef) append(dst []byte) []byte {
	if p.Proposal != nil {
		return p.Proposal.append(append(dst, 1))
	}
	return appendVector(append(dst, 2), p.Ref)
}

func readProposalOrRef(r *reader) ProposalOrRef {
	switch r.u8() {
	case 1:
		return ProposalOrRef{Proposal: readProposal(r)}
	case 2:
		return ProposalOrRef{Ref: r.vector()}
	}
	r.fail("neither a proposal nor a reference to one")
	return ProposalOrRef{}
}

// An UpdatePath replaces the keys on a committer's direct path (§7.6).
type UpdatePath struct {
	Leaf  *LeafNode
	Nodes []PathNode
}

// A PathNode is one step of an UpdatePath.
type PathNode struct {
	PublicKey   []byte
	Ciphertexts []Ciphertext // of a path that is made

	received sealed // the ciphertexts of one that was received
}

// ciphertexts is how many there are.
func (n *PathNode) ciphertexts() int { return len(n.Ciphertexts) + n.received.count }

// ciphertext returns one of them.
func (n *PathNode) ciphertext(i int) Ciphertext {
	if n.received.count > 0 {
		return n.received.at(i)
	}
	return n.Ciphertexts[i]
}

func (n *PathNode) append(dst []byte) []byte {
	dst = appendVector(dst, n.PublicKey)
	if n.received.count > 0 {
		return appendVector(dst, n.received.encoded)
	}
	start := len(dst)
	for _, c := range n.Ciphertexts {
		dst = c.append(dst)
	}
	return closeVector(dst, start)
}

func readPathNode(r *reader) PathNode {
	return PathNode{PublicKey: r.vector(), received: readSealed(r)}
}

func (u *UpdatePath) append(dst []byte) []byte {
	dst = u.Leaf.append(dst)
	start := len(dst)
	for i := range u.Nodes {
		dst = u.Nodes[i].append(dst)
	}
	return closeVector(dst, start)
}

func readUpdatePath(r *reader) *UpdatePath {
	return &UpdatePath{Leaf: readLeafNode(r), Nodes: readListOf(r, readPathNode, maxDepth)}
}

// A Commit starts an epoch (§12.4).
type Commit struct {
	Proposals []ProposalOrRef
	Path      *UpdatePath
}

func (c *Commit) append(dst []byte) []byte {
	start := len(dst)
	for _, p := range c.Proposals {
		dst = p.append(dst)
	}
	dst = appendOptional(closeVector(dst, start), c.Path != nil)
	if c.Path != nil {
		dst = c.Path.append(dst)
	}
	return dst
}

func readCommit(r *reader) *Commit {
	c := &Commit{Proposals: readList(r, readProposalOrRef)}
	if r.optional() {
		c.Path = readUpdatePath(r)
	}
	return c
}
