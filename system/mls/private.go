package mls

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"slices"
)

// Private messages, RFC 9420 §6.3. Everything that is authenticated along with a ciphertext is a stretch of the message's
// own bytes, so a message is built in place and nothing is encoded twice.

// A workbench is what sealing and opening write to; it makes both nearly free of allocation.
type workbench struct {
	signed  []byte // SignContent around FramedContentTBS
	inPlace int    // where in signed the body of a message that is being opened was decrypted to; 0 when it was not
	auth    []byte // FramedContentAuthData of such a message
	inner   []byte // PrivateMessageContent
	key     messageKey
	outer   messageKey // of the sender data
	sender  [senderDataSize]byte
	private privateMessage // that is being opened
	message authenticated  // that is being sealed
	content framedContent
	padding uint32 // plaintexts are filled up to a multiple of it; 0 and 1 leave them as they are
}

// headerSize is that of MLSMessage's version and wire format.
const headerSize = 4

// appendSigned puts SignContent around a's FramedContentTBS in the workbench.
func (w *workbench) appendSigned(a *authenticated, context []byte) []byte {
	if w.isInPlace(a.content.body) {
		return w.signedInPlace(a, context)
	}
	b := appendLength(w.signed[:0], len(labelPrefix)+len(labelFramed))
	b = append(append(b, labelPrefix...), labelFramed...)
	if body := a.content.body; body != nil {
		var head [128]byte
		tbs := a.content.appendHead(appendU16(appendU16(head[:0], versionMLS10), uint16(a.wire)))
		context = a.signedContext(context)
		b = appendLength(b, len(tbs)+len(body)+len(context))
		w.signed = append(append(append(b, tbs...), body...), context...)
		return w.signed
	}
	start := len(b)
	w.signed = closeVector(a.appendTBS(b, context), start)
	return w.signed
}

const labelFramed = "FramedContentTBS"

// signHead is the most that stands before the content in a SignContent with labelFramed.
const signHead = 1 + len(labelPrefix) + len(labelFramed) + 4

// appendRoom starts signed with what is signed before the body of a message of size bytes, which is decrypted behind it: so
// a commit to a thousand is not copied to be verified.
func (w *workbench) appendRoom(a *authenticated, size int) []byte {
	b := slices.Grow(w.signed[:0], signHead+len(a.content.groupID)+len(a.content.data)+size+512)[:signHead]
	return a.content.appendHead(appendU16(appendU16(b, versionMLS10), uint16(a.wire)))
}

// isInPlace says whether a body is the one that was decrypted behind the room.
func (w *workbench) isInPlace(body []byte) bool {
	return w.inPlace > 0 && len(body) > 0 && len(w.signed) > w.inPlace && &body[0] == &w.signed[w.inPlace]
}

// signedInPlace completes what appendRoom began. The body stays where it is; what stood behind it is overwritten.
func (w *workbench) signedInPlace(a *authenticated, context []byte) []byte {
	w.signed = append(w.signed[:w.inPlace+len(a.content.body)], a.signedContext(context)...)
	w.inPlace = 0
	var buf [signHead]byte
	head := appendLength(buf[:0], len(labelPrefix)+len(labelFramed))
	head = appendLength(append(append(head, labelPrefix...), labelFramed...), len(w.signed)-signHead)
	from := signHead - len(head)
	copy(w.signed[from:], head)
	return w.signed[from:]
}

// pad fills the plaintext up with zeros.
func (w *workbench) pad() {
	if w.padding > 1 {
		over := uint32(len(w.inner)) % w.padding
		if over > 0 {
			w.inner = append(w.inner, make([]byte, w.padding-over)...)
		}
	}
}

// sealPrivate appends an MLSMessage with the encryption of a, which is signed, under the next key of leaf's ratchet.
func (w *workbench) sealPrivate(dst []byte, s *suite, t *secretTree, senderDataSecret []byte, a *authenticated) ([]byte, error) {
	generation, err := t.next(&w.key, a.content.sender.Index, a.content.kind)
	if err != nil {
		return nil, err
	}
	return w.sealWith(dst, s, generation, senderDataSecret, a)
}

// sealWith encrypts with the key on the workbench, which is generation's.
func (w *workbench) sealWith(dst []byte, s *suite, generation uint32, senderDataSecret []byte, a *authenticated) ([]byte, error) {
	c := a.content
	w.inner = a.auth.append(c.appendBody(w.inner[:0]), c.kind)
	w.pad()
	start := len(dst)
	if need := len(w.inner) + len(c.groupID) + len(c.data) + 96; cap(dst)-start < need {
		dst = append(make([]byte, 0, start+need), dst...)
	}
	dst = appendU16(appendU16(dst, versionMLS10), uint16(wirePrivate))
	dst = append(appendU64(appendVector(dst, c.groupID), c.epoch), byte(c.kind))
	senderAAD := len(dst)
	dst = appendVector(dst, c.data)
	contentAAD := len(dst)

	binary.BigEndian.PutUint32(w.sender[:], c.sender.Index)
	binary.BigEndian.PutUint32(w.sender[4:], generation)
	rand.Read(w.sender[8:])
	w.guard(w.sender[8:])
	aead, err := s.aead(w.key.key[:s.nk])
	if err != nil {
		return nil, err
	}
	sealedSize := senderDataSize + aead.Overhead()
	dst = appendLength(dst, sealedSize)
	hole := len(dst)
	dst = append(dst, w.sender[:]...)
	dst = append(dst, make([]byte, aead.Overhead())...)
	dst = appendLength(dst, len(w.inner)+aead.Overhead())
	body := len(dst)
	dst = aead.Seal(dst, w.key.nonce[:], w.inner, dst[start+headerSize:contentAAD])
	w.key = messageKey{}

	if aead, err = w.senderDataAEAD(s, senderDataSecret, dst[body:]); err != nil {
		return nil, err
	}
	aead.Seal(dst[hole:hole], w.outer.nonce[:], w.sender[:], dst[start+headerSize:senderAAD])
	return dst, nil
}

