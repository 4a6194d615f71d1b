//go:build voi

package system

import (
	"crypto"
	"crypto/ed25519"
	"io"

	voi "github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
)

// fastSigner signs with curve25519-voi, which uses AVX2. It gives the bytes that the standard library gives.
func fastSigner(seed []byte) (crypto.Signer, bool) {
	return voiSigner{voi.NewKeyFromSeed(seed)}, true
}

type voiSigner struct{ key voi.PrivateKey }

// Public is the key in the standard library's type.
func (s voiSigner) Public() crypto.PublicKey {
	return ed25519.PublicKey(s.key.Public().(voi.PublicKey))
}

// Sign signs a message.
func (s voiSigner) Sign(_ io.Reader, message []byte, _ crypto.SignerOpts) ([]byte, error) {
	return voi.Sign(s.key, message), nil
}
