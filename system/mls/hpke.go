package mls

import (
	"crypto/cipher"
	"math"
)

// HPKE base mode (RFC 9180) with the KEMs of this engine's suites. crypto/hpke is its oracle in the tests; this one makes
// a twentieth of the allocations, hashes what many recipients share once, and can give out a key pair without encoding it.

// labeledExtract and labeledExpand are RFC 9180 §4, into out; id is the KEM's or the suite's.
func (s *suite) labeledExtract(out, id, salt []byte, label string, ikm []byte) {
	var buf [stackMessage]byte
	b := append(append(append(buf[:0], "HPKE-v1"...), id...), label...)
	s.mac(out, salt, b, ikm)
}

func (s *suite) labeledExpand(out, id, prk []byte, label string, info []byte) {
	var buf [stackMessage]byte
	b := append(append(append(appendU16(buf[:0], uint16(len(out))), "HPKE-v1"...), id...), label...)
	s.expand(out, prk, append(b, info...))
}

// deriveKeyPair is DeriveKeyPair of RFC 9180 §7.1.3.
func (s *suite) deriveKeyPair(ikm []byte) (*privateKey, error) {
	var secret [maxHash]byte
	prk := secret[:s.nh]
	s.labeledExtract(prk, s.kemID, nil, "dkp_prk", ikm)
	var scalar [maxShared]byte
	sk := scalar[:s.scalar]
	if s.ed {
		s.labeledExpand(sk, s.kemID, prk, "sk", nil)
		return s.privateKey(sk)
	}
	for counter := range 256 {
		s.labeledExpand(sk, s.kemID, prk, "candidate", []byte{byte(counter)})
		sk[0] &= s.mask
		if key, err := s.privateKey(sk); err == nil {
			return key, nil
		}
	}
	return nil, refuse(ErrKey, "no candidate of 256 is a scalar")
}

// An hpkeContext is what both sides of an HPKE exchange derive.
type hpkeContext struct {
	key, nonce, exporter [maxHash]byte
}

// An hpkeInfo is an exchange's application information, hashed: of many recipients of one, only the first pays for it.
type hpkeInfo [maxHash]byte

func (s *suite) hpkeInfo(info []byte) (h hpkeInfo) {
	s.labeledExtract(h[:s.nh], s.hpkeID, nil, "info_hash", info)
	return h
}

// shared derives the context from a Diffie-Hellman result (RFC 9180 §4.1, §5.1), all but the exporter secret: it returns
// what that is derived from.
func (s *suite) shared(c *hpkeContext, secret *[maxHash]byte, dh, enc, recipient []byte, info *hpkeInfo) (schedule [1 + 2*maxHash]byte) {
	var buf [2 * maxPublic]byte
	kem := append(append(buf[:0], enc...), recipient...)
	prk := secret[:s.nh]
	var z [maxHash]byte
	s.labeledExtract(prk, s.kemID, nil, "eae_prk", dh)
	s.labeledExpand(z[:s.nh], s.kemID, prk, "shared_secret", kem)
	n := copy(schedule[:], s.pskIDs)
	n += copy(schedule[n:], info[:s.nh])
	s.labeledExtract(prk, s.hpkeID, z[:s.nh], "secret", nil)
	s.labeledExpand(c.key[:s.nk], s.hpkeID, prk, "key", schedule[:n])
	s.labeledExpand(c.nonce[:nonceSize], s.hpkeID, prk, "base_nonce", schedule[:n])
	return schedule
}

// An encapsulation is the part of sealing that depends on nothing but the recipient's key: nearly all of it.
type encapsulation struct {
	to, enc []byte
	dh      [maxShared]byte
	size    int // of dh
}

// encapsulate makes an ephemeral key and what it has in common with a recipient's.
func (s *suite) encapsulate(e *encapsulation, to publicKey) error {
	ephemeral, err := s.generateKeyPair()
	if err != nil {
		return err
	}
	dh, err := s.agree(&e.dh, ephemeral, to)
	if err != nil {
		return refuseFor(ErrKey, err, "an HPKE recipient's key")
	}
	e.to, e.enc, e.size = to.raw, ephemeral.public, len(dh)
	clear(ephemeral.scalar[:])
	return nil
}

// setupSender makes an ephemeral key and the context that it shares with a recipient.
func (s *suite) setupSender(c *hpkeContext, to publicKey, info *hpkeInfo, export bool) (enc []byte, err error) {
	var e encapsulation
	if err := s.encapsulate(&e, to); err != nil {
		return nil, err
	}
	s.derive(c, e.dh[:e.size], e.enc, e.to, info, export)
	return e.enc, nil
}

