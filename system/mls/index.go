package mls

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// What keeps a commit's checks from looking at all members: where keys are, and which credential types are in use.

// The kinds of keys that must stand once in a tree (§7.3).
const (
	encryptionKeys = iota
	signatureKeys
)

// An index finds the node that has a key. It only grows: trees that share it (clones, and the ones that a discarded commit
// leaves behind) may have other keys at a node, so what it finds is looked at in the tree that asks.
type index struct {
	seed    maphash.Seed
	first   [2]map[uint64]uint32
	more    [2]map[uint64][]uint32 // further nodes that had a key of this hash at some time
	entries uint32
}

// worn says whether an index has so many entries that are out of date that a new one is due.
func (ix *index) worn(size uint32) bool { return ix != nil && ix.entries > 4*size+1024 }

func (ix *index) put(kind int, key []byte, x uint32) {
	h := maphash.Bytes(ix.seed, key)
	old, known := ix.first[kind][h]
	switch {
	case !known:
		ix.first[kind][h] = x
	case old == x || slices.Contains(ix.more[kind][h], x):
		return
	default:
		ix.more[kind][h] = append(ix.more[kind][h], x)
	}
	ix.entries++
}

// find returns a node of t that has a key, but for the node except.
func (ix *index) find(t *tree, kind int, key []byte, except uint32) (uint32, bool) {
	h := maphash.Bytes(ix.seed, key)
	x, known := ix.first[kind][h]
	if known && x != except && t.has(x, kind, key) {
		return x, true
	}
	for _, x := range ix.more[kind][h] {
		if x != except && t.has(x, kind, key) {
			return x, true
		}
	}
	return 0, false
}

func (t *tree) has(x uint32, kind int, key []byte) bool {
	if x >= t.size || t.node(x).blank() {
		return false
	}
	if kind == encryptionKeys {
		return bytes.Equal(t.node(x).key(), key)
	}
	return t.node(x).leaf != nil && bytes.Equal(t.node(x).leaf.SignatureKey, key)
}

// keys returns the tree's index.
func (t *tree) keys() *index {
	if t.index == nil {
		t.newIndex(func(int, []byte, uint32) bool { return true })
	}
	return t.index
}

// newIndex makes the index of a tree, as long as what is seen lets it.
func (t *tree) newIndex(seen func(kind int, key []byte, x uint32) bool) {
	ix := &index{seed: maphash.MakeSeed()}
	for kind := range ix.first {
		ix.first[kind] = make(map[uint64]uint32, t.width()/uint32(kind+1))
		ix.more[kind] = make(map[uint64][]uint32)
	}
	t.index = ix
	for x := range t.size {
		n := t.node(x)
		if n.blank() {
			continue
		}
		if !seen(encryptionKeys, n.key(), x) {
			return
		}
		ix.put(encryptionKeys, n.key(), x)
		if n.leaf == nil {
			continue
		}
		if !seen(signatureKeys, n.leaf.SignatureKey, x) {
			return
		}
		ix.put(signatureKeys, n.leaf.SignatureKey, x)
	}
}

// indexAll makes the index of a tree that nothing is known of, and refuses one in which a key stands twice.
func (t *tree) indexAll() (err error) {
	t.newIndex(func(kind int, key []byte, x uint32) bool {
		if first, twice := t.index.find(t, kind, key, x); twice {
			err = twiceKey(kind, first, x)
		}
		return err == nil
	})
	return err
}

func twiceKey(kind int, first, x uint32) error {
	if kind == encryptionKeys {
		return refuseFor(ErrLeaf, ErrDuplicate, "node %d has the encryption key of node %d", x, first)
	}
	return refuseFor(ErrLeaf, ErrDuplicate, "leaf %d has the signature key of leaf %d", x/2, first/2)
}

// unique compares the keys of some leaves with everyone's and puts them into the index.
func (t *tree) unique(fresh []uint32) error {
	if len(fresh) == 0 {
		return nil
	}
	ix := t.keys()
	for _, i := range fresh {
		l, x := t.leaf(i), 2*i
		if y, twice := ix.find(t, encryptionKeys, l.EncryptionKey, x); twice {
			return twiceKey(encryptionKeys, y, x)
		}
		if y, twice := ix.find(t, signatureKeys, l.SignatureKey, x); twice {
			return twiceKey(signatureKeys, y, x)
		}
		ix.put(encryptionKeys, l.EncryptionKey, x)
		ix.put(signatureKeys, l.SignatureKey, x)
	}
	return nil
}

// indexPath puts the parents of a path into the index, if there is one.
func (t *tree) indexPath(steps []step) {
	if t.index == nil {
		return
	}
	for _, s := range steps {
		t.index.put(encryptionKeys, t.node(s.node).parent.key, s.node)
	}
}

// kinds counts the members that have a credential of a type. Types that nobody has are not in it.
type kinds []struct {
	of      CredentialType
	members uint32
}

// change counts a leaf node that takes the place of another; either may be nil.
func (k *kinds) change(old, leaf *LeafNode) {
	if leaf != nil {
		at := k.at(leaf.Credential.Type)
		if at < 0 {
			at = len(*k)
			*k = append(*k, struct {
				of      CredentialType
				members uint32
			}{of: leaf.Credential.Type})
		}
		(*k)[at].members++
	}
	if old != nil {
		at := k.at(old.Credential.Type)
		if (*k)[at].members--; (*k)[at].members == 0 {
			*k = slices.Delete(*k, at, at+1)
		}
	}
}

func (k kinds) at(t CredentialType) int {
	for i := range k {
		if k[i].of == t {
			return i
		}
	}
	return -1
}

// beyond says whether there is a type in k that old does not have.
func (k kinds) beyond(old kinds) bool {
	for i := range k {
		if old.at(k[i].of) < 0 {
			return true
		}
	}
	return false
}
