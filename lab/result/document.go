package result

import (
	"time"

	"toll/lab/plan"
)

// Schema is the identifier that the first field of every document carries.
const Schema = "toll.result/v1"

// Load is the benchmark of a document that an ad-hoc load wrote.
const Load = "load"

// A Document is one run's result. Times are microseconds, sizes bytes unless a field's name says otherwise; a null is a
// figure that is not there, and gaps, warnings or the sample-size rule say why.
type Document struct {
	Schema      string      `json:"schema"`
	Benchmark   string      `json:"benchmark"`
	Started     time.Time   `json:"started"`
	ElapsedS    float64     `json:"elapsed_s"`
	Seed        int64       `json:"seed"`
	Partial     bool        `json:"partial"` // the run was interrupted; rows hold what was measured until then
	Toll        Toll        `json:"toll"`
	Environment Environment `json:"environment"`
	Plan        PlanEcho    `json:"plan"`
	Method      Method      `json:"method"`
	Rows        []Row       `json:"rows"`
	Ladder      []Rung      `json:"ladder,omitempty"` // the plan's steps, as measured
	Gaps        []Gap       `json:"gaps"`
	Anomalies   []Anomaly   `json:"anomalies"`
	Thresholds  []Threshold `json:"thresholds"`
	Gate        *Gate       `json:"gate,omitempty"`
	Verdict     Verdict     `json:"verdict"`
}

// Toll says which toll measured.
type Toll struct {
	Version string `json:"version"`
	Commit  string `json:"commit"` // "" when the build has no VCS stamp
	Dirty   bool   `json:"dirty"`
	Go      string `json:"go"`
}

// PlanEcho is the plan as it ran and the digest of its canonical JSON.
type PlanEcho struct {
	plan.Plan
	SHA256 string `json:"sha256"`
}

// NoneInForce begins what ran of limits that were asked for and did not hold: of all contenders, or "on" those that follow.
const NoneInForce = "none in force"

// Method is how it was measured: rule 16 wants it stated before any number.
type Method struct {
	Model       string           `json:"model"` // closed | open
	Order       string           `json:"order"` // shuffled | fixed
	Concurrency []int            `json:"concurrency"`
	Processes   string           `json:"processes"` // separate | in-process
	Hop         Hop              `json:"hop"`
	Limits      Limits           `json:"limits"`
	Processors  string           `json:"processors,omitempty"` // held; absent: any that the system chose
	Idle        string           `json:"idle,omitempty"`       // poll: processors with nothing to do did not sleep; absent: as the system has it
	Replicates  int              `json:"replicates"`           // rounds: every contender is started anew for each
	Deviations  []plan.Deviation `json:"deviations"`
}

// Hop is the network between client and contender.
type Hop struct {
	Kind          string   `json:"kind"` // loopback | netns | remote | none
	ConfiguredRTT float64  `json:"configured_rtt_ms"`
	MeasuredRTT   *float64 `json:"measured_rtt_ms"`         // p50 of the raw tcp floor in this run
	Mechanism     string   `json:"mechanism,omitempty"`     // of a netns: veth | netem | tun
	CarrierCores  *float64 `json:"carrier_cores,omitempty"` // of tun: cores' worth of CPU time that the process which carries packets used in the busiest round; in nobody's row, under nobody's limits
}

// RemoteHost is the kind of hop to the processes of a target, which are not started anew for each round.
const RemoteHost = "remote host"

// Limits is what was in force on the contenders.
type Limits struct {
	Mechanism   string   `json:"mechanism"` // cgroup-v2 | cgroup-v1 | systemd | taskset | docker | podman | none; several with commas
	CPUs        *float64 `json:"cpus"`
	MemoryMB    *float64 `json:"memory_mb"`
	ThrottledMS *float64 `json:"throttled_ms"`
}

// The kinds of row.
const (
	Measured  = "measured"
	Foreign   = "foreign"
	Published = "published"
)

// The roles of a row; a contender that is only compared has none.
const (
	Baseline = "baseline"
	Control  = "control"
	Floor    = "floor"
	Null     = "null"
)