// derive fills in a context, the exporter secret on demand.
func (s *suite) derive(c *hpkeContext, dh, enc, recipient []byte, info *hpkeInfo, export bool) {
	var secret [maxHash]byte
	schedule := s.shared(c, &secret, dh, enc, recipient, info)
	if export {
		s.labeledExpand(c.exporter[:s.nh], s.hpkeID, secret[:s.nh], "exp", schedule[:1+2*s.nh])
	}
}

func (s *suite) setupReceiver(c *hpkeContext, key *privateKey, enc []byte, info *hpkeInfo, export bool) error {
	from, err := s.publicKey(enc)
	if err != nil {
		return err
	}
	var out [maxShared]byte
	dh, err := s.agree(&out, key, from)
	if err != nil {
		return refuseFor(ErrKey, err, "an HPKE sender's ephemeral key")
	}
	s.derive(c, dh, enc, key.public, info, export)
	return nil
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

// A sealed is a vector of ciphertexts that was looked through and stays as it is encoded: of a thousand, one is for us.
type sealed struct {
	encoded []byte
	count   int
}

func readSealed(r *reader) sealed {
	behind := r.enter()
	s := sealed{encoded: r.data}
	s.count = skipCiphertexts(r, math.MaxInt)
	r.leave(behind)
	return s
}

// at returns a ciphertext; i is less than count.
func (s *sealed) at(i int) Ciphertext {
	r := newReader(s.encoded)
	skipCiphertexts(&r, i)
	return readCiphertext(&r)
}

// skipCiphertexts passes over most ciphertexts, or as many as there are, and says how many. One that has the two lengths of
// the one before it, as nearly all have, is passed over at once.
func skipCiphertexts(r *reader, most int) (n int) {
	for n < most && r.more() {
		before := r.data
		readCiphertext(r)
		n++
		if r.err != nil || before[0] >= 1<<6 {
			continue
		}
		first := int(before[0]) + 1
		size := len(before) - len(r.data)
		if size != first+1+int(before[first]) {
			continue
		}
		for n < most && len(r.data) >= size && r.data[0] == before[0] && r.data[first] == before[first] {
			r.data = r.data[size:]
			n++
		}
	}
	return n
}

// encryptInfo is the EncryptContext of §5.1.3.
func encryptInfo(label string, context []byte) []byte {
	buf := make([]byte, 0, len(context)+len(label)+16)
	buf = appendLength(buf, len(labelPrefix)+len(label))
	buf = append(append(buf, labelPrefix...), label...)
	return appendVector(buf, context)
}

// seal is EncryptWithLabel with the hash of the encoded EncryptContext.
func (s *suite) seal(to publicKey, info *hpkeInfo, plaintext []byte) (Ciphertext, error) {
	var e encapsulation
	if err := s.encapsulate(&e, to); err != nil {
		return Ciphertext{}, err
	}
	return s.sealTo(&e, info, plaintext)
}

// sealTo is seal for a recipient whose encapsulation was made; it is for one message.
func (s *suite) sealTo(e *encapsulation, info *hpkeInfo, plaintext []byte) (Ciphertext, error) {
	var c hpkeContext
	s.derive(&c, e.dh[:e.size], e.enc, e.to, info, false)
	clear(e.dh[:])
	aead, err := s.aead(c.key[:s.nk])
	if err != nil {
		return Ciphertext{}, err
	}
	return Ciphertext{KEMOutput: e.enc, Data: sealOnce(aead, &c, plaintext)}, nil
}

// sealOnce encrypts with a context's first nonce, which stands in front of the ciphertext's memory: what goes through an
// interface is on the heap.
func sealOnce(aead cipher.AEAD, c *hpkeContext, plaintext []byte) []byte {
	buf := append(make([]byte, 0, nonceSize+len(plaintext)+aead.Overhead()), c.nonce[:nonceSize]...)
	return aead.Seal(buf[nonceSize:], buf[:nonceSize], plaintext, nil)
}

// open is DecryptWithLabel with the encoded EncryptContext.
func (s *suite) open(key *privateKey, info []byte, ct Ciphertext) ([]byte, error) {
	var c hpkeContext
	hashed := s.hpkeInfo(info)
	if err := s.setupReceiver(&c, key, ct.KEMOutput, &hashed, false); err != nil {
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
