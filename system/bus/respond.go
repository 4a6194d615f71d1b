package bus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"toll/wire/envelope"
	"toll/wire/frame"
)

// A Handler appends the answer to r to dst. r is valid until it returns. Its error goes to the caller: as it is when it
// carries an envelope.Code, else as Failed.
type Handler func(dst []byte, r *Request) ([]byte, error)

// A Request is what a handler answers.
type Request struct {
	frame.Received
	responder *Responder
}

// Expires is when the caller gives up; false when it never does.
func (r *Request) Expires() (time.Time, bool) {
	if r.Deadline == 0 {
		return time.Time{}, false
	}
	return r.responder.clock.time(r.Deadline), true
}

// Counts are what became of the requests that came in.
type Counts struct {
	Answered   int64 // with a reply
	Failed     int64 // with a failure, those below included
	Expired    int64 // not run, as their deadline was over
	Stale      int64 // not run, as they meant another epoch or a name that is not here
	Repeated   int64 // not run, as their key was known
	Replayed   int64 // not run, as their frame had come before on the same connection
	Malformed  int64 // frames that are none
	Panics     int64 // of handlers
	Oversized  int64 // replies above the limit
	Told       int64 // requests that want no reply, run
	Refused    int64 // connections without the token
	InHandlers int64 // being run now
}

// Config bounds a responder and its links; each zero value means its default.
type Config struct {
	MaxFrame  int           // bytes; 1 MiB and room for names
	InFlight  int           // calls of a connection at a time, on either side; 4096
	Heartbeat time.Duration // a silent link is asked after so long and given up after three times so long; 1 s; negative: never
	Write     time.Duration // limit of one write; 10 s
	Remember  int           // keyed requests whose answers are kept for being asked again; 65536
	Known     int64         // bytes of answers that are kept for that; 64 MiB
	Token     string        // shown by who connects, wanted by who listens, at most LongestToken bytes; empty: none. It travels in the clear unless the connection is encrypted
}

func (c Config) withDefaults() Config {
	or := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	or(&c.MaxFrame, frame.DefaultMax)
	or(&c.InFlight, maxInFlight)
	c.InFlight = min(c.InFlight, maxInFlight)
	or(&c.Remember, 1<<16)
	if c.Known <= 0 {
		c.Known = 64 << 20
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = time.Second
	}
	if c.Write <= 0 {
		c.Write = 10 * time.Second
	}
	return c
}

// A Responder answers frames, however they came: it passes over what has expired, knows keyed requests again, contains
// panics and answers probes.
type Responder struct {
	handle Handler
	cfg    Config
	clock  *clock
	boot   uint64 // differs from start to start
	owns   atomic.Pointer[func(name []byte, epoch uint64) error]
	once   *answers

	process atomic.Pointer[Handler] // answers what is for the process and not for an agent

	requests sync.Pool // of *Request

	answered, failed, expired, stale, repeated, replayed, malformed, panics, oversized, told, refused, running atomic.Int64
}

// NewResponder makes a responder that hands requests to h.
func NewResponder(h Handler, cfg Config) *Responder {
	cfg = cfg.withDefaults()
	return &Responder{handle: h, cfg: cfg, clock: newClock(), boot: rand.Uint64() | 1, once: newAnswers(cfg)}
}

// Only makes r answer requests for which owns returns nil; its error goes to the caller. Before, it answers all.
func (r *Responder) Only(owns func(name []byte, epoch uint64) error) { r.owns.Store(&owns) }

// Counts returns what became of the requests so far.
func (r *Responder) Counts() Counts {
	return Counts{
		Answered: r.answered.Load(), Failed: r.failed.Load(), Expired: r.expired.Load(), Stale: r.stale.Load(),
		Repeated: r.repeated.Load(), Replayed: r.replayed.Load(), Malformed: r.malformed.Load(), Panics: r.panics.Load(), Oversized: r.oversized.Load(),
		Told: r.told.Load(), Refused: r.refused.Load(), InHandlers: r.running.Load(),
	}
}

