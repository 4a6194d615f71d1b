package fleet

import (
	"fmt"
	"slices"
	"time"

	"toll/lab/plan"
)

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

// An Event is something that happened in a run, at a time of its load.
type Event struct {
	At     time.Duration `json:"at_ns"`
	Worker string        `json:"worker,omitempty"`
	What   string        `json:"what"`
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

// StartsAt sets the start on the wall clock, which a coordinator that is started anew needs; now is the time of both.
func (c *Coordinator) StartsAt(now time.Duration, wall time.Time) {
	if c.started && c.startsAt.IsZero() {
		c.startsAt = wall.Add(c.goAt - now)
	}
}
