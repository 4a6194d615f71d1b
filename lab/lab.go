package lab

import (
	"context"
	"time"

	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
)

// A Setting is what one round measures.
type Setting struct {
	Case, Phase string
	Concurrency int
	Round       int      // from 1
	Seed        int64    // of this round; openers that draw ids or content draw from it
	Skip        []string // contenders that failed in an earlier round of this setting: not to be started again
}

// An Opener starts the contenders of a setting and connects nothing yet. A contender that can't be started is a Gap of
// the set, not an error; an error means that the setting can't be measured at all.
type Opener interface {
	Open(ctx context.Context, s Setting) (Set, error)
}

// A Set is the contenders of one round, started and ready.
type Set struct {
	Entries  []Entry
	Failures []Failure
	Gaps     []result.Gap // contenders that are not there, with the reason: nothing went wrong
}

// An Entry is one contender's place in a set.
type Entry struct {
	Contender   result.Contender
	Role        string // result.Baseline, Control, Floor, Null or ""
	Connections string // per-caller | shared
	Target      load.Target
	Metered     load.Target // the same, its bytes counted by Wire; nil when they can't be
	Wire        func() (out, in int64)
	Process     Process       // nil when the contender runs in this process
	TLS         *result.TLS   // nil on a plain connection
	Clear       bool          // in the clear, in a phase whose other rows are encrypted
	CalleeClock bool          // the callee times the operation in its own process
	Calling     bool          // the engine calls others of its process tree: what it spent is the client's, what they spent the server's
	Client      string        // by which of several clients it is called; "" when there is only one
	Away        bool          // those that it calls are on another machine, so what they spent is not known
	Unverified  bool          // replies are not looked into, as in a published method
	Watched     bool          // Process is somebody else's, found by its address: it is not asked for its counters
	Unseen      string        // why the server's process can't be seen, where Process is nil and it runs in another one
	ClientOn    []int         // processors that the lab is held to while it calls; nil for any
	ServerOn    []int         // processors that the contender is held to; nil for any
	Handles     bool          // its process is a Handling
	Backends    []Backend     // what stands behind the contender, started for it alone
	Delay       time.Duration // in each operation, that its caller asked for: no contender can be faster
	Idle        time.Duration // > 0: each call leaves a session behind, which the contender forgets after so long; see result.Retained
}

// A Backend is a process behind a contender.
type Backend struct {
	Name    string
	Process Process
}

// ID names the entry within its set.
func (e Entry) ID() string { return e.Contender.Name + "/" + e.Role }

// A Process is a contender's process tree, as far as the lab wants to know.
type Process interface {
	// Usage is what the tree has used so far.
	Usage() (Usage, error)
	// Counters are what the process says of its own heap; an error says why it does not.
	Counters(ctx context.Context) (Counters, error)
	// Stop ends the tree. An error is a crash before the stop, or something it left behind.
	Stop(ctx context.Context) error
}

// Usage is what a process tree has used so far, as the system sees it.
type Usage struct {
	CPU, User, System time.Duration
	RSSPeak           int64 // bytes
	Threads           int
	Limited           Limited
}

// Limited is what limits a process tree and what it met since it started.
type Limited struct {
	Mechanism  string        // "none" or empty when nothing does
	Throttled  time.Duration // time without quota
	MemoryPeak int64         // bytes; 0 where the mechanism does not say
	OOMKills   int64
	Known      bool // the mechanism counts
}

// Counters are a process' own counts since it started.
type Counters struct {
	Allocs, AllocBytes, Heap int64
	Stack                    int64 // 0 when it does not say
	GOMAXPROCS               int   // 0 when the process is not Go
}

// A Collector is a Process that can be asked to collect its garbage first, so that what it then counts as heap is what it
// holds on to.
type Collector interface {
	Collect(ctx context.Context) (Counters, error)
}

// A Failure is a contender that could not be measured because something went wrong: it becomes a gap, and the run says
// that it could not measure all it was asked to.
type Failure struct {
	Contender string // name, with " (control)" behind a control's
	Reason    string
}

// Options say how to conduct a plan beside the plan itself.
type Options struct {
	Settings plan.Settings // what runs: the plan's, or those of its full profile
	Claimed  plan.Settings // the method that the result claims
	Seed     int64
	Toll     result.Toll
	Progress func(Progress)      // called between blocks, never in a window; nil for none
	Samples  func(Samples) error // receives every raw latency after each round; nil for none
	Environ  result.Environment  // read before the run
	Hop      result.Hop          // as configured; the measured RTT is filled in from the floor

	Carried func() (time.Duration, bool) // CPU time of the process that carries the hop's packets, if one does; nil for none

	MemoryLimit int64 // on each contender, bytes; 0 = none

	Polling func() error // asked after each round where the plan wants processors that do not sleep: why they did; nil: nothing keeps them from it

	Watched func() time.Duration                  // CPU time that others spent on showing the run, charged to the client; nil for none
	Wait    load.Wait                             // paces an open model's arrivals; nil waits by the runtime's timers
	Pauses  func() (load.Wait, func())            // makes what a closed model's VU thinks by; nil by the runtime's timers
	Look    func(*result.Document) (enough bool)  // called after each round with what there is so far; nil for none
	Watch   func(ours time.Duration) result.Noise // ends the watch on the machine's noise, given the CPU time of the contenders and of who watched
}

// Progress is where a run is.
type Progress struct {
	Setting     Setting
	Block       int // of this round
	Blocks      int
	Done, Total int // settings times rounds
}

// Samples are one contender's raw latencies of one round.
type Samples struct {
	Setting   Setting
	Entry     Entry
	Stretches []load.Stretch
}
