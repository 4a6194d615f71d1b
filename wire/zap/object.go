package zap

import (
	"encoding/binary"
	"fmt"
)

// An Object reads the fields of an object, each by its offset in the fixed section. The first reading that leaves the
// message is kept for Err; it and every later one give zero. What it returns is the message's memory, but for Text.
type Object struct {
	m   Message
	at  int
	err error
}

// Err returns what went wrong first.
func (o *Object) Err() error { return o.err }

func (o *Object) fixed(offset, n int) []byte {
	if o.err != nil {
		return nil
	}
	var b []byte
	b, o.err = o.m.fixed(o.at+offset, n)
	return b
}

// Uint8 returns the byte at an offset.
func (o *Object) Uint8(offset int) uint8 {
	if b := o.fixed(offset, 1); b != nil {
		return b[0]
	}
	return 0
}

// Uint16 returns the 16-bit integer at an offset.
func (o *Object) Uint16(offset int) uint16 {
	if b := o.fixed(offset, 2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// Uint32 returns the 32-bit integer at an offset.
func (o *Object) Uint32(offset int) uint32 {
	if b := o.fixed(offset, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Uint64 returns the 64-bit integer at an offset.
func (o *Object) Uint64(offset int) uint64 {
	if b := o.fixed(offset, 8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Bytes returns what the slot at an offset points to, nil when it is null.
func (o *Object) Bytes(offset int) []byte {
	if o.err != nil {
		return nil
	}
	var b []byte
	b, o.err = o.m.bytes(o.at + offset)
	return b
}

// Text returns a copy of what the slot at an offset points to.
func (o *Object) Text(offset int) string { return string(o.Bytes(offset)) }

// Object returns the object of the same message that the four bytes at an offset point to; ok is false when they are null.
func (o *Object) Object(offset int) (inner Object, ok bool) {
	b := o.fixed(offset, 4)
	if b == nil {
		return Object{}, false
	}
	rel := int32(binary.LittleEndian.Uint32(b))
	if rel == 0 {
		return Object{}, false
	}
	at := int64(o.at+offset) + int64(rel)
	if at < headerSize || at > int64(len(o.m.b)) {
		_, o.err = o.m.outside(func() error {
			return fmt.Errorf("zap: object at %d of %d: %w", at, len(o.m.b), ErrRange)
		})
		return Object{}, false
	}
	return Object{m: o.m, at: int(at)}, true
}

// List returns the list that the slot at an offset points to; it is empty when that is null.
func (o *Object) List(offset int) List {
	if o.err != nil {
		return List{}
	}
	l := List{m: o.m}
	l.data, l.n, o.err = o.m.list(o.at+offset, 1)
	return l
}

// A List reads elements one after another.
type List struct {
	m    Message
	data []byte
	n    int
	i    int
	err  error
}

// Len is the number of elements that the list claims to hold; there are at least as many bytes in the message.
func (l *List) Len() int { return l.n }

// Err returns what ended Next before its time.
func (l *List) Err() error { return l.err }

// Next returns the next element of a list whose elements have their length before them.
func (l *List) Next() (element []byte, ok bool) {
	if l.err != nil || l.i == l.n {
		return nil, false
	}
	element, l.data, l.err = l.m.element(l.data, l.i, l.n)
	l.i++
	return element, l.err == nil
}

// Fixed returns the bytes of a list whose elements have a width and no length.
func (l *List) Fixed(width int) ([]byte, error) {
	if len(l.data)/width < l.n {
		return l.m.outside(func() error {
			return fmt.Errorf("zap: %d elements of %d bytes in %d: %w", l.n, width, len(l.data), ErrRange)
		})
	}
	return l.data[: l.n*width : l.n*width], nil
}

// element splits element i of n off data: a length of four bytes and as many bytes. Leniently one that is not there is nil.
func (m *Message) element(data []byte, i, n int) (element, rest []byte, err error) {
	if len(data) < 4 {
		_, err = m.outside(func() error { return fmt.Errorf("zap: element %d of %d: %w", i, n, ErrTruncated) })
		return nil, nil, err
	}
	size := binary.LittleEndian.Uint32(data)
	if uint64(size) > uint64(len(data)-4) {
		_, err = m.outside(func() error {
			return fmt.Errorf("zap: element %d of %d has %d bytes of %d: %w", i, n, size, len(data)-4, ErrRange)
		})
		return nil, nil, err
	}
	return data[4 : 4+size : 4+size], data[4+size:], nil
}
