package fleet

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"toll/lab/plan"
)

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
