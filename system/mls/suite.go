package mls

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"fmt"
	"hash"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"
)

// A Suite names a ciphersuite of RFC 9420 §17.1.
type Suite uint16

// The ciphersuites of this engine.
const (
	X25519AES128    Suite = 1 // MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519
	P256AES128      Suite = 2 // MLS_128_DHKEMP256_AES128GCM_SHA256_P256
	X25519ChaCha    Suite = 3 // MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519
	P521AES256      Suite = 5 // MLS_256_DHKEMP521_AES256GCM_SHA512_P521
	P384AES256      Suite = 7 // MLS_256_DHKEMP384_AES256GCM_SHA384_P384
	nonceSize             = 12
	maxHash               = 64
	maxKey                = 32
	stackMessage          = 512 // an HMAC's message up to this size needs no heap
	versionMLS10          = 1
	labelPrefix           = "MLS 1.0 "
	reuseGuardSize        = 4
	senderDataSize        = 12
	aeadOverheadGCM       = 16
)

// Suites lists the ciphersuites of this engine.
func Suites() []Suite {
	return []Suite{X25519AES128, P256AES128, X25519ChaCha, P521AES256, P384AES256}
}

type hashKind uint8

const (
	sha2x256 hashKind = iota
	sha2x384
	sha2x512
)

// A suite is the cryptography of one ciphersuite. It is read-only once made.
type suite struct {
	id     Suite
	kind   hashKind
	nh     int // size of a hash and of a KDF's output
	nk     int // size of an AEAD key
	block  int // of the hash
	curve  ecdh.Curve
	scalar int // size of a KEM private key
	chacha bool
	ed     bool   // X25519 and Ed25519; else ECDSA over the KEM's curve
	fast   curves // of the seam; nil for the standard library
	kemID  []byte
	hpkeID []byte
	mask   byte   // of a candidate scalar's first byte (RFC 9180 §7.1.3); 0 for X25519
	pskIDs []byte // the part of an HPKE key schedule's context that base mode fixes
	zero   []byte // an all-zero secret
}

func suiteOf(id Suite) (*suite, error) {
	s := &suite{id: id}
	var kem, kdf, aead byte
	switch id {
	case X25519AES128, X25519ChaCha:
		s.kind, s.curve, s.scalar, s.ed, s.fast = sha2x256, ecdh.X25519(), 32, true, ownCurves{}
		kem, kdf, aead = 0x20, 1, 1
	case P256AES128:
		s.kind, s.curve, s.scalar, s.mask = sha2x256, ecdh.P256(), 32, 0xff
		kem, kdf, aead = 0x10, 1, 1
	case P384AES256:
		s.kind, s.curve, s.scalar, s.mask = sha2x384, ecdh.P384(), 48, 0xff
		kem, kdf, aead = 0x11, 2, 2
	case P521AES256:
		s.kind, s.curve, s.scalar, s.mask = sha2x512, ecdh.P521(), 66, 0x01
		kem, kdf, aead = 0x12, 3, 2
	default:
		return nil, refuse(ErrSuite, "%d is none of %v", id, Suites())
	}
	switch s.kind {
	case sha2x256:
		s.nh, s.block, s.nk = 32, 64, 16
	case sha2x384:
		s.nh, s.block, s.nk = 48, 128, 32
	case sha2x512:
		s.nh, s.block, s.nk = 64, 128, 32
	}
	if id == X25519ChaCha {
		s.chacha, s.nk, aead = true, 32, 3
	}
	s.kemID = []byte{'K', 'E', 'M', 0, kem}
	s.hpkeID = []byte{'H', 'P', 'K', 'E', 0, kem, 0, kdf, 0, aead}
	s.zero = make([]byte, s.nh)
	s.pskIDs = make([]byte, 1+s.nh)
	s.labeledExtract(s.pskIDs[1:], s.hpkeID, nil, "psk_id_hash", nil)
	return s, nil
}

// sum writes the hash of data to out.
func (s *suite) sum(out, data []byte) {
	switch s.kind {
	case sha2x256:
		d := sha256.Sum256(data)
		copy(out, d[:])
	case sha2x384:
		d := sha512.Sum384(data)
		copy(out, d[:])
	case sha2x512:
		d := sha512.Sum512(data)
		copy(out, d[:])
	}
}

