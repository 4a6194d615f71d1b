package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"toll/lab/plan"
)

// MaxMessage bounds a control message, in bytes.
const MaxMessage = 1 << 20

// The phases of a worker, in their order. Each message that a worker sends says in which it is.
const (
	Joining     = "joining"     // it has said hello
	Planned     = "planned"     // it has the plan and its segment
	Calibrating = "calibrating" // it measures what it can carry
	Calibrated  = "calibrated"
	Arming      = "arming"  // it connects to the target
	Armed       = "armed"   // it is connected and waits for the start
	Waiting     = "waiting" // it knows when to start
	Running     = "running"
	Done        = "done" // its load is over; what it measured may be under way
	Left        = "left" // it was let go
)

// rank orders the phases.
func rank(phase string) int {
	for i, p := range []string{Joining, Planned, Calibrating, Calibrated, Arming, Armed, Waiting, Running, Done, Left} {
		if p == phase {
			return i
		}
	}
	return -1
}

// A Message is what coordinator and worker tell each other. One of the fields behind To is given, beside a beat's.
type Message struct {
	From string `json:"from"`         // a worker's id, or empty: the coordinator
	To   string `json:"to,omitempty"` // a worker's id; empty: the coordinator, or all workers
	Run  string `json:"run,omitempty"`

	// From a worker:
	Hello *Hello `json:"hello,omitempty"`
	Beat  *Beat  `json:"beat,omitempty"`
	Clock *Clock `json:"clock,omitempty"` // also to it

	// To a worker:
	Refuse    string      `json:"refuse,omitempty"` // why it can't take part
	Plan      *Assignment `json:"plan,omitempty"`
	Calibrate bool        `json:"calibrate,omitempty"`
	Arm       string      `json:"arm,omitempty"` // the plan's digest, which the worker must have
	Go        *Go         `json:"go,omitempty"`
	Stop      string      `json:"stop,omitempty"`   // why the load ends early
	Resend    []int       `json:"resend,omitempty"` // slices that did not arrive
	Bye       string      `json:"bye,omitempty"`    // everything is here: how the run ended
}

// A Hello says who a worker is.
type Hello struct {
	Build Build   `json:"build"`
	Host  Machine `json:"host"`
	Life  string  `json:"life"` // drawn anew by each process
}

// A Build is the program: workers must run the coordinator's.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Dirty   bool   `json:"dirty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	SHA256  string `json:"sha256"` // of the program's file
}

// differs returns what keeps a worker of build o from working for b; empty when nothing does.
func (b Build) differs(o Build) string {
	switch {
	case b.Version != o.Version || b.Commit != o.Commit || b.Dirty != o.Dirty:
		return fmt.Sprintf("the worker is toll %s %s, the coordinator %s %s", o.Version, o.Commit, b.Version, b.Commit)
	case b.Go != o.Go:
		return fmt.Sprintf("the worker was built by %s, the coordinator by %s", o.Go, b.Go)
	case b.OS == o.OS && b.Arch == o.Arch && b.SHA256 != o.SHA256:
		return "the worker's program is another build than the coordinator's, though both call themselves " + b.Version
	}
	return ""
}

