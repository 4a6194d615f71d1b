package system

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"

	"toll/system/mls"
	"toll/wire/engine"
)

// The floor of the benchmark group: the cryptography that RFC 9420 makes a member do for a case, and nothing else, as one
// sequence of calls. No structure is encoded or kept; sizes are those of ciphersuite 1 with this benchmark's credentials.
// An engine that validates everything cannot do with fewer of these operations; it can make single ones cheaper, so there
// is a floor for each seam: of the standard library's calls, and of wire/curve's.

// Sizes of what is hashed, signed and encrypted, bytes.
const (
	floorLeaf       = 240 // a leaf node
	floorPackage    = 380 // a key package
	floorContext    = 130 // a group context
	floorInfo       = 60  // an encoded KDF label
	floorMessage    = 70  // the text
	floorParent     = 110 // a parent node's hash input
	floorSecret     = 80  // the group secrets
	floorSealed     = 82  // a path secret, encrypted
	scheduleLabels  = 11  // joiner, epoch and nine derived secrets
	ratchetLabels   = 3   // key, nonce, next secret
	senderLabels    = 2
	leafRatchets    = 2
	welcomeLabels   = 3
	pathNodeLabels  = 2
	floorSignedHead = 200 // what is signed around a message's content
)

// A floorCrypto is one seam's cryptography on keys and texts that it has.
type floorCrypto interface {
	generate() error            // a KEM key pair
	path(nodes int) error       // so many key pairs derived
	sign(size int)              // of so many bytes
	packages(n int) error       // two signatures verified of each of n new keys
	members(n, info int) error  // a signature verified of each of n new keys, and one of a group info
	known(sizes ...int) error   // signatures verified of one key that was met before
	seal(times, info int) error // HPKE, to so many recipients, under one info
	open() error                // HPKE, what seal made
	extract(times int) error    // HKDF, or an HMAC
	expand(times int) error     // HKDF to 32 bytes
}

// floor is some bytes to work on, and a seam.
type floor struct {
	floorCrypto
	text []byte
	gcm  map[int][]byte // ciphertexts, by plaintext size
	sum  byte           // of what came out, so that nothing is left out
}

func newFloor(c groupCase, seam mls.Seam) (*floor, error) {
	f := &floor{text: make([]byte, 2048+c.members*floorPackage), gcm: make(map[int][]byte)}
	var err error
	switch seam {
	case mls.StandardCurves:
		f.floorCrypto, err = newStandardFloor(f.text, c)
	case mls.FastCurves:
		f.floorCrypto, err = newFastFloor(f.text, c)
	default:
		err = fmt.Errorf("no floor on the seam %s", seam)
	}
	if err != nil {
		return nil, err
	}
	for _, n := range []int{12, floorMessage + 70, c.commitSize(), floorTree(c.members)} {
		f.gcm[n] = f.encrypt(f.text[:n])
	}
	return f, nil
}

// floorTree is about the size of a group info with its ratchet tree.
func floorTree(members int) int { return floorContext + (members+1)*floorLeaf }

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

func (f *floor) encrypt(plain []byte) []byte { return f.aead().Seal(nil, f.text[:12], plain, nil) }

func (f *floor) decrypt(size int) error {
	_, err := f.aead().Open(nil, f.text[:12], f.gcm[size], nil)
	return err
}

// schedule is an epoch's secrets, confirmation tag and transcript hashes.
func (f *floor) schedule() error {
	f.hash(2, floorContext)
	return errors.Join(f.extract(3), f.expand(scheduleLabels))
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
	input, err := parseGroupInput(q.Input)
	if err != nil {
		return engine.Work{}, err
	}
	f, err := newFloor(c, input.seam)
	if err != nil {
		return engine.Work{}, err
	}
	call := map[string]func(groupCase) error{
		"create_group": f.create, "join_welcome": f.join, "send_app_message": f.send, "ingest_app_message": f.ingest, "commit": f.commit, "ingest_commit": f.ingestCommit,
	}[c.op]
	work := engine.Work{Collected: true, Call: func(context.Context, int, int, *engine.Parts) error { return call(c) }}
	work.Close = quietHeap()
	return work, nil
}

// depth is the height of the tree of a group with so many members beside the founder.
func (c groupCase) depth() int { return bits.Len(uint(c.members)) }

// parents is the number of parents of that tree, all of which are hashed.
func (c groupCase) parents() int { return 1<<c.depth() - 1 }

