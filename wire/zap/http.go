package zap

import (
	"encoding/binary"
	"fmt"
	"iter"
)

// ZAP-HTTP: a frame is its length, four bytes big-endian, and a message of version 1 whose type stands in the flags. A
// connection carries one exchange at a time.

// The types of ZAP-HTTP messages.
const (
	TypeRequest  = 1
	TypeResponse = 2
	TypeHead     = 3 // of a response whose body follows in pieces
	TypeData     = 4 // a piece
	TypeEnd      = 5
)

const (
	frameHeader = 4
	httpSize    = 48 // fixed section of a request and of a response
	chunkSize   = 8  // of a piece and of an end
)

// A Pair is a header or a trailer: Content-Length and Trailer are never among them, Host is.
type Pair struct{ Name, Value []byte }

// A Request is a ZAP-HTTP request. A parsed one points into the frame.
type Request struct {
	Method, Target, Proto []byte
	Headers               []Pair
	Body                  []byte
	Trailer               []Pair
}

// A Response is a ZAP-HTTP response. A parsed one points into the frame.
type Response struct {
	Status        uint16
	Reason, Proto []byte
	Headers       []Pair
	Body          []byte
	Trailer       []Pair

	// Chunks, when a handler sets it, are sent one frame each in the place of Body; the trailer follows them.
	Chunks iter.Seq[[]byte]
	// Streamed is set by Parse when the body follows in frames of its own.
	Streamed bool
}

// Append appends r as a frame.
func (r *Request) Append(dst []byte) []byte {
	w := buildFrame(dst, TypeRequest, httpSize)
	w.Bytes(0, r.Method)
	w.Bytes(8, r.Target)
	w.Bytes(16, r.Proto)
	w.pairs(24, r.Headers)
	w.Bytes(32, r.Body)
	w.pairs(40, r.Trailer)
	return w.endFrame()
}

// Append appends r as a frame.
func (r *Response) Append(dst []byte) []byte {
	w := buildFrame(dst, TypeResponse, httpSize)
	r.head(&w)
	w.Bytes(32, r.Body)
	w.pairs(40, r.Trailer)
	return w.endFrame()
}

// AppendHead appends r without body and trailer as the frame that begins a streamed response.
func (r *Response) AppendHead(dst []byte) []byte {
	w := buildFrame(dst, TypeHead, httpSize)
	r.head(&w)
	return w.endFrame()
}

func (r *Response) head(w *Builder) {
	w.Uint16(0, r.Status)
	w.Bytes(8, r.Reason)
	w.Bytes(16, r.Proto)
	w.pairs(24, r.Headers)
}

// AppendData appends a piece of a streamed response's body as a frame.
func AppendData(dst, chunk []byte) []byte {
	w := buildFrame(dst, TypeData, chunkSize)
	w.Bytes(0, chunk)
	return w.endFrame()
}

// AppendEnd appends the frame that ends a streamed response.
func AppendEnd(dst []byte, trailer []Pair) []byte {
	w := buildFrame(dst, TypeEnd, chunkSize)
	w.pairs(0, trailer)
	return w.endFrame()
}

// buildFrame begins a frame: its length is right before the message.
func buildFrame(dst []byte, typ byte, size int) Builder {
	w := Build(append(dst, 0, 0, 0, 0), Version1, uint16(typ)<<8)
	w.Object(size)
	return w
}

func (w *Builder) endFrame() []byte {
	b := w.End()
	binary.BigEndian.PutUint32(b[w.start-frameHeader:], uint32(len(b)-w.start))
	return b
}

// pairs writes headers as one slot: their number, then length and bytes of each name and value.
func (w *Builder) pairs(offset int, pairs []Pair) {
	if len(pairs) == 0 {
		return
	}
	at := w.point(offset)
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(pairs)))
	for _, p := range pairs {
		w.Element(p.Name)
		w.Element(p.Value)
	}
	w.pointed(offset, at)
}

