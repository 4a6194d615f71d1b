package curve

import "filippo.io/edwards25519/field"

// A point of edwards25519 in extended coordinates: x = X/Z, y = Y/Z, xy = T/Z.
type point struct{ x, y, z, t field.Element }

// A cached point is a point prepared to be added.
type cached struct{ plus, minus, z2, t2d field.Element } // Y+X, Y-X, 2Z, 2dT

// An affine point is a cached one with Z = 1.
type affine struct{ plus, minus, t2d field.Element }

// d2 is twice the curve's constant d = -121665/121666.
func d2() *field.Element {
	d := curveD()
	return d.Add(d, d)
}

// curveD is d, from its little-endian encoding.
func curveD() *field.Element {
	d, err := new(field.Element).SetBytes([]byte("\xa3\x78\x59\x13\xca\x4d\xeb\x75\xab\xd8\x41\x41\x4d\x0a\x70\x00\x98\xe8\x79\x77\x79\x40\xc7\x8c\x73\xfe\x6f\x2b\xee\x6c\x03\x52"))
	if err != nil {
		panic("curve: d is 32 bytes: " + err.Error())
	}
	return d
}

func (p *point) zero() *point {
	p.x.Zero()
	p.y.One()
	p.z.One()
	p.t.Zero()
	return p
}

// double sets p to 2q ("dbl-2008-hwcd", Hisil, Wong, Carter, Dawson 2008). T is made only when an addition follows.
func (p *point) double(q *point, withT bool) {
	var a, b, c, e, f, g, h field.Element
	a.Square(&q.x)
	b.Square(&q.y)
	c.Square(&q.z)
	c.Add(&c, &c)
	e.Add(&q.x, &q.y)
	e.Square(&e)
	h.Add(&a, &b)
	e.Subtract(&h, &e)
	g.Subtract(&a, &b)
	f.Add(&c, &g)
	p.x.Multiply(&e, &f)
	p.y.Multiply(&g, &h)
	p.z.Multiply(&f, &g)
	if withT {
		p.t.Multiply(&e, &h)
	}
}

// add sets p to p + q, or to p - q ("add-2008-hwcd-3").
func (p *point) add(q *cached, negative, withT bool) {
	var d field.Element
	d.Multiply(&p.z, &q.z2)
	p.sum(&q.plus, &q.minus, &q.t2d, &d, negative, withT)
}

// addAffine is add for an affine point ("madd-2008-hwcd-3").
func (p *point) addAffine(q *affine, negative, withT bool) {
	var d field.Element
	d.Add(&p.z, &p.z)
	p.sum(&q.plus, &q.minus, &q.t2d, &d, negative, withT)
}

// sum is what both additions share: of the other point y + x, y - x and 2dt, and as d twice the product of both z.
func (p *point) sum(plus, minus, t2d, d *field.Element, negative, withT bool) {
	if negative {
		plus, minus = minus, plus
	}
	var a, b, c, e, f, g, h field.Element
	a.Subtract(&p.y, &p.x)
	a.Multiply(&a, minus)
	b.Add(&p.y, &p.x)
	b.Multiply(&b, plus)
	c.Multiply(&p.t, t2d)
	e.Subtract(&b, &a)
	h.Add(&b, &a)
	f.Subtract(d, &c)
	g.Add(d, &c)
	if negative {
		f, g = g, f
	}
	p.x.Multiply(&e, &f)
	p.y.Multiply(&g, &h)
	p.z.Multiply(&f, &g)
	if withT {
		p.t.Multiply(&e, &h)
	}
}

func (c *cached) set(p *point, d2 *field.Element) {
	c.plus.Add(&p.y, &p.x)
	c.minus.Subtract(&p.y, &p.x)
	c.z2.Add(&p.z, &p.z)
	c.t2d.Multiply(&p.t, d2)
}

// identity says whether p is the neutral point.
func (p *point) identity() bool {
	return p.x.Equal(new(field.Element)) == 1 && p.y.Equal(&p.z) == 1
}

// encode is RFC 8032 §5.1.2.
func (p *point) encode() [32]byte {
	var inv, x, y field.Element
	inv.Invert(&p.z)
	x.Multiply(&p.x, &inv)
	y.Multiply(&p.y, &inv)
	out := [32]byte(y.Bytes())
	out[31] |= byte(x.IsNegative() << 7)
	return out
}

// montgomery returns the u of the same point on curve25519 (RFC 7748 §4.1).
func (p *point) montgomery() [32]byte {
	var n, d field.Element
	n.Add(&p.z, &p.y)
	d.Subtract(&p.z, &p.y)
	d.Invert(&d)
	return [32]byte(n.Multiply(&n, &d).Bytes())
}

// decode is RFC 8032 §5.1.3; data must be canonical.
func (p *point) decode(data []byte) bool {
	if _, err := p.y.SetBytes(data); err != nil {
		return false
	}
	var u, v, one field.Element
	one.One()
	u.Square(&p.y)
	v.Multiply(&u, curveD())
	u.Subtract(&u, &one)
	v.Add(&v, &one)
	if _, square := p.x.SqrtRatio(&u, &v); square == 0 {
		return false
	}
	if p.x.IsNegative() != int(data[31]>>7) {
		p.x.Negate(&p.x)
	}
	p.z.One()
	p.t.Multiply(&p.x, &p.y)
	return true
}

// multiples fills table with p, 3p, 5p, ...
func multiples(table []cached, p *point, d2 *field.Element) {
	var twice point
	var by cached
	twice.double(p, true)
	by.set(&twice, d2)
	table[0].set(p, d2)
	sum := *p
	for i := 1; i < len(table); i++ {
		sum.add(&by, false, true)
		table[i].set(&sum, d2)
	}
}
