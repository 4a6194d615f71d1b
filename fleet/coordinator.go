package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// The coordinator's times.
const (
	tickEvery   = time.Second            // how often it looks at every worker, and asks how it is
	calmEvery   = 3 * time.Second        // how often it asks while their slices say so: whole ticks,
	calmRejoin  = 5                      // and so many times before they stop by themselves
	quietAfter  = 2 * time.Second        // of a worker: it is asked, even so
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

// An Action is what a coordinator wants done: one of the two.
type Action struct {
	Send *Message
	Save *State
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
	asked    time.Duration // when all workers were
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

// NewCoordinator makes one. The configuration must pass Check.
func NewCoordinator(cfg Config) *Coordinator {
	cfg = cfg.WithDefaults()
	sum := sha256.Sum256(cfg.Plan)
	c := &Coordinator{cfg: cfg, leg: NewLeg(cfg.Settings), digest: hex.EncodeToString(sum[:]), members: make(map[string]*member)}
	c.perOne = max((len(c.leg.Times)+mergedGroups-1)/mergedGroups, 1)
	c.ticked = -tickEvery
	return c
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

// askAllEvery is how often all workers are asked how they are.
func (c *Coordinator) askAllEvery() time.Duration {
	if !c.started || c.stopping != "" || slices.ContainsFunc(c.order, func(m *member) bool { return !m.lost && (m.phase != Running || m.silent) }) {
		return 0 // with every tick
	}
	return calm(c.cfg.Rejoin)
}

// calm is how often a worker hears of its coordinator at least, by the time to rejoin.
func calm(rejoin time.Duration) time.Duration {
	return max(min(calmEvery, rejoin/calmRejoin).Truncate(tickEvery), tickEvery)
}

// Tick is to be called when its time has come, and may be at any time.
func (c *Coordinator) Tick(now time.Duration) []Action {
	if now < c.Next() || c.over {
		return nil
	}
	c.stoodStill(now)
	c.ticked = now
	var out []Action
	if now-c.asked >= c.askAllEvery() {
		c.asked = now
		out = append(out, c.send(Message{Clock: &Clock{T1: now}}))
	}
	for _, m := range slices.Clone(c.order) {
		out = append(out, c.watch(now, m)...)
	}
	c.advance(now)
	return c.keep(append(out, c.conclude(now)...))
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
	c.hear(now, w, now)
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
