package record

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"syscall"
	"time"
)

// maxKinds bounds the failure kinds of a shard: a target that invents error texts must not grow our memory.
const maxKinds = 64

// Shard holds what one VU measured. It has one owner, the VU's goroutine, until it is merged.
type Shard struct {
	Latency  Hist             // successes only, ns
	Failures map[string]int64 // calls that failed, by kind
	FailedNS int64            // time that they took
	Failing  Hist             // the same, each
	Service  Hist             // open model: successes from their send, where Latency is from the intended start
	Late     Hist             // open model: how long after its intended start each call was sent
	Dropped  int64            // open model: arrivals that found the most calls in flight and were not sent
	Active   time.Duration    // time from the VU's starts to its last replies, less what preparing calls took; of a merged shard, the sum
	Parts    map[string]*Hist // named shares of an operation's time, ns
	BadParts map[string]int64 // named shares that failed

	Out, In            int64 // bytes written and read, where the caller counts them
	Allocs, AllocBytes int64 // what the callee said it allocated, where it can say
	AllocsKnown        bool
	CPU                time.Duration // what the callee said its process used in the windows, where it can say
	CPUKnown           bool
	User               time.Duration // of CPU, in user mode
	UserKnown          bool
	Doubted            int64 // successes whose reply was not what was expected, where that fails nothing
	Checked            int64 // results that the callee verified, where it does that instead of the caller

	raw  []int64       // owned by the VU; nil unless KeepRaw was called
	took time.Duration // the callee's own time for the call in progress; 0 = ours counts
}

// KeepRaw makes the shard keep every success's latency, in order, beside the histogram. Room for n is set aside now, so
// that recording does not allocate.
func (s *Shard) KeepRaw(n int) { s.raw = make([]int64, 0, n) }

// Raw returns the latencies (ns) of the successes in the order of the calls, nil unless KeepRaw was called.
func (s *Shard) Raw() []int64 { return s.raw }

// Done records the outcome of one call that took d: a success, or a failure under its kind. A failure's time is never a
// latency.
func (s *Shard) Done(d time.Duration, err error) {
	if s.took != 0 {
		d, s.took = s.took, 0
	}
	if err != nil {
		s.fail(KindOf(err))
		s.FailedNS += int64(d)
		s.Failing.Record(int64(d))
		return
	}
	s.Latency.Record(int64(d))
	if s.raw != nil {
		s.raw = append(s.raw, int64(d))
	}
}

// AddFailed counts n failures of a kind that the callee reported.
func (s *Shard) AddFailed(kind string, n int64) {
	for range n {
		s.fail(kind)
	}
}

// Sent records the outcome of an open-model call: d from its send, late that after its intended start. Latency counts from
// the intended start.
func (s *Shard) Sent(d, late time.Duration, err error) {
	s.Late.Record(int64(late))
	if s.took != 0 {
		d, s.took = s.took, 0
	}
	if err != nil {
		s.fail(KindOf(err))
		s.FailedNS += int64(d)
		s.Failing.Record(int64(d + late))
		return
	}
	s.Service.Record(int64(d))
	s.Latency.Record(int64(d + late))
	if s.raw != nil {
		s.raw = append(s.raw, int64(max(d+late, 0)))
	}
}

// Reset empties s and keeps its memory.
func (s *Shard) Reset() {
	for _, h := range []*Hist{&s.Latency, &s.Failing, &s.Service, &s.Late} {
		h.Reset()
	}
	for _, h := range s.Parts {
		h.Reset()
	}
	clear(s.Failures)
	clear(s.BadParts)
	s.FailedNS, s.Dropped, s.Active = 0, 0, 0
	s.Out, s.In, s.Allocs, s.AllocBytes, s.Checked, s.Doubted = 0, 0, 0, 0, 0, 0
	s.raw = s.raw[:0]
}

func (s *Shard) fail(kind string) {
	if s.Failures == nil {
		s.Failures = make(map[string]int64)
	}
	if _, known := s.Failures[kind]; !known && len(s.Failures) >= maxKinds {
		kind = Other
	}
	s.Failures[kind]++
}

// Failed returns how many calls failed.
func (s *Shard) Failed() int64 {
	var n int64
	for c := range maps.Values(s.Failures) {
		n += c
	}
	return n
}

// Ops returns how many calls were made: successes and failures. What was dropped was not made.
func (s *Shard) Ops() int64 { return s.Latency.Count() + s.Failed() }

