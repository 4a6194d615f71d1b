package fleet

import (
	"time"

	"toll/lab/load"
	"toll/lab/plan"
)

// A Leg is what all workers do together from one start on: the warm-up and the load behind it.
type Leg struct {
	Stages []plan.Stage // of all workers together
	Warm   int          // how many of its slices, the first ones, are the warm-up
	Times  []Time       // of the slices
	Open   bool
}

// A Time is where a slice lies.
type Time struct {
	Stage    int // of the plan's load; of a warm-up, 0
	From, To time.Duration
}

// warmStages is how many stages a warm-up puts before the plan's.
const warmStages = 3

// NewLeg lays a plan's load out in slices of a second at most. None lies in two stages.
func NewLeg(s plan.Settings) Leg {
	stages := s.Shape(s.Concurrency[0])
	l := Leg{Open: s.Model == plan.Open}
	before := 0
	if s.WarmupTime > 0 {
		peak := plan.Peak(stages)
		l.Stages = []plan.Stage{{Target: peak}, {Duration: s.WarmupTime, Target: peak}, {}}
		before = warmStages
	}
	l.Stages = append(l.Stages, stages...)
	for _, sl := range load.NewSheet(load.Load{Stages: l.Stages, Slices: l.slices()}).Slices() {
		t := Time{sl.Stage - before, sl.From, sl.To}
		if t.Stage < 0 {
			t.Stage = 0
			l.Warm++
		}
		l.Times = append(l.Times, t)
	}
	return l
}

// slices is into how many slices the whole is divided at least.
func (l Leg) slices() int { return int((plan.Total(l.Stages) + time.Second - 1) / time.Second) }

// Of returns a segment's load.
func (l Leg) Of(s plan.Segment) load.Load {
	out := load.Load{Open: l.Open, Slices: l.slices()}
	if l.Open {
		out.Stages, out.Ahead = s.Rates(l.Stages)
	} else {
		out.Stages = s.VUs(l.Stages)
	}
	return out
}

// begins is when the window does.
func (l Leg) begins() time.Duration {
	if l.Warm == len(l.Times) {
		return 0
	}
	return l.Times[l.Warm].From
}
