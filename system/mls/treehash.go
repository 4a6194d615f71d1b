package mls

import (
	"bytes"
	"slices"
)

// hash returns the tree hash of the whole tree (§7.8).
func (t *tree) hash() []byte { return t.hashed(t.root()).hash }

// hashed returns a node whose tree hash is known.
func (t *tree) hashed(x uint32) *node {
	n := t.node(x)
	if n.hash == nil {
		buf := make([]byte, 0, 512)
		t.hashes(x, &buf)
	}
	return n
}

// hashes fills in the tree hashes below x that are missing, and with each how many nodes it resolves to (§4.1.1). buf is
// scratch space.
func (t *tree) hashes(x uint32, buf *[]byte) []byte {
	n := t.node(x)
	if n.hash != nil {
		return n.hash
	}
	if isLeaf(x) {
		*buf = appendLeafInput((*buf)[:0], x/2, n.leaf)
		n.reach = 0
		if n.leaf != nil {
			n.reach = 1
		}
	} else {
		left, right := t.hashes(leftOf(x), buf), t.hashes(rightOf(x), buf)
		*buf = appendParentInput((*buf)[:0], n.parent, left, right)
		if n.reach = t.node(leftOf(x)).reach + t.node(rightOf(x)).reach; n.parent != nil {
			n.reach = 1 + uint32(len(n.parent.unmerged))
		}
	}
	n.hash = t.s.digest(*buf)
	return n.hash
}

// appendLeafInput appends the TreeHashInput of a leaf.
func appendLeafInput(dst []byte, index uint32, leaf *LeafNode) []byte {
	dst = appendOptional(appendU32(append(dst, 1), index), leaf != nil)
	if leaf != nil {
		dst = leaf.append(dst)
	}
	return dst
}

func appendParentInput(dst []byte, p *parentNode, left, right []byte) []byte {
	dst = appendOptional(append(dst, 2), p != nil)
	if p != nil {
		dst = p.append(dst)
	}
	return appendVector(appendVector(dst, left), right)
}

// original returns the tree hash of x as it was before the leaves in without were added (§7.9).
func (t *tree) original(x uint32, without []uint32) []byte {
	if without = below(without, x); len(without) == 0 {
		return t.hashed(x).hash
	}
	if isLeaf(x) {
		return t.s.digest(appendLeafInput(nil, x/2, nil))
	}
	left, right := t.original(leftOf(x), without), t.original(rightOf(x), without)
	p := t.node(x).parent
	if p != nil {
		kept := slices.DeleteFunc(slices.Clone(p.unmerged), func(i uint32) bool {
			_, found := slices.BinarySearch(without, i)
			return found
		})
		p = &parentNode{key: p.key, parentHash: p.parentHash, unmerged: kept}
	}
	return t.s.digest(appendParentInput(nil, p, left, right))
}

// below returns the part of an ascending list of leaves that is below x.
func below(leaves []uint32, x uint32) []uint32 {
	half := uint32(1) << level(x) >> 1 // of the leaves below x; 0 for a leaf
	first, last := x/2-half+min(half, 1), x/2+half
	from, _ := slices.BinarySearch(leaves, first)
	to, _ := slices.BinarySearch(leaves, last+1)
	return leaves[from:to]
}

// parentHash writes to out the parent hash of p with a copath child's original tree hash.
func (t *tree) parentHash(out *[maxHash]byte, p *parentNode, sibling []byte) []byte {
	var buf [maxPublic + 2*maxHash + 6]byte
	b := appendVector(appendVector(buf[:0], p.key), p.parentHash)
	t.s.sum(out[:t.s.nh], appendVector(b, sibling))
	return out[:t.s.nh]
}

// checkParentHashes verifies that each non-blank parent is covered by exactly one chain from a leaf (§7.9.2).
func (t *tree) checkParentHashes() error {
	for x := uint32(1); x < t.size; x += 2 {
		p := t.node(x).parent
		if p == nil {
			continue
		}
		chains := 0
		for _, side := range [2][2]uint32{{leftOf(x), rightOf(x)}, {rightOf(x), leftOf(x)}} {
			if t.chained(p, side[0], side[1]) {
				chains++
			}
		}
		if chains != 1 {
			return refuseFor(ErrTree, ErrParentHash, "parent node %d is covered by %d chains", x, chains)
		}
	}
	return nil
}

// chained says whether a node in the resolution of child holds p's parent hash and was its neighbour when p was set: the
// rest of the resolution is just p's unmerged leaves below child.
func (t *tree) chained(p *parentNode, child, sibling uint32) bool {
	unmerged, others := len(below(p.unmerged, child)), 0
	var d uint32
	resolved := t.resolution(nil, child)
	for _, x := range resolved {
		if _, found := slices.BinarySearch(p.unmerged, x/2); !isLeaf(x) || !found {
			d = x
			others++
		}
	}
	if others != 1 || len(resolved) != unmerged+1 {
		return false
	}
	held := t.node(d).parentHash()
	var want [maxHash]byte
	return held != nil && bytes.Equal(held, t.parentHash(&want, p, t.original(sibling, p.unmerged)))
}

// parentHash returns the parent hash that a node holds, nil for a leaf that holds none.
func (n *node) parentHash() []byte {
	switch {
	case n.parent != nil:
		return n.parent.parentHash
	case n.leaf.Source == FromCommit:
		return n.leaf.ParentHash
	}
	return nil
}
