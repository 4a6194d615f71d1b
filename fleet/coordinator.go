package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"toll/lab/plan"
	"toll/lab/record"
)

// What a run does when a worker is lost.
const (
	Invalidate = "invalidate" // it ends, and keeps what all workers delivered before
	Continue   = "continue"   // it goes on with less load
)

// How a run can end.
const (
	Complete = "complete" // every slice of every worker is here, and all sums match
	Degraded = "degraded" // a worker was lost; see OnLoss
	Stopped  = "stopped"  // on demand
	Refused  = "refused"  // what arrived does not add up
)

// The coordinator's times.
const (
	tickEvery   = time.Second            // how often it asks every worker how it is
	hurryEvery  = 200 * time.Millisecond // while the start is being agreed on
	silentAfter = 3 * time.Second        // of a worker: it is lost, unless it comes back
	askEvery    = 2 * time.Second        // for slices that are missing
	startMargin = 2 * time.Second        // from the agreement to the start, at least
	startRTTs   = 20                     // round trips, if that is longer

	DefaultRejoin = 15 * time.Second // after which a silent worker is lost for good
)

// mostResend bounds the slices that are asked for at once, mostEvents what is noted of a run.
const (
	mostResend = 256
	mostEvents = 1000
)

// mergedGroups is into how many parts of time the merged slices are folded at most, the stages' borders apart.
const mergedGroups = 120

// A Config is what a coordinator conducts.
type Config struct {
	Run      string
	Plan     []byte // the plan file, which workers read again
	Settings plan.Settings
	Workers  int
	OnLoss   string        // Invalidate when empty
	Rejoin   time.Duration // DefaultRejoin when 0
	Seed     int64
	Build    Build
	Raw      bool // workers keep every latency in a file of their own
}

// WithDefaults returns c with its zero values replaced.
func (c Config) WithDefaults() Config {
	c.OnLoss, c.Rejoin = cmp.Or(c.OnLoss, Invalidate), cmp.Or(c.Rejoin, DefaultRejoin)
	return c
}

// Check returns what is wrong with a configuration.
func (c Config) Check() error {
	s := c.Settings
	switch {
	case c.Workers < 1 || c.Workers > mostWorkers:
		return fmt.Errorf("%d workers; expected 1 to %d", c.Workers, mostWorkers)
	case !s.Timed():
		return errors.New("the plan's turns are calls, not a time; a fleet spreads a load that lasts")
	case s.CallsOnly:
		return errors.New("the plan ends after a number of calls; a fleet spreads a load that lasts")
	case s.Rounds > 1 || s.Blocks > 1 || len(s.Concurrency) != 1:
		return fmt.Errorf("the plan has %d rounds, %d blocks and %d concurrencies; a fleet runs one load once", s.Rounds, s.Blocks, len(s.Concurrency))
	case s.Model == plan.Closed && plan.Peak(s.Shape(s.Concurrency[0])) < float64(c.Workers):
		return fmt.Errorf("%d workers for %.0f VUs; expected a VU for each at least", c.Workers, plan.Peak(s.Shape(s.Concurrency[0])))
	}
	return nil
}

// mostWorkers bounds a fleet.
const mostWorkers = 10_000

// A State is what a coordinator that is started again must know. It is saved whenever it changes.
type State struct {
	Run     string    `json:"run"`
	Digest  string    `json:"plan_sha256"`
	Started time.Time `json:"started"` // zero: not yet
	Members []Seat    `json:"members"`
	Events  []Event   `json:"events,omitempty"`
	Holder  string    `json:"holder"` // drawn by each coordinator: two of one run write the same otherwise
}

// A Seat is a worker's place in a run.
type Seat struct {
	ID          string       `json:"id"`
	Number      int          `json:"number"`
	Hello       Hello        `json:"hello"`
	Calibration *Calibration `json:"calibration,omitempty"`
}

