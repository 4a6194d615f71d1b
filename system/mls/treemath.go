package mls

import "math/bits"

// Array-based trees, RFC 9420 Appendix C. A tree always has a power of two of leaves; leaf i is node 2i.

// nodeWidth returns the number of nodes of a tree with n leaves.
func nodeWidth(leaves uint32) uint32 {
	if leaves == 0 {
		return 0
	}
	return 2*leaves - 1
}

// level is 0 for leaves, and one more than its children's for a parent.
func level(x uint32) uint { return uint(bits.TrailingZeros32(^x)) }

// rootOf returns the root of a tree with a power of two of leaves.
func rootOf(leaves uint32) uint32 { return leaves - 1 }

func isLeaf(x uint32) bool { return x&1 == 0 }

func leftOf(x uint32) uint32  { return x ^ (1 << (level(x) - 1)) }
func rightOf(x uint32) uint32 { return x ^ (3 << (level(x) - 1)) }

// parentOf returns the parent of a node that is not the root.
func parentOf(x uint32) uint32 {
	k := level(x)
	return (x | 1<<k) &^ (1 << (k + 1))
}

// siblingOf returns the other child of the parent of a node that is not the root.
func siblingOf(x uint32) uint32 {
	p := parentOf(x)
	if x < p {
		return rightOf(p)
	}
	return leftOf(p)
}

// under says whether node x is in the subtree of node top.
func under(x, top uint32) bool {
	k := level(top)
	return x>>(k+1) == top>>(k+1) && level(x) <= k
}

// ancestorOf returns the lowest common ancestor of two nodes.
func ancestorOf(x, y uint32) uint32 {
	for !under(y, x) {
		x = parentOf(x)
	}
	return x
}

// widthFor returns the smallest power of two that is at least n.
func widthFor(n uint32) uint32 {
	if n <= 1 {
		return n
	}
	return 1 << bits.Len32(n-1)
}
