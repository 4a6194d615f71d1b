package zap

import (
	"encoding/binary"
	"fmt"
	"io"

	"toll/wire/mux"
)

// HTTPFraming is ZAP-HTTP as mux.Lengths: Max bounds a message, MaxMessage when 0.
type HTTPFraming struct{ Max int }

// Header returns 4: the length.
func (HTTPFraming) Header() int { return frameHeader }

// Length returns the length of the frame that begins so.
func (f HTTPFraming) Length(header []byte) (int, error) {
	n, err := frameLength(binary.BigEndian.Uint32(header), f.Max, headerSize)
	return frameHeader + n, err
}

// A FrameReader reads the messages of ZAP-HTTP frames into one buffer.
type FrameReader struct{ frames *mux.Reader }

// NewFrameReader reads frames of at most max bytes of message from src; 0 means MaxMessage.
func NewFrameReader(src io.Reader, max int) *FrameReader {
	return &FrameReader{mux.NewReader(src, HTTPFraming{Max: max})}
}

// Next returns the next frame's message, valid until the next call. The length is checked before memory is made for it.
// io.EOF means that the connection ended between frames.
func (f *FrameReader) Next() ([]byte, error) {
	frame, err := f.frames.Next()
	if err != nil {
		return nil, err
	}
	return frame[frameHeader:], nil
}

// Buffered reports whether bytes behind the last frame have arrived.
func (f *FrameReader) Buffered() bool { return f.frames.Pending() > 0 }

// frameLength checks the length that a frame begins with.
func frameLength(n uint32, limit, least int) (int, error) {
	if limit <= 0 || limit > MaxMessage {
		limit = MaxMessage
	}
	switch {
	case n > uint32(limit):
		return 0, fmt.Errorf("zap: frame of %d bytes, at most %d: %w", n, limit, ErrTooLarge)
	case n < uint32(least):
		return 0, fmt.Errorf("zap: frame of %d bytes is less than a header: %w", n, ErrTruncated)
	}
	return int(n), nil
}
