// Package mls is a group key agreement engine: RFC 9420, complete, without a transport. A group lives in memory, and in a
// Store if it is given one (Persist, Restore).
//
// A Group is one member's view of one group. It has one writer: its methods must not be called at the same time. What
// changes the group is staged first: Commit and Open return a Staged that leaves the live epoch untouched until Accept, so
// that a lost race, a rollback and the echo of one's own commit are all the same step, Discard.
//
// Every refusal is one of the Err values of this package, found with errors.Is, and leaves the group as it was.
//
// Ciphersuites 1, 2, 3, 5 and 7 are there; 4 and 6 (X448, Ed448) are refused with ErrSuite. The cryptography is the
// standard library's, but for curve25519, which has a Seam; all of it is called from suite.go, kem.go, hpke.go, sign.go and
// seam.go.
package mls
