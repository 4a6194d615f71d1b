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

// newParent makes a parent without unmerged leaves, of copies.
func newParent(key, parentHash []byte) *parentNode {
	n := len(key)
	own := append(append(make([]byte, 0, n+len(parentHash)), key...), parentHash...)
	return &parentNode{key: own[:n:n], parentHash: own[n:]}
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
	reach  uint32 // the nodes it resolves to; known when its hash is
}

func (n *node) blank() bool { return n.leaf == nil && n.parent == nil }

func (n *node) key() []byte {
	if n.leaf != nil {
		return n.leaf.EncryptionKey
	}
	return n.parent.key
}

// A page is a stretch of a tree's nodes. Trees of successive epochs share the pages that did not change.
type page [pageSize]node

const pageSize = 16

// A tree has a power of two of leaves. A clone shares its pages, and each side copies the one it changes.
type tree struct {
	s     *suite
	pages []*page
	own   []bool // pages that no other tree has
	size  uint32 // in nodes
	full  uint32 // no leaf before it is blank
	kinds kinds  // of the members' credentials
	index *index // of the keys; nil until it is asked for
}

func newTree(s *suite, leaf *LeafNode) *tree { return treeOf(s, []node{{leaf: leaf}}) }

// treeOf makes a tree of the nodes that are there, filled up with blank ones.
func treeOf(s *suite, nodes []node) *tree {
	t := &tree{s: s}
	t.grow(nodeWidth(widthFor(uint32(len(nodes)+2) / 2)))
	for x := range nodes {
		t.pages[x/pageSize][x%pageSize] = nodes[x]
		t.kinds.change(nil, nodes[x].leaf)
	}
	return t
}

// grow adds blank nodes up to a size.
func (t *tree) grow(size uint32) {
	for uint32(len(t.pages))*pageSize < size {
		t.pages, t.own = append(t.pages, new(page)), append(t.own, true)
	}
	t.size = size
}

// clone returns a tree that shares everything with t.
func (t *tree) clone() *tree {
	clear(t.own)
	c := *t
	c.pages, c.own, c.kinds = slices.Clone(t.pages), make([]bool, len(t.own)), slices.Clone(t.kinds)
	if c.index.worn(t.size) {
		c.index = nil
	}
	return &c
}

// node returns a node to be read, and to have its tree hash filled in, which is the same for all that share it.
func (t *tree) node(x uint32) *node { return &t.pages[x/pageSize][x%pageSize] }

// edit returns a node to be changed.
func (t *tree) edit(x uint32) *node {
	p := x / pageSize
	if !t.own[p] {
		copied := *t.pages[p]
		t.pages[p], t.own[p] = &copied, true
	}
	return &t.pages[p][x%pageSize]
}

func (t *tree) setLeaf(index uint32, leaf *LeafNode) {
	n := t.edit(2 * index)
	t.kinds.change(n.leaf, leaf)
	n.leaf = leaf
}

func (t *tree) setParent(x uint32, p *parentNode) { t.edit(x).parent = p }

func (t *tree) width() uint32 { return (t.size + 1) / 2 } // in leaves

func (t *tree) root() uint32 { return rootOf(t.width()) }

// leaf returns a member's leaf node, or nil.
func (t *tree) leaf(index uint32) *LeafNode {
	if index >= t.width() {
		return nil
	}
	return t.node(2 * index).leaf
}

// leaves calls yield for each member.
func (t *tree) leaves(yield func(uint32, *LeafNode) bool) {
	for i := uint32(0); i < t.width(); i++ {
		if l := t.node(2 * i).leaf; l != nil && !yield(i, l) {
			return
		}
	}
}

// touch forgets the tree hashes from a node to the root.
func (t *tree) touch(x uint32) {
	for root := t.root(); ; x = parentOf(x) {
		if t.node(x).hash != nil {
			t.edit(x).hash = nil
		}
		if x == root {
			return
		}
	}
}

// blankPath blanks the parents of a leaf.
func (t *tree) blankPath(index uint32) {
	for x, root := 2*index, t.root(); x != root; {
		x = parentOf(x)
		if t.node(x).parent != nil {
			t.setParent(x, nil)
		}
	}
	t.touch(2 * index)
}

// free returns the leftmost blank leaf, doubling the tree when there is none (§7.7).
func (t *tree) free() uint32 {
	for ; t.full < t.width(); t.full++ {
		if t.leaf(t.full) == nil {
			return t.full
		}
	}
	index := t.width()
	t.grow(nodeWidth(2 * index))
	return index
}

// crowded says whether no leaf is blank.
func (t *tree) crowded() bool {
	for i := t.full; i < t.width(); i++ {
		if t.leaf(i) == nil {
			return false
		}
	}
	return true
}

// add puts a new member at the leftmost free leaf and returns its index (§12.1.1).
func (t *tree) add(leaf *LeafNode) uint32 {
	index := t.free()
	t.setLeaf(index, leaf)
	for x, root := 2*index, t.root(); x != root; {
		x = parentOf(x)
		if p := t.node(x).parent; p != nil {
			at, _ := slices.BinarySearch(p.unmerged, index)
			t.setParent(x, &parentNode{key: p.key, parentHash: p.parentHash, unmerged: slices.Insert(slices.Clone(p.unmerged), at, index)})
		}
	}
	t.touch(2 * index)
	return index
}

// update replaces a member's leaf node (§12.1.2).
func (t *tree) update(index uint32, leaf *LeafNode) {
	t.setLeaf(index, leaf)
	t.blankPath(index)
}

// remove takes a member out; truncate must follow (§12.1.3).
func (t *tree) remove(index uint32) {
	t.setLeaf(index, nil)
	t.full = min(t.full, index)
	t.blankPath(index)
}

// truncate halves the tree while its right half has no member (§7.7).
func (t *tree) truncate() {
	for w := t.width(); w > 1; w /= 2 {
		for i := w / 2; i < w; i++ {
			if t.leaf(i) != nil {
				return
			}
		}
		t.shrink(nodeWidth(w / 2))
	}
}

// shrink leaves the nodes before size; those behind are blank when the tree grows again.
func (t *tree) shrink(size uint32) {
	pages := (size + pageSize - 1) / pageSize
	t.pages, t.own = t.pages[:pages:pages], t.own[:pages:pages]
	for x := size; x < min(t.size, pages*pageSize); x++ {
		*t.edit(x) = node{}
	}
	t.size = size
}

// resolution appends the nodes that reach every member below x (§4.1.1).
func (t *tree) resolution(dst []uint32, x uint32) []uint32 {
	n := t.node(x)
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
	if !t.node(x).blank() {
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
			path = append(path, step{node: parentOf(x), copath: s})
		}
	}
	return path
}

// append encodes the tree as the ratchet_tree extension's content (§12.4.3.3).
func (t *tree) append(dst []byte) []byte {
	last := t.size
	for last > 0 && t.node(last-1).blank() {
		last--
	}
	start := len(dst)
	for x := range last {
		n := t.node(x)
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

// maxLeaves bounds a tree. A blank node is one byte on the wire and forty-eight in memory, so that the bound of a message would
// not do.
const (
	maxDepth  = 18
	maxLeaves = 1 << maxDepth
)

func readTreeNodes(r *reader) []node {
	sub := r.list()
	sub.last = new(lastCapabilities)
	nodes := make([]node, 0, len(sub.data)/160+1)
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
	return treeOf(s, nodes), nil
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