// An Action is what a coordinator wants done: one of the two.
type Action struct {
	Send *Message
	Save *State
}

// An Event is something that happened in a run, at a time of its load.
type Event struct {
	At     time.Duration `json:"at_ns"`
	Worker string        `json:"worker,omitempty"`
	What   string        `json:"what"`
}

// A Coordinator is the rules of a run. Its methods must not be called at the same time; now is always its monotonic clock.
type Coordinator struct {
	cfg    Config
	leg    Leg
	digest string

	members  map[string]*member
	order    []*member // by segment number
	started  bool
	goAt     time.Duration
	startsAt time.Time // goAt on the wall clock
	stopping string    // why the load ends early
	refused  error
	over     bool
	ticked   time.Duration
	events   []Event
	noted    bool // since the state was last saved
	strays   int  // slices that belong to nobody
	resumed  bool
	busy     []string // workers that were turned away because the run is full

	// The merge:
	mark   int // slices before it are merged
	groups []Group
	perOne int // slices a group
}

// A Group is merged slices that follow each other.
type Group struct {
	Time
	Warm  bool
	First int // slice
	Shard *record.Shard
}

// NewCoordinator makes one. The configuration must pass Check.
func NewCoordinator(cfg Config) *Coordinator {
	cfg = cfg.WithDefaults()
	sum := sha256.Sum256(cfg.Plan)
	c := &Coordinator{cfg: cfg, leg: NewLeg(cfg.Settings), digest: hex.EncodeToString(sum[:]), members: make(map[string]*member)}
	c.perOne = max((len(c.leg.Times)+mergedGroups-1)/mergedGroups, 1)
	c.ticked = -tickEvery
	return c
}

// Resume takes up a run where another process left it, at a time of both clocks.
func (c *Coordinator) Resume(s State, now time.Duration, wall time.Time) error {
	if s.Run != c.cfg.Run || s.Digest != c.digest {
		return fmt.Errorf("run %s of plan %.12s was saved; this is run %s of plan %.12s", s.Run, s.Digest, c.cfg.Run, c.digest)
	}
	for _, seat := range s.Members {
		if seat.Number < 0 || seat.Number >= c.cfg.Workers || c.members[seat.ID] != nil {
			return fmt.Errorf("run %s: the saved state has no place %d for worker %s", s.Run, seat.Number, seat.ID)
		}
		c.seat(&member{id: seat.ID, segment: plan.Segment{Number: seat.Number, Of: c.cfg.Workers}, hello: seat.Hello, calibration: seat.Calibration, heard: now, phase: Joining})
	}
	c.resumed, c.events = true, s.Events
	if !s.Started.IsZero() {
		c.started, c.startsAt, c.goAt = true, s.Started, now-wall.Sub(s.Started)
		c.note(now, "", "the coordinator was started anew and went on")
	}
	return nil
}

func (c *Coordinator) seat(m *member) {
	c.members[m.id] = m
	c.order = append(c.order, m)
	slices.SortFunc(c.order, func(a, b *member) int { return cmp.Compare(a.segment.Number, b.segment.Number) })
}

// State is what is to be saved.
func (c *Coordinator) State() *State {
	s := &State{Run: c.cfg.Run, Digest: c.digest, Events: slices.Clone(c.events)}
	if c.started {
		s.Started = c.startsAt
	}
	for _, m := range c.order {
		s.Members = append(s.Members, Seat{m.id, m.segment.Number, m.hello, m.calibration})
	}
	return s
}

// note notes an event. Those beyond the bound are told by their number.
func (c *Coordinator) note(now time.Duration, worker, format string, args ...any) {
	if len(c.events) < mostEvents {
		c.events = append(c.events, Event{c.at(now), worker, fmt.Sprintf(format, args...)})
		c.noted = true
	}
}

