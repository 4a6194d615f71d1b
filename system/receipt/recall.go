package receipt

import (
	"cmp"
	"slices"
)

// A recall remembers where the envelopes of recent requests are, in two generations: when the current one is full, it
// becomes the old one, and what the old one held is forgotten, or is in the index by then. The holder of Gateway.commit owns it.
type recall[T any] struct {
	most int // of one generation
	cur  map[key]T
	old  map[key]T
}

func newRecall[T any](most int) recall[T] {
	most = max(most/2, 1)
	return recall[T]{most: most, cur: make(map[key]T)}
}

func (r *recall[T]) find(k key) (T, bool) {
	v, ok := r.cur[k]
	if !ok {
		v, ok = r.old[k]
	}
	return v, ok
}

func (r *recall[T]) put(k key, v T) { r.cur[k] = v }

// full reports whether the current generation has all it may have.
func (r *recall[T]) full() bool { return len(r.cur) >= r.most }

// turn makes the current generation the old one.
func (r *recall[T]) turn() { r.old, r.cur = r.cur, make(map[key]T, r.most) }

// drop forgets what was just put.
func (r *recall[T]) drop(k key) { delete(r.cur, k) }

// A memory is the recall of a gateway that makes groups. Requests are remembered by their seq, so that the collector has
// nothing to follow in there; the groups stand apart, in the order of theirs.
type memory struct {
	recall[uint64]
	groups []*group // of the current generation
	older  []*group // of the old one
}

// find returns where a request's envelope is: in open, which is not among the groups yet and may be nil, or in one of them.
func (m *memory) find(k key, open *group) (entry, bool) {
	seq, ok := m.recall.find(k)
	if !ok {
		return entry{}, false
	}
	if open != nil && seq >= open.before.size {
		return entry{open, int(seq - open.before.size)}, true
	}
	in := m.groups
	if len(in) == 0 || seq < in[0].before.size {
		in = m.older
	}
	i, found := slices.BinarySearchFunc(in, seq, func(g *group, seq uint64) int { return cmp.Compare(g.before.size, seq) })
	if !found {
		i--
	}
	return entry{in[i], int(seq - in[i].before.size)}, true
}

// turn makes the current generation the old one.
func (m *memory) turn() {
	m.recall.turn()
	m.older, m.groups = m.groups, nil
}