// A Row is one contender at one case, phase and concurrency.
type Row struct {
	Case        string                `json:"case"`
	Contender   Contender             `json:"contender"`
	Kind        string                `json:"kind"`
	Role        string                `json:"role"`
	Phase       string                `json:"phase"`
	Concurrency int                   `json:"concurrency"`
	Connections string                `json:"connections"` // shared | per-caller
	Ops         int64                 `json:"ops"`
	OK          int64                 `json:"ok"`
	Failed      map[string]int64      `json:"failed"` // by kind; never in a latency
	Dropped     int64                 `json:"dropped"`
	Verified    int64                 `json:"verified"` // replies whose id and content were checked and right
	ElapsedS    float64               `json:"elapsed_s"`
	Latency     *Latency              `json:"latency_us"`
	Service     *Latency              `json:"service_us,omitempty"`   // open model: from send, where latency is from the intended start
	Failing     *Latency              `json:"failed_us,omitempty"`    // the times of the calls that failed: a distribution of their own
	Tail        *Tail                 `json:"tail_us,omitempty"`      // where calls timed out: successes and timeouts together
	Intervals   map[string]Span       `json:"intervals_us,omitempty"` // of p50, p90, …: order statistics, 95 %
	AboveTen    *int64                `json:"above_10x_p50"`
	Throughput  *float64              `json:"throughput_per_s"`
	Ceiling     *float64              `json:"ceiling_per_s,omitempty"` // the rate of the load's VUs if only the load's own pauses and delays took time
	Little      *float64              `json:"little"`
	Framework   *Framework            `json:"framework,omitempty"`
	Parts       map[string]Part       `json:"parts_us,omitempty"`
	BadParts    map[string]int64      `json:"failed_parts,omitempty"` // shares of an operation that failed
	Open        *Open                 `json:"open,omitempty"`         // what the open model says of its generator
	Stages      []Period              `json:"stages,omitempty"`       // the load's stages, where there are several
	WarmUp      *Period               `json:"warmup,omitempty"`       // under the same load, before the window: in no other figure
	Ratio       *Ratio                `json:"ratio"`
	Rank        string                `json:"rank,omitempty"`      // "1", "2–4"; absent when not ranked
	CPURatio    *Ratio                `json:"cpu_ratio,omitempty"` // of the server's CPU time per operation, round by round
	CPURank     string                `json:"cpu_rank,omitempty"`
	Client      ClientCost            `json:"client"`
	Server      *ServerCost           `json:"server"`             // null when the contender runs in this process
	Backend     *ServerCost           `json:"backend"`            // null when the contender has none behind it; all of them together
	Backends    map[string]ServerCost `json:"backends,omitempty"` // by name
	Processes   []Process             `json:"processes"`
	WireBytes   *WireBytes            `json:"wire_bytes"`
	Retained    *Retained             `json:"retained,omitempty"` // where each call left a session behind
	Knee        *Knee                 `json:"knee,omitempty"`     // where each block is a search for it
	Histogram   *Histogram            `json:"histogram,omitempty"`
	Rounds      []Round               `json:"rounds"`
	Warnings    []string              `json:"warnings"`
	Source      *Source               `json:"source,omitempty"` // foreign and published rows

	// Stated holds the figures of a foreign or published row as they were stated, by name and unit, such as p99_us.
	Stated map[string]float64 `json:"stated,omitempty"`

	TLS   *TLS   `json:"tls,omitempty"`
	Fleet *Fleet `json:"fleet,omitempty"` // where several machines put the load on
}

// How a load that several machines put on a target ended.
const (
	FleetComplete = "complete" // every slice of every worker is here, and all sums match
	FleetDegraded = "degraded" // a worker was lost; see on_loss
	FleetStopped  = "stopped"  // on demand
)

// A Fleet is the machines that put one load on a target together, and how their parts were merged.
type Fleet struct {
	Verdict         string        `json:"verdict"` // complete | degraded | stopped
	Detail          string        `json:"detail"`  // why it is not complete
	OnLoss          string        `json:"on_loss"` // invalidate: the figures are of the time that all workers delivered; continue: of less load from then on
	WorkersExpected int           `json:"workers_expected"`
	WorkersComplete int           `json:"workers_complete"` // everything that they measured is here and adds up
	SlicesExpected  int           `json:"slices_expected"`  // a worker's second at most, each; warm-up included
	SlicesGot       int           `json:"slices_got"`
	Duplicates      int           `json:"duplicates"`      // slices that came again, and were merged once
	Strays          int           `json:"strays"`          // that belonged to nobody
	MergedS         float64       `json:"merged_s"`        // of the load's time, the part that is merged
	ClockBound      float64       `json:"clock_bound_us"`  // by how much two machines' clocks may be apart unnoticed
	StartSpread     *float64      `json:"start_spread_us"` // between the first and the last start; null when it is less than ten times the bound
	ControlCPU      *float64      `json:"control_cpu"`     // CPU time of coordinator and server, in shares of the workers'
	Workers         []FleetWorker `json:"workers"`
	Events          []FleetEvent  `json:"events"`
}