// keep adds to what is to be done that the state is saved, if something was noted.
func (c *Coordinator) keep(out []Action) []Action {
	if c.noted && c.started {
		c.noted = false
		out = append(out, Action{Save: c.State()})
	}
	return out
}

// at is the time of the load.
func (c *Coordinator) at(now time.Duration) time.Duration {
	if !c.started {
		return 0
	}
	return max(now-c.goAt, 0)
}

// Over reports whether everything is here that will be.
func (c *Coordinator) Over() bool { return c.over }

// Started reports whether the start was agreed on.
func (c *Coordinator) Started() bool { return c.started }

// Stop ends the load early; what was delivered by all is kept.
func (c *Coordinator) Stop(now time.Duration, why string) []Action {
	if c.stopping == "" {
		c.stopping = why
		c.note(now, "", "stopped: %s", why)
	}
	if !c.started {
		c.over = true
	}
	return []Action{c.send(Message{Stop: why})}
}

// refuse ends the run because something does not add up.
func (c *Coordinator) refuse(now time.Duration, worker string, err error) {
	if c.refused == nil {
		c.refused = fmt.Errorf("worker %s: %w", worker, err)
		c.note(now, worker, "refused: %v", err)
	}
	if c.stopping == "" {
		c.stopping = c.refused.Error()
	}
	if !c.started {
		c.over = true
	}
}

func (c *Coordinator) send(m Message) Action {
	m.Run = c.cfg.Run
	return Action{Send: &m}
}

// Next is when Tick wants to be called.
func (c *Coordinator) Next() time.Duration {
	every := tickEvery
	if c.started && slices.ContainsFunc(c.order, func(m *member) bool { return rank(m.phase) < rank(Waiting) && !m.silent }) {
		every = hurryEvery
	}
	return c.ticked + every
}

// Tick is to be called when its time has come, and may be at any time.
func (c *Coordinator) Tick(now time.Duration) []Action {
	if now < c.Next() || c.over {
		return nil
	}
	c.stoodStill(now)
	c.ticked = now
	out := []Action{c.send(Message{Clock: &Clock{T1: now}})}
	for _, m := range slices.Clone(c.order) {
		out = append(out, c.watch(now, m)...)
	}
	c.advance(now)
	return c.keep(append(out, c.conclude(now)...))
}

// stoodStill forgives the workers the time in which this process itself did not run: nothing they said could be heard.
func (c *Coordinator) stoodStill(now time.Duration) {
	gap := now - c.ticked - tickEvery
	if c.ticked < 0 || gap < tickEvery {
		return
	}
	for _, m := range c.order {
		m.heard += gap
	}
	if c.started {
		c.note(now, "", "the coordinator stood still for %s", seconds(gap))
	}
}

// watch looks at how long a worker has been silent.
func (c *Coordinator) watch(now time.Duration, m *member) []Action {
	quiet := now - m.heard
	if m.lost || m.complete || quiet < silentAfter {
		return nil
	}
	if !m.silent {
		m.silent, m.since = true, c.at(m.heard)
		if c.started {
			c.note(now, m.id, "lost at %s: no word for %s", seconds(m.since), seconds(quiet))
		}
	}
	if quiet < c.cfg.Rejoin {
		return nil
	}
	if !c.started { // its place is free again
		delete(c.members, m.id)
		c.order = slices.DeleteFunc(c.order, func(o *member) bool { return o == m })
		return nil
	}
	c.lose(now, m, fmt.Sprintf("no word for %s", seconds(quiet)))
	return nil
}

// lose gives a worker up.
func (c *Coordinator) lose(now time.Duration, m *member, why string) {
	if m.lost {
		return
	}
	if !m.silent {
		m.since = c.at(now)
	}
	m.lost, m.why = true, why
	if m.totals != nil && m.got < m.totals.Slices {
		c.refuse(now, m.id, fmt.Errorf("slice %d of %d is missing, and it can't be asked any more", m.missing(m.totals.Slices, 1)[0], m.totals.Slices))
		return
	}
	c.note(now, m.id, "given up: %s; it had delivered %d of %d slices", why, m.have, len(c.leg.Times))
	if c.cfg.OnLoss == Invalidate && c.stopping == "" {
		c.stopping = fmt.Sprintf("worker %s was lost", m.id)
	}
}

