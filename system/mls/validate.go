package mls

import (
	"bytes"
	"errors"
	"slices"
	"time"
)

// What RFC 9420 §7.3, §10.1 and §12.4.3.1 ask of leaf nodes, key packages and trees. The committer, the members that
// process its commit and the joiner call the same functions.

// A checker holds what validation depends on beside the data.
type checker struct {
	s            *suite
	now          time.Time
	maxLifetime  time.Duration // of a leaf node; 0 for no limit
	anyLifetime  bool          // received leaf nodes may be outside their lifetime
	authenticate func(Credential, []byte) error
	succeeds     func(old, new Credential) bool
	lax          bool // a forging test's: whatever it makes is good
	docket       docket
	content      []byte // what a signature is about, while it is put together
}

// An at says where something that is refused stands.
type at func(error) error

// leaf checks what can be said of a leaf node by itself. Its signature may be put off (docket).
func (c *checker) leaf(l *LeafNode, source LeafSource, groupID []byte, index uint32, where at) error {
	if l.Source != source {
		return where(refuseFor(ErrLeaf, ErrSource, "source %d where %d is expected", l.Source, source))
	}
	return c.anyLeaf(l, groupID, index, where)
}

// anyLeaf is leaf for a leaf node that may come from any source.
func (c *checker) anyLeaf(l *LeafNode, groupID []byte, index uint32, where at) error {
	if err := c.leafFields(l); err != nil {
		return where(err)
	}
	c.content = l.appendTBS(slices.Grow(c.content[:0], 384), groupID, index)
	return c.docket.check(c.s, l.SignatureKey, "LeafNodeTBS", c.content, l.Signature, func(err error) error {
		if err == nil {
			err = c.authentic(l)
		} else {
			err = refuseFor(ErrLeaf, err, "its signature")
		}
		if err != nil {
			return where(err)
		}
		return nil
	})
}

// authentic asks the application who a member is.
func (c *checker) authentic(l *LeafNode) error {
	if c.authenticate == nil {
		return nil
	}
	if err := c.authenticate(l.Credential, l.SignatureKey); err != nil {
		return refuseFor(ErrLeaf, errors.Join(ErrCredential, err), "its credential")
	}
	return nil
}

func (c *checker) leafFields(l *LeafNode) error {
	if _, err := c.s.publicKey(l.EncryptionKey); err != nil {
		return refuseFor(ErrLeaf, err, "its encryption key")
	}
	if err := c.s.checkSignatureKey(l.SignatureKey); err != nil {
		return refuseFor(ErrLeaf, err, "its signature key")
	}
	if l.Source == FromKeyPackage {
		if err := c.lifetime(l); err != nil {
			return err
		}
	}
	own := &l.Capabilities
	switch {
	case !slices.Contains(own.Versions, versionMLS10):
		return refuseFor(ErrLeaf, ErrCapabilities, "it does not list protocol version 1")
	case !slices.Contains(own.Suites, c.s.id):
		return refuseFor(ErrLeaf, ErrCapabilities, "it does not list ciphersuite %d", c.s.id)
	case !slices.Contains(own.Credentials, l.Credential.Type):
		return refuseFor(ErrLeaf, ErrCapabilities, "it does not list its own credential type %d", l.Credential.Type)
	}
	for _, e := range l.Extensions {
		if !own.extension(e.Type) {
			return refuseFor(ErrLeaf, ErrCapabilities, "it does not list its own extension type %d", e.Type)
		}
	}
	return nil
}

func (c *checker) lifetime(l *LeafNode) error {
	now := uint64(max(c.now.Unix(), 0))
	switch {
	case l.NotAfter < l.NotBefore:
		return refuseFor(ErrLeaf, ErrLifetime, "it ends before it begins")
	case c.maxLifetime > 0 && l.NotAfter-l.NotBefore > uint64(c.maxLifetime/time.Second):
		return refuseFor(ErrLeaf, ErrLifetime, "it is longer than %s", c.maxLifetime)
	case c.anyLifetime:
		return nil
	case now < l.NotBefore:
		return refuseFor(ErrLeaf, ErrLifetime, "it begins %d s from now", l.NotBefore-now)
	case now > l.NotAfter:
		return refuseFor(ErrLeaf, ErrLifetime, "it ended %d s ago", now-l.NotAfter)
	}
	return nil
}

// keyPackage checks a key package that is to be added (§10.1). Its signatures may be put off (docket).
func (c *checker) keyPackage(k *KeyPackage, where at) error {
	if err := c.packageFields(k); err != nil {
		return where(err)
	}
	err := c.leaf(k.Leaf, FromKeyPackage, nil, 0, func(err error) error {
		return where(refuseFor(ErrKeyPackage, err, "its leaf node"))
	})
	if err != nil {
		return err
	}
	for _, e := range k.Extensions {
		if !k.Leaf.Capabilities.extension(e.Type) {
			return where(refuseFor(ErrKeyPackage, ErrCapabilities, "its leaf node does not list extension type %d", e.Type))
		}
	}
	c.content = k.appendTBS(c.content[:0])
	return c.docket.check(c.s, k.Leaf.SignatureKey, "KeyPackageTBS", c.content, k.Signature, func(err error) error {
		if err != nil {
			return where(refuseFor(ErrKeyPackage, err, "its signature"))
		}
		return nil
	})
}

