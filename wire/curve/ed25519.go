package curve

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"errors"

	"filippo.io/edwards25519"
)

// Sizes in bytes.
const (
	SeedSize      = 32
	PublicSize    = 32
	SignatureSize = 64
)

// A Signer is an Ed25519 private key, expanded once.
type Signer struct {
	scalar edwards25519.Scalar
	prefix [32]byte
	public [PublicSize]byte
}

// NewSigner expands a seed of 32 bytes.
func NewSigner(seed []byte) (*Signer, error) {
	if len(seed) != SeedSize {
		return nil, errors.New("curve: an Ed25519 seed is 32 bytes")
	}
	h := sha512.Sum512(seed)
	s := &Signer{prefix: [32]byte(h[32:])}
	if _, err := s.scalar.SetBytesWithClamping(h[:32]); err != nil {
		return nil, err
	}
	var p point
	p.scalarBase((*[32]byte)(s.scalar.Bytes()))
	s.public = p.encode()
	return s, nil
}

// Public returns the public key.
func (s *Signer) Public() []byte { return bytes.Clone(s.public[:]) }

// Sign appends the signature of message, which is the one that crypto/ed25519 makes.
func (s *Signer) Sign(dst, message []byte) []byte {
	var digest [64]byte
	h := sha512.New()
	h.Write(s.prefix[:])
	h.Write(message)
	var r, k, sum edwards25519.Scalar
	uniform(&r, h.Sum(digest[:0]))
	var p point
	p.scalarBase((*[32]byte)(r.Bytes()))
	encoded := p.encode()
	h.Reset()
	h.Write(encoded[:])
	h.Write(s.public[:])
	h.Write(message)
	uniform(&k, h.Sum(digest[:0]))
	sum.MultiplyAdd(&k, &s.scalar, &r)
	return append(append(dst, encoded[:]...), sum.Bytes()...)
}

// uniform reduces 64 bytes.
func uniform(s *edwards25519.Scalar, digest []byte) {
	if _, err := s.SetUniformBytes(digest); err != nil {
		panic("curve: a hash of 64 bytes: " + err.Error())
	}
}

// Verify says whether a signature is good. Good is the same for every way to verify that this package has: A and R are
// encoded in the only canonical way and are not of small order, S is less than the group's order, and
// 8 S B = 8 R + 8 k A, which is the equation of RFC 8032 §5.1.7. A signature that satisfies the equation without the 8, as
// all honest ones do, satisfies this one; only who has a key or makes an R with a part of small order could tell the two
// apart, and a batch can check no more than this one.
func Verify(public, message, signature []byte) bool {
	if !wellFormed(public, signature) {
		return false
	}
	return ed25519.Verify(public, message, signature) || cofactored(public, message, signature)
}

// wellFormed checks the encodings of A and R.
func wellFormed(public, signature []byte) bool {
	return len(public) == PublicSize && len(signature) == SignatureSize && honest(public) && honest(signature[:32])
}

// honest says whether 32 bytes can be a point of large order in its canonical encoding; it need not be on the curve.
func honest(data []byte) bool {
	if SmallOrder(data) {
		return false
	}
	// y must be below p = 2^255 - 19.
	if data[31]&0x7f != 0x7f || data[0] < 0xed {
		return true
	}
	for _, b := range data[1:31] {
		if b != 0xff {
			return true
		}
	}
	return false
}

// challenge is k of RFC 8032 §5.1.7.
func challenge(k *edwards25519.Scalar, public, message, signature []byte) {
	var digest [64]byte
	h := sha512.New()
	h.Write(signature[:32])
	h.Write(public)
	h.Write(message)
	uniform(k, h.Sum(digest[:0]))
}

// cofactored checks the equation with the 8. Honest signatures never come here.
func cofactored(public, message, signature []byte) bool {
	var b Batch
	b.Add(public, message, signature)
	return !b.bad && sum(b.terms)
}

// The encodings of points of order eight, little-endian: two u of curve25519, two y of edwards25519.
const (
	montgomeryEightA = "\xe0\xeb\x7a\x7c\x3b\x41\xb8\xae\x16\x56\xe3\xfa\xf1\x9f\xc4\x6a\xda\x09\x8d\xeb\x9c\x32\xb1\xfd\x86\x62\x05\x16\x5f\x49\xb8\x00"
	montgomeryEightB = "\x5f\x9c\x95\xbc\xa3\x50\x8c\x24\xb1\xd0\xb1\x55\x9c\x83\xef\x5b\x04\x44\x5c\xc4\x58\x1c\x8e\x86\xd8\x22\x4e\xdd\xd0\x9f\x11\x57"
	edwardsEightA    = "\x26\xe8\x95\x8f\xc2\xb2\x27\xb0\x45\xc3\xf4\x89\xf2\xef\x98\xf0\xd5\xdf\xac\x05\xd3\xc6\x33\x39\xb1\x38\x02\x88\x6d\x53\xfc\x05"
	edwardsEightB    = "\xc7\x17\x6a\x70\x3d\x4d\xd8\x4f\xba\x3c\x0b\x76\x0d\x10\x67\x0f\x2a\x20\x53\xfa\x2c\x39\xcc\xc6\x4e\xc7\xfd\x77\x92\xac\x03\x7a"
)

// SmallOrder says whether 32 bytes are a small-order point of curve25519, or the y of one of edwards25519, whatever the
// top bit: both sets have the encodings 0, 1, p-1, p and p+1, and two of order eight each.
func SmallOrder(data []byte) bool {
	if len(data) != 32 {
		return false
	}
	y := [32]byte(data)
	y[31] &= 0x7f
	switch string(y[:]) {
	case montgomeryEightA, montgomeryEightB, edwardsEightA, edwardsEightB:
		return true
	}
	middle := y[1]
	for _, b := range y[1:31] {
		if b != middle {
			return false
		}
	}
	return middle == 0 && y[31] == 0 && y[0] <= 1 || middle == 0xff && y[31] == 0x7f && y[0] >= 0xec && y[0] <= 0xee
}
