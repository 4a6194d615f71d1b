package stats

import "math"

// mostTrials bounds a search whose level is not steady enough to be found.
const mostTrials = 48

// How a search ended.
const (
	Settled   = "settled"   // both sides were measured twice and lie within the precision
	Unsettled = "unsettled" // so many trials did not settle it; the last two sides are given
	Above     = "above"     // the highest level that may be tried holds
	Below     = "below"     // the lowest level that may be tried misses
	Stopped   = "stopped"   // Stop was called
)

// A Search looks for the edge between levels that hold and levels that miss, by trials whose outcome is noisy near the edge
// and may be wrong anywhere. It steps from its start until it has seen both sides, halves what lies between on a logarithmic
// scale, and then tries each side again: first the one that missed, then, straight after it, the one that held. A side that
// contradicts itself moves the search on in that direction, in steps that grow, and lets the sides end further apart: one wrong
// outcome costs a few trials and not the result, and an edge that moves is still found.
type Search struct {
	Start       float64 // the first level; positive
	Step        float64 // factor of the first steps; more than 1
	Precision   float64 // at the end the sides differ by at most this share, or by 15 % where levels contradicted themselves
	Least, Most float64 // levels that may be tried

	held, missed float64 // the highest known to hold, the lowest known to miss; 0 = none
	again        int     // sides that were tried again, once both are near
	step         float64 // the next one's factor; 0 = Step
	trials       int
	level        float64 // in trial
	width        float64 // the precision as it stands; 0 = Precision
	end          string
	contradicted bool

	lastHeld, lastMissed float64 // levels of the last such outcomes
}

// Next returns the level to try; false when the search has ended.
func (s *Search) Next() (level float64, more bool) {
	if s.end != "" {
		return 0, false
	}
	if s.step == 0 {
		s.step, s.width = s.Step, s.Precision
	}
	near := 1 + s.width
	switch {
	case s.trials >= mostTrials:
		s.end, s.held, s.missed = Unsettled, s.lastHeld, s.lastMissed
	case s.held == 0 && s.missed == 0:
		s.level = s.Start
	case s.missed == 0 && s.held >= s.Most:
		s.end = Above
	case s.held == 0 && s.missed <= s.Least:
		s.end = Below
	case s.missed == 0:
		s.level = s.held * s.step
		s.step = s.grown()
	case s.held == 0:
		s.level = s.missed / s.step
		s.step = s.grown()
	case s.missed/s.held > near*(1+1e-9):
		s.level = math.Sqrt(s.held * s.missed)
	case s.again == 0:
		s.level = s.missed
	case s.again == 1:
		s.level = s.held
	default:
		s.end = Settled
	}
	if s.end != "" {
		return 0, false
	}
	s.level = min(max(s.level, s.Least), s.Most)
	return s.level, true
}

// mostStep bounds how fast the steps grow.
const (
	mostStep = 2
	alike    = 3
)

// grown is the step after this one: the first ones are alike, unless they follow a contradiction.
func (s *Search) grown() float64 {
	if s.trials < alike && s.step == s.Step {
		return s.step
	}
	return max(s.step, min(s.step*s.step, mostStep))
}

// Add says how the level that Next gave came out.
func (s *Search) Add(holds bool) {
	s.trials++
	if holds {
		s.lastHeld = s.level
	} else {
		s.lastMissed = s.level
	}
	near := s.held > 0 && s.missed > 0 && s.missed/s.held <= (1+s.width)*(1+1e-9)
	switch {
	case !near && holds:
		s.held = s.level
	case !near:
		s.missed = s.level
	case s.again == 0 && !holds:
		s.again = 1
	case s.again == 1 && holds:
		s.again = 2
	case holds: // what missed holds now: the edge is further up
		s.widen()
		s.held, s.missed, s.again, s.step = s.level, 0, 0, 1+s.width
	default: // what held misses now
		s.widen()
		s.held, s.missed, s.again, s.step = 0, s.level, 0, 1+s.width
	}
}

// How far the precision may give way, and how fast.
const (
	mostWidth = .15
	widening  = 1.6
)

// widen lets the sides lie further apart from the second contradiction on: levels that held and missed are within the edge,
// which is then no narrower.
func (s *Search) widen() {
	if s.contradicted {
		s.width = min(s.width*widening, max(mostWidth, s.Precision))
	}
	s.contradicted = true
}

// Stop ends the search where it is.
func (s *Search) Stop() { s.end = Stopped }

// Result returns the highest level that held, the lowest that missed, each 0 where there is none, and how the search ended.
func (s *Search) Result() (held, missed float64, end string) { return s.held, s.missed, s.end }
