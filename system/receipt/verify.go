package receipt

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// A Verdict is what a verifier says of a receipt.
type Verdict struct {
	Code     string    `json:"verdict"` // valid, or what is wrong
	Detail   string    `json:"detail,omitempty"`
	Envelope *Envelope `json:"envelope,omitempty"` // as far as it could be read; nothing in it is proved unless the verdict is valid
	Form     string    `json:"form,omitempty"`
}

// The verdicts.
const (
	Valid            = "valid"
	BadEnvelope      = "bad-envelope"      // the envelope is not one of the schema
	WrongGateway     = "wrong-gateway"     // another gateway's
	UnknownKID       = "unknown-kid"       // the key is not pinned
	AlgMismatch      = "alg-mismatch"      // the envelope names another algorithm than the pinned key has
	NotYetKey        = "not-yet-key"       // seq stands before the key's first
	RetiredKey       = "retired-key"       // seq stands behind the rotation away from the key
	RevokedKey       = "revoked-key"       // the key was revoked, and no log shows that the receipt stood before that
	LeafMismatch     = "leaf-mismatch"     // the leaf hash is not the envelope's
	MalleableSig     = "non-canonical-sig" // S is not below the group's order
	BadSignature     = "bad-signature"     // a byte of what was signed, or of the signature, is another
	BadCheckpoint    = "bad-checkpoint"    // the checkpoint is not one of the gateway's
	SizeMismatch     = "size-mismatch"     // the checkpoint's tree has no place seq, or the proof is not as long as it must be
	ProofMismatch    = "proof-mismatch"    // the proof does not lead to the checkpoint's root
	Inconsistent     = "inconsistent"      // two roots for one size
	FutureTime       = "future-time"       // arrived later than now
	NotInLog         = "not-in-log"        // the log that was given holds something else there
	WrongRotationKey = "wrong-new-key"     // the rotation's new key is not what its kid says
)

// A Log is what a verifier may hold beside the keys.
type Log interface {
	Leaf(seq uint64) (Hash, bool)  // the leaf hash of a place
	Root(size uint64) (Hash, bool) // of the tree of so many leaves
}

// A Verifier judges receipts of one gateway. It remembers the checkpoints it saw: two that contradict each other are found
// also when each is well-formed. It is not safe for concurrent use.
type Verifier struct {
	Pins *Pins
	Log  Log              // nil when there is none
	Now  func() time.Time // time.Now when nil
	Skew time.Duration    // how far ahead of Now an arrival may be; 5 minutes when 0

	roots map[uint64]Hash
	notes map[string]Hash // checkpoints that were verified, by kid and text
}

// maxRemembered bounds what a verifier keeps of checkpoints.
const maxRemembered = 1 << 16

// Verify judges one receipt. An error means that the document is no receipt at all, well-formed or not.
func (v *Verifier) Verify(document []byte) (Verdict, error) {
	p, err := parseReceipt(document)
	if err != nil {
		return Verdict{}, err
	}
	e, err := parseEnvelope(p.envelope)
	if err != nil {
		return Verdict{Code: BadEnvelope, Detail: err.Error(), Form: p.form}, nil
	}
	code, detail := v.judge(&p, &e)
	return Verdict{code, detail, &e, p.form}, nil
}

func (v *Verifier) judge(p *parsed, e *Envelope) (code, detail string) {
	if e.Gateway != v.Pins.Gateway {
		return WrongGateway, fmt.Sprintf("%s; the pins are those of %s", e.Gateway, v.Pins.Gateway)
	}
	pin := v.Pins.find(e.KID)
	if pin == nil {
		return UnknownKID, e.KID
	}
	if e.Alg != pin.CRV {
		return AlgMismatch, fmt.Sprintf("%q; the key %s is %s", e.Alg, e.KID, pin.CRV)
	}
	if (e.Type == typeRotate) != (p.form == Rotation) {
		return BadEnvelope, fmt.Sprintf("type %s in form %s", e.Type, p.form)
	}
	leaf, _ := leafHash(nil, p.envelope)
	var checks = []func() (string, string){
		func() (string, string) { return v.signed(p, e, pin, leaf) },
		func() (string, string) { return v.place(e, pin, leaf) },
		func() (string, string) { return v.time(e) },
	}
	for _, check := range checks {
		if code, detail := check(); code != Valid {
			return code, detail
		}
	}
	return Valid, ""
}

