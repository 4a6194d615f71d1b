package mux

import (
	"errors"
	"fmt"
	"io"
)

// A Lengths knows where a frame ends.
type Lengths interface {
	// Header is the number of bytes from which Length can be told.
	Header() int
	// Length returns the length of a whole frame, header included, or an error when no frame begins so. It is what bounds
	// the memory a peer can ask for: it is checked before anything is made to hold the frame.
	Length(header []byte) (int, error)
}

const (
	firstBuffer = 8 << 10 // what a connection starts to read with
	keptBuffer  = 1 << 20 // a larger one is let go when it is empty
)

// A Reader reads frames into one buffer, which grows to the largest of them.
type Reader struct {
	src    io.Reader
	frames Lengths
	buf    []byte
	r, w   int     // buf[r:w] is read and not yet used
	look   *looker // nil for one that waits at once
}

// NewReader reads frames from src.
func NewReader(src io.Reader, l Lengths) *Reader { return &Reader{src: src, frames: l} }

// Next returns the next frame, valid until the next call. io.EOF means that src ended between frames. After an error that
// passes, such as a deadline, it goes on where it was.
func (f *Reader) Next() ([]byte, error) {
	for {
		n, known, err := f.size()
		if err != nil {
			return nil, err
		}
		if known && f.w-f.r >= n {
			frame := f.buf[f.r : f.r+n]
			f.r += n
			if f.look != nil {
				f.look.frames++
			}
			return frame, nil
		}
		if err := f.fill(n); err != nil {
			return nil, err
		}
	}
}

// Buffered reports whether the next frame, or what is wrong with it, is there without reading.
func (f *Reader) Buffered() bool {
	n, known, err := f.size()
	return err != nil || known && f.w-f.r >= n
}

// Pending is the number of bytes that arrived behind the last frame.
func (f *Reader) Pending() int { return f.w - f.r }

// size returns the next frame's length; until that is known, how many bytes it takes to tell.
func (f *Reader) size() (n int, known bool, err error) {
	h := f.frames.Header()
	if f.w-f.r < h {
		return h, false, nil
	}
	n, err = f.frames.Length(f.buf[f.r : f.r+h])
	if err == nil && n < h {
		err = fmt.Errorf("frame of %d bytes, its header has %d", n, h)
	}
	return n, true, err
}

// fill reads towards a frame of need bytes.
func (f *Reader) fill(need int) error {
	f.room(need)
	n, err := f.read()
	if f.w += n; n > 0 {
		return nil
	}
	if errors.Is(err, io.EOF) && f.w > f.r {
		return fmt.Errorf("%d bytes of a frame of %d: %w", f.w-f.r, need, io.ErrUnexpectedEOF)
	}
	return err
}

// read reads something, or says why not.
func (f *Reader) read() (n int, err error) {
	if f.look != nil {
		if n, err = f.look.read(f.buf[f.w:]); n > 0 || err != nil {
			return n, err
		}
	}
	for range 100 {
		if n, err = f.src.Read(f.buf[f.w:]); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// after writes out by t and reads what comes then, towards the next frame. When rest is left, nothing was read; see trip.do.
func (f *Reader) after(t *trip, out []byte, sent func()) (rest []byte, err error) {
	if f.look != nil {
		f.look.note()
	}
	f.room(f.frames.Header())
	n, rest, err := t.do(f.buf[f.w:], out, sent)
	f.w += n
	return rest, err
}

// room makes room for more of a frame of need bytes. The buffer at most doubles: a peer that names a large length must
// send as much before we hold it.
func (f *Reader) room(need int) {
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
