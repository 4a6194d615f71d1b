package mls

import "slices"

// Signatures that are verified later, together, and keys that are met again.

// A claim is a signature whose verification was put off.
type claim struct {
	public, signature []byte
	from, to          int               // its SignContent in the arena
	then              func(error) error // what its verification means
}

// A docket collects claims, if the seam can verify them together.
type docket struct {
	ring   *keyring
	open   bool
	claims []claim
	arena  []byte
}

// collect puts off the verification of what is checked from now on, until settle.
func (d *docket) collect(s *suite) { d.open = s.fast != nil && s.ed }

// check verifies a signature, or puts that off. then is given what came of it and says what the outcome is.
func (d *docket) check(s *suite, public []byte, label string, content, signature []byte, then func(error) error) error {
	from := len(d.arena)
	d.arena = appendSignContent(slices.Grow(d.arena, len(content)+48), label, content)
	if d.open {
		d.claims = append(d.claims, claim{public: public, signature: signature, from: from, to: len(d.arena), then: then})
		return nil
	}
	signed := d.arena[from:]
	d.arena = d.arena[:from]
	return then(d.ring.verify(s, public, signed, signature))
}

// settle verifies what was collected. When all are good together, each is; else the first that is bad alone is what is wrong.
func (d *docket) settle(s *suite) error {
	claims := d.claims
	d.open, d.claims = false, nil
	together := len(claims) > 1
	if together {
		batch := s.fast.batch()
		for _, c := range claims {
			batch.Add(c.public, d.arena[c.from:c.to], c.signature)
		}
		together = batch.Verify()
	}
	for _, c := range claims {
		var err error
		if !together {
			err = d.ring.verify(s, c.public, d.arena[c.from:c.to], c.signature)
		}
		if err := c.then(err); err != nil {
			return err
		}
	}
	return nil
}

// maxKeyring bounds the keys that are kept expanded, at 2.5 KiB each.
const maxKeyring = 256

// A keyring keeps the signature keys that were met before, and from their second use on their multiples too. A nil
// keyring keeps nothing.
type keyring struct {
	met      map[string]edKey // nil values were met once
	expanded int
}

// verify verifies the signature of an encoded SignContent.
func (k *keyring) verify(s *suite, public, data, signature []byte) error {
	if k == nil || s.fast == nil || !s.ed {
		return s.verifyContent(public, data, signature)
	}
	key, known := k.met[string(public)]
	if key == nil {
		if !known || k.expanded >= maxKeyring {
			err := s.verifyContent(public, data, signature)
			if err == nil && !known {
				k.keep(public, nil)
			}
			return err
		}
		if err := s.checkSignatureKey(public); err != nil {
			return err
		}
		var ok bool
		if key, ok = s.fast.expand(public); !ok {
			return refuse(ErrKey, "an Ed25519 public key that is no point")
		}
		k.keep(public, key)
	}
	if !key.Verify(data, signature) {
		return refuse(ErrSignature, "Ed25519")
	}
	return nil
}

// keep remembers a key that has signed something good. When the ring is full of keys that were met once, they go.
func (k *keyring) keep(public []byte, key edKey) {
	if k.met == nil || len(k.met) >= 16*maxKeyring {
		k.met, k.expanded = make(map[string]edKey), 0
	}
	if key != nil {
		k.expanded++
	}
	k.met[string(public)] = key
}
