// Package curve is Ed25519 (RFC 8032) and X25519 (RFC 7748) for those who do many of them: signatures checked in batches
// or under a key that is looked at once, public keys and signatures from a table of the base point. The field's arithmetic
// is filippo.io/edwards25519/field, the Diffie-Hellman ladder circl's; it has no other curve and no key exchange of its own.
//
// All ways to verify accept the same signatures, whoever made them (see Verify).
package curve
