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
	ErrDirection = errors.New("unexpected direction")
	ErrTooLarge  = errors.New("too large")
)

// A Message is a checked message: its header is sound and its root lies within it.
type Message struct {
	Version, Flags uint16

	b       []byte // exactly the message
	root    int
	lenient bool
}

// compressed and encrypted messages can't be read here; the bit for signed ones changes nothing about the data.
const unreadable = 1<<0 | 1<<1

// Parse checks the header of a message at the beginning of b. What lies behind the message's total size is ignored.
func Parse(b []byte) (Message, error) { return parse(b, false) }

// ParseLenient is Parse for a message that is read as the format's own readers do: a root, an offset or a length outside
// the message is zero instead of an error. The header must be sound all the same.
func ParseLenient(b []byte) (Message, error) { return parse(b, true) }

func parse(b []byte, lenient bool) (Message, error) {
	if len(b) < headerSize {
		return Message{}, fmt.Errorf("zap: header of %d bytes: %w", len(b), ErrTruncated)
	}
	m := Message{Version: binary.LittleEndian.Uint16(b[4:]), Flags: binary.LittleEndian.Uint16(b[6:]), lenient: lenient}
	root, size := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	outside := root < headerSize || root > size
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
		return Message{}, fmt.Errorf("zap: total size %d, at most %d: %w", size, MaxMessage, ErrTooLarge)
	case uint64(size) > uint64(len(b)):
		return Message{}, fmt.Errorf("zap: total size %d of %d bytes: %w", size, len(b), ErrTruncated)
	case outside && !lenient:
		return Message{}, fmt.Errorf("zap: root at %d of %d: %w", root, size, ErrRoot)
	case outside:
		root = size
	}
	m.b, m.root = b[:size:size], int(root)
	return m, nil
}

// Type is the type of message that framings keep in the flags' high byte.
func (m Message) Type() byte { return byte(m.Flags >> 8) }

// Size is the message's total size.
func (m Message) Size() int { return len(m.b) }

// Root returns the root object.
func (m Message) Root() Object { return Object{m: m, at: m.root} }

// outside is how a reading that leaves the message ends: with an error or, leniently, with nothing.
func (m *Message) outside(err func() error) ([]byte, error) {
	if m.lenient {
		return nil, nil
	}
	return nil, err()
}

// fixed returns n bytes at an offset of the message; leniently nil when they are not there.
func (m *Message) fixed(at, n int) ([]byte, error) {
	if at+n > len(m.b) {
		return m.outside(func() error { return fmt.Errorf("zap: field of %d bytes at %d of %d: %w", n, at, len(m.b), ErrRange) })
	}
	return m.b[at : at+n : at+n], nil
}

// bytes returns what the slot at an offset points to, nil when it is null. Slots point forward only, and so never into the
// header.
func (m *Message) bytes(slot int) ([]byte, error) {
	s, err := m.fixed(slot, 8)
	if s == nil {
		return nil, err
	}
	rel, n := binary.LittleEndian.Uint32(s), binary.LittleEndian.Uint32(s[4:])
	at := uint64(slot) + uint64(rel)
	switch {
	case rel == 0 && n == 0:
		return nil, nil
	case rel == 0:
		return m.outside(func() error { return fmt.Errorf("zap: null slot at %d with length %d: %w", slot, n, ErrRange) })
	case at+uint64(n) > uint64(len(m.b)):
		return m.outside(func() error {
			return fmt.Errorf("zap: slot at %d points to %d bytes at %d of %d: %w", slot, n, at, len(m.b), ErrRange)
		})
	}
	return m.b[at : at+uint64(n) : at+uint64(n)], nil
}

// list returns the bytes from where the list slot at an offset points to, and the number of elements there; their width is
// at least min, so a number that can't be true is found before anything is made of it. The slot's offset is signed, since
// lists stand before their object.
func (m *Message) list(slot, min int) (data []byte, count int, err error) {
	s, err := m.fixed(slot, 8)
	if s == nil {
		return nil, 0, err
	}
	rel, n := int32(binary.LittleEndian.Uint32(s)), binary.LittleEndian.Uint32(s[4:])
	at := int64(slot) + int64(rel)
	switch {
	case rel == 0 && n == 0:
		return nil, 0, nil
	case rel == 0:
		_, err = m.outside(func() error { return fmt.Errorf("zap: null list at %d with %d elements: %w", slot, n, ErrRange) })
		return nil, 0, err
	case at >= headerSize && at <= int64(len(m.b)):
		data = m.b[at:]
		if fits := len(data) / min; int64(n) <= int64(fits) {
			return data, int(n), nil
		} else if m.lenient {
			return data, fits, nil
		}
	}
	_, err = m.outside(func() error {
		return fmt.Errorf("zap: list at %d of %d elements at %d of %d: %w", slot, n, at, len(m.b), ErrRange)
	})
	return nil, 0, err
}
