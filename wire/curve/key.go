package curve

import (
	"bytes"

	"filippo.io/edwards25519"
)

// A Key is a public key whose multiples are kept, 2.5 KiB of them: from its second signature on it saves a third of the
// work. It may be used by many at a time.
type Key struct {
	public    [PublicSize]byte
	low, high [8]cached // odd multiples of A and of 2^128 A
}

// Expand makes the multiples of a public key. It is false for what Verify never accepts.
func Expand(public []byte) (*Key, bool) {
	var p point
	if len(public) != PublicSize || !honest(public) || !p.decode(public) {
		return nil, false
	}
	t := theTables()
	k := &Key{public: [PublicSize]byte(public)}
	multiples(k.low[:], &p, &t.d2)
	for i := range 128 {
		p.double(&p, i == 127)
	}
	multiples(k.high[:], &p, &t.d2)
	return k, true
}

// Public returns the key as it is encoded.
func (k *Key) Public() []byte { return bytes.Clone(k.public[:]) }

// Verify is the package's Verify under this key. It is for public data: its time depends on it.
func (k *Key) Verify(message, signature []byte) bool {
	if len(signature) != SignatureSize || !honest(signature[:32]) {
		return false
	}
	var s, h edwards25519.Scalar
	if _, err := s.SetCanonicalBytes(signature[32:]); err != nil {
		return false
	}
	challenge(&h, k.public[:], message, signature)
	p := k.commitment(s.Bytes(), h.Bytes())
	return p.encode() == [32]byte(signature) || cofactored(k.public[:], message, signature)
}

// commitment is S B - h A; both scalars are cut in halves, so that half of the doublings do.
func (k *Key) commitment(s, h []byte) *point {
	t := theTables()
	var sl, sh, hl, hh naf
	sl.set(s[:16], 8)
	sh.set(s[16:], 8)
	hl.set(h[:16], 5)
	hh.set(h[16:], 5)
	p := new(point).zero()
	for i := max(sl.size, sh.size, hl.size, hh.size) - 1; i >= 0; i-- {
		dsl, dsh, dhl, dhh := sl.digits[i], sh.digits[i], hl.digits[i], hh.digits[i]
		p.double(p, dsl|dsh|dhl|dhh != 0)
		if dhl != 0 {
			p.add(&k.low[magnitude(dhl)/2], dhl > 0, dhh|dsl|dsh != 0)
		}
		if dhh != 0 {
			p.add(&k.high[magnitude(dhh)/2], dhh > 0, dsl|dsh != 0)
		}
		if dsl != 0 {
			p.addAffine(&t.low[magnitude(dsl)/2], dsl < 0, dsh != 0)
		}
		if dsh != 0 {
			p.addAffine(&t.high[magnitude(dsh)/2], dsh < 0, false)
		}
	}
	return p
}

func magnitude(d int8) int {
	if d < 0 {
		return -int(d)
	}
	return int(d)
}
