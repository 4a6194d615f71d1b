package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"toll/lab/plan"
)

func (c *Coordinator) seat(m *member) {
	c.members[m.id] = m
	c.order = append(c.order, m)
	slices.SortFunc(c.order, func(a, b *member) int { return cmp.Compare(a.segment.Number, b.segment.Number) })
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

// hear notes that a worker lived at a time, which now may lie back.
func (c *Coordinator) hear(now time.Duration, m *member, at time.Duration) {
	m.heard = max(m.heard, at)
	if !m.silent || m.lost || now-m.heard >= silentAfter {
		return
	}
	m.silent = false
	if c.started {
		c.note(now, m.id, "back after %s: nothing of it is lost if its slices arrive", seconds(c.at(now)-m.since))
	}
}

// watch looks at how long a worker has been silent, and asks one that begins to be.
func (c *Coordinator) watch(now time.Duration, m *member) []Action {
	quiet := now - m.heard
	if m.lost || m.complete || quiet < quietAfter {
		return nil
	}
	if quiet < silentAfter {
		if c.asked == now {
			return nil // with all the others
		}
		return []Action{c.send(Message{To: m.id, Clock: &Clock{T1: now}})}
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
