package mls

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"

	"toll/wire/curve"
)

// A signer holds a signature private key of one suite.
type signer struct {
	ed     ed25519.PrivateKey
	fast   edSigner // of the seam; nil for the standard library
	ec     *ecdsa.PrivateKey
	public []byte // as it stands in a leaf node
}

func (s *suite) signatureCurve() elliptic.Curve {
	switch s.kind {
	case sha2x384:
		return elliptic.P384()
	case sha2x512:
		return elliptic.P521()
	}
	return elliptic.P256()
}

func (s *suite) generateSigner() (*signer, error) {
	if s.ed {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		k := &signer{ed: private, public: public}
		return k, s.speed(k)
	}
	key, err := ecdsa.GenerateKey(s.signatureCurve(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return newECDSA(key)
}

func newECDSA(key *ecdsa.PrivateKey) (*signer, error) {
	public, err := key.PublicKey.Bytes()
	return &signer{ec: key, public: public}, err
}

// parseSigner decodes a private key: an Ed25519 seed or key, or a big-endian scalar.
func (s *suite) parseSigner(data []byte) (*signer, error) {
	if s.ed {
		if len(data) < ed25519.SeedSize {
			return nil, refuse(ErrKey, "an Ed25519 private key of %d bytes", len(data))
		}
		private := ed25519.NewKeyFromSeed(data[:ed25519.SeedSize])
		k := &signer{ed: private, public: private.Public().(ed25519.PublicKey)}
		return k, s.speed(k)
	}
	padded := make([]byte, s.scalar)
	if len(data) > len(padded) {
		return nil, refuse(ErrKey, "a private key of %d bytes", len(data))
	}
	copy(padded[len(padded)-len(data):], data)
	key, err := ecdsa.ParseRawPrivateKey(s.signatureCurve(), padded)
	if err != nil {
		return nil, refuseFor(ErrKey, err, "an ECDSA private key")
	}
	return newECDSA(key)
}

// speed prepares a signer for the suite's seam.
func (s *suite) speed(k *signer) (err error) {
	if k.fast = nil; s.fast != nil && k.ed != nil {
		k.fast, err = s.fast.signer(k.ed.Seed())
	}
	return err
}

// bytes is what parseSigner reads.
func (k *signer) bytes() ([]byte, error) {
	if k.ed != nil {
		return k.ed.Seed(), nil
	}
	return k.ec.Bytes()
}

// appendSignContent appends SignContent of §5.1.2 around content.
func appendSignContent(dst []byte, label string, content []byte) []byte {
	dst = appendLength(dst, len(labelPrefix)+len(label))
	dst = append(append(dst, labelPrefix...), label...)
	return appendVector(dst, content)
}

// sign is SignWithLabel.
func (s *suite) sign(k *signer, label string, content []byte) ([]byte, error) {
	return s.signContent(k, appendSignContent(make([]byte, 0, len(content)+48), label, content))
}

// signContent signs an encoded SignContent.
func (s *suite) signContent(k *signer, data []byte) ([]byte, error) {
	if k.fast != nil {
		return k.fast.Sign(make([]byte, 0, ed25519.SignatureSize), data), nil
	}
	if s.ed {
		return ed25519.Sign(k.ed, data), nil
	}
	sig, err := k.ec.Sign(rand.Reader, s.digest(data), s.cryptoHash())
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return sig, nil
}

func (s *suite) cryptoHash() crypto.Hash {
	switch s.kind {
	case sha2x384:
		return crypto.SHA384
	case sha2x512:
		return crypto.SHA512
	}
	return crypto.SHA256
}

// checkSignatureKey refuses a public key that no honest party has.
func (s *suite) checkSignatureKey(public []byte) error {
	if s.ed {
		if len(public) != ed25519.PublicKeySize || curve.SmallOrder(public) {
			return refuse(ErrKey, "an Ed25519 public key of %d bytes or small order", len(public))
		}
		return nil
	}
	if _, err := ecdsa.ParseUncompressedPublicKey(s.signatureCurve(), public); err != nil {
		return refuseFor(ErrKey, err, "an ECDSA public key")
	}
	return nil
}

// verify is VerifyWithLabel.
func (s *suite) verify(public []byte, label string, content, signature []byte) error {
	return s.verifyContent(public, appendSignContent(make([]byte, 0, len(content)+48), label, content), signature)
}

// verifyContent verifies the signature of an encoded SignContent.
func (s *suite) verifyContent(public, data, signature []byte) error {
	if s.ed {
		if err := s.checkSignatureKey(public); err != nil {
			return err
		}
		if !curve.Verify(public, data, signature) {
			return refuse(ErrSignature, "Ed25519")
		}
		return nil
	}
	key, err := ecdsa.ParseUncompressedPublicKey(s.signatureCurve(), public)
	if err != nil {
		return refuseFor(ErrKey, err, "an ECDSA public key")
	}
	if !ecdsa.VerifyASN1(key, s.digest(data), signature) {
		return refuse(ErrSignature, "ECDSA")
	}
	return nil
}
