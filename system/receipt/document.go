package receipt

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"strconv"

	"toll/wire/jcs"
)

// A Receipt is a document in canonical JSON. Form single is
//
//	{"envelope":{…},"form":"single","leaf":"…","sig":"…"}
//
// with the RFC 6962 leaf hash of the envelope (base64) and the signature of its canonical form (base64url); form batch is
//
//	{"checkpoint":"…","envelope":{…},"form":"batch","proof":["…",…]}
//
// with a signed C2SP checkpoint and the inclusion proof of the envelope's seq in it. Form rotation is a single one with the
// signature of the new key in addition, as "sig_new".
type Receipt []byte

// The forms of a receipt.
const (
	Single   = "single"
	Batch    = "batch"
	Rotation = "rotation"
)

const (
	singleHead = `{"envelope":`
	singleForm = `,"form":"single","leaf":"`
	singleSig  = `","sig":"`
	// singleTail is how much stands behind the envelope of a single receipt.
	singleTail = len(singleForm) + hashText + len(singleSig) + 86 + len(`"}`)
)

func appendUint(dst []byte, n uint64) []byte { return strconv.AppendUint(dst, n, 10) }

// finishSingle appends what stands behind the envelope.
func finishSingle(dst []byte, leaf Hash, sig []byte) Receipt {
	dst = base64.StdEncoding.AppendEncode(append(dst, singleForm...), leaf[:])
	dst = base64.RawURLEncoding.AppendEncode(append(dst, singleSig...), sig)
	return append(dst, `"}`...)
}

// appendSingle appends a whole receipt of form single.
func appendSingle(dst, envelope []byte, leaf Hash, sig []byte) Receipt {
	return finishSingle(append(append(dst, singleHead...), envelope...), leaf, sig)
}

// appendRotated appends a whole receipt of form rotation.
func appendRotated(dst, envelope []byte, leaf Hash, sig, sigNew []byte) Receipt {
	dst = append(append(dst, singleHead...), envelope...)
	dst = base64.StdEncoding.AppendEncode(append(dst, `,"form":"rotation","leaf":"`...), leaf[:])
	dst = base64.RawURLEncoding.AppendEncode(append(dst, singleSig...), sig)
	dst = base64.RawURLEncoding.AppendEncode(append(dst, `","sig_new":"`...), sigNew)
	return append(dst, `"}`...)
}

// appendBatch appends a whole receipt of form batch; note is the checkpoint as a JSON string.
func appendBatch(dst, note, envelope []byte, n *nodes, seq uint64) Receipt {
	dst = append(append(dst, `{"checkpoint":`...), note...)
	dst = append(append(dst, `,"envelope":`...), envelope...)
	dst = n.appendProof(append(dst, `,"form":"batch","proof":`...), seq)
	return append(dst, '}')
}

// A parsed is a receipt taken apart; the bytes are those of its canonical form.
type parsed struct {
	form       string
	envelope   []byte
	sig        []byte // of form single and rotation
	sigNew     []byte // of form rotation
	leaf       Hash   // claimed, of form single and rotation
	checkpoint []byte // of form batch
	proof      []Hash
}

// MaxReceipt bounds a receipt's document: bytes.
const MaxReceipt = 16 << 10

var (
	errWantForm  = errors.New("want single, batch or rotation")
	errWantSig   = errors.New("want 64 bytes in base64url without padding")
	errWantHash  = errors.New("want 32 bytes in base64")
	errWantProof = errors.New("want an array of at most 64 hashes of 32 bytes in base64")
	errEnvelope  = errors.New("want an object")
)

// parseReceipt takes a document apart. Its error is a *Refusal: the input is no receipt.
func parseReceipt(document []byte) (p parsed, err error) {
	canonical, err := jcs.Append(nil, document, jcs.Limits{Bytes: MaxReceipt, Depth: maxNesting})
	if err != nil {
		return p, malformed(err)
	}
	envelope := field{"envelope", func(v []byte) error {
		p.envelope = v
		if v[0] != '{' {
			return errEnvelope
		}
		return nil
	}}
	form := field{"form", func(v []byte) error {
		text, _ := jcs.Text(v)
		if p.form = string(text); p.form != Single && p.form != Batch && p.form != Rotation {
			return errWantForm
		}
		return nil
	}}
	single := []field{envelope, form, {"leaf", intoHash(&p.leaf)}, {"sig", intoSig(&p.sig)}}
	switch {
	case bytes.HasPrefix(canonical, []byte(`{"checkpoint":`)):
		var note string
		err = closed(canonical, "", []field{{"checkpoint", into(&note)}, envelope, form, {"proof", p.readProof}})
		p.checkpoint = []byte(note)
	case bytes.Contains(canonical, []byte(`,"sig_new":"`)):
		err = closed(canonical, "", append(single, field{"sig_new", intoSig(&p.sigNew)}))
	default:
		err = closed(canonical, "", single)
	}
	if err == nil && (p.form == Batch) != (p.checkpoint != nil) || (p.form == Rotation) != (p.sigNew != nil) {
		err = invalid("/form", "is %s, but the members are those of another form", p.form)
	}
	return p, err
}

func intoHash(to *Hash) func([]byte) error {
	return func(v []byte) error {
		text, _ := jcs.Text(v)
		b, err := base64.StdEncoding.Strict().DecodeString(string(text))
		if err != nil || len(b) != len(to) || len(text) != hashText {
			return errWantHash
		}
		copy(to[:], b)
		return nil
	}
}

func intoSig(to *[]byte) func([]byte) error {
	return func(v []byte) error {
		text, _ := jcs.Text(v)
		b, err := base64.RawURLEncoding.Strict().DecodeString(string(text))
		if err != nil || len(b) != ed25519.SignatureSize || len(text) != 86 {
			return errWantSig
		}
		*to = b
		return nil
	}
}

func (p *parsed) readProof(v []byte) error {
	if v[0] != '[' {
		return errWantProof
	}
	for e := range jcs.Elements(v) {
		var h Hash
		if intoHash(&h)(e) != nil || len(p.proof) == 64 {
			return errWantProof
		}
		p.proof = append(p.proof, h)
	}
	return nil
}
