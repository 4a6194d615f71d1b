package system

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"errors"
)

// A standardFloor is the standard library: crypto/hpke, crypto/hkdf, crypto/ed25519.
type standardFloor struct {
	key       ed25519.PrivateKey
	public    ed25519.PublicKey
	kem       hpke.KEM
	recipient hpke.PrivateKey
	text      []byte
	signature map[int][]byte // of text[:n], by n
	sealed    []byte
	sum       byte
}

func newStandardFloor(text []byte, c groupCase) (*standardFloor, error) {
	f := &standardFloor{kem: hpke.DHKEM(ecdh.X25519()), text: text, signature: make(map[int][]byte)}
	var err error
	if f.public, f.key, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return nil, err
	}
	if f.recipient, err = f.kem.GenerateKey(); err != nil {
		return nil, err
	}
	f.sealed, err = hpke.Seal(f.recipient.PublicKey(), hpke.HKDFSHA256(), hpke.AES128GCM(), text[:floorContext], text[:floorSecret])
	for _, n := range []int{floorLeaf, floorPackage, floorMessage + floorSignedHead, c.commitSize(), floorTree(c.members)} {
		f.signature[n] = ed25519.Sign(f.key, text[:n])
	}
	return f, err
}

func (f *standardFloor) generate() error {
	_, err := f.kem.GenerateKey()
	return err
}

func (f *standardFloor) path(nodes int) error {
	for range nodes {
		if err := f.expand(pathNodeLabels); err != nil {
			return err
		}
		if _, err := f.kem.DeriveKeyPair(f.text[:32]); err != nil {
			return err
		}
	}
	return nil
}

func (f *standardFloor) sign(size int) { f.sum ^= ed25519.Sign(f.key, f.text[:size])[0] }

func (f *standardFloor) verify(times, size int) error {
	for range times {
		if !ed25519.Verify(f.public, f.text[:size], f.signature[size]) {
			return errors.New("a signature of the floor does not verify")
		}
	}
	return nil
}

func (f *standardFloor) packages(n int) error {
	return errors.Join(f.verify(n, floorLeaf), f.verify(n, floorPackage))
}

func (f *standardFloor) members(n, info int) error {
	return errors.Join(f.verify(1, info), f.verify(n, floorLeaf))
}

func (f *standardFloor) known(sizes ...int) error {
	for _, n := range sizes {
		if err := f.verify(1, n); err != nil {
			return err
		}
	}
	return nil
}

func (f *standardFloor) seal(times, info int) error {
	for range times {
		if _, err := hpke.Seal(f.recipient.PublicKey(), hpke.HKDFSHA256(), hpke.AES128GCM(), f.text[:info], f.text[:floorSecret]); err != nil {
			return err
		}
	}
	return nil
}

func (f *standardFloor) open() error {
	_, err := hpke.Open(f.recipient, hpke.HKDFSHA256(), hpke.AES128GCM(), f.text[:floorContext], f.sealed)
	return err
}

func (f *standardFloor) expand(times int) error {
	for range times {
		out, err := hkdf.Expand(sha256.New, f.text[:32], string(f.text[:floorInfo]), 32)
		if err != nil {
			return err
		}
		f.sum ^= out[0]
	}
	return nil
}

func (f *standardFloor) extract(times int) error {
	for range times {
		out, err := hkdf.Extract(sha256.New, f.text[:32], f.text[32:64])
		if err != nil {
			return err
		}
		f.sum ^= out[0]
	}
	return nil
}