// Handle takes a message.
func (c *Coordinator) Handle(now time.Duration, m Message) []Action {
	if m.From == "" || len(m.From) > maxID || m.Run != "" && m.Run != c.cfg.Run {
		return nil
	}
	if c.over {
		return []Action{c.send(Message{To: m.From, Bye: c.Verdict().String()})}
	}
	w := c.members[m.From]
	var out []Action
	if w == nil {
		if m.Hello == nil {
			return nil
		}
		if why := c.admits(m.From, m.Hello); why != "" {
			return []Action{c.send(Message{To: m.From, Refuse: why})}
		}
		w = c.admit(m.From, *m.Hello)
		out = append(out, Action{Save: c.State()})
	}
	if life := lifeOf(m); life != "" && life != w.hello.Life {
		return append(out, c.reborn(now, w, m)...)
	}
	w.heard = now
	if w.silent && !w.lost {
		w.silent = false
		if c.started {
			c.note(now, w.id, "back after %s: nothing of it is lost if its slices arrive", seconds(c.at(now)-w.since))
		}
	}
	if t := m.Clock; t != nil {
		w.clock.add(t.T1, t.T2, t.T3, now)
	}
	if m.Beat != nil {
		out = append(out, c.beat(now, w, m.Beat)...)
	} else if m.Hello != nil {
		out = append(out, c.lead(now, w)...)
	}
	return c.keep(append(out, c.conclude(now)...))
}

func lifeOf(m Message) string {
	switch {
	case m.Beat != nil:
		return m.Beat.Life
	case m.Hello != nil:
		return m.Hello.Life
	}
	return ""
}

// admits returns why a worker can't take part; empty when it can.
func (c *Coordinator) admits(id string, h *Hello) string {
	switch why := c.cfg.Build.differs(h.Build); {
	case why != "":
		return why
	case c.started:
		return "the run has begun"
	case len(c.order) >= c.cfg.Workers:
		if !slices.Contains(c.busy, id) && len(c.busy) < mostEvents {
			c.busy = append(c.busy, id)
		}
		return fmt.Sprintf("the run has its %d workers", c.cfg.Workers)
	}
	return ""
}

func (c *Coordinator) admit(id string, h Hello) *member {
	number := 0
	for number < len(c.order) && c.order[number].segment.Number == number {
		number++
	}
	m := &member{id: id, segment: plan.Segment{Number: number, Of: c.cfg.Workers}, hello: h, phase: Joining}
	c.seat(m)
	return m
}

// reborn is done when another process speaks in a worker's name.
func (c *Coordinator) reborn(now time.Duration, w *member, m Message) []Action {
	if c.started {
		if !w.complete {
			c.lose(now, w, "another process came in its place")
		}
		return append([]Action{c.send(Message{To: w.id, Refuse: "the run has begun, and what this worker measured is gone with its former process"})}, c.conclude(now)...)
	}
	if m.Hello == nil {
		return nil
	}
	w.hello, w.phase, w.calibration, w.clock, w.heard = *m.Hello, Joining, nil, clock{}, now
	return append([]Action{{Save: c.State()}}, c.lead(now, w)...)
}