// guard XORs the reuse guard into the nonce of the key on the workbench.
func (w *workbench) guard(guard []byte) {
	for i, b := range guard[:reuseGuardSize] {
		w.key.nonce[i] ^= b
	}
}

// senderDataAEAD derives the key that encrypts sender data from a sample of the ciphertext (§6.3.2).
func (w *workbench) senderDataAEAD(s *suite, secret, ciphertext []byte) (cipher.AEAD, error) {
	sample := ciphertext[:min(len(ciphertext), s.nh)]
	s.expandLabel(w.outer.key[:s.nk], secret, "key", sample)
	s.expandLabel(w.outer.nonce[:], secret, "nonce", sample)
	return s.aead(w.outer.key[:s.nk])
}

// openPrivate decrypts m, which was decoded from data. It returns what was sent and the candidate whose key it used, which
// the caller consumes once the signature is verified. Application data is fresh memory, and so is a handshake message of
// which something is kept; the rest is the workbench's.
func (w *workbench) openPrivate(s *suite, t *secretTree, senderDataSecret, data []byte, m *privateMessage, self uint32) (authenticated, candidate, error) {
	var a authenticated
	var c candidate
	w.inPlace = 0
	aead, err := w.senderDataAEAD(s, senderDataSecret, m.ciphertext)
	if err != nil {
		return a, c, err
	}
	contentAAD := data[headerSize : len(data)-sizeVector(len(m.ciphertext))-sizeVector(len(m.senderData))]
	senderAAD := contentAAD[:len(contentAAD)-sizeVector(len(m.data))]
	if len(m.senderData) != senderDataSize+aead.Overhead() {
		return a, c, refuse(ErrDecrypt, "sender data of %d bytes", len(m.senderData))
	}
	if _, err := aead.Open(w.sender[:0], w.outer.nonce[:], m.senderData, senderAAD); err != nil {
		return a, c, refuse(ErrDecrypt, "the sender data")
	}
	leaf, generation := binary.BigEndian.Uint32(w.sender[:]), binary.BigEndian.Uint32(w.sender[4:])
	if leaf == self {
		return a, c, refuse(ErrOwnMessage, "generation %d", generation)
	}
	if c, err = t.peek(leaf, m.kind, generation); err != nil {
		return a, c, err
	}
	w.key = c.key
	w.guard(w.sender[8:])
	if aead, err = s.aead(w.key.key[:s.nk]); err != nil {
		return a, c, err
	}
	content := &framedContent{groupID: m.groupID, epoch: m.epoch, sender: Sender{SenderMember, leaf}, data: m.data, kind: m.kind}
	a = authenticated{wire: wirePrivate, content: content}
	var room []byte
	if m.kind != ContentApplication {
		room = w.appendRoom(&a, len(m.ciphertext))
	}
	plain, err := aead.Open(room, w.key.nonce[:], m.ciphertext, contentAAD)
	w.key = messageKey{}
	if err != nil {
		return a, c, refuse(ErrDecrypt, "generation %d of leaf %d", generation, leaf)
	}
	if m.kind != ContentApplication {
		w.signed, plain = plain, plain[len(room):]
		if w.inPlace = len(room); !keepsNothing(m.kind, plain) {
			w.inPlace, plain = 0, bytes.Clone(plain)
		}
	}
	r := newReader(plain)
	content.readBody(&r)
	a.auth = readAuthData(&r, m.kind)
	if w.inPlace > 0 {
		a.auth = w.ownAuth(a.auth)
	}
	for _, b := range r.data {
		if b != 0 {
			r.fail("padding that is not zero")
			break
		}
	}
	return a, c, r.err
}

// keepsNothing says whether a plaintext is that of a commit without proposals, of which the group's next state holds copies.
func keepsNothing(kind ContentType, plain []byte) bool {
	return kind == ContentCommit && len(plain) > 0 && plain[0] == 0
}

// ownAuth copies what is to be read after signedInPlace wrote over it.
func (w *workbench) ownAuth(a authData) authData {
	n := len(a.signature)
	w.auth = append(append(w.auth[:0], a.signature...), a.confirmation...)
	return authData{signature: w.auth[:n:n], confirmation: w.auth[n:]}
}

// sizeVector is the size of an opaque vector with its header.
func sizeVector(n int) int {
	switch {
	case n < 1<<6:
		return n + 1
	case n < 1<<14:
		return n + 2
	}
	return n + 4
}
