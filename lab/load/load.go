package load

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"toll/lab/plan"
	"toll/lab/record"
)

// A Load is what the VUs of one lane do in one turn.
type Load struct {
	Stages  []plan.Stage  // VUs (closed model) or arrivals a second (open model), from 0 on
	Open    bool          // the open model: arrivals do not wait for replies
	Calls   int64         // closed: the VUs make so many calls between them and are done; 0 = until the stages' end
	Think   time.Duration // closed: a VU's pause between two calls
	Timeout time.Duration // of one call; 0 means DefaultTimeout
	GiveUp  bool          // closed: a VU that nobody answers gives up; else it goes on, at growing intervals

	InFlight int                             // open: most calls in flight; an arrival beyond them is dropped. 0 = max(1000, 2 s of arrivals)
	Rand     *rand.Rand                      // open: arrivals are a Poisson process; nil: evenly spaced
	Pauses   func() (wait Wait, done func()) // closed: makes what one VU waits by when it thinks; nil: the runtime's timers, which may be a millisecond late
	Wait     Wait                            // open: waits for the next arrival; nil waits by a timer, which may be a millisecond late

	Slices int // into how many slices of time the load is divided at least; each stage has one of its own

	// Of one generator among several; see plan.Segment.
	Ahead   float64     // open: where the first arrival lies in its interval, 0 to 1
	Deliver func(Slice) // called for each slice, in order, as soon as nothing can be added to it; it must not block, and the slice is then not in the outcome. nil for none
	Raw     bool        // keep every success's latency beside the histograms
}

// A Wait waits until a time is so long after begin, or ctx ends.
type Wait func(ctx context.Context, begin time.Time, at time.Duration)

// WithDefaults returns l with its zero values replaced.
func (l Load) WithDefaults() Load {
	if l.Timeout == 0 {
		l.Timeout = DefaultTimeout
	}
	if l.InFlight == 0 {
		l.InFlight = max(1000, int(2*plan.Peak(l.Stages)))
	}
	if l.Wait == nil {
		l.Wait = ByTimer
	}
	return l
}

// A Crowd is the VUs of one lane, connected and ready. It runs one load at a time.
type Crowd interface {
	// Run puts the load on the target and returns when the last call in flight has ended. An error means that ctx ended or
	// that every VU gave up; the outcome holds what was measured until then.
	Run(ctx context.Context, l Load) (Outcome, error)
	// Close ends the connections.
	Close() error
}

// A Gatherer is a Target that drives its VUs itself, not by a goroutine each.
type Gatherer interface {
	Gather(ctx context.Context, vus int) (Crowd, error)
}

// Gather connects VUs to a target: by the target's own means if it has some, else one Caller and one goroutine each.
func Gather(ctx context.Context, t Target, vus int) (Crowd, error) {
	if g, ok := t.(Gatherer); ok {
		return g.Gather(ctx, vus)
	}
	return Goroutines(ctx, t, vus)
}

