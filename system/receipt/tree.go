package receipt

import (
	"crypto/sha256"
	"encoding/base64"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// A Hash is a node of an RFC 6962 tree over SHA-256.
type Hash = tlog.Hash

// leafHash is SHA-256(0x00 ‖ entry), RFC 6962 §2.1. scratch is memory to use, and is returned.
func leafHash(scratch, entry []byte) (Hash, []byte) {
	scratch = append(append(scratch[:0], 0), entry...)
	return sha256.Sum256(scratch), scratch
}

// nodeHash is SHA-256(0x01 ‖ left ‖ right).
func nodeHash(left, right Hash) Hash {
	var b [1 + 2*sha256.Size]byte
	b[0] = 1
	copy(b[1:], left[:])
	copy(b[1+sha256.Size:], right[:])
	return sha256.Sum256(b[:])
}

// A frontier is the roots of the complete subtrees that a tree of so many leaves falls into: all that is needed to grow it.
type frontier struct {
	size  uint64
	peaks [maxHeight]Hash // peaks[k] has 2^k leaves, and is there when bit k of size is set
}

// maxHeight bounds a tree: 2^40 entries are a million a second for twelve days, and the peaks are copied with every group.
const maxHeight = 40

func (f *frontier) add(leaf Hash) {
	k := 0
	for ; f.size>>k&1 == 1; k++ {
		leaf = nodeHash(f.peaks[k], leaf)
	}
	f.peaks[k] = leaf
	f.size++
}

// root is the tree's hash; that of an empty tree is the hash of nothing.
func (f *frontier) root() Hash {
	if f.size == 0 {
		return sha256.Sum256(nil)
	}
	k := bits.TrailingZeros64(f.size)
	r := f.peaks[k]
	for k++; k < maxHeight; k++ {
		if f.size>>k&1 == 1 {
			r = nodeHash(f.peaks[k], r)
		}
	}
	return r
}

// append appends the peaks, the largest first.
func (f *frontier) append(dst []byte) []byte {
	for k := maxHeight - 1; k >= 0; k-- {
		if f.size>>k&1 == 1 {
			dst = append(dst, f.peaks[k][:]...)
		}
	}
	return dst
}

// read takes the peaks of a tree of size leaves from b, and returns what is behind them and whether they were there.
func (f *frontier) read(size uint64, b []byte) ([]byte, bool) {
	if f.size = size; size>>maxHeight > 0 || len(b) < bits.OnesCount64(size)*sha256.Size {
		return b, false
	}
	for k := maxHeight - 1; k >= 0; k-- {
		if size>>k&1 == 1 {
			copy(f.peaks[k][:], b)
			b = b[sha256.Size:]
		}
	}
	return b, true
}

// hashText is how a hash is written: base64, with padding.
const hashText = 44

// nodes are what the inclusion proofs of a group of leaves at the right edge of a tree are made of: for each level the
// complete subtrees from the group's left edge on, with the one old peak to its left, and the incomplete one at the right.
// Each is kept as the text that stands in a receipt, so that it is encoded once for all receipts that share it.
type nodes struct {
	first, size uint64 // the group is the leaves first to size-1 of size
	level       [][][hashText]byte
	ragged      [][hashText]byte
	some        uint64 // bit k: ragged[k] is there
}

// start is the first node of a level.
func (n *nodes) start(k int) uint64 { return n.first >> k &^ 1 }

func text(h Hash) (t [hashText]byte) {
	base64.StdEncoding.Encode(t[:], h[:])
	return t
}

// newNodes makes the nodes of leaves that are added to old, and returns them with the grown frontier.
func newNodes(old *frontier, leaves []Hash) (*nodes, frontier) {
	after := *old
	n := &nodes{first: old.size, size: old.size + uint64(len(leaves))}
	height := bits.Len64(n.size)
	n.level, n.ragged = make([][][hashText]byte, height), make([][hashText]byte, height)
	slab := make([][hashText]byte, 0, 2*(len(leaves)+height))
	rows := make([]Hash, 0, 2*(len(leaves)+height)) // every level behind the one below it
	var here []Hash
	for k := range height {
		from := len(slab)
		row := rows[len(rows):]
		if old.size>>k&1 == 1 {
			row = append(row, old.peaks[k])
		}
		if k == 0 {
			row = append(row, leaves...)
		} else {
			row = appendParents(row, here)
		}
		rows = rows[:len(rows)+len(row)]
		for _, h := range row {
			slab = append(slab, text(h))
		}
		n.level[k] = slab[from:len(slab):len(slab)]
		if n.size>>k&1 == 1 {
			after.peaks[k] = row[len(row)-1]
		}
		here = row
	}
	after.size = n.size
	n.edge(&after)
	return n, after
}

// appendParents appends the hashes of the pairs of a level; the last node of an odd number has no pair yet.
func appendParents(dst, level []Hash) []Hash {
	for i := 0; i+1 < len(level); i += 2 {
		dst = append(dst, nodeHash(level[i], level[i+1]))
	}
	return dst
}

// edge computes the incomplete subtrees at the right.
func (n *nodes) edge(after *frontier) {
	var r Hash
	there := false
	for k := range n.level {
		if there {
			n.ragged[k], n.some = text(r), n.some|1<<k
		}
		if n.size>>k&1 == 0 {
			continue
		}
		if there {
			r = nodeHash(after.peaks[k], r)
		} else {
			r, there = after.peaks[k], true
		}
	}
}

// appendProof appends the inclusion proof of leaf i (RFC 6962 §2.1.1) as a JSON array of base64 strings.
func (n *nodes) appendProof(dst []byte, i uint64) []byte {
	dst = append(dst, '[')
	for k, more := 0, false; (n.size-1)>>k > 0; k++ {
		var t *[hashText]byte
		switch sibling := i>>k ^ 1; {
		case sibling < n.size>>k:
			t = &n.level[k][sibling-n.start(k)]
		case sibling == n.size>>k && n.some>>k&1 == 1:
			t = &n.ragged[k]
		default:
			continue // this node is the last of an odd number: it moves up as it is
		}
		if more {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), t[:]...), '"')
		more = true
	}
	return append(dst, ']')
}