// A Machine is what a worker runs on.
type Machine struct {
	Cores      int    `json:"cores"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	CPU        string `json:"cpu"`
	Kernel     string `json:"kernel"`
	Governor   string `json:"governor,omitempty"`
	MemoryMB   int64  `json:"memory_mb,omitempty"`
	NIC        string `json:"nic,omitempty"` // interface and speed
}

// A Beat says how a worker is. It answers the coordinator's clock, comes when something has changed, and by itself when the worker
// has said nothing for a while, a slice of the second before included.
type Beat struct {
	Phase    string        `json:"phase"`
	Life     string        `json:"life"`
	Plan     string        `json:"plan,omitempty"` // digest of the plan that it has
	Elapsed  time.Duration `json:"elapsed_ns,omitempty"`
	Slices   int           `json:"slices,omitempty"`  // made so far
	Unstored int           `json:"unacked,omitempty"` // of them, those that the stream has not confirmed
	Lag      time.Duration `json:"lag_ns,omitempty"`  // p99 of the last slice's lateness
	CPU      float64       `json:"cpu,omitempty"`     // of its cores, over the last slice
	Stepped  time.Duration `json:"stepped_ns,omitempty"`
	Failed   string        `json:"failed,omitempty"` // why it can't go on

	Calibration *Calibration `json:"calibration,omitempty"` // phase calibrated
	Totals      *Totals      `json:"totals,omitempty"`      // phase done
}

// A Clock is an exchange of times on monotonic clocks: the coordinator's T1 and T4, the worker's T2 and T3. A step is how far the
// worker's wall clock has been set since it started.
type Clock struct {
	T1 time.Duration `json:"t1"`
	T2 time.Duration `json:"t2,omitempty"`
	T3 time.Duration `json:"t3,omitempty"`
}

// An Assignment is a worker's part of the plan.
type Assignment struct {
	Text    []byte       `json:"text"`   // the plan file
	Digest  string       `json:"sha256"` // of Text
	Segment plan.Segment `json:"segment"`
	Seed    int64        `json:"seed"`
	Slices  int          `json:"slices"` // how many a worker delivers
	Rejoin  Span         `json:"rejoin"` // how long it goes on without a coordinator
	Raw     bool         `json:"raw,omitempty"`
}

// A Span is a time that reads like 15s.
type Span = plan.Duration

// A Calibration is what a worker can do by itself: its clients against the null target, and a floor.
type Calibration struct {
	Rate    float64       `json:"rate_per_s"` // against the null target
	P50     time.Duration `json:"p50_ns"`
	P99     time.Duration `json:"p99_ns"`
	Floor   time.Duration `json:"floor_p50_ns"`   // of a round trip over a socket with nothing on it
	Late    time.Duration `json:"late_p99_ns"`    // of a timer
	Null    []byte        `json:"null"`           // the null target's shard
	Elapsed time.Duration `json:"elapsed_ns"`     // of the null target
	CPU     time.Duration `json:"cpu_ns"`         // of the process against the null target
	Threads int           `json:"threads"`        // that drove it; 0: goroutines
	NoNull  string        `json:"none,omitempty"` // why there is none

	Client     string   `json:"client,omitempty"` // by which client it calls
	Unverified bool     `json:"unverified,omitempty"`
	TLS        string   `json:"tls,omitempty"` // empty: in the clear; server or mutual: who was verified
	RTT        *float64 `json:"rtt_ms,omitempty"`
	Remarks    []string `json:"remarks,omitempty"`
}

// A Go is when to start, on the worker's monotonic clock.
type Go struct {
	At time.Duration `json:"at"`
}

// Totals are what a worker measured in all, by its own count.
type Totals struct {
	Slices int    `json:"slices"`
	Digest string `json:"digest"` // chain of SHA-256 over the slices, in their order

	OK      int64            `json:"ok"`
	SumNS   int64            `json:"sum_ns"` // of the successes' latencies
	Failed  map[string]int64 `json:"failed,omitempty"`
	Dropped int64            `json:"dropped,omitempty"`

	Elapsed      time.Duration `json:"elapsed_ns"`
	Arrivals     int64         `json:"arrivals,omitempty"`
	InFlightMost int           `json:"in_flight_most,omitempty"`
	InFlight     time.Duration `json:"in_flight_ns,omitempty"`
	Bursts       int64         `json:"bursts,omitempty"`
	BurstMost    int64         `json:"burst_most,omitempty"`
	Threads      int           `json:"threads,omitempty"`
	CPU          time.Duration `json:"cpu_ns"`
	Allocs       uint64        `json:"allocs"`
	AllocBytes   uint64        `json:"alloc_bytes"`
	StartLate    time.Duration `json:"start_late_ns"` // when it really started, after it was to
	Stopped      string        `json:"stopped,omitempty"`
	Stepped      time.Duration `json:"stepped_ns,omitempty"` // how far its wall clock was set while it ran
}

// Encode returns a message as JSON.
func (m Message) Encode() []byte {
	data, err := json.Marshal(m)
	if err != nil {
		panic("a message that does not marshal: " + err.Error())
	}
	return data
}

// Decode parses a message. An unknown field, a second value or more than MaxMessage bytes are errors.
func Decode(data []byte) (Message, error) {
	var m Message
	if len(data) > MaxMessage {
		return m, fmt.Errorf("a message of %d bytes; at most %d", len(data), MaxMessage)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return Message{}, fmt.Errorf("a message that does not parse: %w", err)
	}
	if dec.More() {
		return Message{}, fmt.Errorf("a message with something behind it")
	}
	if m.Beat != nil && rank(m.Beat.Phase) < 0 {
		return Message{}, fmt.Errorf("a message with the phase %q", m.Beat.Phase)
	}
	return m, nil
}
