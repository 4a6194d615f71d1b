package receipt

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
