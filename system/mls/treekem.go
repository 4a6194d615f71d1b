package mls

import (
	"bytes"
	"crypto/rand"
	"slices"
)

// TreeKEM, RFC 9420 §7.4 to §7.6.

// privateKeys are the private keys that a member has, by node.
type privateKeys map[uint32]*privateKey

// A pathDraft is an update path that is being made.
type pathDraft struct {
	steps   []step
	secrets [][]byte // path_secret of each step
	keys    privateKeys
	commit  []byte // commit_secret
}

// nextPathSecret and nodeKey are §7.4.
func (s *suite) nextPathSecret(secret []byte) []byte { return s.deriveSecret(secret, "path") }

func (s *suite) nodeKey(pathSecret []byte) (*privateKey, error) {
	return s.deriveKeyPair(s.deriveSecret(pathSecret, "node"))
}

// draftPath gives a leaf and the parents on its filtered direct path new keys (§7.5); leaf has all but its keys' parts.
func (t *tree) draftPath(index uint32, leaf *LeafNode, key *signer, groupID []byte) (*pathDraft, error) {
	own, err := t.s.generateKeyPair()
	if err != nil {
		return nil, err
	}
	t.blankPath(index)
	d := &pathDraft{steps: t.filteredPath(index), keys: privateKeys{2 * index: own}}
	secret := make([]byte, t.s.nh)
	rand.Read(secret)
	public := make([][]byte, len(d.steps))
	for i, step := range d.steps {
		d.secrets = append(d.secrets, secret)
		k, err := t.s.nodeKey(secret)
		if err != nil {
			return nil, err
		}
		d.keys[step.node], public[i] = k, k.public
		secret = t.s.nextPathSecret(secret)
	}
	d.commit = secret
	leaf.Source, leaf.EncryptionKey = FromCommit, own.public
	leaf.ParentHash = t.setPath(d.steps, public)
	if err := leaf.sign(t.s, key, groupID, index); err != nil {
		return nil, err
	}
	t.setLeaf(index, leaf)
	t.touch(2 * index)
	return d, nil
}

// setPath sets the parents of a path and returns the parent hash that its leaf must hold (§7.9).
func (t *tree) setPath(steps []step, public [][]byte) []byte {
	var out [maxHash]byte
	above := out[:0]
	for i, step := range slices.Backward(steps) {
		p := newParent(public[i], above)
		t.setParent(step.node, p)
		above = t.parentHash(&out, p, t.hashed(step.copath).hash)
	}
	t.indexPath(steps)
	return bytes.Clone(above)
}

// recipients lists the nodes that a step's path secret is encrypted to: all that its copath child resolves to but the
// members that the same commit adds, who get it by welcome.
func (t *tree) recipients(dst []uint32, copath uint32, added []uint32) []uint32 {
	dst = t.resolution(dst, copath)
	if len(added) == 0 {
		return dst
	}
	return slices.DeleteFunc(dst, func(x uint32) bool {
		_, found := slices.BinarySearch(added, x/2) // leaves are added from the left
		return isLeaf(x) && found
	})
}

// reach counts a step's recipients. Each added member below is in the resolution once: as a leaf, or unmerged.
func (t *tree) reach(copath uint32, added []uint32) int {
	return int(t.hashed(copath).reach) - len(below(added, copath))
}

// place finds the recipient whose private key a member has: the node, and its place among the recipients.
func (t *tree) place(copath, self uint32, keys privateKeys, added []uint32) (x uint32, at int, found bool) {
	for x = copath; ; {
		n := t.node(x)
		switch {
		case keys[x] != nil && !n.blank():
			return x, at, true
		case n.parent != nil:
			i, unmerged := slices.BinarySearch(n.parent.unmerged, self)
			for _, leaf := range n.parent.unmerged[:i] {
				if _, invited := slices.BinarySearch(added, leaf); invited {
					at--
				}
			}
			return 2 * self, at + 1 + i, unmerged && keys[2*self] != nil
		case isLeaf(x):
			return x, at, false
		}
		left, right := leftOf(x), rightOf(x)
		if x = left; !under(2*self, left) {
			x = right
			at += t.reach(left, added)
		}
	}
}

// encrypt makes the UpdatePath of a draft; context is the encoded provisional group context.
func (d *pathDraft) encrypt(t *tree, leaf *LeafNode, context []byte, added []uint32) (*UpdatePath, error) {
	info := t.s.hpkeInfo(encryptInfo("UpdatePathNode", context))
	path := &UpdatePath{Leaf: leaf, Nodes: make([]PathNode, len(d.steps))}
	type letter struct {
		to     uint32
		secret []byte
		sealed *Ciphertext
	}
	var letters []letter
	for i, step := range d.steps {
		n := &path.Nodes[i]
		n.PublicKey = t.node(step.node).parent.key
		to := t.recipients(nil, step.copath, added)
		n.Ciphertexts = make([]Ciphertext, len(to))
		for j, x := range to {
			letters = append(letters, letter{x, d.secrets[i], &n.Ciphertexts[j]})
		}
	}
	return path, t.s.begin(len(letters), func(i int) error {
		l := &letters[i]
		key, err := t.s.publicKey(t.node(l.to).key())
		if err == nil {
			*l.sealed, err = t.s.seal(key, &info, l.secret)
		}
		return err
	}).finish()
}

