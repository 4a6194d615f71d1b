package system

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"

	"toll/wire/engine"
)

// The floor of the benchmark group: the cryptography that RFC 9420 makes a member do for a case, and nothing else, as one
// sequence of calls of the standard library (crypto/hpke, crypto/hkdf, crypto/ed25519, AES-GCM, SHA-256). No structure is
// encoded or kept; sizes are those of ciphersuite 1 with this benchmark's credentials. An engine that validates everything
// cannot do with fewer of these operations; it can make single ones cheaper.

// Sizes of what is hashed, signed and encrypted, bytes.
const (
	floorLeaf       = 240 // a leaf node
	floorPackage    = 380 // a key package
	floorContext    = 130 // a group context
	floorInfo       = 60  // an encoded KDF label
	floorMessage    = 70  // the text
	floorParent     = 110 // a parent node's hash input
	scheduleLabels  = 11  // joiner, epoch and nine derived secrets
	ratchetLabels   = 3   // key, nonce, next secret
	senderLabels    = 2
	leafRatchets    = 2
	welcomeLabels   = 3
	pathNodeLabels  = 2
	floorSignedHead = 200 // what is signed around a message's content
)

// floor is a member's keys and some bytes to work on.
type floor struct {
	sign      ed25519.PrivateKey
	public    ed25519.PublicKey
	kem       hpke.KEM
	recipient hpke.PrivateKey
	text      []byte
	signature map[int][]byte // of text[:n], by n
	sealed    []byte
	gcm       map[int][]byte // ciphertexts, by plaintext size
	sum       byte           // of what came out, so that nothing is left out
}

func newFloor(members int) (*floor, error) {
	f := &floor{kem: hpke.DHKEM(ecdh.X25519()), text: make([]byte, 2048+members*floorPackage), signature: make(map[int][]byte), gcm: make(map[int][]byte)}
	var err error
	if f.public, f.sign, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return nil, err
	}
	if f.recipient, err = f.kem.GenerateKey(); err != nil {
		return nil, err
	}
	f.sealed, err = hpke.Seal(f.recipient.PublicKey(), hpke.HKDFSHA256(), hpke.AES128GCM(), f.text[:floorContext], f.text[:80])
	if err != nil {
		return nil, err
	}
	for _, n := range []int{floorLeaf, floorPackage, floorMessage + floorSignedHead, floorContext + floorSignedHead, f.tree(members)} {
		f.signature[n] = ed25519.Sign(f.sign, f.text[:n])
	}
	for _, n := range []int{12, floorMessage + 70, floorContext + floorSignedHead, f.tree(members)} {
		f.gcm[n] = f.seal(f.text[:n])
	}
	return f, nil
}

// tree is about the size of a group info with its ratchet tree.
func (f *floor) tree(members int) int { return floorContext + (members+1)*floorLeaf }

func (f *floor) expand(n int) error {
	for range n {
		out, err := hkdf.Expand(sha256.New, f.text[:32], string(f.text[:floorInfo]), 32)
		if err != nil {
			return err
		}
		f.sum ^= out[0]
	}
	return nil
}

func (f *floor) extract(n int) error {
	for range n {
		out, err := hkdf.Extract(sha256.New, f.text[:32], f.text[32:64])
		if err != nil {
			return err
		}
		f.sum ^= out[0]
	}
	return nil
}

func (f *floor) mac() {
	h := hmac.New(sha256.New, f.text[:32])
	h.Write(f.text[:32])
	f.sum ^= h.Sum(nil)[0]
}

func (f *floor) hash(times, size int) {
	for range times {
		out := sha256.Sum256(f.text[:size])
		f.sum ^= out[0]
	}
}

func (f *floor) aead() cipher.AEAD {
	b, err := aes.NewCipher(f.text[:16])
	if err != nil {
		panic("a 16-byte AES key: " + err.Error())
	}
	g, err := cipher.NewGCM(b)
	if err != nil {
		panic("GCM over AES: " + err.Error())
	}
	return g
}

func (f *floor) seal(plain []byte) []byte { return f.aead().Seal(nil, f.text[:12], plain, nil) }

func (f *floor) open(size int) error {
	_, err := f.aead().Open(nil, f.text[:12], f.gcm[size], nil)
	return err
}

func (f *floor) signs(size int) { f.sum ^= ed25519.Sign(f.sign, f.text[:size])[0] }

func (f *floor) verify(times, size int) error {
	for range times {
		if !ed25519.Verify(f.public, f.text[:size], f.signature[size]) {
			return errors.New("a signature of the floor does not verify")
		}
	}
	return nil
}

func (f *floor) hpkeSeal(times, info int) error {
	for range times {
		if _, err := hpke.Seal(f.recipient.PublicKey(), hpke.HKDFSHA256(), hpke.AES128GCM(), f.text[:info], f.text[:80]); err != nil {
			return err
		}
	}
	return nil
}

func (f *floor) hpkeOpen() error {
	_, err := hpke.Open(f.recipient, hpke.HKDFSHA256(), hpke.AES128GCM(), f.text[:floorContext], f.sealed)
	return err
}

