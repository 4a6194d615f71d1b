package mls

// A tree as stored: whole, or by the nodes in which it differs from another, which are few as long as they share pages.

// appendSince encodes a tree; base is nil or one that it shares pages with.
func (t *tree) appendSince(dst []byte, base *tree) []byte {
	if base == nil {
		return t.append(appendOptional(dst, false))
	}
	dst = appendU32(appendOptional(dst, true), t.size)
	start := len(dst)
	for p, page := range t.pages {
		if p < len(base.pages) && base.pages[p] == page && t.size <= base.size {
			continue
		}
		for i := range page {
			x := uint32(p*pageSize + i)
			if x >= t.size {
				break
			}
			var old node
			if x < base.size {
				old = *base.node(x)
			}
			if n := &page[i]; n.leaf != old.leaf || n.parent != old.parent {
				dst = n.appendStored(appendU32(dst, x))
			}
		}
	}
	return closeVector(dst, start)
}

// The kinds of a stored node.
const (
	storedBlank  = 0
	storedLeaf   = 1
	storedParent = 2
)

func (n *node) appendStored(dst []byte) []byte {
	switch {
	case n.leaf != nil:
		return n.leaf.append(append(dst, storedLeaf))
	case n.parent != nil:
		return n.parent.append(append(dst, storedParent))
	}
	return append(dst, storedBlank)
}

// treeSince reads what appendSince wrote of a tree with a base.
func (l *loader) treeSince(base *tree) *tree {
	t := base.clone()
	size := l.u32()
	switch {
	case size == 0 || size&(size+1) != 0 || size > nodeWidth(maxLeaves):
		l.fail("a tree of an impossible size")
		return t
	case size < t.size:
		t.cutTo(size)
	default:
		t.grow(size)
	}
	sub := l.list()
	sub.last = new(lastCapabilities)
	for sub.more() {
		x, kind := sub.u32(), sub.u8()
		if x >= size || kind > storedParent || kind != storedBlank && (kind == storedLeaf) != isLeaf(x) {
			sub.fail("a node out of place")
			break
		}
		switch kind {
		case storedLeaf:
			t.setLeaf(x/2, readLeafNode(&sub))
		case storedParent:
			t.setParent(x, readParentNode(&sub))
		default:
			t.blank(x)
		}
		t.touch(x)
	}
	t.full = 0
	l.adopt(&sub)
	return t
}

// blank takes a node's content away.
func (t *tree) blank(x uint32) {
	if isLeaf(x) {
		t.setLeaf(x/2, nil)
		return
	}
	t.setParent(x, nil)
}

// cutTo makes a tree smaller, members behind the end or not.
func (t *tree) cutTo(size uint32) {
	for x := size; x < t.size; x++ {
		if isLeaf(x) && t.leaf(x/2) != nil {
			t.setLeaf(x/2, nil)
		}
	}
	t.shrink(size)
}
