package driver

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// The messages of the operation in protocol buffers, which peers/go/grpc/note declares:
//
//	NoteIn  { int64 id = 1; string note = 2; }
//	NoteOut { int64 id = 1; string note = 2; string status = 3; string owner = 4; }

// appendProtoNote appends a NoteIn. A field that is zero or empty is left out, as proto3 does.
func appendProtoNote(b []byte, id int64, note []byte) []byte {
	if id != 0 {
		b = appendVarint(append(b, 1<<3|protoVarint), uint64(id))
	}
	if len(note) > 0 {
		b = appendVarint(append(b, 2<<3|protoBytes), uint64(len(note)))
		b = append(b, note...)
	}
	return b
}

func appendVarint(b []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// The wire types that are in use.
const (
	protoVarint = 0
	proto64     = 1
	protoBytes  = 2
	proto32     = 5
)

var (
	errProtoEnd    = errors.New("message ends inside a field")
	errProtoVarint = errors.New("varint of more than 64 bits")
)

// scanProtoNote decodes a NoteOut in place. Of a field that stands twice the last counts, unknown fields are passed over,
// and a text that is no UTF-8 is an error, as proto3 says.
func scanProtoNote(b []byte) (noteReply, error) {
	var n noteReply
	whole := len(b)
	for len(b) > 0 {
		rest, err := n.protoField(b)
		if err != nil {
			return n, fmt.Errorf("protobuf at byte %d: %w", whole-len(b), err)
		}
		b = rest
	}
	return n, nil
}

// protoField reads one field.
func (n *noteReply) protoField(b []byte) (rest []byte, err error) {
	tag, b, err := varint(b)
	if err != nil {
		return nil, err
	}
	number, kind := tag>>3, tag&7
	if number == 0 || number >= 1<<29 {
		return nil, fmt.Errorf("field number %d", number)
	}
	want := uint64(protoBytes)
	if number == 1 {
		want = protoVarint
	}
	if number <= 4 && kind != want {
		return nil, fmt.Errorf("field %d has wire type %d, not %d", number, kind, want)
	}
	switch kind {
	case protoVarint:
		v, rest, err := varint(b)
		if number == 1 {
			n.id = int64(v)
		}
		return rest, err
	case proto64:
		return skipBytes(b, 8)
	case proto32:
		return skipBytes(b, 4)
	case protoBytes:
		return n.protoText(number, b)
	}
	return nil, fmt.Errorf("field %d has wire type %d", number, kind)
}

// protoText reads a field with a length, and keeps it if it is a text of ours.
func (n *noteReply) protoText(number uint64, b []byte) (rest []byte, err error) {
	size, b, err := varint(b)
	if err != nil {
		return nil, err
	}
	if size > uint64(len(b)) {
		return nil, errProtoEnd
	}
	text, rest := b[:size], b[size:]
	if number <= 4 && !utf8.Valid(text) {
		return nil, fmt.Errorf("field %d is no UTF-8", number)
	}
	switch number {
	case 2:
		n.note = text
	case 3:
		n.status = text
	}
	return rest, nil
}

func skipBytes(b []byte, n int) ([]byte, error) {
	if len(b) < n {
		return nil, errProtoEnd
	}
	return b[n:], nil
}

// varint reads a base-128 number of at most ten bytes.
func varint(b []byte) (v uint64, rest []byte, err error) {
	for i, c := range b {
		if i == 9 && c > 1 {
			return 0, nil, errProtoVarint
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, b[i+1:], nil
		}
	}
	return 0, nil, errProtoEnd
}
