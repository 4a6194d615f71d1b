package system

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"

	"toll/wire/curve"
)

// A fastFloor is wire/curve with HMAC from the stack: batches where there are several signatures, an expanded key where one
// was met before, an HPKE info that is hashed once for all its recipients.
type fastFloor struct {
	text      []byte
	signers   []*curve.Signer  // of the members
	signature map[int][][]byte // of text[:n], by n and signer
	known0    *curve.Key
	private   [32]byte
	public    [32]byte
	enc       [32]byte
	sealed    []byte
	sum       byte
}

func newFastFloor(text []byte, c groupCase) (*fastFloor, error) {
	f := &fastFloor{text: text, signature: make(map[int][][]byte)}
	rand.Read(f.private[:])
	f.public = curve.Base(&f.private)
	for range c.members + 1 {
		seed := make([]byte, curve.SeedSize)
		rand.Read(seed)
		s, err := curve.NewSigner(seed)
		if err != nil {
			return nil, err
		}
		f.signers = append(f.signers, s)
		for _, n := range []int{floorLeaf, floorPackage} {
			f.signature[n] = append(f.signature[n], s.Sign(nil, text[:n]))
		}
	}
	for _, n := range []int{floorMessage + floorSignedHead, c.commitSize(), floorTree(c.members)} {
		f.signature[n] = [][]byte{f.signers[0].Sign(nil, text[:n])}
	}
	f.known0, _ = curve.Expand(f.signers[0].Public())
	f.enc, f.sealed = f.hpkeSeal(f.infoHash(floorContext))
	return f, nil
}

// hmac is HMAC-SHA256 of at most two blocks' message from the stack.
func (f *fastFloor) hmac(key *[32]byte, message []byte) [32]byte {
	var inner [64 + 192]byte
	var outer [64 + 32]byte
	copy(inner[:], key[:])
	copy(outer[:], key[:])
	for i := range 64 {
		inner[i] ^= 0x36
		outer[i] ^= 0x5c
	}
	n := 64 + copy(inner[64:], message)
	h := sha256.Sum256(inner[:n])
	copy(outer[64:], h[:])
	out := sha256.Sum256(outer[:])
	f.sum ^= out[0]
	return out
}

// infoHash is the hash of an HPKE info that all its recipients share.
func (f *fastFloor) infoHash(size int) [32]byte { return sha256.Sum256(f.text[:size]) }

// schedule derives an HPKE context: two extractions and three expansions, beside the info's.
func (f *fastFloor) schedule(dh, info *[32]byte) cipher.AEAD {
	prk := f.hmac((*[32]byte)(f.text), dh[:])
	secret := f.hmac(&prk, f.text[:floorInfo+40])
	prk = f.hmac(&secret, info[:])
	key := f.hmac(&prk, f.text[:floorInfo+20])
	f.hmac(&prk, f.text[:floorInfo+30])
	b, err := aes.NewCipher(key[:16])
	if err != nil {
		panic("a 16-byte AES key: " + err.Error())
	}
	g, err := cipher.NewGCM(b)
	if err != nil {
		panic("GCM over AES: " + err.Error())
	}
	return g
}

func (f *fastFloor) hpkeSeal(info [32]byte) (enc [32]byte, sealed []byte) {
	var ephemeral, dh [32]byte
	rand.Read(ephemeral[:])
	enc = curve.Base(&ephemeral)
	if !curve.Shared(&dh, &ephemeral, &f.public) {
		panic("a public key of large order")
	}
	return enc, f.schedule(&dh, &info).Seal(nil, f.text[:12], f.text[:floorSecret], nil)
}

func (f *fastFloor) generate() error {
	var private [32]byte
	rand.Read(private[:])
	f.sum ^= curve.Base(&private)[0]
	return nil
}

func (f *fastFloor) path(nodes int) error {
	for range nodes {
		if err := f.expand(pathNodeLabels + 1); err != nil {
			return err
		}
		seed := f.hmac((*[32]byte)(f.text), f.text[:32])
		f.sum ^= curve.Base(&seed)[0]
	}
	return nil
}

func (f *fastFloor) sign(size int) { f.sum ^= f.signers[0].Sign(nil, f.text[:size])[0] }

var errFloor = errors.New("a signature of the floor does not verify")

func (f *fastFloor) packages(n int) error {
	var b curve.Batch
	for i := range n {
		public := f.signers[i].Public()
		b.Add(public, f.text[:floorLeaf], f.signature[floorLeaf][i])
		b.Add(public, f.text[:floorPackage], f.signature[floorPackage][i])
	}
	return verdict(b.Verify())
}

func (f *fastFloor) members(n, info int) error {
	var b curve.Batch
	b.Add(f.signers[0].Public(), f.text[:info], f.signature[info][0])
	for i := range n {
		b.Add(f.signers[i].Public(), f.text[:floorLeaf], f.signature[floorLeaf][i])
	}
	return verdict(b.Verify())
}

func (f *fastFloor) known(sizes ...int) error {
	for _, n := range sizes {
		if !f.known0.Verify(f.text[:n], f.signature[n][0]) {
			return errFloor
		}
	}
	return nil
}

func verdict(good bool) error {
	if !good {
		return errFloor
	}
	return nil
}

func (f *fastFloor) seal(times, info int) error {
	hashed := f.infoHash(info)
	for range times {
		_, sealed := f.hpkeSeal(hashed)
		f.sum ^= sealed[0]
	}
	return nil
}

func (f *fastFloor) open() error {
	var dh [32]byte
	if !curve.Shared(&dh, &f.private, &f.enc) {
		return errors.New("an ephemeral key of small order")
	}
	info := f.infoHash(floorContext)
	_, err := f.schedule(&dh, &info).Open(nil, f.text[:12], f.sealed, nil)
	return err
}

func (f *fastFloor) expand(times int) error {
	for range times {
		f.hmac((*[32]byte)(f.text), f.text[:floorInfo])
	}
	return nil
}

func (f *fastFloor) extract(times int) error {
	for range times {
		f.hmac((*[32]byte)(f.text), f.text[32:64])
	}
	return nil
}
