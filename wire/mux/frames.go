package mux

import (
	"errors"
	"fmt"
	"io"
)

// firstBuffer is what a connection starts to read with; a larger frame makes it grow to fit.
const firstBuffer = 8 << 10

// frames reads frames into one buffer.
type frames struct {
	src     io.Reader
	framing Framing
	buf     []byte
	r, w    int // buf[r:w] is read and not yet used
}

// next returns the next frame, valid until the next call. After an error that passes, such as a deadline, it goes on where
// it was.
func (f *frames) next() ([]byte, error) {
	for {
		n, known, err := f.size()
		if err != nil {
			return nil, err
		}
		if known && f.w-f.r >= n {
			frame := f.buf[f.r : f.r+n]
			f.r += n
			return frame, nil
		}
		if err := f.fill(n); err != nil {
			return nil, err
		}
	}
}

// size returns the next frame's length; until that is known, how many bytes it takes to tell.
func (f *frames) size() (n int, known bool, err error) {
	h := f.framing.Header()
	if f.w-f.r < h {
		return h, false, nil
	}
	n, err = f.framing.Length(f.buf[f.r : f.r+h])
	if err == nil && n < h {
		err = fmt.Errorf("frame of %d bytes, its header has %d", n, h)
	}
	return n, true, err
}

// buffered reports whether the next frame, or what is wrong with it, is there without reading.
func (f *frames) buffered() bool {
	n, known, err := f.size()
	return err != nil || known && f.w-f.r >= n
}

// fill reads once; first it makes room for a frame of need bytes.
func (f *frames) fill(need int) error {
	if f.r == f.w {
		f.r, f.w = 0, 0
	}
	if f.r+need > len(f.buf) {
		f.w = copy(f.buf, f.buf[f.r:f.w])
		f.r = 0
	}
	if need > len(f.buf) {
		f.buf = append(f.buf, make([]byte, max(need, firstBuffer)-len(f.buf))...)
	}
	n, err := f.src.Read(f.buf[f.w:])
	f.w += n
	if n > 0 {
		return nil
	}
	if errors.Is(err, io.EOF) && f.w > f.r {
		return fmt.Errorf("%d bytes of a frame of %d: %w", f.w-f.r, need, io.ErrUnexpectedEOF)
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}