// signed checks that the pinned key signed the envelope, itself or through the checkpoint.
func (v *Verifier) signed(p *parsed, e *Envelope, pin *Pin, leaf Hash) (code, detail string) {
	switch p.form {
	case Batch:
		return v.included(p, e, pin, leaf)
	case Rotation:
		x, err := base64.RawURLEncoding.Strict().DecodeString(e.NewX)
		if err != nil || len(x) != ed25519.PublicKeySize || KID(x) != e.NewKID {
			return WrongRotationKey, "new_kid is not the thumbprint of new_x"
		}
		if code, detail := signature(x, p.envelope, p.sigNew); code != Valid {
			return code, "by the new key: " + detail
		}
	}
	if p.leaf != leaf {
		return LeafMismatch, "leaf is not the hash of the envelope"
	}
	return signature(pin.public, p.envelope, p.sig)
}

// signature checks one signature.
func signature(public ed25519.PublicKey, message, sig []byte) (code, detail string) {
	if !canonicalS(sig[32:]) {
		return MalleableSig, "S is not below the group's order (RFC 8032 §5.1.7)"
	}
	if !ed25519.Verify(public, message, sig) {
		return BadSignature, "the signature is not that of these bytes by this key"
	}
	return Valid, ""
}

// canonicalS reports whether S, little-endian, is below the order 2^252 + 27742317777372353535851937790883648493.
func canonicalS(s []byte) bool {
	order := [4]uint64{0x5812631a5cf5d3ed, 0x14def9dea2f79cd6, 0, 0x1000000000000000}
	for i := 3; i >= 0; i-- {
		if w := binary.LittleEndian.Uint64(s[8*i:]); w != order[i] {
			return w < order[i]
		}
	}
	return false
}

// included checks the checkpoint and the proof that leads to it.
func (v *Verifier) included(p *parsed, e *Envelope, pin *Pin, leaf Hash) (code, detail string) {
	size, root, sig, err := parseCheckpoint(p.checkpoint, v.Pins.Gateway, pin.public)
	if err != nil {
		return BadCheckpoint, err.Error()
	}
	name := e.KID + " " + string(p.checkpoint)
	if seen, there := v.notes[name]; !there || seen != root {
		text := p.checkpoint[:strings.LastIndex(string(p.checkpoint), "\n\n")+1]
		if code, detail := signature(pin.public, text, sig); code != Valid {
			return code, "checkpoint: " + detail
		}
		v.remember(name, root)
	}
	if uint64(e.Seq) >= size || size > 1<<62 {
		return SizeMismatch, fmt.Sprintf("seq %d is not in a tree of %d", e.Seq, size)
	}
	if want := proofLength(uint64(e.Seq), size); len(p.proof) != want {
		return SizeMismatch, fmt.Sprintf("the proof has %d hashes; that of seq %d in a tree of %d has %d", len(p.proof), e.Seq, size, want)
	}
	if err := tlog.CheckRecord(p.proof, int64(size), root, e.Seq, leaf); err != nil {
		return ProofMismatch, "the proof does not lead to the checkpoint's root"
	}
	return v.consistent(size, root)
}

func (v *Verifier) remember(checkpoint string, root Hash) {
	if v.notes == nil || len(v.notes) >= maxRemembered {
		v.notes = make(map[string]Hash)
	}
	v.notes[checkpoint] = root
}