// create: a leaf node's key and signature, an epoch; two signatures per key package; a path with its leaf; a commit signed
// and encrypted; an epoch; a group info signed and encrypted; a welcome sealed to each.
func (f *floor) create(c groupCase) error {
	err := f.generate()
	f.sign(floorLeaf)
	f.hash(1, floorLeaf)
	err = errors.Join(err, f.extract(1), f.expand(scheduleLabels-2), f.packages(c.members), f.generate(), f.path(c.depth()))
	f.hash(c.members+1, floorLeaf)
	f.hash(c.parents(), floorParent)
	f.sign(floorLeaf)
	f.sign(c.members*floorPackage + floorSignedHead)
	f.hash(1, c.members*floorPackage+floorSignedHead)
	err = errors.Join(err, f.schedule(), f.expand(leafRatchets+ratchetLabels+senderLabels))
	f.encrypt(f.text[:c.members*floorPackage+floorSignedHead])
	f.encrypt(f.text[:12])
	f.sign(floorTree(c.members))
	err = errors.Join(err, f.expand(welcomeLabels))
	f.encrypt(f.text[:floorTree(c.members)])
	f.hash(c.members, floorPackage)
	return errors.Join(err, f.seal(c.members, floorTree(c.members)))
}

// join: the group secrets opened; the group info decrypted and its signature checked; every leaf's signature; the tree and
// parent hashes; the one node of the path that is above us, the root; an epoch.
func (f *floor) join(c groupCase) error {
	err := errors.Join(f.open(), f.extract(2), f.expand(welcomeLabels), f.decrypt(floorTree(c.members)), f.members(c.members+1, floorTree(c.members)))
	f.hash(1, floorTree(c.members)) // the welcome's part of what the group secrets are sealed under
	f.hash(c.members+1, floorLeaf)
	f.hash(c.parents()+c.depth(), floorParent)
	f.hash(1, floorPackage)
	return errors.Join(err, f.path(1), f.expand(scheduleLabels-1))
}

// send: a signature, a ratchet step, two encryptions; before the first, the secret tree's way to our leaf.
func (f *floor) send(c groupCase) error {
	f.sign(floorMessage + floorSignedHead)
	err := f.expand(ratchetLabels + senderLabels)
	if c.first {
		err = errors.Join(err, f.expand(2*c.depth()+leafRatchets))
	}
	f.encrypt(f.text[:floorMessage+70])
	f.encrypt(f.text[:12])
	return err
}

// ingest: two decryptions, a ratchet step, a signature checked.
func (f *floor) ingest(groupCase) error {
	return errors.Join(f.expand(ratchetLabels+senderLabels), f.decrypt(12), f.decrypt(floorMessage+70), f.known(floorMessage+floorSignedHead))
}

// seals is how many a path secret is encrypted to: everyone on their own, or one node at each height.
func (c groupCase) seals() int {
	if c.populated {
		return c.depth()
	}
	return c.members
}

// commitSize is about the size of a commit without proposals: a leaf, and a path secret for each that it is encrypted to.
func (c groupCase) commitSize() int { return floorContext + floorSignedHead + c.seals()*floorSealed }

// commit: a path with its leaf, its secrets encrypted; the tree and parent hashes of the path; a commit signed and
// encrypted under the secret tree's key; an epoch.
func (f *floor) commit(c groupCase) error {
	f.hash(1, floorLeaf)
	f.hash(2*c.depth(), floorParent)
	f.sign(floorLeaf)
	f.sign(c.commitSize())
	f.hash(1, c.commitSize())
	err := errors.Join(f.generate(), f.path(c.depth()), f.seal(c.seals(), floorContext), f.expand(2*c.depth()+leafRatchets+ratchetLabels+senderLabels))
	f.encrypt(f.text[:c.commitSize()])
	f.encrypt(f.text[:12])
	return errors.Join(err, f.schedule())
}

// ingestCommit: the commit decrypted, its signature and its leaf's checked, the secret tree's way to the committer's leaf;
// one path secret opened and the key of the root derived; the tree and parent hashes of the path; an epoch.
func (f *floor) ingestCommit(c groupCase) error {
	f.hash(1, floorLeaf)
	f.hash(1, c.commitSize())
	f.hash(2*c.depth(), floorParent)
	return errors.Join(
		f.expand(2*c.depth()+leafRatchets+ratchetLabels+senderLabels), f.decrypt(12), f.decrypt(c.commitSize()),
		f.known(c.commitSize(), floorLeaf), f.open(), f.path(1), f.schedule(),
	)
}
