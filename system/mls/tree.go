package mls

import (
	"bytes"
	"slices"
)

// The ratchet tree, RFC 9420 §4 and §7.7.

// A parentNode is ParentNode (§7.1). It is never changed once it is in a tree.
type parentNode struct {
	key        []byte
	parentHash []byte
	unmerged   []uint32 // leaf indices, ascending
}

func (p *parentNode) append(dst []byte) []byte {
	dst = appendVector(appendVector(dst, p.key), p.parentHash)
	dst = appendLength(dst, 4*len(p.unmerged))
	for _, i := range p.unmerged {
		dst = appendU32(dst, i)
	}
	return dst
}

func readParentNode(r *reader) *parentNode {
	p := &parentNode{key: r.vector(), parentHash: r.vector(), unmerged: readList(r, (*reader).u32)}
	for i := 1; i < len(p.unmerged); i++ {
		if p.unmerged[i-1] >= p.unmerged[i] {
			r.fail("unmerged leaves out of order")
		}
	}
	return p
}

// A node is a leaf, a parent, or blank.
type node struct {
	leaf   *LeafNode
	parent *parentNode
	hash   []byte // the tree hash of the subtree; nil when it must be made again
}

func (n *node) blank() bool { return n.leaf == nil && n.parent == nil }

func (n *node) key() []byte {
	if n.leaf != nil {
		return n.leaf.EncryptionKey
	}
	return n.parent.key
}

// A tree has a power of two of leaves. A clone shares the nodes' content.
type tree struct {
	s     *suite
	nodes []node
	full  uint32 // no leaf before it is blank
}

func newTree(s *suite, leaf *LeafNode) *tree { return &tree{s: s, nodes: []node{{leaf: leaf}}} }

func (t *tree) clone() *tree { return &tree{s: t.s, nodes: slices.Clone(t.nodes), full: t.full} }

func (t *tree) width() uint32 { return uint32(len(t.nodes)+1) / 2 } // in leaves

func (t *tree) root() uint32 { return rootOf(t.width()) }

// leaf returns a member's leaf node, or nil.
func (t *tree) leaf(index uint32) *LeafNode {
	if index >= t.width() {
		return nil
	}
	return t.nodes[2*index].leaf
}

// leaves calls yield for each member.
func (t *tree) leaves(yield func(uint32, *LeafNode) bool) {
	for i := uint32(0); i < t.width(); i++ {
		if l := t.nodes[2*i].leaf; l != nil && !yield(i, l) {
			return
		}
	}
}

// touch forgets the tree hashes from a node to the root.
func (t *tree) touch(x uint32) {
	for root := t.root(); ; x = parentOf(x) {
		t.nodes[x].hash = nil
		if x == root {
			return
		}
	}
}

// blankPath blanks the parents of a leaf.
func (t *tree) blankPath(index uint32) {
	for x, root := 2*index, t.root(); x != root; {
		x = parentOf(x)
		t.nodes[x].parent = nil
	}
	t.touch(2 * index)
}

// free returns the leftmost blank leaf, doubling the tree when there is none (§7.7).
func (t *tree) free() uint32 {
	for ; t.full < t.width(); t.full++ {
		if t.nodes[2*t.full].leaf == nil {
			return t.full
		}
	}
	index := t.width()
	t.nodes = append(t.nodes, make([]node, nodeWidth(2*index)-nodeWidth(index))...)
	return index
}

// crowded says whether no leaf is blank.
func (t *tree) crowded() bool {
	for i := t.full; i < t.width(); i++ {
		if t.nodes[2*i].leaf == nil {
			return false
		}
	}
	return true
}

// add puts a new member at the leftmost free leaf and returns its index (§12.1.1).
func (t *tree) add(leaf *LeafNode) uint32 {
	index := t.free()
	t.nodes[2*index].leaf = leaf
	for x, root := 2*index, t.root(); x != root; {
		x = parentOf(x)
		if p := t.nodes[x].parent; p != nil {
			at, _ := slices.BinarySearch(p.unmerged, index)
			q := &parentNode{key: p.key, parentHash: p.parentHash, unmerged: slices.Insert(slices.Clone(p.unmerged), at, index)}
			t.nodes[x].parent = q
		}
	}
	t.touch(2 * index)
	return index
}

// update replaces a member's leaf node (§12.1.2).
func (t *tree) update(index uint32, leaf *LeafNode) {
	t.nodes[2*index].leaf = leaf
	t.blankPath(index)
}