// parsePairs reads headers into dst, whose memory it uses again.
func parsePairs(dst []Pair, b []byte) ([]Pair, error) {
	dst = dst[:0]
	if b == nil {
		return dst, nil
	}
	if len(b) < 4 {
		return dst, fmt.Errorf("zap: headers of %d bytes: %w", len(b), ErrTruncated)
	}
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	if uint64(n)*8 > uint64(len(b)) {
		return dst, fmt.Errorf("zap: %d headers in %d bytes: %w", n, len(b), ErrRange)
	}
	for i := range n {
		var p Pair
		for _, part := range [...]*[]byte{&p.Name, &p.Value} {
			if len(b) < 4 {
				return dst, fmt.Errorf("zap: header %d of %d: %w", i, n, ErrTruncated)
			}
			size := binary.LittleEndian.Uint32(b)
			if uint64(size) > uint64(len(b)-4) {
				return dst, fmt.Errorf("zap: header %d of %d has %d bytes of %d: %w", i, n, size, len(b)-4, ErrRange)
			}
			*part, b = b[4:4+size:4+size], b[4+size:]
		}
		dst = append(dst, p)
	}
	if len(b) > 0 {
		return dst, fmt.Errorf("zap: %d bytes behind the headers: %w", len(b), ErrRange)
	}
	return dst, nil
}

// Parse reads r from a frame's message.
func (r *Request) Parse(message []byte) error {
	m, err := parseExact(message)
	if err != nil {
		return err
	}
	if m.Type() != TypeRequest {
		return fmt.Errorf("zap: type %d instead of %d: %w", m.Type(), TypeRequest, ErrType)
	}
	o := m.Root()
	r.Method, r.Target, r.Proto, r.Body = o.Bytes(0), o.Bytes(8), o.Bytes(16), o.Bytes(32)
	return twoPairs(&o, &r.Headers, &r.Trailer)
}

// Parse reads r from a frame's message: a response, or the head of one that is streamed.
func (r *Response) Parse(message []byte) error {
	m, err := parseExact(message)
	if err != nil {
		return err
	}
	if m.Type() != TypeResponse && m.Type() != TypeHead {
		return fmt.Errorf("zap: type %d instead of %d: %w", m.Type(), TypeResponse, ErrType)
	}
	o := m.Root()
	r.Streamed, r.Chunks = m.Type() == TypeHead, nil
	r.Status, r.Reason, r.Proto, r.Body = o.Uint16(0), o.Bytes(8), o.Bytes(16), o.Bytes(32)
	return twoPairs(&o, &r.Headers, &r.Trailer)
}

func twoPairs(o *Object, headers, trailer *[]Pair) (err error) {
	h, t := o.Bytes(24), o.Bytes(40)
	if err = o.Err(); err != nil {
		return err
	}
	if *headers, err = parsePairs(*headers, h); err != nil {
		return err
	}
	if *trailer, err = parsePairs(*trailer, t); err != nil {
		return fmt.Errorf("trailer: %w", err)
	}
	return nil
}

// ParseChunk reads a piece of a streamed body, or its end and the trailer, from a frame's message.
func ParseChunk(message []byte) (chunk []byte, end bool, trailer []Pair, err error) {
	m, err := parseExact(message)
	if err != nil {
		return nil, false, nil, err
	}
	o := m.Root()
	chunk, end = o.Bytes(0), m.Type() == TypeEnd
	switch {
	case m.Type() != TypeData && !end:
		return nil, false, nil, fmt.Errorf("zap: type %d instead of %d: %w", m.Type(), TypeData, ErrType)
	case o.Err() != nil:
		return nil, false, nil, o.Err()
	case end:
		trailer, err = parsePairs(nil, chunk)
		return nil, true, trailer, err
	}
	return chunk, false, nil, nil
}

// parseExact parses a frame's message, which must fill it: bytes behind a message are ignored in a buffer, but in a frame
// they would be a way to say two things at once.
func parseExact(message []byte) (Message, error) {
	m, err := Parse(message)
	if err == nil && m.Size() != len(message) {
		err = fmt.Errorf("zap: message of %d bytes in a frame of %d: %w", m.Size(), len(message), ErrSize)
	}
	return m, err
}