// beat takes what a worker says of itself.
func (c *Coordinator) beat(now time.Duration, w *member, b *Beat) []Action {
	w.phase = b.Phase
	w.lag = max(w.lag, b.Lag)
	var out []Action
	if d := b.Stepped - w.stepped; max(d, -d) >= leastStep {
		w.stepped = b.Stepped
		c.note(now, w.id, "its wall clock was set by %s; its latencies are of its monotonic clock and unchanged", signed(d))
	}
	if b.Calibration != nil && w.calibration == nil {
		w.calibration = b.Calibration
		out = append(out, Action{Save: c.State()})
		if err := c.carries(w); err != nil {
			c.refuse(now, w.id, err)
		}
	}
	if c.resumed && c.started && b.Phase == Running && b.Elapsed > 0 {
		c.goAt = now - b.Elapsed
	}
	if b.Totals != nil && w.totals == nil {
		w.totals = b.Totals
		c.endedEarly(now, w)
	}
	if b.Failed != "" && !w.lost {
		if !c.started {
			c.refuse(now, w.id, errors.New(b.Failed))
		} else {
			c.lose(now, w, b.Failed)
		}
	}
	return append(out, c.lead(now, w)...)
}

// endedEarly notes a worker that stopped though nobody told it to.
func (c *Coordinator) endedEarly(now time.Duration, w *member) {
	if w.totals.Stopped == "" || c.stopping != "" || w.totals.Slices >= len(c.leg.Times) {
		return
	}
	w.short, w.why, w.since = true, w.totals.Stopped, w.totals.Elapsed
	c.note(now, w.id, "it stopped at %s: %s", seconds(w.since), w.why)
	if c.cfg.OnLoss == Invalidate {
		c.stopping = fmt.Sprintf("worker %s stopped: %s", w.id, w.why)
	}
}

// leastStep is by how much a wall clock must have been set to be told.
const leastStep = 100 * time.Millisecond

// carries says whether a worker can carry its share: at most half of what it did against the null target.
func (c *Coordinator) carries(w *member) error {
	k := w.calibration
	if !c.leg.Open || k.NoNull != "" {
		return nil
	}
	if share := plan.Peak(c.leg.Stages) / float64(c.cfg.Workers); share > mostOfCalibrated*k.Rate {
		return fmt.Errorf("its share is %.0f calls a second; it made %.0f against the null target and may carry half of that: add workers", share, k.Rate)
	}
	return nil
}

// mostOfCalibrated is the share of its calibrated rate that a worker may carry.
const mostOfCalibrated = .5

// lead tells a worker what is next.
func (c *Coordinator) lead(now time.Duration, w *member) []Action {
	one := func(m Message) []Action {
		m.To = w.id
		return []Action{c.send(m)}
	}
	if c.stopping != "" && rank(w.phase) < rank(Done) {
		return one(Message{Stop: c.stopping})
	}
	switch w.phase {
	case Joining:
		return one(Message{Plan: &Assignment{
			Text: c.cfg.Plan, Digest: c.digest, Segment: w.segment, Seed: c.cfg.Seed, Slices: len(c.leg.Times), Rejoin: Span(c.cfg.Rejoin), Raw: c.cfg.Raw,
		}})
	case Planned:
		if !w.clock.settled() {
			return one(Message{Clock: &Clock{T1: now}})
		}
		return one(Message{Calibrate: true})
	case Calibrated:
		if c.all(Calibrated) {
			return one(Message{Arm: c.digest})
		}
	case Armed:
		if !w.clock.settled() { // of a coordinator that was started anew
			return one(Message{Clock: &Clock{T1: now}})
		}
		return c.start(now)
	case Done:
		return c.collect(now, w)
	}
	return nil
}

// all reports whether the fleet is whole and has come to a phase.
func (c *Coordinator) all(phase string) bool {
	return len(c.order) == c.cfg.Workers && !slices.ContainsFunc(c.order, func(m *member) bool { return rank(m.phase) < rank(phase) || m.silent && !c.started })
}

