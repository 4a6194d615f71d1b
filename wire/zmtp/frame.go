package zmtp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Flags of a frame, RFC 37 "Framing".
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
	flagsKnown  = flagMore | flagLong | flagCommand
)

const (
	shortMax    = 255
	firstBuffer = 8 << 10
	keptBuffer  = 1 << 20
)

var (
	// ErrTooLong is for a frame or a message above its limit, sent or received.
	ErrTooLong = errors.New("zmtp: too long")
	// ErrProtocol is for bytes that are not ZMTP 3.
	ErrProtocol = errors.New("zmtp: protocol violated")
)

// appendFrame appends one frame.
func appendFrame(dst []byte, flags byte, body []byte) []byte {
	dst = appendHeader(dst, flags, len(body))
	return append(dst, body...)
}

func appendHeader(dst []byte, flags byte, n int) []byte {
	if n <= shortMax {
		return append(dst, flags, byte(n))
	}
	dst = append(dst, flags|flagLong)
	return binary.BigEndian.AppendUint64(dst, uint64(n))
}

// A frameReader reads frames into one buffer that grows with what arrived, never with what was declared.
type frameReader struct {
	src  io.Reader
	max  int
	buf  []byte
	r, w int // buf[r:w] is read and not yet used
}

// next returns a frame's flags and body; the body is valid until the next call. io.EOF means that src ended between
// frames. After a deadline it goes on where it was.
func (f *frameReader) next() (flags byte, body []byte, err error) {
	for {
		head, n, known, err := f.size()
		if err != nil {
			return 0, nil, err
		}
		if known && f.w-f.r >= head+n {
			flags, body = f.buf[f.r], f.buf[f.r+head:f.r+head+n:f.r+head+n]
			f.r += head + n
			return flags, body, nil
		}
		if err := f.fill(head + n); err != nil {
			return 0, nil, err
		}
	}
}

// buffered reports whether the next frame, or what is wrong with it, is there without reading.
func (f *frameReader) buffered() bool {
	head, n, known, err := f.size()
	return err != nil || known && f.w-f.r >= head+n
}

// size returns the lengths of the next frame's header and body; until they are known, how much header it takes to tell.
func (f *frameReader) size() (head, n int, known bool, err error) {
	have := f.buf[f.r:f.w]
	if len(have) == 0 {
		return 2, 0, false, nil
	}
	flags := have[0]
	switch {
	case flags&^flagsKnown != 0:
		return 0, 0, false, fmt.Errorf("%w: frame flags %#02x", ErrProtocol, flags)
	case flags&flagCommand != 0 && flags&flagMore != 0:
		return 0, 0, false, fmt.Errorf("%w: a command frame that says more will follow", ErrProtocol)
	}
	head = 2
	if flags&flagLong != 0 {
		head = 9
	}
	if len(have) < head {
		return head, 0, false, nil
	}
	size := uint64(have[1])
	if head == 9 {
		size = binary.BigEndian.Uint64(have[1:])
	}
	if size > uint64(f.max) {
		return 0, 0, false, fmt.Errorf("%w: frame of %d bytes, at most %d are taken", ErrTooLong, size, f.max)
	}
	return head, int(size), true, nil
}

// fill reads towards need bytes.
func (f *frameReader) fill(need int) error {
	f.room(need)
	for range 100 {
		n, err := f.src.Read(f.buf[f.w:])
		if f.w += n; n > 0 {
			return nil
		}
		if errors.Is(err, io.EOF) && f.w > f.r {
			return fmt.Errorf("%d bytes of a frame of %d: %w", f.w-f.r, need, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// room makes room for more of need bytes. The buffer at most doubles, so a peer must send what it wants us to hold.
func (f *frameReader) room(need int) {
	if f.r == f.w {
		f.r, f.w = 0, 0
		if len(f.buf) > keptBuffer {
			f.buf = nil
		}
	}
	if f.r+need > len(f.buf) && f.r > 0 {
		f.w = copy(f.buf, f.buf[f.r:f.w])
		f.r = 0
	}
	if f.w < len(f.buf) {
		return
	}
	grown := make([]byte, max(firstBuffer, min(need, 2*len(f.buf))))
	f.w = copy(grown, f.buf[:f.w])
	f.buf = grown
}
