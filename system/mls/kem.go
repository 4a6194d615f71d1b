package mls

import (
	"crypto/ecdh"
	"crypto/rand"

	"toll/wire/curve"
)

// The KEMs' keys, RFC 9180 §7.1. X25519 keys are bytes, so that each seam can work with those of the other; the rest are
// the standard library's.

const x25519Size = 32

// A privateKey is a KEM private key with its public key.
type privateKey struct {
	std    *ecdh.PrivateKey // nil for X25519 that a faster seam made
	scalar [x25519Size]byte // of X25519
	public []byte
}

// Bytes encodes the private key.
func (k *privateKey) Bytes() []byte {
	if k.std != nil {
		return k.std.Bytes()
	}
	out := k.scalar
	return out[:]
}

// A publicKey is a KEM public key that was checked.
type publicKey struct {
	std *ecdh.PublicKey // nil for X25519
	raw []byte
}

func (s *suite) generateKeyPair() (*privateKey, error) {
	if s.ed {
		k := new(privateKey)
		rand.Read(k.scalar[:])
		return k, s.publish(k)
	}
	std, err := s.curve.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return &privateKey{std: std, public: std.PublicKey().Bytes()}, nil
}

// publish works out the public key of an X25519 private key.
func (s *suite) publish(k *privateKey) error {
	if s.fast != nil {
		u := s.fast.base(&k.scalar)
		k.public = u[:]
		return nil
	}
	std, err := s.curve.NewPrivateKey(k.scalar[:])
	if err == nil {
		k.std, k.public = std, std.PublicKey().Bytes()
	}
	return err
}

// privateKey decodes a KEM private key; leading zeros of a scalar may be missing.
func (s *suite) privateKey(data []byte) (*privateKey, error) {
	if s.ed {
		if len(data) != x25519Size {
			return nil, refuse(ErrKey, "an X25519 private key of %d bytes", len(data))
		}
		k := &privateKey{scalar: [x25519Size]byte(data)}
		return k, s.publish(k)
	}
	if n := s.scalar - len(data); n > 0 {
		data = append(make([]byte, n), data...)
	}
	std, err := s.curve.NewPrivateKey(data)
	if err != nil {
		return nil, err
	}
	return &privateKey{std: std, public: std.PublicKey().Bytes()}, nil
}

// publicKey decodes a KEM public key and refuses one that no honest party has.
func (s *suite) publicKey(data []byte) (publicKey, error) {
	if s.ed {
		if err := checkX25519(data); err != nil {
			return publicKey{}, err
		}
		return publicKey{raw: data}, nil
	}
	key, err := s.curve.NewPublicKey(data)
	if err != nil {
		return publicKey{}, refuseFor(ErrKey, err, "an HPKE public key of %d bytes", len(data))
	}
	return publicKey{std: key, raw: data}, nil
}

func checkX25519(data []byte) error {
	if len(data) != x25519Size || curve.SmallOrder(data) {
		return refuse(ErrKey, "an X25519 public key of %d bytes, or of small order", len(data))
	}
	return nil
}

// agree writes the Diffie-Hellman result of two keys to out and returns it.
func (s *suite) agree(out *[maxShared]byte, k *privateKey, peer publicKey) ([]byte, error) {
	if s.ed && s.fast != nil {
		raw := [x25519Size]byte(peer.raw)
		if !curve.Shared((*[x25519Size]byte)(out[:]), &k.scalar, &raw) {
			return nil, refuse(ErrKey, "an X25519 result of zero")
		}
		return out[:x25519Size], nil
	}
	private, public := k.std, peer.std
	var err error
	if private == nil {
		if private, err = s.curve.NewPrivateKey(k.scalar[:]); err != nil {
			return nil, err
		}
	}
	if public == nil {
		if public, err = s.curve.NewPublicKey(peer.raw); err != nil {
			return nil, err
		}
	}
	dh, err := private.ECDH(public)
	return append(out[:0], dh...), err
}

// maxShared and maxPublic are the sizes of a Diffie-Hellman result and a public key on the largest curve.
const (
	maxShared = 66
	maxPublic = 2*maxShared + 1
)
