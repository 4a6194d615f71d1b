package mls

import (
	"encoding/binary"
	"math"
)

// The presentation language of RFC 9420 §2.1. Encoders append to a slice; vectors of structures are written first and get
// their length in front afterwards, so nothing is measured twice.

const maxVector = 1<<30 - 1

func appendU16(dst []byte, n uint16) []byte { return binary.BigEndian.AppendUint16(dst, n) }
func appendU32(dst []byte, n uint32) []byte { return binary.BigEndian.AppendUint32(dst, n) }
func appendU64(dst []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(dst, n) }

// appendLength appends a vector's length in the fewest bytes. Public entry points bound what they take, so a vector that
// is too long for its header is our own mistake.
func appendLength(dst []byte, n int) []byte {
	switch {
	case n < 1<<6:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, byte(n>>8)|0x40, byte(n))
	case n <= maxVector:
		return append(dst, byte(n>>24)|0x80, byte(n>>16), byte(n>>8), byte(n))
	}
	panic("mls: a vector of more than 2^30-1 bytes")
}

// appendVector appends opaque data<V>.
func appendVector[T []byte | string](dst []byte, data T) []byte {
	return append(appendLength(dst, len(data)), data...)
}

// closeVector puts the length of dst[start:] in front of it.
func closeVector(dst []byte, start int) []byte {
	var head [4]byte
	n := len(dst) - start
	header := appendLength(head[:0], n)
	dst = append(dst, header...)
	copy(dst[start+len(header):], dst[start:start+n])
	copy(dst[start:], header)
	return dst
}

// appendOptional appends the presence octet of optional<T> (§2.1.1).
func appendOptional(dst []byte, present bool) []byte {
	if present {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// A reader decodes. Its first error sticks, and every read after it gives zero values. What it returns aliases its input.
type reader struct {
	data []byte
	base int // offset of the whole input's end, so that an error can say where
	err  error
	last *lastCapabilities // of a list of leaf nodes, most of which have the same
}

func newReader(data []byte) reader { return reader{data: data, base: len(data)} }

func (r *reader) offset() int { return r.base - len(r.data) }

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = refuse(ErrMalformed, "at byte %d: %s", r.offset(), what)
		r.data = nil
	}
}

// adopt takes over the error of a reader over a part of the input.
func (r *reader) adopt(sub *reader) {
	if r.err == nil && sub.err != nil {
		r.err, r.data = sub.err, nil
	}
}

// finish refuses bytes that are left over.
func (r *reader) finish() error {
	if r.err == nil && len(r.data) > 0 {
		r.fail("trailing bytes")
	}
	return r.err
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n > len(r.data) {
		r.fail("too short")
		return nil
	}
	out := r.data[:n:n]
	r.data = r.data[n:]
	return out
}

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// length reads a vector's length header, which must be in the fewest bytes (§2.1.2).
func (r *reader) length() int {
	first := r.u8()
	n := int(first & 0x3f)
	switch first >> 6 {
	case 0:
		return n
	case 1:
		n = n<<8 | int(r.u8())
		if r.err == nil && n < 1<<6 {
			r.fail("a length in more bytes than it needs")
		}
	case 2:
		b := r.take(3)
		if r.err == nil {
			n = n<<24 | int(b[0])<<16 | int(b[1])<<8 | int(b[2])
		}
		if r.err == nil && n < 1<<14 {
			r.fail("a length in more bytes than it needs")
		}
	default:
		r.fail("a length header that is reserved")
	}
	return n
}

// vector reads opaque data<V>; empty data is nil-safe and shares the input.
func (r *reader) vector() []byte {
	if len(r.data) > 0 && int(r.data[0]) < min(1<<6, len(r.data)) { // nearly all are short
		end := 1 + int(r.data[0])
		out := r.data[1:end:end]
		r.data = r.data[end:]
		return out
	}
	n := r.length()
	if r.err != nil {
		return nil
	}
	return r.take(n)
}

// list reads the header of a vector of structures and returns a reader of its content.
func (r *reader) list() reader {
	start := r.vector()
	return reader{data: start, base: r.offset(), err: r.err}
}

// more says whether a vector of structures has another element.
func (r *reader) more() bool { return r.err == nil && len(r.data) > 0 }

// optional reads a presence octet.
func (r *reader) optional() bool {
	switch b := r.u8(); {
	case r.err != nil:
		return false
	case b > 1:
		r.fail("a presence octet that is neither 0 nor 1")
		return false
	default:
		return b == 1
	}
}

// appendU16s appends a vector of 16-bit values.
func appendU16s[T ~uint16](dst []byte, list []T) []byte {
	dst = appendLength(dst, 2*len(list))
	for _, v := range list {
		dst = appendU16(dst, uint16(v))
	}
	return dst
}

func readU16s[T ~uint16](r *reader) []T {
	sub := r.list()
	if len(sub.data)%2 != 0 {
		sub.fail("a vector of 16-bit values with an odd length")
	}
	out := make([]T, 0, len(sub.data)/2)
	for sub.more() {
		out = append(out, T(sub.u16()))
	}
	r.adopt(&sub)
	return out
}

// A span is what a reader had before it was narrowed to a vector's content.
type span struct {
	rest []byte
	base int
}

// enter narrows the reader to the content of a vector; leave goes on behind it.
func (r *reader) enter() span {
	content := r.vector()
	s := span{r.data, r.base}
	r.data, r.base = content, r.offset()
	return s
}

func (r *reader) leave(s span) {
	if r.base = s.base; r.err == nil {
		r.data = s.rest
	}
}

// readList reads a vector of structures.
func readList[T any](r *reader, read func(*reader) T) []T { return readListOf(r, read, maxGuess) }

// readListOf is readList where no more than guess elements are expected.
func readListOf[T any](r *reader, read func(*reader) T, guess int) []T {
	behind := r.enter()
	size := len(r.data)
	var out []T
	for r.more() {
		v := read(r)
		if out == nil {
			// As many as there are if all are as long as the first, of what nobody can make us take too much of.
			out = make([]T, 0, min(size/(size-len(r.data)), guess))
		}
		out = append(out, v)
	}
	r.leave(behind)
	return out
}

// maxGuess bounds the elements that room is made for before they were seen.
const maxGuess = 1024

// decode runs read over the whole of data.
func decode[T any](data []byte, read func(*reader) T) (T, error) {
	r := newReader(data)
	out := read(&r)
	if err := r.finish(); err != nil {
		var zero T
		return zero, err
	}
	return out, nil
}

// maxMessage bounds what any decoder is given, in bytes: a tree of a hundred thousand members fits.
const maxMessage = 1 << 26

func bounded(data []byte) error {
	if len(data) > maxMessage {
		return refuse(ErrMalformed, "%d bytes, more than the %d this engine takes", len(data), maxMessage)
	}
	return nil
}

const maxGeneration = math.MaxUint32