func (c *checker) packageFields(k *KeyPackage) error {
	switch {
	case k.version != versionMLS10:
		return refuseFor(ErrKeyPackage, ErrVersion, "version %d", k.version)
	case k.Suite != c.s.id:
		return refuseFor(ErrKeyPackage, ErrSuite, "it is for ciphersuite %d, the group's is %d", k.Suite, c.s.id)
	case bytes.Equal(k.InitKey, k.Leaf.EncryptionKey):
		return refuseFor(ErrKeyPackage, ErrDuplicate, "its init key is its encryption key")
	}
	if _, err := c.s.publicKey(k.InitKey); err != nil {
		return refuseFor(ErrKeyPackage, err, "its init key")
	}
	return nil
}

// members checks what leaf nodes owe the others and the group's extensions: capabilities and uniqueness. Of a tree that was
// valid before, only what is fresh needs to be looked at, unless all members are asked for something new; all keys of the
// fresh leaves are in the tree's index then.
func (c *checker) members(t *tree, extensions []Extension, fresh []uint32, everyone bool) error {
	if c.lax {
		return nil
	}
	required, _, err := decodeKnown(extensions)
	if err != nil {
		return err
	}
	if everyone {
		for i, l := range t.leaves {
			if err := t.supports(i, l, extensions, required); err != nil {
				return err
			}
		}
	} else {
		for _, i := range fresh {
			if err := t.supports(i, t.leaf(i), extensions, required); err != nil {
				return err
			}
		}
	}
	return t.unique(fresh)
}

// supports checks what a leaf's capabilities owe the group.
func (t *tree) supports(i uint32, l *LeafNode, extensions []Extension, required *Required) error {
	for _, k := range t.kinds {
		if !slices.Contains(l.Capabilities.Credentials, k.of) {
			return refuseFor(ErrLeaf, ErrCapabilities, "leaf %d does not support credential type %d, which is in use", i, k.of)
		}
	}
	for _, e := range extensions {
		if !l.Capabilities.extension(e.Type) {
			return refuseFor(ErrLeaf, ErrCapabilities, "leaf %d does not support the group's extension type %d", i, e.Type)
		}
	}
	if required != nil {
		if err := required.meets(&l.Capabilities); err != nil {
			return refuseFor(ErrLeaf, err, "leaf %d", i)
		}
	}
	return nil
}

// tree checks everything a joiner can about a group's tree (§12.4.3.1).
func (c *checker) tree(t *tree, context *groupContext) error {
	if !bytes.Equal(t.hash(), context.treeHash) {
		return refuseFor(ErrTree, ErrTreeHash, "it is not the group context's")
	}
	if err := t.checkUnmerged(); err != nil {
		return err
	}
	if err := t.checkParentHashes(); err != nil {
		return err
	}
	for i, l := range t.leaves {
		err := c.anyLeaf(l, context.groupID, i, func(err error) error { return refuseFor(ErrTree, err, "leaf %d", i) })
		if err != nil {
			return err
		}
	}
	if err := c.docket.settle(c.s); err != nil {
		return err
	}
	for x := uint32(1); x < t.size; x += 2 {
		if p := t.node(x).parent; p != nil {
			if _, err := c.s.publicKey(p.key); err != nil {
				return refuseFor(ErrTree, err, "node %d", x)
			}
		}
	}
	if err := c.members(t, context.extensions, nil, true); err != nil {
		return refuseFor(ErrTree, err, "its members")
	}
	if err := t.indexAll(); err != nil && !c.lax {
		return refuseFor(ErrTree, err, "its members")
	}
	return nil
}

// checkUnmerged verifies the unmerged leaves of every parent.
func (t *tree) checkUnmerged() error {
	for x := uint32(1); x < t.size; x += 2 {
		p := t.node(x).parent
		if p == nil {
			continue
		}
		for _, i := range p.unmerged {
			if i >= t.width() || !under(2*i, x) || t.leaf(i) == nil {
				return refuse(ErrTree, "unmerged leaf %d of node %d is no member below it", i, x)
			}
			for y := parentOf(2 * i); y != x; y = parentOf(y) {
				q := t.node(y).parent
				if q == nil {
					continue
				}
				if _, found := slices.BinarySearch(q.unmerged, i); !found {
					return refuse(ErrTree, "leaf %d is unmerged at node %d and not at node %d below it", i, x, y)
				}
			}
		}
	}
	return nil
}