func (s *suite) digest(data []byte) []byte {
	out := make([]byte, s.nh)
	s.sum(out, data)
	return out
}

func (s *suite) newHash() hash.Hash {
	switch s.kind {
	case sha2x384:
		return sha512.New384()
	case sha2x512:
		return sha512.New()
	}
	return sha256.New()
}

// mac writes HMAC(key, a || b) to out. Short messages, which are all but a few, are hashed from the stack.
func (s *suite) mac(out, key, a, b []byte) {
	if len(key) > s.block || len(a)+len(b) > stackMessage {
		// Copies, because what goes through an interface is on the heap, and with it every caller's buffer.
		h := hmac.New(s.newHash, bytes.Clone(key))
		h.Write(slices.Concat(a, b))
		copy(out, h.Sum(nil))
		return
	}
	var inner [128 + stackMessage]byte
	var outer [128 + maxHash]byte
	copy(inner[:], key)
	copy(outer[:], key)
	for i := range inner[:s.block] {
		inner[i] ^= 0x36
		outer[i] ^= 0x5c
	}
	n := s.block + copy(inner[s.block:], a)
	n += copy(inner[n:], b)
	s.sum(outer[s.block:], inner[:n])
	s.sum(out, outer[:s.block+s.nh])
}

// tag is MAC(key, data) of §5.1.
func (s *suite) tag(key, data []byte) []byte {
	out := make([]byte, s.nh)
	s.mac(out, key, data, nil)
	return out
}

func (s *suite) extract(salt, ikm []byte) []byte {
	out := make([]byte, s.nh)
	s.mac(out, salt, ikm, nil)
	return out
}

// expand is HKDF-Expand into out.
func (s *suite) expand(out, prk, info []byte) {
	var block [maxHash]byte
	var tail [stackMessage]byte
	for i, done := 1, 0; done < len(out); i++ {
		t := tail[:0]
		if i > 1 {
			t = append(t, block[:s.nh]...)
		}
		t = append(append(t, info...), byte(i))
		s.mac(block[:s.nh], prk, t, nil)
		done += copy(out[done:], block[:s.nh])
	}
}

// expandLabel is ExpandWithLabel of §8 into out.
func (s *suite) expandLabel(out, secret []byte, label string, context []byte) {
	var buf [stackMessage]byte
	info := appendU16(buf[:0], uint16(len(out)))
	info = appendLength(info, len(labelPrefix)+len(label))
	info = append(append(info, labelPrefix...), label...)
	info = appendVector(info, context)
	s.expand(out, secret, info)
}

func (s *suite) expandWithLabel(secret []byte, label string, context []byte, n int) []byte {
	out := make([]byte, n)
	s.expandLabel(out, secret, label, context)
	return out
}

func (s *suite) deriveSecret(secret []byte, label string) []byte {
	return s.expandWithLabel(secret, label, nil, s.nh)
}

// treeSecret is DeriveTreeSecret of §9 into out.
func (s *suite) treeSecret(out, secret []byte, label string, generation uint32) {
	context := [4]byte{byte(generation >> 24), byte(generation >> 16), byte(generation >> 8), byte(generation)}
	s.expandLabel(out, secret, label, context[:])
}

// refHash is RefHash of §5.2.
func (s *suite) refHash(label string, value []byte) []byte {
	buf := appendVector(make([]byte, 0, len(value)+64), label)
	return s.digest(appendVector(buf, value))
}

func (s *suite) aead(key []byte) (cipher.AEAD, error) {
	if s.chacha {
		return chacha20poly1305.New(key)
	}
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(b)
}

func equal(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

// String names the suite as IANA does.
func (s Suite) String() string {
	switch s {
	case X25519AES128:
		return "MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519"
	case P256AES128:
		return "MLS_128_DHKEMP256_AES128GCM_SHA256_P256"
	case X25519ChaCha:
		return "MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519"
	case P521AES256:
		return "MLS_256_DHKEMP521_AES256GCM_SHA512_P521"
	case P384AES256:
		return "MLS_256_DHKEMP384_AES256GCM_SHA384_P384"
	}
	return fmt.Sprintf("ciphersuite %d", uint16(s))
}