// mergePath checks a received path against the tree and sets it (§7.5, §12.4.2).
func (t *tree) mergePath(index uint32, path *UpdatePath, added []uint32) ([]step, error) {
	t.blankPath(index)
	steps := t.filteredPath(index)
	if len(steps) != len(path.Nodes) {
		return nil, refuse(ErrPath, "%d nodes for a filtered direct path of %d", len(path.Nodes), len(steps))
	}
	public := make([][]byte, len(steps))
	for i := range steps {
		n, step := &path.Nodes[i], steps[i]
		if got, want := n.ciphertexts(), t.reach(step.copath, added); got != want {
			return nil, refuse(ErrPath, "%d ciphertexts at node %d, which has %d recipients", got, step.node, want)
		}
		if _, err := t.s.publicKey(n.PublicKey); err != nil {
			return nil, refuseFor(ErrPath, err, "node %d", step.node)
		}
		public[i] = n.PublicKey
	}
	if err := t.freshKeys(index, path.Leaf.EncryptionKey, public); err != nil {
		return nil, err
	}
	if want := t.setPath(steps, public); !bytes.Equal(want, path.Leaf.ParentHash) {
		return nil, refuseFor(ErrPath, ErrParentHash, "of the committer's leaf %d", index)
	}
	t.setLeaf(index, path.Leaf.alone(t.leaf(index)))
	t.touch(2 * index)
	return steps, nil
}

// freshKeys refuses a path with a key that stands twice in it, or anywhere in the tree.
func (t *tree) freshKeys(index uint32, leaf []byte, public [][]byte) error {
	all := append([][]byte{leaf}, public...)
	for i, k := range all {
		for _, o := range all[:i] {
			if bytes.Equal(k, o) {
				return refuseFor(ErrPath, ErrDuplicate, "an encryption key stands twice in it")
			}
		}
	}
	known := t.keys()
	for _, k := range all {
		if x, found := known.find(t, encryptionKeys, k, t.size); found {
			return refuseFor(ErrPath, ErrDuplicate, "its encryption key is that of node %d", x)
		}
	}
	return nil
}

// decryptPath finds the path secret that is meant for a member and derives the keys above it. It returns them with the
// commit secret.
func (t *tree) decryptPath(steps []step, path *UpdatePath, self uint32, keys privateKeys, context []byte, added []uint32) (privateKeys, []byte, error) {
	at := slices.IndexFunc(steps, func(s step) bool { return under(2*self, s.copath) })
	if at < 0 {
		return nil, nil, refuse(ErrPath, "no node of it is above leaf %d", self)
	}
	x, mine, found := t.place(steps[at].copath, self, keys, added)
	if !found {
		return nil, nil, refuse(ErrPath, "no private key for any of the recipients at node %d", steps[at].node)
	}
	secret, err := t.s.open(keys[x], encryptInfo("UpdatePathNode", context), path.Nodes[at].ciphertext(mine))
	if err != nil {
		return nil, nil, refuseFor(ErrPath, err, "node %d", steps[at].node)
	}
	nodes := make([]uint32, 0, len(steps))
	for _, s := range steps[at:] {
		nodes = append(nodes, s.node)
	}
	return t.derivePath(nodes, secret)
}

// derivePath derives the private keys of nodes, which are on one path upwards, from the path secret of the first, and
// checks that they belong to the tree's public keys. It returns them with the commit secret.
func (t *tree) derivePath(nodes []uint32, secret []byte) (privateKeys, []byte, error) {
	if len(secret) != t.s.nh {
		return nil, nil, refuse(ErrPath, "a path secret of %d bytes", len(secret))
	}
	found := make(privateKeys, len(nodes))
	for _, x := range nodes {
		k, err := t.s.nodeKey(secret)
		if err != nil {
			return nil, nil, err
		}
		if !bytes.Equal(k.public, t.node(x).parent.key) {
			return nil, nil, refuse(ErrPath, "the path secret of node %d does not belong to its public key", x)
		}
		found[x] = k
		secret = t.s.nextPathSecret(secret)
	}
	return found, secret, nil
}

// holds returns those of the keys that still belong to the tree's nodes.
func (t *tree) holds(keys privateKeys) privateKeys {
	kept := make(privateKeys, len(keys))
	for x, k := range keys {
		if x < t.size && !t.node(x).blank() && bytes.Equal(t.node(x).key(), k.public) {
			kept[x] = k
		}
	}
	return kept
}
