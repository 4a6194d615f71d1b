package frame

import (
	"encoding/binary"
	"fmt"
)

// head checks what every frame begins with.
func head(frame []byte) (id uint32, kind Kind, flags uint16, err error) {
	if len(frame) < headSize {
		return 0, 0, 0, fmt.Errorf("%w: %d bytes, a frame has at least %d", ErrMalformed, len(frame), headSize)
	}
	if n := binary.LittleEndian.Uint32(frame); uint64(n)+lengthSize != uint64(len(frame)) {
		return 0, 0, 0, fmt.Errorf("%w: length %d in a frame of %d bytes", ErrMalformed, n, len(frame))
	}
	if frame[8] != Version {
		return 0, 0, 0, fmt.Errorf("%w: version %d, this is version %d", ErrMalformed, frame[8], Version)
	}
	kind = Kind(frame[9])
	if kind < Ask || kind > Failure {
		return 0, 0, 0, fmt.Errorf("%w: kind %d", ErrMalformed, kind)
	}
	return binary.LittleEndian.Uint32(frame[4:]), kind, binary.LittleEndian.Uint16(frame[10:]), nil
}

// Parse reads a request.
func (r *Received) Parse(frame []byte) error {
	id, kind, flags, err := head(frame)
	switch {
	case err != nil:
		return err
	case kind > Tell:
		return fmt.Errorf("%w: kind %d where a request was due", ErrMalformed, kind)
	case flags&^flagsKnown != 0:
		return fmt.Errorf("%w: flags %#x", ErrMalformed, flags)
	case len(frame) < requestHead:
		return fmt.Errorf("%w: request of %d bytes", ErrMalformed, len(frame))
	}
	*r = Received{ID: id, Header: Header{
		Kind: kind, Epoch: binary.LittleEndian.Uint64(frame[headSize:]), Deadline: int64(binary.LittleEndian.Uint64(frame[headSize+8:])),
	}}
	rest, err := r.optional(frame[requestHead:], flags)
	if err != nil {
		return err
	}
	for _, name := range [...]*[]byte{&r.To, &r.From, &r.Op} {
		if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
			return fmt.Errorf("%w: request ends within its names", ErrMalformed)
		}
		n := 1 + int(rest[0])
		*name, rest = rest[1:n:n], rest[n:]
	}
	r.Body = rest
	return nil
}

// optional reads what flags announce and returns the rest.
func (r *Received) optional(rest []byte, flags uint16) ([]byte, error) {
	if flags&flagKeyed != 0 {
		if len(rest) < keySize {
			return nil, fmt.Errorf("%w: request ends within its key", ErrMalformed)
		}
		r.Key = Key{binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:])}
		if rest = rest[keySize:]; r.Key == (Key{}) {
			return nil, fmt.Errorf("%w: the key is zero", ErrMalformed)
		}
	}
	if flags&flagTraced != 0 {
		if len(rest) < traceSize {
			return nil, fmt.Errorf("%w: request ends within its trace", ErrMalformed)
		}
		copy(r.Trace.Trace[:], rest)
		copy(r.Trace.Span[:], rest[16:])
		if rest = rest[traceSize:]; r.Trace == (Trace{}) {
			return nil, fmt.Errorf("%w: the trace is zero", ErrMalformed)
		}
	}
	return rest, nil
}

// ParseReply reads a reply's body. When it is a failure, failed is true and code and detail say why.
func ParseReply(frame []byte) (body []byte, code uint8, failed bool, err error) {
	_, kind, flags, err := head(frame)
	switch {
	case err != nil:
		return nil, 0, false, err
	case kind != Reply && kind != Failure:
		return nil, 0, false, fmt.Errorf("%w: kind %d where a reply was due", ErrMalformed, kind)
	case flags != 0:
		return nil, 0, false, fmt.Errorf("%w: flags %#x", ErrMalformed, flags)
	case kind == Reply:
		return frame[headSize:], 0, false, nil
	case len(frame) == headSize || frame[headSize] == 0:
		return nil, 0, false, fmt.Errorf("%w: failure without a code", ErrMalformed)
	}
	return frame[headSize+1:], frame[headSize], true, nil
}