// Goroutines connects VUs to a target: one Caller and one goroutine each.
func Goroutines(ctx context.Context, t Target, vus int) (Crowd, error) {
	c, err := newCrowd(ctx, t, vus)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// An Outcome is what one load measured.
type Outcome struct {
	Slices  []Slice       // in the order of time
	Elapsed time.Duration // from the start to the last reply

	// Of the open model:
	Arrivals     int64         // intended ones, those that were dropped included
	InFlightMost int           // calls that were in flight at a time
	InFlight     time.Duration // the number in flight, summed over time
	Bursts       int64         // times that the generator had fallen behind and sent several arrivals at once
	BurstMost    int64         // arrivals in the largest of them

	Threads int // that drove the VUs, each on its own; 0 = goroutines on any

	Elsewhere *Elsewhere // nil: this process drove the VUs
}

// Elsewhere is what other machines spent that drove the VUs.
type Elsewhere struct {
	Meter  record.Meter
	Cores  int  // of all of them, as far as they may use them
	Allocs bool // the meter's allocations are known
}

// A Slice is a span of a load's time. None lies in two stages.
type Slice struct {
	Stage    int // of the load, from 0
	From, To time.Duration
	Shard    *record.Shard // of the calls that began, or were due, within it
}

// Shard returns everything that was measured.
func (o *Outcome) Shard() *record.Shard {
	sum := new(record.Shard)
	for _, s := range o.Slices {
		sum.Merge(s.Shard)
	}
	return sum
}

// A Sheet collects what VUs measured, slice by slice. It is safe for concurrent use.
type Sheet struct {
	ends    []time.Duration
	deliver func(Slice) // nil: slices are handed out at the end only
	raw     bool
	nothing *record.Shard // of a slice that was delivered

	mu     sync.Mutex
	slices []Slice // guarded by mu
	held   []int   // guarded by mu: by slice, how many may still add to it
	low    int     // guarded by mu: the first slice that was not delivered
}

// NewSheet divides a load's time into slices.
func NewSheet(l Load) *Sheet {
	s := &Sheet{deliver: l.Deliver, raw: l.Raw, nothing: new(record.Shard)}
	longest := plan.Total(l.Stages)
	if l.Slices > 1 {
		longest /= time.Duration(l.Slices)
	}
	var from time.Duration
	for i, st := range l.Stages {
		d := time.Duration(st.Duration)
		if d <= 0 {
			continue
		}
		n := max((d+longest-1)/max(longest, 1), 1)
		for k := range n {
			a, b := from+d*k/n, from+d*(k+1)/n
			s.slices = append(s.slices, Slice{Stage: i, From: a, To: b, Shard: new(record.Shard)})
			s.ends = append(s.ends, b)
		}
		from += d
	}
	s.held = make([]int, len(s.ends))
	return s
}

// Streams reports whether slices are delivered while the load runs. Only then must they be held and released.
func (s *Sheet) Streams() bool { return s.deliver != nil }

// Shard makes one to add to the sheet.
func (s *Sheet) Shard() *record.Shard {
	out := new(record.Shard)
	if s.raw {
		out.KeepRaw(rawRoom)
	}
	return out
}

// rawRoom is for how many raw latencies there is room before the first one comes.
const rawRoom = 1 << 12

// Hold says that something may be added to a slice until it is released as often as it was held.
func (s *Sheet) Hold(slice int) {
	if s.deliver == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[slice]++
}

// Release ends a hold. Slices that nobody holds, nor any before them, are delivered.
func (s *Sheet) Release(slice int) {
	if s.deliver == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release(slice)
}

// Move holds a slice in place of an earlier one.
func (s *Sheet) Move(from, to int) {
	if s.deliver == nil || from == to {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[to]++
	s.release(from)
}

// release must be called with mu held.
func (s *Sheet) release(slice int) {
	s.held[slice]--
	for s.low < len(s.held) && s.held[s.low] == 0 {
		s.deliver(s.slices[s.low])
		s.slices[s.low].Shard = s.nothing // an hour's slices are not kept
		s.low++
	}
}

// At returns the slice of a time, given one that it does not lie before. What comes after the end belongs to the last.
func (s *Sheet) At(slice int, at time.Duration) int {
	for slice < len(s.ends)-1 && at >= s.ends[slice] {
		slice++
	}
	return slice
}

// Len returns how many slices there are.
func (s *Sheet) Len() int { return len(s.ends) }

// Add adds what shard holds to a slice, and empties it.
func (s *Sheet) Add(slice int, shard *record.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slices[slice].Shard.Merge(shard)
	shard.Reset()
}

// Drop counts an arrival of a slice that was not sent.
func (s *Sheet) Drop(slice int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slices[slice].Shard.Dropped++
}

// Slices returns what was collected. Nothing may be added afterwards.
func (s *Sheet) Slices() []Slice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slices
}

// ByTimer is a [Wait] by the runtime's timer, which may be a millisecond late (golang/go#44343).
func ByTimer(ctx context.Context, begin time.Time, at time.Duration) {
	d := at - time.Since(begin)
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