// start agrees on the start once all workers are ready, and tells those that do not know it.
func (c *Coordinator) start(now time.Duration) []Action {
	var out []Action
	if !c.started {
		if !c.all(Armed) || slices.ContainsFunc(c.order, func(m *member) bool { return !m.clock.settled() }) {
			return nil
		}
		margin := startMargin
		for _, m := range c.order {
			_, bound := m.clock.offset()
			margin = max(margin, startRTTs*2*bound)
		}
		c.started, c.goAt = true, now+margin
		out = append(out, Action{Save: c.State()})
	}
	for _, m := range c.order {
		if m.phase == Armed && m.clock.settled() && (m.told == 0 || now-m.told >= hurryEvery/2) {
			m.told = now
			ahead, _ := m.clock.offset()
			out = append(out, c.send(Message{To: m.id, Go: &Go{At: c.goAt + ahead}}))
		}
	}
	return out
}

// StartsAt sets the start on the wall clock, which a coordinator that is started anew needs; now is the time of both.
func (c *Coordinator) StartsAt(now time.Duration, wall time.Time) {
	if c.started && c.startsAt.IsZero() {
		c.startsAt = wall.Add(c.goAt - now)
	}
}

// collect asks a worker that is done for what is missing, and lets it go when everything is here.
func (c *Coordinator) collect(now time.Duration, w *member) []Action {
	t := w.totals
	if t == nil || w.lost {
		return nil
	}
	if w.complete {
		return []Action{c.send(Message{To: w.id, Bye: "everything is here"})}
	}
	if missing := w.missing(t.Slices, mostResend); len(missing) > 0 {
		if w.asked == 0 { // they may be on their way
			w.asked = now
		}
		if now-w.asked < askEvery {
			return nil
		}
		w.asked = now
		return []Action{c.send(Message{To: w.id, Resend: missing})}
	}
	c.settle(now, w)
	if !w.complete {
		return nil
	}
	return []Action{c.send(Message{To: w.id, Bye: "everything is here"})}
}

// settle compares what a worker measured by its own count with what arrived.
func (c *Coordinator) settle(now time.Duration, w *member) {
	t := w.totals
	if got := w.chained(t.Slices); got != t.Digest {
		c.refuse(now, w.id, fmt.Errorf("the digest of its slices is %.12s, its own is %.12s", got, t.Digest))
		return
	}
	if w.got > t.Slices {
		c.refuse(now, w.id, fmt.Errorf("%d slices arrived, and it made %d", w.got, t.Slices))
		return
	}
	sum, err := w.unmerged(t.Slices, w.all)
	if err == nil {
		if text := sum.differs(t); text != "" {
			err = errors.New(text)
		}
	}
	if err != nil {
		c.refuse(now, w.id, err)
		return
	}
	w.complete = true
}

// HandleSlice takes a slice from the stream. It keeps body.
func (c *Coordinator) HandleSlice(now time.Duration, body []byte) []Action {
	s, _, err := decodeHead(body)
	w := c.members[s.Worker]
	if err != nil || s.Run != c.cfg.Run || w == nil || s.N >= len(c.leg.Times) {
		c.strays++
		return nil
	}
	switch w.take(s.N, body) {
	case contradicts:
		c.refuse(now, w.id, fmt.Errorf("two different slices came as its slice %d", s.N))
	case taken:
		c.advance(now)
	}
	out := []Action(nil)
	if w.phase == Done && w.totals != nil && w.got >= w.totals.Slices {
		out = c.collect(now, w)
	}
	return c.keep(append(out, c.conclude(now)...))
}

// limit is how many slices may be merged: those that every worker delivered which has not been lost, or whose loss ends the run.
func (c *Coordinator) limit() int {
	n := len(c.leg.Times)
	for _, m := range c.order {
		if !m.lost && !m.short || c.cfg.OnLoss == Invalidate {
			n = min(n, m.have)
		}
	}
	if len(c.order) < c.cfg.Workers {
		return 0
	}
	return n
}

