package zap

import "encoding/binary"

// A Builder appends one message to a buffer. What an object points back to (lists, other objects) is written before it;
// what its slots point forward to, while it is the last object begun. The last object is the root.
//
//	w := zap.Build(dst, zap.Version1, 0)
//	w.Object(16)
//	w.Uint64(0, 42)
//	w.Bytes(8, text)
//	dst = w.End()
type Builder struct {
	b     []byte
	start int // of the message in b; offsets are relative to it
	root  int
}

// Build begins a message behind dst.
func Build(dst []byte, version, flags uint16) Builder {
	w := Builder{b: dst, start: len(dst)}
	w.b = append(w.b, magic...)
	w.b = binary.LittleEndian.AppendUint16(w.b, version)
	w.b = binary.LittleEndian.AppendUint16(w.b, flags)
	w.b = append(w.b, 0, 0, 0, 0, 0, 0, 0, 0)
	return w
}

// Object begins an object whose fixed section has n bytes, all zero, and returns its place.
func (w *Builder) Object(n int) int {
	w.align()
	w.root = len(w.b) - w.start
	for ; n > 0; n -= len(zeros) {
		w.b = append(w.b, zeros[:min(n, len(zeros))]...)
	}
	return w.root
}

var zeros [64]byte

func (w *Builder) align() {
	if odd := (len(w.b) - w.start) % 8; odd != 0 {
		w.b = append(w.b, zeros[:8-odd]...)
	}
}

// at returns the fixed section from an offset on.
func (w *Builder) at(offset int) []byte { return w.b[w.start+w.root+offset:] }

// Uint8 sets the byte at an offset of the object.
func (w *Builder) Uint8(offset int, v uint8) { w.at(offset)[0] = v }

// Uint16 sets the 16-bit integer at an offset of the object.
func (w *Builder) Uint16(offset int, v uint16) { binary.LittleEndian.PutUint16(w.at(offset), v) }

// Uint32 sets the 32-bit integer at an offset of the object.
func (w *Builder) Uint32(offset int, v uint32) { binary.LittleEndian.PutUint32(w.at(offset), v) }

// Uint64 sets the 64-bit integer at an offset of the object.
func (w *Builder) Uint64(offset int, v uint64) { binary.LittleEndian.PutUint64(w.at(offset), v) }

// Bytes appends data and points the slot at an offset of the object to it. Without data the slot stays null.
func (w *Builder) Bytes(offset int, data []byte) {
	if len(data) == 0 {
		return
	}
	at := w.point(offset)
	w.b = append(w.b, data...)
	w.pointed(offset, at)
}

// Text is Bytes for a string.
func (w *Builder) Text(offset int, text string) {
	if text == "" {
		return
	}
	at := w.point(offset)
	w.b = append(w.b, text...)
	w.pointed(offset, at)
}

// point makes the slot at an offset of the object point to what is appended next; pointed says that it has been.
func (w *Builder) point(offset int) (at int) {
	w.Uint32(offset, uint32(len(w.b)-(w.start+w.root+offset)))
	return len(w.b)
}

func (w *Builder) pointed(offset, at int) { w.Uint32(offset+4, uint32(len(w.b)-at)) }

// Link points the four bytes at an offset of the object to an object written before.
func (w *Builder) Link(offset, place int) { w.Uint32(offset, uint32(int32(place-(w.root+offset)))) }

// List begins a list and returns its place. Its elements follow, before the next object is begun.
func (w *Builder) List() int {
	w.align()
	return len(w.b) - w.start
}

// Element appends an element with its length before it.
func (w *Builder) Element(data []byte) {
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(data)))
	w.b = append(w.b, data...)
}

// Raw appends bare bytes, such as the elements of a list that all have the same width.
func (w *Builder) Raw(data []byte) { w.b = append(w.b, data...) }

// LinkList points the slot at an offset of the object to a list of n elements written before. An empty list stays null.
func (w *Builder) LinkList(offset, place, n int) {
	if n == 0 {
		return
	}
	w.Link(offset, place)
	w.Uint32(offset+4, uint32(n))
}

// End completes the message and returns the buffer.
func (w *Builder) End() []byte {
	binary.LittleEndian.PutUint32(w.b[w.start+8:], uint32(w.root))
	binary.LittleEndian.PutUint32(w.b[w.start+12:], uint32(len(w.b)-w.start))
	return w.b
}
