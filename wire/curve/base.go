package curve

import (
	"encoding/binary"
	"sync"

	"filippo.io/edwards25519/field"
)

// An entry is an affine point packed into 12 words: what is scanned to pick one in constant time should be small.
type entry [12]uint64

func (e *entry) set(a *affine) {
	for i, f := range [3]*field.Element{&a.plus, &a.minus, &a.t2d} {
		b := f.Bytes()
		for k := range 4 {
			e[4*i+k] = binary.LittleEndian.Uint64(b[8*k:])
		}
	}
}

// A baseTable has 1 to 16 times 32^(2i) times the base point.
type baseTable [26][16]entry

// A wideTable has the odd multiples up to 127 of a point, for verification.
type wideTable [64]affine

// A tables value is what is made of the base point once.
type tables struct {
	d2    field.Element
	d     field.Element
	base  baseTable
	low   wideTable // of B
	high  wideTable // of 2^128 B
	basis point
}

// basePoint has y = 4/5 and an even x.
func basePoint() point {
	var p point
	four, five := smallElement(4), smallElement(5)
	five.Invert(five)
	four.Multiply(four, five)
	if !p.decode(four.Bytes()) {
		panic("curve: the base point is on the curve")
	}
	return p
}

func smallElement(n byte) *field.Element {
	e, err := new(field.Element).SetBytes(append([]byte{n}, make([]byte, 31)...))
	if err != nil {
		panic("curve: 32 bytes: " + err.Error())
	}
	return e
}

// theTables are constants that are worked out when they are first needed.
var theTables = sync.OnceValue(func() *tables {
	t := &tables{basis: basePoint()}
	t.d = *curveD()
	t.d2 = *d2()
	at := t.basis
	for i := range t.base {
		var step cached
		step.set(&at, &t.d2)
		var row [16]point
		sum := at
		for j := range row {
			row[j] = sum
			sum.add(&step, false, true)
		}
		for j, a := range affines(row[:], &t.d2) {
			t.base[i][j].set(&a)
		}
		for range 10 {
			at.double(&at, true)
		}
	}
	copy(t.low[:], oddMultiples(&t.basis, len(t.low), &t.d2))
	at = t.basis
	for range 128 {
		at.double(&at, true)
	}
	copy(t.high[:], oddMultiples(&at, len(t.high), &t.d2))
	return t
})

func oddMultiples(p *point, n int, d2 *field.Element) []affine {
	twice := *p
	twice.double(p, true)
	var by cached
	by.set(&twice, d2)
	all := make([]point, n)
	all[0] = *p
	for i := 1; i < n; i++ {
		all[i] = all[i-1]
		all[i].add(&by, false, true)
	}
	return affines(all, d2)
}

// affines divides by Z; all with one inversion.
func affines(points []point, d2 *field.Element) []affine {
	running := make([]field.Element, len(points)+1) // products of the Zs before each
	running[0].One()
	for i := range points {
		running[i+1].Multiply(&running[i], &points[i].z)
	}
	var rest field.Element
	rest.Invert(&running[len(points)])
	out := make([]affine, len(points))
	for i := len(points) - 1; i >= 0; i-- {
		var inv, x, y field.Element
		inv.Multiply(&rest, &running[i])
		rest.Multiply(&rest, &points[i].z)
		x.Multiply(&points[i].x, &inv)
		y.Multiply(&points[i].y, &inv)
		out[i].plus.Add(&y, &x)
		out[i].minus.Subtract(&y, &x)
		out[i].t2d.Multiply(&x, &y)
		out[i].t2d.Multiply(&out[i].t2d, d2)
	}
	return out
}

// pick reads row[|digit|-1], negated if digit is negative, and the neutral point for 0. It reads all of the row and has no
// branch that depends on the digit.
func (a *affine) pick(row *[16]entry, digit int8) {
	sign := uint64(int64(digit) >> 63)
	index := uint64((int64(digit) ^ int64(sign)) - int64(sign))
	none := isZero(index)
	var w entry
	w[0], w[4] = none&1, none&1
	for j := range row {
		m, e := isZero(uint64(j+1)^index), &row[j]
		w[0] |= m & e[0]
		w[1] |= m & e[1]
		w[2] |= m & e[2]
		w[3] |= m & e[3]
		w[4] |= m & e[4]
		w[5] |= m & e[5]
	}
	for j := range row {
		m, e := isZero(uint64(j+1)^index), &row[j]
		w[6] |= m & e[6]
		w[7] |= m & e[7]
		w[8] |= m & e[8]
		w[9] |= m & e[9]
		w[10] |= m & e[10]
		w[11] |= m & e[11]
	}
	for k := range 4 {
		swap := sign & (w[k] ^ w[4+k])
		w[k] ^= swap
		w[4+k] ^= swap
	}
	var b [96]byte
	for k := range w {
		binary.LittleEndian.PutUint64(b[8*k:], w[k])
	}
	set(&a.plus, b[:32])
	set(&a.minus, b[32:64])
	set(&a.t2d, b[64:])
	var negated field.Element
	negated.Negate(&a.t2d)
	a.t2d.Select(&negated, &a.t2d, int(sign&1))
}

func set(e *field.Element, b []byte) {
	if _, err := e.SetBytes(b); err != nil {
		panic("curve: 32 bytes: " + err.Error())
	}
}

// isZero is all ones for 0 and 0 for what is less than 2^63.
func isZero(n uint64) uint64 { return uint64(int64(n-1) >> 63) }

// scalarBase sets p to scalar times the base point; scalar is little-endian and below 2^255.
func (p *point) scalarBase(scalar *[32]byte) {
	t := theTables()
	var digits radix32
	digits.set(scalar)
	var a affine
	p.zero()
	for i := 1; i < len(digits); i += 2 {
		a.pick(&t.base[i/2], digits[i])
		p.addAffine(&a, false, true)
	}
	for i := range 5 {
		p.double(p, i == 4)
	}
	for i := 0; i < len(digits); i += 2 {
		a.pick(&t.base[i/2], digits[i])
		p.addAffine(&a, false, true)
	}
}
