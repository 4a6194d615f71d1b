//go:build voi

package mls

import (
	"crypto/rand"

	voi "github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
	"github.com/oasisprotocol/curve25519-voi/primitives/x25519"
)

// voiCurves is curve25519-voi, which uses AVX2. Its own rules of acceptance are turned to those of wire/curve.
func voiCurves() (curves, bool) { return voiSeam{}, true }

type voiSeam struct{}

// voiRules accept what curve.Verify does, once wellFormed has refused the encodings that nobody honest makes.
func voiRules() *voi.Options { return &voi.Options{Verify: &voi.VerifyOptions{}} }

func (voiSeam) signer(seed []byte) (edSigner, error) { return voiSigner(voi.NewKeyFromSeed(seed)), nil }

type voiSigner voi.PrivateKey

// Sign appends a signature.
func (k voiSigner) Sign(dst, message []byte) []byte {
	return append(dst, voi.Sign(voi.PrivateKey(k), message)...)
}

func (voiSeam) expand(public []byte) (edKey, bool) {
	k, err := voi.NewExpandedPublicKey(public)
	return voiKey{k}, err == nil
}

type voiKey struct{ *voi.ExpandedPublicKey }

// Verify verifies one signature.
func (k voiKey) Verify(message, signature []byte) bool {
	return voi.VerifyExpandedWithOptions(k.ExpandedPublicKey, message, signature, voiRules())
}

func (voiSeam) batch() edBatch { return &voiBatch{BatchVerifier: voi.NewBatchVerifier()} }

type voiBatch struct{ *voi.BatchVerifier }

// Add puts a signature in.
func (b *voiBatch) Add(public, message, signature []byte) {
	b.AddWithOptions(public, message, signature, voiRules())
}

// Verify says whether all are good.
func (b *voiBatch) Verify() bool { return b.VerifyBatchOnly(rand.Reader) }

func (voiSeam) base(private *[32]byte) (out [32]byte) {
	x25519.ScalarBaseMult(&out, private)
	return out
}