// advance merges what all have delivered.
func (c *Coordinator) advance(now time.Duration) {
	for limit := c.limit(); c.mark < limit && c.refused == nil; c.mark++ {
		for _, m := range c.order {
			if m.have <= c.mark {
				continue
			}
			if err := c.merge(m); err != nil {
				c.refuse(now, m.id, err)
				return
			}
		}
	}
}

// merge adds a worker's slice at the mark.
func (c *Coordinator) merge(m *member) error {
	s, err := DecodeSlice(m.waiting[c.mark])
	if err != nil {
		return fmt.Errorf("slice %d: %w", c.mark, err)
	}
	t := c.leg.Times[c.mark]
	if s.From != t.From || s.To != t.To {
		return fmt.Errorf("slice %d is of %v to %v; in this plan it is of %v to %v", c.mark, s.From, s.To, t.From, t.To)
	}
	delete(m.waiting, c.mark)
	m.merged = c.mark + 1
	g := c.group()
	g.Shard.Merge(s.Shard)
	m.all.add(s.Shard)
	if c.mark < c.leg.Warm {
		return nil
	}
	m.window.add(s.Shard)
	m.latency.Merge(&s.Shard.Latency)
	m.late.Merge(&s.Shard.Late)
	m.cpu += s.CPU
	if h := &s.Shard.Late; h.Count() > 0 && !timely(time.Duration(h.Quantile(.99))) {
		m.limited++
	}
	return nil
}

// group returns the group that the slice at the mark belongs to.
func (c *Coordinator) group() *Group {
	t, warm := c.leg.Times[c.mark], c.mark < c.leg.Warm
	if n := len(c.groups); n > 0 {
		g := &c.groups[n-1]
		if g.First == c.mark || g.Stage == t.Stage && g.Warm == warm && c.mark-g.First < c.perOne {
			g.To = t.To
			return g
		}
	}
	c.groups = append(c.groups, Group{t, warm, c.mark, new(record.Shard)})
	return &c.groups[len(c.groups)-1]
}

// conclude ends the run when there is nothing more to wait for.
func (c *Coordinator) conclude(now time.Duration) []Action {
	if c.over || !c.started {
		return nil
	}
	for _, m := range c.order {
		if !m.complete && !m.lost {
			// After a refusal nothing more is waited for than that the others have stopped.
			if c.refused == nil || rank(m.phase) < rank(Done) && !m.silent {
				return nil
			}
		}
	}
	c.advance(now)
	c.over = true
	return []Action{c.send(Message{Bye: c.Verdict().String()})}
}

// A Verdict is how a run ended.
type Verdict struct {
	Word   string // Complete | Degraded | Stopped | Refused
	Detail string
}

// String returns word and detail.
func (v Verdict) String() string {
	if v.Detail == "" {
		return v.Word
	}
	return v.Word + ": " + v.Detail
}

// Verdict is what can be said of the run so far.
func (c *Coordinator) Verdict() Verdict {
	if c.refused != nil {
		return Verdict{Refused, c.refused.Error()}
	}
	var lost []string
	for _, m := range slices.SortedStableFunc(slices.Values(c.order), func(a, b *member) int { return cmp.Compare(a.since, b.since) }) {
		if m.lost {
			lost = append(lost, fmt.Sprintf("worker %s lost at %s", m.id, seconds(m.since)))
		} else if m.short {
			lost = append(lost, fmt.Sprintf("worker %s stopped at %s (%s)", m.id, seconds(m.since), m.why))
		}
	}
	switch {
	case len(lost) > 0:
		return Verdict{Degraded, strings.Join(lost, ", ")}
	case c.stopping != "":
		return Verdict{Stopped, c.stopping}
	case c.mark < len(c.leg.Times):
		return Verdict{Refused, fmt.Sprintf("%d of %d slices are merged", c.mark, len(c.leg.Times))}
	}
	return Verdict{Complete, ""}
}

// seconds writes a time as people do who look at a run.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func signed(d time.Duration) string { return fmt.Sprintf("%+.3f s", d.Seconds()) }