// remove takes a member out; truncate must follow (§12.1.3).
func (t *tree) remove(index uint32) {
	t.nodes[2*index].leaf = nil
	t.full = min(t.full, index)
	t.blankPath(index)
}

// truncate halves the tree while its right half has no member (§7.7).
func (t *tree) truncate() {
	for w := t.width(); w > 1; w /= 2 {
		for i := w / 2; i < w; i++ {
			if t.nodes[2*i].leaf != nil {
				return
			}
		}
		t.nodes = t.nodes[:nodeWidth(w/2):nodeWidth(w/2)]
	}
}

// resolution appends the nodes that reach every member below x (§4.1.1).
func (t *tree) resolution(dst []uint32, x uint32) []uint32 {
	n := &t.nodes[x]
	switch {
	case n.leaf != nil:
		return append(dst, x)
	case n.parent != nil:
		dst = append(dst, x)
		for _, i := range n.parent.unmerged {
			dst = append(dst, 2*i)
		}
		return dst
	case isLeaf(x):
		return dst
	}
	return t.resolution(t.resolution(dst, leftOf(x)), rightOf(x))
}

// empty says whether x has an empty resolution.
func (t *tree) empty(x uint32) bool {
	if !t.nodes[x].blank() {
		return false
	}
	return isLeaf(x) || t.empty(leftOf(x)) && t.empty(rightOf(x))
}

// A step is a node of a filtered direct path with its child on the copath (§4.1.2).
type step struct{ node, copath uint32 }

// filteredPath lists the parents of a leaf whose other child reaches anyone, from the leaf up.
func (t *tree) filteredPath(index uint32) []step {
	var path []step
	for x, root := 2*index, t.root(); x != root; x = parentOf(x) {
		if s := siblingOf(x); !t.empty(s) {
			path = append(path, step{parentOf(x), s})
		}
	}
	return path
}

// append encodes the tree as the ratchet_tree extension's content (§12.4.3.3).
func (t *tree) append(dst []byte) []byte {
	last := len(t.nodes)
	for last > 0 && t.nodes[last-1].blank() {
		last--
	}
	start := len(dst)
	for i := range t.nodes[:last] {
		n := &t.nodes[i]
		dst = appendOptional(dst, !n.blank())
		switch {
		case n.leaf != nil:
			dst = n.leaf.append(append(dst, 1))
		case n.parent != nil:
			dst = n.parent.append(append(dst, 2))
		}
	}
	return closeVector(dst, start)
}

// maxLeaves bounds a tree. A blank node is one byte on the wire and forty in memory, so that the bound of a message would
// not do.
const maxLeaves = 1 << 18

func readTreeNodes(r *reader) []node {
	sub := r.list()
	var nodes []node
	for sub.more() {
		x := uint32(len(nodes))
		if x >= nodeWidth(maxLeaves) {
			sub.fail("a tree of more nodes than this engine takes")
			break
		}
		var n node
		if sub.optional() {
			switch kind := sub.u8(); {
			case kind == 1 && isLeaf(x):
				n.leaf = readLeafNode(&sub)
			case kind == 2 && !isLeaf(x):
				n.parent = readParentNode(&sub)
			default:
				sub.fail("a node of the wrong type for its place")
			}
		}
		nodes = append(nodes, n)
	}
	if sub.err == nil && (len(nodes) == 0 || nodes[len(nodes)-1].blank()) {
		sub.fail("a tree that ends in a blank node")
	}
	r.adopt(&sub)
	return nodes
}

// parseTree decodes a ratchet tree.
func parseTree(s *suite, data []byte) (*tree, error) {
	nodes, err := decode(data, readTreeNodes)
	if err != nil {
		return nil, err
	}
	full := nodeWidth(widthFor(uint32(len(nodes)+2) / 2))
	return &tree{s: s, nodes: append(nodes, make([]node, int(full)-len(nodes))...)}, nil
}

// find returns the index of a leaf that is the same as the given one.
func (t *tree) find(leaf *LeafNode) (uint32, bool) {
	want := leaf.append(nil)
	var buf []byte
	for i, l := range t.leaves {
		if bytes.Equal(l.EncryptionKey, leaf.EncryptionKey) {
			if buf = l.append(buf[:0]); bytes.Equal(buf, want) {
				return i, true
			}
		}
	}
	return 0, false
}
