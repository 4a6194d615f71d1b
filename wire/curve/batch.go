package curve

import (
	"crypto/rand"
	"runtime"
	"sync"
	"sync/atomic"

	"filippo.io/edwards25519"
)

// A chunk is how many signatures are summed at once: their multiples fit into a second-level cache, and what they share is
// nearly nothing per signature. A share is the fewest that are worth a goroutine.
const (
	chunk = 64
	share = 4
)

// A Batch is signatures that are verified together: a random combination of their equations must hold, with coefficients
// of 128 bits that no signer can know. A key that stands in it more than once is met once per chunk. The zero value is an
// empty batch. Add keeps nothing of what it is given.
type Batch struct {
	terms []term
	bad   bool
}

// A term is the equation of one signature.
type term struct {
	public, r [32]byte
	s, k      edwards25519.Scalar
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() { b.terms, b.bad = b.terms[:0], false }

// Add puts a signature in.
func (b *Batch) Add(public, message, signature []byte) {
	if !wellFormed(public, signature) {
		b.bad = true
		return
	}
	b.terms = append(b.terms, term{public: [32]byte(public), r: [32]byte(signature)})
	t := &b.terms[len(b.terms)-1]
	if _, err := t.s.SetCanonicalBytes(signature[32:]); err != nil {
		b.bad = true
	}
	challenge(&t.k, public, message, signature)
}

// Verify says whether every signature is good, as the package's Verify has it. With more than one processor (GOMAXPROCS) a
// larger batch is shared among them.
func (b *Batch) Verify() bool {
	if b.bad {
		return false
	}
	size := max(share, min(chunk, (len(b.terms)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0)))
	if len(b.terms) <= size {
		return sum(b.terms)
	}
	var failed atomic.Bool
	var next atomic.Int64
	var all sync.WaitGroup
	some := func() {
		for !failed.Load() {
			at := int(next.Add(int64(size))) - size
			if at >= len(b.terms) {
				return
			}
			if !sum(b.terms[at:min(at+size, len(b.terms))]) {
				failed.Store(true)
			}
		}
	}
	for range min(runtime.GOMAXPROCS(0), (len(b.terms)+size-1)/size) - 1 {
		all.Go(some)
	}
	some()
	all.Wait()
	return !failed.Load()
}

// A digit is to be added: a multiple of a point, at one place of all scalars.
type digit struct {
	next  int32 // the place's next digit; -1 for none
	value int8
	table []cached
}

// A ladder is scalars' digits by place.
type ladder struct {
	heads [257]int32
	all   []digit
	top   int
}

func (l *ladder) put(table []cached, scalar []byte, w uint) {
	recode(scalar, w, func(at int, value int8) {
		l.all = append(l.all, digit{next: l.heads[at], value: value, table: table})
		l.heads[at] = int32(len(l.all) - 1)
		l.top = max(l.top, at)
	})
}

// sum says whether a random combination of some equations holds: 8 (Σ z R + Σ z k A - Σ z S B) is the neutral point.
func sum(terms []term) bool {
	t := theTables()
	random := make([]byte, 16*len(terms))
	rand.Read(random)
	keys := make(map[[32]byte]int, len(terms))
	coefficients := make([]edwards25519.Scalar, 0, len(terms))
	publics := make([]*[32]byte, 0, len(terms))
	l := &ladder{all: make([]digit, 0, 72*len(terms)+48)}
	for i := range l.heads {
		l.heads[i] = -1
	}
	const narrow = 4 // multiples that are kept of an R
	multiplesOfR := make([]cached, narrow*len(terms))
	var base, z edwards25519.Scalar
	var p point
	for i := range terms {
		e := &terms[i]
		var wide [32]byte
		copy(wide[:16], random[16*i:])
		if _, err := z.SetCanonicalBytes(wide[:]); err != nil {
			panic("curve: 128 bits are a scalar: " + err.Error())
		}
		base.MultiplyAdd(&z, &e.s, &base)
		at, known := keys[e.public]
		if !known {
			at = len(publics)
			keys[e.public] = at
			publics, coefficients = append(publics, &e.public), append(coefficients, edwards25519.Scalar{})
		}
		coefficients[at].MultiplyAdd(&z, &e.k, &coefficients[at])
		if !p.decode(e.r[:]) {
			return false
		}
		table := multiplesOfR[narrow*i : narrow*(i+1)]
		multiples(table, &p, &t.d2)
		l.put(table, wide[:16], 4)
	}
	const broad = 8 // multiples that are kept of a key
	multiplesOfA := make([]cached, broad*len(publics))
	for i, public := range publics {
		if !p.decode(public[:]) {
			return false
		}
		table := multiplesOfA[broad*i : broad*(i+1)]
		multiples(table, &p, &t.d2)
		l.put(table, coefficients[i].Bytes(), 5)
	}
	p = *l.walk(t, base.Negate(&base).Bytes())
	for range 3 {
		p.double(&p, false)
	}
	return p.identity()
}

// walk adds the digits up, and base times the base point.
func (l *ladder) walk(t *tables, base []byte) *point {
	var low naf
	low.set(base, 8)
	p := new(point).zero()
	for i := max(l.top, low.size-1); i >= 0; i-- {
		d := low.digits[i]
		p.double(p, l.heads[i] >= 0 || d != 0)
		for at := l.heads[i]; at >= 0; at = l.all[at].next {
			e := &l.all[at]
			p.add(&e.table[magnitude(e.value)/2], e.value < 0, e.next >= 0 || d != 0)
		}
		if d != 0 {
			p.addAffine(&t.low[magnitude(d)/2], d < 0, false)
		}
	}
	return p
}