// respond appends the answer to a request's frame to dst: to a Tell an empty one, or why it was not taken, and nothing when it
// has no number. An error means that the frame is none.
func (r *Responder) respond(dst, b []byte) ([]byte, error) {
	q, _ := r.requests.Get().(*Request)
	if q == nil {
		q = &Request{responder: r}
	}
	defer r.requests.Put(q)
	return r.respondTo(q, dst, b)
}

// respondTo is respond with the memory of a request that is over.
func (r *Responder) respondTo(q *Request, dst, b []byte) ([]byte, error) {
	if err := q.Parse(b); err != nil {
		r.malformed.Add(1)
		return dst, err
	}
	if len(q.To) == 0 && string(q.Op) == opProbe {
		return frame.AppendReply(dst, q.ID, r.appendProbe(nil)), nil
	}
	at := len(dst)
	var out []byte
	var err error
	if process := r.process.Load(); process != nil && len(q.To) == 0 {
		out, err = r.run(dst, q, *process)
	} else {
		out, err = r.answer(dst, q)
	}
	if err == nil && len(out)-at > r.cfg.MaxFrame {
		r.oversized.Add(1)
		err = fmt.Errorf("the reply has %d bytes, at most %d are sent", len(out)-at, r.cfg.MaxFrame)
	}
	silent := q.Kind == frame.Tell && q.ID == 0
	switch {
	case err != nil && !silent:
		r.failed.Add(1)
		f := envelope.FailureOf(err, string(q.To))
		return frame.AppendFailure(out[:at], q.ID, uint8(f.Code), f.Detail), nil
	case err != nil:
		r.failed.Add(1)
	case q.Kind == frame.Tell:
		r.told.Add(1)
	default:
		r.answered.Add(1)
		return out, nil
	}
	if silent {
		return out[:at], nil
	}
	return frame.AppendReply(out[:at], q.ID, nil), nil
}

// tell runs a request that wants no reply and returns its failure.
func (r *Responder) tell(b []byte) ([]byte, error) {
	q := &Request{responder: r}
	if err := q.Parse(b); err != nil {
		r.malformed.Add(1)
		return nil, err
	}
	out, err := r.answer(nil, q)
	if err != nil {
		r.failed.Add(1)
		return out, err
	}
	r.told.Add(1)
	return out, nil
}

// answer appends the reply to q, or says why there is none.
func (r *Responder) answer(dst []byte, q *Request) ([]byte, error) {
	if q.Deadline != 0 && r.clock.now() >= q.Deadline {
		r.expired.Add(1)
		return dst, &envelope.Failure{Code: envelope.Deadline, Detail: "expired before it was run"}
	}
	if owns := r.owns.Load(); owns != nil {
		if err := (*owns)(q.To, q.Epoch); err != nil {
			r.stale.Add(1)
			return dst, err
		}
	}
	if q.Key != (frame.Key{}) {
		return r.answerOnce(dst, q)
	}
	return r.run(dst, q, r.handle)
}

// run appends the handler's reply as a frame.
func (r *Responder) run(dst []byte, q *Request, handle Handler) (out []byte, err error) {
	at := len(dst)
	r.running.Add(1)
	defer r.running.Add(-1)
	defer func() {
		if p := recover(); p != nil {
			r.panics.Add(1)
			out, err = dst[:at], &envelope.Failure{Code: envelope.Crashed, Detail: fmt.Sprintf("panic: %.1000v", p)}
		}
	}()
	dst = frame.OpenReply(dst, q.ID)
	head := len(dst)
	if out, err = handle(dst, q); err == nil && len(out) < head {
		err = errShort
	}
	if err != nil {
		return dst[:at], err
	}
	return frame.Close(out, at), nil
}

var errShort = errors.New("bus: the handler returned less than it was given")

var errProbe = errors.New("bus: the answer to a probe is malformed")

// A probed is what a process says of itself.
type probed struct {
	boot  uint64
	clock int64
}

func (r *Responder) appendProbe(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, r.boot)
	return binary.LittleEndian.AppendUint64(dst, uint64(r.clock.now()))
}

func parseProbe(b []byte) (probed, error) {
	if len(b) != 16 {
		return probed{}, fmt.Errorf("%w: %d bytes", errProbe, len(b))
	}
	return probed{binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[8:]))}, nil
}
