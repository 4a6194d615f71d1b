package mls

import (
	"crypto/ecdh"
	"crypto/rand"
)

// HPKE base mode (RFC 9180) with the KEMs of this engine's suites. crypto/hpke is its oracle in the tests; this one makes
// a tenth of the allocations and can give out a key pair without encoding it.

// labeledExtract and labeledExpand are RFC 9180 §4; id is the KEM's or the suite's.
func (s *suite) labeledExtract(id, salt []byte, label string, ikm []byte) []byte {
	var buf [stackMessage]byte
	b := append(append(append(buf[:0], "HPKE-v1"...), id...), label...)
	out := make([]byte, s.nh)
	s.mac(out, salt, b, ikm)
	return out
}

func (s *suite) labeledExpand(out, id, prk []byte, label string, info []byte) {
	var buf [stackMessage]byte
	b := append(append(append(appendU16(buf[:0], uint16(len(out))), "HPKE-v1"...), id...), label...)
	s.expand(out, prk, append(b, info...))
}

// deriveKeyPair is DeriveKeyPair of RFC 9180 §7.1.3.
func (s *suite) deriveKeyPair(ikm []byte) (*ecdh.PrivateKey, error) {
	prk := s.labeledExtract(s.kemID, nil, "dkp_prk", ikm)
	var scalar [66]byte
	sk := scalar[:s.scalar]
	if s.mask == 0 {
		s.labeledExpand(sk, s.kemID, prk, "sk", nil)
		return s.curve.NewPrivateKey(sk)
	}
	for counter := range 256 {
		s.labeledExpand(sk, s.kemID, prk, "candidate", []byte{byte(counter)})
		sk[0] &= s.mask
		if key, err := s.curve.NewPrivateKey(sk); err == nil {
			return key, nil
		}
	}
	return nil, refuse(ErrKey, "no candidate of 256 is a scalar")
}

func (s *suite) generateKeyPair() (*ecdh.PrivateKey, error) { return s.curve.GenerateKey(rand.Reader) }

// privateKey decodes a KEM private key; leading zeros of a scalar may be missing.
func (s *suite) privateKey(data []byte) (*ecdh.PrivateKey, error) {
	if n := s.scalar - len(data); n > 0 && s.mask != 0 {
		data = append(make([]byte, n), data...)
	}
	return s.curve.NewPrivateKey(data)
}

// publicKey decodes a KEM public key and refuses one that no honest party has.
func (s *suite) publicKey(data []byte) (*ecdh.PublicKey, error) {
	if s.mask == 0 && smallOrder(data) {
		return nil, refuse(ErrKey, "an X25519 public key of small order")
	}
	key, err := s.curve.NewPublicKey(data)
	if err != nil {
		return nil, refuseFor(ErrKey, err, "an HPKE public key of %d bytes", len(data))
	}
	return key, nil
}

// The encodings of points of order eight, little-endian: two u of curve25519, two y of edwards25519.
const (
	montgomeryEightA = "\xe0\xeb\x7a\x7c\x3b\x41\xb8\xae\x16\x56\xe3\xfa\xf1\x9f\xc4\x6a\xda\x09\x8d\xeb\x9c\x32\xb1\xfd\x86\x62\x05\x16\x5f\x49\xb8\x00"
	montgomeryEightB = "\x5f\x9c\x95\xbc\xa3\x50\x8c\x24\xb1\xd0\xb1\x55\x9c\x83\xef\x5b\x04\x44\x5c\xc4\x58\x1c\x8e\x86\xd8\x22\x4e\xdd\xd0\x9f\x11\x57"
	edwardsEightA    = "\x26\xe8\x95\x8f\xc2\xb2\x27\xb0\x45\xc3\xf4\x89\xf2\xef\x98\xf0\xd5\xdf\xac\x05\xd3\xc6\x33\x39\xb1\x38\x02\x88\x6d\x53\xfc\x05"
	edwardsEightB    = "\xc7\x17\x6a\x70\x3d\x4d\xd8\x4f\xba\x3c\x0b\x76\x0d\x10\x67\x0f\x2a\x20\x53\xfa\x2c\x39\xcc\xc6\x4e\xc7\xfd\x77\x92\xac\x03\x7a"
)

// smallOrder says whether 32 bytes are a small-order point of curve25519, or the y of one of edwards25519, whatever the
// top bit: both sets have the encodings 0, 1, p-1, p and p+1, and two of order eight each.
func smallOrder(data []byte) bool {
	if len(data) != 32 {
		return false
	}
	y := [32]byte(data)
	y[31] &= 0x7f
	switch string(y[:]) {
	case montgomeryEightA, montgomeryEightB, edwardsEightA, edwardsEightB:
		return true
	}
	middle := y[1]
	for _, b := range y[1:31] {
		if b != middle {
			return false
		}
	}
	return middle == 0 && y[31] == 0 && y[0] <= 1 || middle == 0xff && y[31] == 0x7f && y[0] >= 0xec && y[0] <= 0xee
}

