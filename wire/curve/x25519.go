package curve

import "github.com/cloudflare/circl/dh/x25519"

// Base returns the X25519 public key of a private key (RFC 7748 §6.1), from the table of the base point.
func Base(private *[32]byte) [32]byte {
	clamped := *private
	clamped[0] &= 248
	clamped[31] = clamped[31]&127 | 64
	var p point
	p.scalarBase(&clamped)
	clear(clamped[:])
	return p.montgomery()
}

// Shared writes what a private key and another's public key have in common. It is false when that is zero, which is when
// the public key is of small order.
func Shared(out, private, public *[32]byte) bool {
	return x25519.Shared((*x25519.Key)(out), (*x25519.Key)(private), (*x25519.Key)(public))
}
