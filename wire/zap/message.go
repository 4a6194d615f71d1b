package zap

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	headerSize = 16
	magic      = "ZAP\x00"

	// MaxMessage is the largest message and the largest frame.
	MaxMessage = 64 << 20
)

// The versions of a message; their data are the same.
const (
	Version1 = 1
	Version2 = 2
)

// What can be wrong with a message. Errors name the place and wrap one of these.
var (
	ErrTruncated = errors.New("truncated")
	ErrMagic     = errors.New("not a ZAP message")
	ErrVersion   = errors.New("unknown version")
	ErrSize      = errors.New("bad total size")
	ErrRoot      = errors.New("root outside the message")
	ErrRange     = errors.New("offset or length outside the message")
	ErrFlags     = errors.New("flags not understood")
	ErrType      = errors.New("unexpected type of message")
	ErrTooLarge  = errors.New("larger than 64 MiB")
)

// A Message is a checked message: its header is sound and its root lies within it.
type Message struct {
	Version, Flags uint16

	b    []byte // exactly the message
	root int
}

// compressed and encrypted messages can't be read here; the bit for signed ones changes nothing about the data.
const unreadable = 1<<0 | 1<<1

// Parse checks the header of a message at the beginning of b. What lies behind the message's total size is ignored.
func Parse(b []byte) (Message, error) {
	if len(b) < headerSize {
		return Message{}, fmt.Errorf("zap: header of %d bytes: %w", len(b), ErrTruncated)
	}
	m := Message{Version: binary.LittleEndian.Uint16(b[4:]), Flags: binary.LittleEndian.Uint16(b[6:])}
	root, size := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	switch {
	case string(b[:4]) != magic:
		return Message{}, fmt.Errorf("zap: magic %x: %w", b[:4], ErrMagic)
	case m.Version != Version1 && m.Version != Version2:
		return Message{}, fmt.Errorf("zap: version %d: %w", m.Version, ErrVersion)
	case m.Flags&unreadable != 0:
		return Message{}, fmt.Errorf("zap: flags %#04x: compressed or encrypted: %w", m.Flags, ErrFlags)
	case size < headerSize:
		return Message{}, fmt.Errorf("zap: total size %d is less than the header: %w", size, ErrSize)
	case size > MaxMessage:
		return Message{}, fmt.Errorf("zap: total size %d: %w", size, ErrTooLarge)
	case uint64(size) > uint64(len(b)):
		return Message{}, fmt.Errorf("zap: total size %d of %d bytes: %w", size, len(b), ErrTruncated)
	case root < headerSize || root > size:
		return Message{}, fmt.Errorf("zap: root at %d of %d: %w", root, size, ErrRoot)
	}
	m.b, m.root = b[:size:size], int(root)
	return m, nil
}

// Type is the type of message that framings keep in the flags' high byte.
func (m Message) Type() byte { return byte(m.Flags >> 8) }

// fixed returns n bytes of the root object's fixed section.
func (m Message) fixed(offset, n int) ([]byte, error) {
	at := m.root + offset
	if at+n > len(m.b) {
		return nil, fmt.Errorf("zap: field of %d bytes at %d of %d: %w", n, at, len(m.b), ErrRange)
	}
	return m.b[at : at+n], nil
}

// bytes returns what the slot at an offset of the root object points to, nil when it is null. Targets lie behind the
// header and within the message; they point forward only.
func (m Message) bytes(offset int) ([]byte, error) {
	slot, err := m.fixed(offset, 8)
	if err != nil {
		return nil, err
	}
	rel, n := binary.LittleEndian.Uint32(slot), binary.LittleEndian.Uint32(slot[4:])
	if rel == 0 {
		if n != 0 {
			return nil, fmt.Errorf("zap: null slot at %d with length %d: %w", m.root+offset, n, ErrRange)
		}
		return nil, nil
	}
	at := uint64(m.root+offset) + uint64(rel)
	if at < headerSize || at+uint64(n) > uint64(len(m.b)) {
		return nil, fmt.Errorf("zap: slot at %d points to %d bytes at %d of %d: %w", m.root+offset, n, at, len(m.b), ErrRange)
	}
	return m.b[at : at+uint64(n) : at+uint64(n)], nil
}

// list returns the bytes behind the count of a list slot: a signed offset, since lists stand before their object.
func (m Message) list(offset int) (data []byte, count uint32, err error) {
	slot, err := m.fixed(offset, 8)
	if err != nil {
		return nil, 0, err
	}
	rel, n := int32(binary.LittleEndian.Uint32(slot)), binary.LittleEndian.Uint32(slot[4:])
	if rel == 0 {
		if n != 0 {
			return nil, 0, fmt.Errorf("zap: null list at %d with %d elements: %w", m.root+offset, n, ErrRange)
		}
		return nil, 0, nil
	}
	at := int64(m.root+offset) + int64(rel)
	// Every element has a length of four bytes, so a count that large can't be true; checked before anything is made of it.
	if at < headerSize || at > int64(len(m.b)) || int64(n) > (int64(len(m.b))-at)/4 {
		return nil, 0, fmt.Errorf("zap: list at %d of %d elements at %d of %d: %w", m.root+offset, n, at, len(m.b), ErrRange)
	}
	return m.b[at:], n, nil
}

// A builder appends one message to a buffer. Offsets are relative to the message's beginning.
type builder struct {
	b     []byte
	start int
	root  int
}

// begin appends a header whose sizes are filled in by end.
func begin(dst []byte, version, flags uint16) builder {
	w := builder{b: dst, start: len(dst)}
	w.b = append(w.b, magic...)
	w.b = binary.LittleEndian.AppendUint16(w.b, version)
	w.b = binary.LittleEndian.AppendUint16(w.b, flags)
	w.b = append(w.b, 0, 0, 0, 0, 0, 0, 0, 0)
	return w
}

// object begins the root object with n zeroed bytes, aligned to 8 within the message.
func (w *builder) object(n int) {
	for (len(w.b)-w.start)%8 != 0 {
		w.b = append(w.b, 0)
	}
	w.root = len(w.b) - w.start
	w.b = append(w.b, zeros[:min(n, len(zeros))]...)
	for n -= len(zeros); n > 0; n -= len(zeros) {
		w.b = append(w.b, zeros[:min(n, len(zeros))]...)
	}
}

var zeros [64]byte

// at returns the fixed section from an offset on.
func (w *builder) at(offset int) []byte { return w.b[w.start+w.root+offset:] }

// slot appends data and points the slot at offset to it. Without data the slot stays null.
func (w *builder) slot(offset int, data []byte) {
	if len(data) == 0 {
		return
	}
	w.point(offset, len(data))
	w.b = append(w.b, data...)
}

func (w *builder) slotString(offset int, data string) {
	if data == "" {
		return
	}
	w.point(offset, len(data))
	w.b = append(w.b, data...)
}

// point makes the slot at offset point to the n bytes that are appended next.
func (w *builder) point(offset, n int) {
	s := w.at(offset)
	binary.LittleEndian.PutUint32(s, uint32(len(w.b)-(w.start+w.root+offset)))
	binary.LittleEndian.PutUint32(s[4:], uint32(n))
}

// end fills in root and total size.
func (w *builder) end() []byte {
	binary.LittleEndian.PutUint32(w.b[w.start+8:], uint32(w.root))
	binary.LittleEndian.PutUint32(w.b[w.start+12:], uint32(len(w.b)-w.start))
	return w.b
}
