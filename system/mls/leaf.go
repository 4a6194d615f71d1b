package mls

import (
	"bytes"
	"slices"
)

// A LeafSource says how a leaf node came into the tree (§7.2).
type LeafSource uint8

// The sources of a leaf node.
const (
	FromKeyPackage LeafSource = 1
	FromUpdate     LeafSource = 2
	FromCommit     LeafSource = 3
)

// A LeafNode describes one member (§7.2). It is never changed once it is in a tree.
type LeafNode struct {
	EncryptionKey []byte
	SignatureKey  []byte
	Credential    Credential
	Capabilities  Capabilities
	Source        LeafSource
	NotBefore     uint64 // seconds since 1970; of a key package's leaf
	NotAfter      uint64
	ParentHash    []byte // of a commit's leaf
	Extensions    []Extension
	Signature     []byte
}

// appendContent appends what is signed, but for the group that it is signed for.
func (l *LeafNode) appendContent(dst []byte) []byte {
	dst = appendVector(dst, l.EncryptionKey)
	dst = appendVector(dst, l.SignatureKey)
	dst = l.Credential.append(dst)
	dst = l.Capabilities.append(dst)
	dst = append(dst, byte(l.Source))
	switch l.Source {
	case FromKeyPackage:
		dst = appendU64(appendU64(dst, l.NotBefore), l.NotAfter)
	case FromCommit:
		dst = appendVector(dst, l.ParentHash)
	}
	return appendExtensions(dst, l.Extensions)
}

func (l *LeafNode) append(dst []byte) []byte { return appendVector(l.appendContent(dst), l.Signature) }

// appendTBS appends LeafNodeTBS.
func (l *LeafNode) appendTBS(dst, groupID []byte, index uint32) []byte {
	dst = l.appendContent(dst)
	if l.Source != FromKeyPackage {
		dst = appendU32(appendVector(dst, groupID), index)
	}
	return dst
}

func (l *LeafNode) sign(s *suite, key *signer, groupID []byte, index uint32) (err error) {
	l.Signature, err = s.sign(key, "LeafNodeTBS", l.appendTBS(nil, groupID, index))
	return err
}

func readLeafNode(r *reader) *LeafNode {
	l := &LeafNode{EncryptionKey: r.vector(), SignatureKey: r.vector(), Credential: readCredential(r), Capabilities: readCapabilities(r)}
	l.Source = LeafSource(r.u8())
	switch l.Source {
	case FromKeyPackage:
		l.NotBefore, l.NotAfter = r.u64(), r.u64()
	case FromUpdate:
	case FromCommit:
		l.ParentHash = r.vector()
	default:
		r.fail("a leaf node from an unknown source")
	}
	l.Extensions = readExtensions(r)
	l.Signature = r.vector()
	return l
}

// alone returns a copy that does not hold on to the message that l came in. It shares the capabilities of the leaf node
// before it, which may be nil, if it has the same.
func (l *LeafNode) alone(before *LeafNode) *LeafNode {
	own := *l
	parts := []*[]byte{&own.EncryptionKey, &own.SignatureKey, &own.Credential.Identity, &own.ParentHash, &own.Signature}
	own.Credential.Chain, own.Extensions = slices.Clone(l.Credential.Chain), slices.Clone(l.Extensions)
	for i := range own.Credential.Chain {
		parts = append(parts, &own.Credential.Chain[i])
	}
	for i := range own.Extensions {
		parts = append(parts, &own.Extensions[i].Data)
	}
	size := 0
	for _, p := range parts {
		size += len(*p)
	}
	store := make([]byte, 0, size)
	for _, p := range parts {
		from := len(store)
		store = append(store, *p...)
		*p = store[from:len(store):len(store)]
	}
	if before != nil && before.Capabilities.equal(&l.Capabilities) {
		own.Capabilities = before.Capabilities
	}
	return &own
}

// A KeyPackage invites a client into a group (§10).
type KeyPackage struct {
	Suite      Suite
	InitKey    []byte
	Leaf       *LeafNode
	Extensions []Extension
	Signature  []byte

	version uint16
}

func (k *KeyPackage) appendTBS(dst []byte) []byte {
	dst = appendU16(appendU16(dst, k.version), uint16(k.Suite))
	dst = appendVector(dst, k.InitKey)
	dst = k.Leaf.append(dst)
	return appendExtensions(dst, k.Extensions)
}

func (k *KeyPackage) append(dst []byte) []byte { return appendVector(k.appendTBS(dst), k.Signature) }

func readKeyPackage(r *reader) *KeyPackage {
	k := &KeyPackage{version: r.u16(), Suite: Suite(r.u16()), InitKey: r.vector(), Leaf: readLeafNode(r)}
	k.Extensions = readExtensions(r)
	k.Signature = r.vector()
	return k
}

// ref is the KeyPackageRef of §5.2.
func (k *KeyPackage) ref(s *suite) []byte {
	return s.refHash(packageRef, k.append(nil))
}

const packageRef = "MLS 1.0 KeyPackage Reference"

// Marshal encodes k as an MLSMessage.
func (k *KeyPackage) Marshal() []byte {
	return k.append(appendU16(appendU16(nil, versionMLS10), uint16(wireKeyPackage)))
}

// ParseKeyPackage decodes an MLSMessage that carries a key package. It is checked when it is added.
func ParseKeyPackage(data []byte) (*KeyPackage, error) {
	m, err := parseMessage(bytes.Clone(data))
	if err != nil {
		return nil, err
	}
	if m.keyPackage == nil {
		return nil, refuse(ErrMalformed, "wire format %d where a key package is expected", m.wire)
	}
	return m.keyPackage, nil
}
