package zap

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// ZAP-HTTP: a frame is its length, four bytes big-endian, and a message of version 1 whose type stands in the flags. A
// connection carries one exchange at a time.

// The types of ZAP-HTTP messages.
const (
	TypeRequest  = 1
	TypeResponse = 2
)

const (
	frameHeader = 4
	httpSize    = 48 // fixed section of a request and of a response
)

// A Pair is a header: Content-Length and Trailer are never among them, Host is.
type Pair struct{ Name, Value []byte }

// A Request is a ZAP-HTTP request. A parsed one points into the frame.
type Request struct {
	Method, Target, Proto []byte
	Headers               []Pair
	Body, Trailer         []byte
}

// A Response is a ZAP-HTTP response. A parsed one points into the frame.
type Response struct {
	Status        uint16
	Reason, Proto []byte
	Headers       []Pair
	Body, Trailer []byte
}

// Append appends r as a frame.
func (r *Request) Append(dst []byte) []byte {
	w, at := beginFrame(dst, TypeRequest)
	w.slot(0, r.Method)
	w.slot(8, r.Target)
	w.slot(16, r.Proto)
	putPairs(&w, 24, r.Headers)
	w.slot(32, r.Body)
	w.slot(40, r.Trailer)
	return endFrame(&w, at)
}

// Append appends r as a frame.
func (r *Response) Append(dst []byte) []byte {
	w, at := beginFrame(dst, TypeResponse)
	binary.LittleEndian.PutUint16(w.at(0), r.Status)
	w.slot(8, r.Reason)
	w.slot(16, r.Proto)
	putPairs(&w, 24, r.Headers)
	w.slot(32, r.Body)
	w.slot(40, r.Trailer)
	return endFrame(&w, at)
}

func beginFrame(dst []byte, typ byte) (w builder, at int) {
	at = len(dst)
	w = begin(append(dst, 0, 0, 0, 0), Version1, uint16(typ)<<8)
	w.object(httpSize)
	return w, at
}

func endFrame(w *builder, at int) []byte {
	b := w.end()
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-frameHeader))
	return b
}

// putPairs writes headers as one slot: their number, then length and bytes of each name and value.
func putPairs(w *builder, offset int, pairs []Pair) {
	if len(pairs) == 0 {
		return
	}
	w.point(offset, 0)
	begin := len(w.b)
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(pairs)))
	for _, p := range pairs {
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(p.Name)))
		w.b = append(w.b, p.Name...)
		w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(p.Value)))
		w.b = append(w.b, p.Value...)
	}
	binary.LittleEndian.PutUint32(w.at(offset)[4:], uint32(len(w.b)-begin))
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
		for _, part := range []*[]byte{&p.Name, &p.Value} {
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
	m, err := parseTyped(message, TypeRequest)
	if err != nil {
		return err
	}
	return slots(m, &r.Headers, targets{{0, &r.Method}, {8, &r.Target}, {16, &r.Proto}, {32, &r.Body}, {40, &r.Trailer}})
}

// Parse reads r from a frame's message.
func (r *Response) Parse(message []byte) error {
	m, err := parseTyped(message, TypeResponse)
	if err != nil {
		return err
	}
	status, err := m.fixed(0, 2)
	if err != nil {
		return err
	}
	r.Status = binary.LittleEndian.Uint16(status)
	return slots(m, &r.Headers, targets{{8, &r.Reason}, {16, &r.Proto}, {32, &r.Body}, {40, &r.Trailer}})
}

func parseTyped(message []byte, typ byte) (Message, error) {
	m, err := Parse(message)
	switch {
	case err != nil:
		return m, err
	case len(m.b) != len(message):
		return m, fmt.Errorf("zap: message of %d bytes in a frame of %d: %w", len(m.b), len(message), ErrSize)
	case m.Type() != typ:
		return m, fmt.Errorf("zap: type %d instead of %d: %w", m.Type(), typ, ErrType)
	}
	return m, nil
}

// targets says which slot goes where.
type targets [5]struct {
	offset int
	to     *[]byte
}

func slots(m Message, headers *[]Pair, to targets) error {
	for _, s := range to {
		if s.to == nil {
			continue
		}
		b, err := m.bytes(s.offset)
		if err != nil {
			return err
		}
		*s.to = b
	}
	b, err := m.bytes(24)
	if err != nil {
		return err
	}
	*headers, err = parsePairs(*headers, b)
	return err
}

// A FrameReader reads ZAP-HTTP frames into one buffer.
type FrameReader struct {
	src  io.Reader
	max  int
	buf  []byte
	r, w int
}

// NewFrameReader reads frames of at most max bytes of message from src; 0 means MaxMessage.
func NewFrameReader(src io.Reader, max int) *FrameReader {
	if max <= 0 || max > MaxMessage {
		max = MaxMessage
	}
	return &FrameReader{src: src, max: max}
}

// Next returns the next frame's message, valid until the next call. The length is checked before memory is made for it.
// io.EOF means that the connection ended between frames.
func (f *FrameReader) Next() ([]byte, error) {
	if err := f.need(frameHeader); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(f.buf[f.r:])
	switch {
	case n > uint32(f.max):
		return nil, fmt.Errorf("zap: frame of %d bytes, at most %d: %w", n, f.max, ErrTooLarge)
	case n < headerSize:
		return nil, fmt.Errorf("zap: frame of %d bytes is less than a header: %w", n, ErrTruncated)
	}
	if err := f.need(frameHeader + int(n)); err != nil {
		return nil, err
	}
	m := f.buf[f.r+frameHeader : f.r+frameHeader+int(n)]
	f.r += frameHeader + int(n)
	return m, nil
}

// Buffered reports whether bytes behind the last frame have arrived.
func (f *FrameReader) Buffered() bool { return f.w > f.r }

// need reads until n bytes are there.
func (f *FrameReader) need(n int) error {
	for f.w-f.r < n {
		if f.r == f.w {
			f.r, f.w = 0, 0
		}
		if f.r+n > len(f.buf) {
			f.w = copy(f.buf, f.buf[f.r:f.w])
			f.r = 0
		}
		if n > len(f.buf) {
			f.buf = append(f.buf, make([]byte, max(n, 4<<10)-len(f.buf))...)
		}
		got, err := f.src.Read(f.buf[f.w:])
		f.w += got
		switch {
		case got > 0:
		case err == io.EOF && f.w > f.r:
			return fmt.Errorf("zap: %d bytes of a frame of %d: %w", f.w-f.r, n, io.ErrUnexpectedEOF)
		case err != nil:
			return err
		default:
			return io.ErrNoProgress
		}
	}
	return nil
}

// ServeHTTPFrames answers requests on nc one after another with handle, which fills in the response, until reading or
// writing fails; a connection that the peer ended between frames gives nil. done is called after each answer. The handler
// may keep nothing of the request.
func ServeHTTPFrames(nc net.Conn, max int, handle func(*Request, *Response), done func()) error {
	in := NewFrameReader(nc, max)
	var req Request
	var resp Response
	var out []byte
	for {
		message, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := req.Parse(message); err != nil {
			return err
		}
		resp = Response{Headers: resp.Headers[:0], Body: resp.Body[:0]}
		handle(&req, &resp)
		out = resp.Append(out[:0])
		if _, err := nc.Write(out); err != nil {
			return err
		}
		done()
	}
}