// Merge adds everything that o holds to s, raw samples behind its own.
func (s *Shard) Merge(o *Shard) {
	s.Latency.Merge(&o.Latency)
	s.Failing.Merge(&o.Failing)
	s.Service.Merge(&o.Service)
	s.Late.Merge(&o.Late)
	s.Dropped += o.Dropped
	for k, n := range o.Failures {
		if s.Failures == nil {
			s.Failures = make(map[string]int64)
		}
		s.Failures[k] += n
	}
	s.FailedNS += o.FailedNS
	s.Active += o.Active
	for name, h := range o.Parts {
		s.part(name).Merge(h)
	}
	for name, n := range o.BadParts {
		s.badPart(name, n)
	}
	s.Out += o.Out
	s.In += o.In
	s.Allocs += o.Allocs
	s.AllocBytes += o.AllocBytes
	s.AllocsKnown = s.AllocsKnown || o.AllocsKnown
	s.CPU += o.CPU
	s.CPUKnown = s.CPUKnown || o.CPUKnown
	s.User += o.User
	s.UserKnown = s.UserKnown || o.UserKnown
	s.Checked += o.Checked
	s.Doubted += o.Doubted
	s.raw = append(s.raw, o.raw...)
}

func (s *Shard) part(name string) *Hist {
	h := s.Parts[name]
	if h == nil {
		if s.Parts == nil {
			s.Parts = make(map[string]*Hist)
		}
		h = new(Hist)
		s.Parts[name] = h
	}
	return h
}

func (s *Shard) badPart(name string, n int64) {
	if s.BadParts == nil {
		s.BadParts = make(map[string]int64)
	}
	s.BadParts[name] += n
}

// Mark returns the handle that a Caller is given, through which an operation names its parts and counts its bytes.
func (s *Shard) Mark() Mark { return Mark{s} }

// A Mark lets an operation say more about itself than its duration. The zero Mark throws everything away, so callers may
// be used without a shard.
type Mark struct{ s *Shard }

// Part records d as the named share of the operation in progress.
func (m Mark) Part(name string, d time.Duration) {
	if m.s != nil {
		m.s.part(name).Record(int64(d))
	}
}

// Paused says that the operation thought for a while: its VU was not active then.
func (m Mark) Paused(d time.Duration) {
	if m.s != nil {
		m.s.Active -= d
	}
}

// BadPart says that the named share of the operation in progress failed.
func (m Mark) BadPart(name string) {
	if m.s != nil {
		m.s.badPart(name, 1)
	}
}

// Doubt says that the operation succeeds though a reply of it was not what was expected.
func (m Mark) Doubt() {
	if m.s != nil {
		m.s.Doubted++
	}
}

// Bytes counts what the operation wrote to and read from its connection.
func (m Mark) Bytes(out, in int) {
	if m.s != nil {
		m.s.Out += int64(out)
		m.s.In += int64(in)
	}
}

// Took gives the operation's time as the callee measured it inside its own process; it replaces the time we measured
// around the call. Rows made so say that the callee held the clock.
func (m Mark) Took(d time.Duration) {
	if m.s != nil {
		m.s.took = max(d, 1)
	}
}

// Alloc counts what the callee says that the operation allocated.
func (m Mark) Alloc(objects, bytes int64) {
	if m.s != nil {
		m.s.Allocs += objects
		m.s.AllocBytes += bytes
		m.s.AllocsKnown = true
	}
}

// The kinds of failure that the drivers distinguish. A kind is an identifier of the result document.
const (
	Connect      = "connect"       // no connection could be made
	Timeout      = "timeout"       // no complete reply within the deadline
	Closed       = "closed"        // the peer closed the connection before a complete reply
	ShortBody    = "short_body"    // fewer bytes than the reply announced
	BadReply     = "bad_reply"     // a reply that does not parse
	WrongID      = "wrong_id"      // a well-formed reply to another call
	WrongContent = "wrong_content" // the right id, but not the content that was asked for
	ErrorField   = "error_field"   // an error reported inside a reply whose status says success
	Status       = "status"        // a status that is not success
	NotVerified  = "not_verified"  // the peer's certificate did not verify
	Crashed      = "crashed"       // the callee's process ended
	Other        = "other"
)

// A Failure is an operation's failure of a known kind.
type Failure struct {
	Kind string
	Err  error
}

// Fail makes a Failure.
func Fail(kind string, err error) *Failure { return &Failure{kind, err} }

// Error returns the kind and the cause.
func (f *Failure) Error() string { return f.Kind + ": " + f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// KindOf returns the kind of err: that of the Failure in its chain, else what the standard library's errors say, else Other.
func KindOf(err error) string {
	var f *Failure
	var ne net.Error
	switch {
	case errors.As(err, &f):
		return f.Kind
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return Timeout
	case errors.As(err, &ne) && ne.Timeout():
		return Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return Connect
	case errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Closed
	}
	return Other
}