// A FleetWorker is one machine's part. Its figures are of what is merged.
type FleetWorker struct {
	Worker     string   `json:"worker"`
	Number     int      `json:"number"` // of its segment, from 0
	Complete   bool     `json:"complete"`
	Lost       string   `json:"lost"` // why it was lost or stopped; empty when it was not
	SlicesGot  int      `json:"slices_got"`
	Duplicates int      `json:"duplicates"`
	OK         int64    `json:"ok"`
	Failed     int64    `json:"failed"`
	Dropped    int64    `json:"dropped"`
	Throughput *float64 `json:"throughput_per_s"`
	Latency    *Latency `json:"latency_us"`
	LateP99    *float64 `json:"late_p99_us"`      // open model
	Calibrated *float64 `json:"calibrated_per_s"` // against the null target; it may carry half of that
	FloorP50   *float64 `json:"floor_p50_us"`
	TimerP99   *float64 `json:"timer_late_p99_us"`
	StartLate  *float64 `json:"start_late_us"`
	CPU        *float64 `json:"cpu"`     // of its cores
	Limited    int      `json:"limited"` // slices of which it, not the target, was the limit: calls sent more than 5 ms late at p99
	ClockAhead float64  `json:"clock_ahead_us"`
	ClockBound float64  `json:"clock_bound_us"`
	SteppedMS  float64  `json:"clock_stepped_ms"` // how far its wall clock was set while it ran
	Cores      int      `json:"cores"`
	GOMAXPROCS int      `json:"gomaxprocs"`
	OS         string   `json:"os"`
	Arch       string   `json:"arch"`
	CPUModel   string   `json:"cpu_model"`
	Kernel     string   `json:"kernel"`
	Flags      []string `json:"flags"` // straggler, client-bound, overcommitted, started-late
}

// A FleetEvent is something that happened while the fleet ran.
type FleetEvent struct {
	AtS    float64 `json:"at_s"` // of the load's time
	Worker string  `json:"worker"`
	What   string  `json:"what"`
}

// A Contender says what answered.
type Contender struct {
	Name          string `json:"name"`
	Version       string `json:"version"`
	Language      string `json:"language"`
	SDK           string `json:"sdk"`
	CommandSHA256 string `json:"command_sha256"`
}

// Latency is the distribution of the successes' times, µs. A quantile without its samples is null (rule 10).
type Latency struct {
	Min  float64  `json:"min"`
	Mean float64  `json:"mean"`
	P50  float64  `json:"p50"`
	P90  *float64 `json:"p90"`
	P95  *float64 `json:"p95"`
	P99  *float64 `json:"p99"`
	P999 *float64 `json:"p999"`
	Max  float64  `json:"max"`
}

