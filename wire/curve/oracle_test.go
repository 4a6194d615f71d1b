package curve_test

import (
	"crypto/sha512"

	"filippo.io/edwards25519"
)

// challengeOf is k of RFC 8032 §5.1.7.
func challengeOf(r, public, message []byte) *edwards25519.Scalar {
	h := sha512.New()
	h.Write(r)
	h.Write(public)
	h.Write(message)
	k, _ := new(edwards25519.Scalar).SetUniformBytes(h.Sum(nil))
	return k
}

// privateOf is the scalar of a seed.
func privateOf(seed []byte) *edwards25519.Scalar {
	h := sha512.Sum512(seed)
	s, _ := new(edwards25519.Scalar).SetBytesWithClamping(h[:32])
	return s
}
