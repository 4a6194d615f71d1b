package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Version is what each frame carries.
const Version = 1

// A Kind says what a frame is.
type Kind uint8

// The kinds of frames.
const (
	Ask     Kind = iota + 1 // wants a Reply or a Failure
	Tell                    // wants nothing
	Reply                   // its body is the answer
	Failure                 // its body is why there is none: a code and a text
)

const (
	lengthSize  = 4
	headSize    = 12 // length u32, number u32, version, kind, flags u16
	requestHead = headSize + 16

	flagKeyed  = 1
	flagTraced = 2
	flagsKnown = flagKeyed | flagTraced

	keySize   = 16
	traceSize = 24

	// MaxName is the longest name, in bytes.
	MaxName = 255
	// DefaultMax bounds a frame where nothing else does.
	DefaultMax = 1<<20 + 4096
)

var (
	// ErrTooLong is for a frame above its limit and a name above MaxName.
	ErrTooLong = errors.New("frame: too long")
	// ErrMalformed is for bytes that are no frame.
	ErrMalformed = errors.New("frame: malformed")
)

// A Key makes a request known again when it is sent once more: who sent it and which of its requests it is. The zero Key is
// none.
type Key struct{ Sender, Number uint64 }

// A Trace is where a request belongs in a trace, as W3C Trace Context has it; zero is nowhere.
type Trace struct {
	Trace [16]byte
	Span  [8]byte
}

// A Header is what a request says beside names and body.
type Header struct {
	Kind     Kind
	Epoch    uint64 // of the recipient that is meant; 0 is any
	Deadline int64  // µs on the recipient's clock; 0 is none
	Key      Key
	Trace    Trace
}

// A Request is to be written.
type Request struct {
	Header
	To, From, Op string
	Body         []byte
}

// A Received is a request that was read. Its slices are the frame's memory.
type Received struct {
	ID uint32
	Header
	To, From, Op, Body []byte
}

// Append appends r as the call of number id. What is too long is for Check to find.
func (r *Request) Append(dst []byte, id uint32) []byte {
	at := len(dst)
	dst = r.AppendHead(dst, id)
	return Close(append(dst, r.Body...), at)
}

// AppendHead appends all of r but its body, which the caller appends before it calls [Close].
func (r *Request) AppendHead(dst []byte, id uint32) []byte {
	flags := uint16(0)
	if r.Key != (Key{}) {
		flags |= flagKeyed
	}
	if r.Trace != (Trace{}) {
		flags |= flagTraced
	}
	dst = appendHead(dst, id, r.Kind, flags)
	dst = binary.LittleEndian.AppendUint64(dst, r.Epoch)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Deadline))
	if flags&flagKeyed != 0 {
		dst = binary.LittleEndian.AppendUint64(dst, r.Key.Sender)
		dst = binary.LittleEndian.AppendUint64(dst, r.Key.Number)
	}
	if flags&flagTraced != 0 {
		dst = append(append(dst, r.Trace.Trace[:]...), r.Trace.Span[:]...)
	}
	for _, name := range [...]string{r.To, r.From, r.Op} {
		name = name[:min(len(name), MaxName)]
		dst = append(append(dst, byte(len(name))), name...)
	}
	return dst
}

// Check finds a name that does not fit into a frame.
func (r *Request) Check() error {
	for _, name := range [...]string{r.To, r.From, r.Op} {
		if len(name) > MaxName {
			return fmt.Errorf("%w: name of %d bytes, at most %d: %.40q…", ErrTooLong, len(name), MaxName, name)
		}
	}
	return nil
}

func appendHead(dst []byte, id uint32, kind Kind, flags uint16) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, id)
	dst = append(dst, Version, byte(kind))
	return binary.LittleEndian.AppendUint16(dst, flags)
}

// Close writes the length of the frame that began at at and ends with b.
func Close(b []byte, at int) []byte {
	binary.LittleEndian.PutUint32(b[at:], uint32(min(len(b)-at-lengthSize, math.MaxUint32)))
	return b
}

// OpenReply appends the beginning of a reply to call id; the caller appends the body and calls [Close].
func OpenReply(dst []byte, id uint32) []byte { return appendHead(dst, id, Reply, 0) }

// AppendReply appends a reply.
func AppendReply(dst []byte, id uint32, body []byte) []byte {
	at := len(dst)
	return Close(append(OpenReply(dst, id), body...), at)
}

// AppendFailure appends why a call has no reply: a code, which means what the bus says, and a text of at most 64 KiB.
func AppendFailure(dst []byte, id uint32, code uint8, detail string) []byte {
	at := len(dst)
	dst = append(appendHead(dst, id, Failure, 0), code)
	return Close(append(dst, detail[:min(len(detail), 64<<10)]...), at)
}

// Framing is a stream of frames as a mux.Framing: Max bounds a frame, DefaultMax when 0.
type Framing struct{ Max int }

// Header returns 4: the length.
func (Framing) Header() int { return lengthSize }

// Length returns the length of the frame that begins so.
func (f Framing) Length(header []byte) (int, error) {
	n, limit := binary.LittleEndian.Uint32(header), f.Max
	if limit <= 0 {
		limit = DefaultMax
	}
	if uint64(n)+lengthSize > uint64(limit) {
		return 0, fmt.Errorf("%w: frame of %d bytes, at most %d are taken", ErrTooLong, uint64(n)+lengthSize, limit)
	}
	if n < headSize-lengthSize {
		return 0, fmt.Errorf("%w: frame of %d bytes, its head has %d", ErrMalformed, n+lengthSize, headSize)
	}
	return int(n) + lengthSize, nil
}

// ID returns the number of the call that a reply answers.
func (Framing) ID(frame []byte) (uint32, error) {
	id, kind, _, err := head(frame)
	if err == nil && kind != Reply && kind != Failure {
		err = fmt.Errorf("%w: kind %d where a reply was due", ErrMalformed, kind)
	}
	return id, err
}

// SetID changes the number of a frame that was checked, as a router does.
func SetID(frame []byte, id uint32) { binary.LittleEndian.PutUint32(frame[4:], id) }