// A Span is an interval.
type Span struct {
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

// A Part is a named share of one operation's time.
type Part struct {
	Count int64 `json:"count"`
	Latency
}

// A Ratio divides the row by the baseline of its case, phase and concurrency, block by block.
type Ratio struct {
	To       string   `json:"to"` // the baseline's name
	Of       string   `json:"of"` // the statistic of a block that is divided
	Value    float64  `json:"value"`
	Lo       *float64 `json:"lo"` // 95 %; null with fewer than six blocks
	Hi       *float64 `json:"hi"`
	Blocks   int      `json:"blocks"`
	MinValue *float64 `json:"min_value"` // ratio of the minima
	Without  *Without `json:"without_outliers,omitempty"`
}

// Without is a ratio with the outlier rounds left out, shown beside the one with them (rule 11).
type Without struct {
	Rounds []int    `json:"rounds"`
	Value  float64  `json:"value"`
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
	Blocks int      `json:"blocks"`
}

// An Open says how the generator of an open-model row kept its schedule.
type Open struct {
	Offered       float64   `json:"offered_per_s"` // arrivals over the time of the stages
	Arrivals      int64     `json:"arrivals"`      // those dropped included
	Spread        string    `json:"spread"`        // even | poisson
	InFlightLimit int       `json:"in_flight_limit"`
	InFlightMost  int       `json:"in_flight_most"`
	Late          *Lateness `json:"lateness_us"` // from the intended start to the send
	Bursts        int64     `json:"bursts"`      // times that the generator had fallen behind and sent several at once
	BurstMost     int64     `json:"burst_most"`
	Share         *float64  `json:"share,omitempty"`          // of the baseline's capacity that was offered, where the plan gives shares
	Capacity      *float64  `json:"capacity_per_s,omitempty"` // what the baseline answered when kept busy before each round; their mean
}

// Framework is what is left of a row's calls when the time of the handler is taken off, as its process counted it. With several
// callers it holds the time for which calls wait for each other.
type Framework struct {
	Handler  float64 `json:"handler_us"`  // mean
	Overhead float64 `json:"overhead_us"` // mean of the calls − mean of the handler
	Share    float64 `json:"share"`       // of the whole call

	// With one caller the handler has a processor while it runs, so that its time is CPU time, but for what interrupts it:
	// what else the contender spends on a call is its framework's, without the client and without anybody's waiting.
	CPU      *float64 `json:"cpu_us,omitempty"`    // the contender's CPU time of a call − mean of the handler
	CPUShare *float64 `json:"cpu_share,omitempty"` // of the contender's CPU time
}

// Lateness is how late calls were sent, µs.
type Lateness struct {
	P50 float64  `json:"p50"`
	P99 *float64 `json:"p99"` // null without 1,000 calls
	Max float64  `json:"max"`
}

// A Tail holds quantiles over successes and timeouts together. A timeout is at least its limit; so is each quantile from
// AtLeastFrom on.
type Tail struct {
	Timeouts    int64    `json:"timeouts"`
	Limit       float64  `json:"limit"`
	AtLeastFrom float64  `json:"at_least_from"` // the share of the calls that did not time out
	P50         float64  `json:"p50"`
	P90         *float64 `json:"p90"`
	P95         *float64 `json:"p95"`
	P99         *float64 `json:"p99"`
}

// A Period is a part of a load's time: a stage, or the warm-up.
type Period struct {
	FromS      float64          `json:"from_s"` // since the load's start
	ToS        float64          `json:"to_s"`
	From       float64          `json:"from"` // VUs, or arrivals a second, at its start
	To         float64          `json:"to"`   // and at its end
	OK         int64            `json:"ok"`
	Failed     map[string]int64 `json:"failed"`
	Dropped    int64            `json:"dropped"`
	Throughput float64          `json:"throughput_per_s"` // successes
	Latency    *Latency         `json:"latency_us"`
	Parts      map[string]Part  `json:"parts_us,omitempty"`
}

// ClientCost is what the lab's own process spent per operation.
type ClientCost struct {
	Kind       string   `json:"kind,omitempty"` // by which of the clients of HTTP
	CPU        *float64 `json:"cpu_us_per_op"`
	Allocs     *float64 `json:"allocs_per_op"`
	AllocBytes *float64 `json:"alloc_bytes_per_op"`
}

// ServerCost is what the contender's process tree spent.
type ServerCost struct {
	CPU        *float64 `json:"cpu_us_per_op"`
	UserMS     *float64 `json:"cpu_user_ms"`
	SystemMS   *float64 `json:"cpu_system_ms"`
	RSSPeakMB  *float64 `json:"rss_peak_mb"`
	HeapMB     *float64 `json:"heap_used_mb"`
	Allocs     *float64 `json:"allocs_per_op"`
	AllocBytes *float64 `json:"alloc_bytes_per_op"`

	// Of a contender under limits whose mechanism counts.
	ThrottledMS  *float64 `json:"throttled_ms,omitempty"`   // in the windows and between them
	MemoryPeakMB *float64 `json:"memory_peak_mb,omitempty"` // of the whole tree, page cache included
	OOMKills     *int64   `json:"oom_kills,omitempty"`
}

// A Process is one that took part in the row.
type Process struct {
	Role       string `json:"role"` // client | server | backend
	Threads    *int   `json:"threads"`
	GOMAXPROCS *int   `json:"gomaxprocs"`           // null for a process that is not Go
	Processors []int  `json:"processors,omitempty"` // those that it was held to; absent: any
}

// WireBytes is what one operation puts on its connection.
type WireBytes struct {
	Out float64 `json:"out"`
	In  float64 `json:"in"`
}

// A Histogram is the row's whole distribution, ns: exact count, sum, min and max, and [largest value, count] per bucket.
type Histogram struct {
	Count   int64      `json:"count"`
	Sum     int64      `json:"sum_ns"`
	Min     int64      `json:"min_ns"`
	Max     int64      `json:"max_ns"`
	Buckets [][2]int64 `json:"buckets_ns"`
}

// A Round is one independent repeat: the contender was started anew for it.
type Round struct {
	Round     int              `json:"round"` // from 1
	Ops       int64            `json:"ops"`
	OK        int64            `json:"ok"`
	Failed    map[string]int64 `json:"failed"`
	ElapsedS  float64          `json:"elapsed_s"`
	P50       *float64         `json:"p50_us"`
	ServerCPU *float64         `json:"server_cpu_us_per_op,omitempty"`
	Outlier   string           `json:"outlier,omitempty"` // why the round is marked; it is kept all the same
	Blocks    []Block          `json:"blocks"`
}

// A Block is the row's share of one shuffled pass.
type Block struct {
	Slot  int      `json:"slot"`            // its place in the block's order, from 0
	Stage int      `json:"stage,omitempty"` // of the load, from 0, where a block is a slice of one load's time
	OK    int64    `json:"ok"`
	P50   *float64 `json:"p50_us"` // null without a success
	Min   *float64 `json:"min_us"`
	Knee  *float64 `json:"knee_per_s,omitempty"` // what the block's search found
}

// InTheClear is the warning of a row without encryption among rows that have it.
const InTheClear = "in the clear, beside rows over TLS"

// A Source says where a foreign or published row comes from.
type Source struct {
	File   string   `json:"file"`
	SHA256 string   `json:"sha256"`
	Date   string   `json:"date"`
	Errata []string `json:"errata"`
}

// TLS says what was verified on an encrypted connection.
type TLS struct {
	ServerVerified bool `json:"server_verified"`
	ClientVerified bool `json:"client_verified"`

	Resumption string `json:"resumption,omitempty"` // off | on: whether sessions were offered again, where the driver says so
}

// A Rung is one step of a ladder: the ratio of two contenders in the same blocks.
type Rung struct {
	Case        string   `json:"case"`
	Phase       string   `json:"phase"`
	Concurrency int      `json:"concurrency"`
	Step        string   `json:"step"`
	From        string   `json:"from"`
	To          string   `json:"to"`
	Value       float64  `json:"value"`
	Lo          *float64 `json:"lo"`
	Hi          *float64 `json:"hi"`
	Blocks      int      `json:"blocks"`
}

// A Gap is a number that we do not have, with its reason. Row is case/phase/contender, and the field behind a colon when
// one figure of a row is missing: "call/32B tcp node-http: server.allocs_per_op".
type Gap struct {
	Row    string `json:"row"`
	Reason string `json:"reason"`
}

// An Anomaly is something about the run that a reader should know and that no single row owns.
type Anomaly struct {
	Kind   string `json:"kind"` // drift | carry-over | outlier | unsteady | leak | noise | hop-bound | partial
	Row    string `json:"row"`
	Detail string `json:"detail"`
}

// A Threshold is one the plan set, and whether it was met.
type Threshold struct {
	Expr   string `json:"expr"`
	Passed bool   `json:"passed"`
}

// A Gate is the decision whether a contender is slower than the baseline by more than a bound, looked at when so many
// blocks were done as was set beforehand. Each look has its share of the 5 % that a decision may be wrong by chance.
type Gate struct {
	Contender string  `json:"contender"`
	Bound     float64 `json:"bound"` // of the ratio less 1: 0.03 allows 3 % slower
	Planned   []int   `json:"planned_looks"`
	Level     float64 `json:"level"` // of each look's interval
	Looks     []Look  `json:"looks"`
	Decision  string  `json:"decision"` // pass | fail | undecided
	Smallest  float64 `json:"smallest"` // the smallest difference that the run could show: its A/A control's interval and the last look's half-width, whichever is larger
}

// A Look is one look at the ratio.
type Look struct {
	Blocks   int      `json:"blocks"`
	Value    float64  `json:"value"`
	Lo       *float64 `json:"lo"`
	Hi       *float64 `json:"hi"`
	Decision string   `json:"decision"`
}

// A Verdict says whether the document keeps every rule of an honest number.
type Verdict struct {
	Publishable bool     `json:"publishable"`
	Reasons     []string `json:"reasons"` // why not; empty when publishable
}

// Retained is what a contender held on to for sessions that clients left behind: heap and stacks, after a collection, more than
// before them.
type Retained struct {
	Sessions       int64   `json:"sessions"`
	IdleS          float64 `json:"idle_s"`           // after which the contender was told to forget a session
	Bytes          float64 `json:"bytes"`            // a session, right behind the calls
	BytesAfterIdle float64 `json:"bytes_after_idle"` // a session, twice the idle time later
}
