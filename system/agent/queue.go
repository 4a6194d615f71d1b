package agent

import "toll/wire/envelope"

// An item is a message in a mailbox, with the slot of the caller who waits for its answer; a tell has none.
type item struct {
	m *envelope.Message
	s *slot
}

// placed is the item once it has its place: a tell's caller then waits no longer.
func (it item) placed() item {
	if it.s != nil && it.s.tell {
		it.s = nil
	}
	return it
}

// A ring is a first-in-first-out queue that holds no memory until it is used.
type ring struct {
	buf  []item // its length is a power of two
	head uint32
	n    uint32
}

const (
	firstRing = 8
	keepRing  = 64 // an emptied ring of more places is given back
)

func (r *ring) len() int { return int(r.n) }

func (r *ring) push(it item) {
	if int(r.n) == len(r.buf) {
		r.grow()
	}
	r.buf[(r.head+r.n)&uint32(len(r.buf)-1)] = it
	r.n++
}

func (r *ring) grow() {
	bigger := make([]item, max(firstRing, 2*len(r.buf)))
	for i := range r.n {
		bigger[i] = r.buf[(r.head+i)&uint32(len(r.buf)-1)]
	}
	r.buf, r.head = bigger, 0
}

func (r *ring) pop() (it item, ok bool) {
	if r.n == 0 {
		return item{}, false
	}
	at := &r.buf[r.head]
	it, *at = *at, item{}
	r.head = (r.head + 1) & uint32(len(r.buf)-1)
	if r.n--; r.n == 0 && len(r.buf) > keepRing {
		*r = ring{}
	}
	return it, true
}

// keep drops the items for which f is false, in place.
func (r *ring) keep(f func(item) bool) {
	for range r.n {
		if it, _ := r.pop(); f(it) {
			r.push(it)
		}
	}
}

// take empties the ring behind what out already holds.
func (r *ring) take(out []item) []item {
	for it, ok := r.pop(); ok; it, ok = r.pop() {
		out = append(out, it)
	}
	*r = ring{}
	return out
}