// path derives the key pairs of so many nodes of a path.
func (f *floor) path(nodes int) error {
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

// schedule is an epoch's secrets, confirmation tag and transcript hashes.
func (f *floor) schedule() error {
	f.mac()
	f.hash(2, floorContext)
	return errors.Join(f.extract(2), f.expand(scheduleLabels))
}

// groupFloor is the engine of the floor.
func groupFloor(_ context.Context, q engine.Question) (engine.Work, error) {
	c, err := parseGroupCase(q.Case)
	if err != nil {
		return engine.Work{}, err
	}
	if q.Callers != 1 {
		return engine.Work{}, fmt.Errorf("case %s: one caller, as the engine has; %d were asked for", q.Case, q.Callers)
	}
	f, err := newFloor(c.members)
	if err != nil {
		return engine.Work{}, err
	}
	call := map[string]func(groupCase) error{
		"create_group": f.create, "join_welcome": f.join, "send_app_message": f.send, "ingest_app_message": f.ingest, "ingest_commit": f.ingestCommit,
	}[c.op]
	work := engine.Work{Collected: true, Call: func(context.Context, int, int, *engine.Parts) error { return call(c) }}
	work.Close = quietHeap()
	return work, nil
}

// depth is the height of the tree of a group with so many members beside the founder.
func (c groupCase) depth() int { return bits.Len(uint(c.members)) }

// nodes is the number of nodes of that tree which are hashed: the leaves that are there, and all parents.
func (c groupCase) parents() int { return 1<<c.depth() - 1 }

// create: a leaf node's key and signature, an epoch; two signatures per key package; a path with its leaf; a commit signed
// and encrypted; an epoch; a group info signed and encrypted; a welcome sealed to each.
func (f *floor) create(c groupCase) error {
	if _, err := f.kem.GenerateKey(); err != nil {
		return err
	}
	f.signs(floorLeaf)
	f.hash(1, floorLeaf)
	f.mac()
	if err := errors.Join(f.expand(scheduleLabels-2), f.verify(c.members, floorLeaf), f.verify(c.members, floorPackage)); err != nil {
		return err
	}
	if _, err := f.kem.GenerateKey(); err != nil {
		return err
	}
	if err := f.path(c.depth()); err != nil {
		return err
	}
	f.hash(c.members+1, floorLeaf)
	f.hash(c.parents(), floorParent)
	f.signs(floorLeaf)
	f.signs(c.members*floorPackage + floorSignedHead)
	f.hash(1, c.members*floorPackage+floorSignedHead)
	if err := errors.Join(f.schedule(), f.expand(leafRatchets+ratchetLabels+senderLabels)); err != nil {
		return err
	}
	f.seal(f.text[:c.members*floorPackage+floorSignedHead])
	f.seal(f.text[:12])
	f.signs(f.tree(c.members))
	if err := f.expand(welcomeLabels); err != nil {
		return err
	}
	f.seal(f.text[:f.tree(c.members)])
	f.hash(c.members, floorPackage)
	return f.hpkeSeal(c.members, f.tree(c.members))
}

// join: the group secrets opened; the group info decrypted and its signature checked; every leaf's signature; the tree and
// parent hashes; the one node of the path that is above us, the root; an epoch.
func (f *floor) join(c groupCase) error {
	err := errors.Join(f.hpkeOpen(), f.extract(1), f.expand(welcomeLabels), f.open(f.tree(c.members)), f.verify(1, f.tree(c.members)), f.verify(c.members+1, floorLeaf))
	f.hash(1, f.tree(c.members)) // the welcome's part of what the group secrets are sealed under
	f.hash(c.members+1, floorLeaf)
	f.hash(c.parents()+c.depth(), floorParent)
	f.hash(1, floorPackage)
	f.mac()
	return errors.Join(err, f.path(1), f.expand(scheduleLabels-1))
}

// send: a signature, a ratchet step, two encryptions; before the first, the secret tree's way to our leaf.
func (f *floor) send(c groupCase) error {
	f.signs(floorMessage + floorSignedHead)
	err := f.expand(ratchetLabels + senderLabels)
	if c.first {
		err = errors.Join(err, f.expand(2*c.depth()+leafRatchets))
	}
	f.seal(f.text[:floorMessage+70])
	f.seal(f.text[:12])
	return err
}

// ingest: two decryptions, a ratchet step, a signature checked.
func (f *floor) ingest(groupCase) error {
	return errors.Join(f.expand(ratchetLabels+senderLabels), f.open(12), f.open(floorMessage+70), f.verify(1, floorMessage+floorSignedHead))
}

// ingestCommit: the commit decrypted, its signature and its leaf's checked, the secret tree's way to the committer's leaf;
// one path secret opened and the key of the root derived; the tree and parent hashes of the path; an epoch.
func (f *floor) ingestCommit(c groupCase) error {
	f.hash(1, floorLeaf)
	f.hash(2*c.depth(), floorParent)
	return errors.Join(
		f.expand(2*c.depth()+leafRatchets+ratchetLabels+senderLabels), f.open(12), f.open(floorContext+floorSignedHead),
		f.verify(1, floorContext+floorSignedHead), f.verify(1, floorLeaf), f.hpkeOpen(), f.path(1), f.schedule(),
	)
}