// consistent compares a checkpoint with those seen before and with the log.
func (v *Verifier) consistent(size uint64, root Hash) (code, detail string) {
	if seen, there := v.roots[size]; there && seen != root {
		return Inconsistent, fmt.Sprintf("another checkpoint of size %d has the root %s", size, seen)
	}
	if v.roots == nil || len(v.roots) >= maxRemembered {
		v.roots = make(map[uint64]Hash)
	}
	v.roots[size] = root
	if v.Log != nil {
		if ours, there := v.Log.Root(size); there && ours != root {
			return Inconsistent, fmt.Sprintf("the log's root at size %d is %s", size, ours)
		} else if !there {
			return NotInLog, fmt.Sprintf("the log holds less than %d entries", size)
		}
	}
	return Valid, ""
}

// place judges the key by the place in the log, and the receipt by the log when there is one.
func (v *Verifier) place(e *Envelope, pin *Pin, leaf Hash) (code, detail string) {
	proved := false
	if v.Log != nil {
		if h, there := v.Log.Leaf(uint64(e.Seq)); !there || h != leaf {
			return NotInLog, fmt.Sprintf("the log does not hold this envelope at %d", e.Seq)
		}
		proved = true
	}
	switch {
	case pin.Revoked != nil && e.Seq >= *pin.Revoked:
		return RevokedKey, fmt.Sprintf("the key was revoked from seq %d on", *pin.Revoked)
	case pin.Revoked != nil && !proved:
		return RevokedKey, "a revoked key can claim any seq: give the log to show that this one is older"
	case pin.Retired != nil && e.Seq > *pin.Retired, pin.Retired != nil && e.Seq == *pin.Retired && e.Type != typeRotate:
		return RetiredKey, fmt.Sprintf("the key was retired at seq %d", *pin.Retired)
	case e.Seq < pin.From:
		return NotYetKey, fmt.Sprintf("the key signs from seq %d on", pin.From)
	}
	return Valid, ""
}

func (v *Verifier) time(e *Envelope) (code, detail string) {
	now, skew := time.Now, v.Skew
	if v.Now != nil {
		now = v.Now
	}
	if skew == 0 {
		skew = 5 * time.Minute
	}
	if ahead := e.ArrivedAt.Sub(now()); ahead > skew {
		return FutureTime, fmt.Sprintf("arrived_at is %v ahead of now", ahead.Round(time.Second))
	}
	return Valid, ""
}

// proofLength is how many hashes an inclusion proof has.
func proofLength(i, size uint64) (n int) {
	for k := 0; (size-1)>>k > 0; k++ {
		if sibling := i>>k ^ 1; sibling <= (size-1)>>k {
			n++
		}
	}
	return n
}

// parseCheckpoint reads a signed note that holds a checkpoint of origin with one signature line, by the key given. The
// signature itself is not checked here.
func parseCheckpoint(text []byte, origin string, public ed25519.PublicKey) (size uint64, root Hash, sig []byte, err error) {
	body, tail, ok := strings.Cut(string(text), "\n\n")
	lines := strings.Split(body, "\n")
	if !ok || len(lines) != 3 {
		return 0, root, nil, errors.New("want three lines, an empty one and one signature")
	}
	if lines[0] != origin {
		return 0, root, nil, fmt.Errorf("the origin is %q; want %q", lines[0], origin)
	}
	size, err = strconv.ParseUint(lines[1], 10, 63)
	if err != nil || strconv.FormatUint(size, 10) != lines[1] {
		return 0, root, nil, errors.New("the size is not a number")
	}
	h, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(h) != len(root) {
		return 0, root, nil, errors.New("the root is not 32 bytes in base64")
	}
	copy(root[:], h)
	line, ok := strings.CutPrefix(tail, "— "+origin+" ")
	line, end := strings.CutSuffix(line, "\n")
	blob, err := base64.StdEncoding.Strict().DecodeString(line)
	if !ok || !end || err != nil || len(blob) != 4+ed25519.SignatureSize || strings.Contains(line, "\n") {
		return 0, root, nil, fmt.Errorf("want one signature line by %s", origin)
	}
	if binary.BigEndian.Uint32(blob) != noteHash(origin, public) {
		return 0, root, nil, errors.New("the signature line is that of another key")
	}
	return size, root, blob[4:], nil
}