// An hpkeContext is what both sides of an HPKE exchange derive.
type hpkeContext struct {
	key, nonce, exporter [maxHash]byte
}

// shared derives the context from a Diffie-Hellman result (RFC 9180 §4.1, §5.1).
func (s *suite) shared(dh, enc, recipient, info []byte) (c hpkeContext) {
	var buf [2 * 133]byte
	kem := append(append(buf[:0], enc...), recipient...)
	prk := s.labeledExtract(s.kemID, nil, "eae_prk", dh)
	var secret [maxHash]byte
	s.labeledExpand(secret[:s.nh], s.kemID, prk, "shared_secret", kem)
	var schedule [1 + 2*maxHash]byte
	context := append(schedule[:0], s.pskIDs...)
	context = append(context, s.labeledExtract(s.hpkeID, nil, "info_hash", info)...)
	prk = s.labeledExtract(s.hpkeID, secret[:s.nh], "secret", nil)
	s.labeledExpand(c.key[:s.nk], s.hpkeID, prk, "key", context)
	s.labeledExpand(c.nonce[:nonceSize], s.hpkeID, prk, "base_nonce", context)
	s.labeledExpand(c.exporter[:s.nh], s.hpkeID, prk, "exp", context)
	return c
}

// setupSender makes an ephemeral key and the context that it shares with a recipient.
func (s *suite) setupSender(to *ecdh.PublicKey, info []byte) (enc []byte, c hpkeContext, err error) {
	ephemeral, err := s.generateKeyPair()
	if err != nil {
		return nil, c, err
	}
	dh, err := ephemeral.ECDH(to)
	if err != nil {
		return nil, c, refuseFor(ErrKey, err, "an HPKE recipient's key")
	}
	enc = ephemeral.PublicKey().Bytes()
	return enc, s.shared(dh, enc, to.Bytes(), info), nil
}

func (s *suite) setupReceiver(key *ecdh.PrivateKey, enc, info []byte) (c hpkeContext, err error) {
	from, err := s.publicKey(enc)
	if err != nil {
		return c, err
	}
	dh, err := key.ECDH(from)
	if err != nil {
		return c, refuseFor(ErrKey, err, "an HPKE sender's ephemeral key")
	}
	return s.shared(dh, enc, key.PublicKey().Bytes(), info), nil
}

// export is RFC 9180 §5.3, of one hash's size.
func (s *suite) export(c *hpkeContext, label string) []byte {
	out := make([]byte, s.nh)
	s.labeledExpand(out, s.hpkeID, c.exporter[:s.nh], "sec", []byte(label))
	return out
}

// A Ciphertext is an HPKECiphertext (§7.6).
type Ciphertext struct {
	KEMOutput, Data []byte
}

func (c Ciphertext) append(dst []byte) []byte {
	return appendVector(appendVector(dst, c.KEMOutput), c.Data)
}

func readCiphertext(r *reader) Ciphertext { return Ciphertext{KEMOutput: r.vector(), Data: r.vector()} }

// encryptInfo is the EncryptContext of §5.1.3.
func encryptInfo(label string, context []byte) []byte {
	buf := make([]byte, 0, len(context)+len(label)+16)
	buf = appendLength(buf, len(labelPrefix)+len(label))
	buf = append(append(buf, labelPrefix...), label...)
	return appendVector(buf, context)
}

// seal is EncryptWithLabel with the encoded EncryptContext.
func (s *suite) seal(to *ecdh.PublicKey, info, plaintext []byte) (Ciphertext, error) {
	enc, c, err := s.setupSender(to, info)
	if err != nil {
		return Ciphertext{}, err
	}
	aead, err := s.aead(c.key[:s.nk])
	if err != nil {
		return Ciphertext{}, err
	}
	return Ciphertext{KEMOutput: enc, Data: aead.Seal(nil, c.nonce[:nonceSize], plaintext, nil)}, nil
}

// open is DecryptWithLabel with the encoded EncryptContext.
func (s *suite) open(key *ecdh.PrivateKey, info []byte, ct Ciphertext) ([]byte, error) {
	c, err := s.setupReceiver(key, ct.KEMOutput, info)
	if err != nil {
		return nil, err
	}
	aead, err := s.aead(c.key[:s.nk])
	if err != nil {
		return nil, err
	}
	out, err := aead.Open(nil, c.nonce[:nonceSize], ct.Data, nil)
	if err != nil {
		return nil, refuse(ErrDecrypt, "an HPKE ciphertext")
	}
	return out, nil
}
