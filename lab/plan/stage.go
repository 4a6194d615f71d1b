package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// A Stage is a linear change, over its duration, of the number of VUs (closed model) or of the arrivals a second (open
// model) to the target. Without a duration it is a jump. k6's stage list is a list of these.
type Stage struct {
	Duration Duration `yaml:"duration" json:"duration"`
	Target   float64  `yaml:"target" json:"target"`
}

// String is how reports write a stage: how long, and the level at its end.
func (s Stage) String() string { return fmt.Sprintf("%v→%v", time.Duration(s.Duration), s.Target) }

// Hold returns the stages of a constant level: a jump to it, then d of it.
func Hold(level float64, d time.Duration) []Stage {
	return []Stage{{0, level}, {Duration(d), level}}
}

// Total returns how long the stages take together.
func Total(stages []Stage) time.Duration {
	var d time.Duration
	for _, s := range stages {
		d += time.Duration(s.Duration)
	}
	return d
}

// Peak returns the highest level that the stages reach.
func Peak(stages []Stage) float64 {
	var p float64
	for _, s := range stages {
		p = max(p, s.Target)
	}
	return p
}

// Level returns the level that the stages, which begin at 0, have at a time after their start, and whether they are over.
func Level(stages []Stage, elapsed time.Duration) (level float64, done bool) {
	for _, s := range stages {
		d := time.Duration(s.Duration)
		if elapsed < d {
			return level + (s.Target-level)*float64(elapsed)/float64(d), false
		}
		elapsed -= d
		level = s.Target
	}
	return level, true
}

// VUs returns how many virtual users the stages have at a time after their start, to the nearest whole one, and whether the
// stages are over.
func VUs(stages []Stage, elapsed time.Duration) (n int, done bool) {
	level, done := Level(stages, elapsed)
	if done {
		return 0, true
	}
	return int(math.Floor(level + .5)), false
}

// A Span is a stretch of time after the stages' start.
type Span struct{ From, To time.Duration }

// Active returns when the VU of a number (from 0) is active: whenever VUs returns more than its number.
func Active(stages []Stage, vu int) []Span {
	at := float64(vu) + .5 // the level from which on the VU is active
	var out []Span
	var start time.Duration
	var level float64
	on := false
	from := time.Duration(-1)
	for _, s := range stages {
		d := time.Duration(s.Duration)
		if now := s.Target >= at; now != on {
			cross := start
			if d > 0 && s.Target != level {
				cross += time.Duration(math.Ceil((at - level) / (s.Target - level) * float64(d)))
			}
			cross = min(cross, start+d)
			if now {
				from = cross
			} else if cross > from {
				out = append(out, Span{from, cross})
			}
			on = now
		}
		start += d
		level = s.Target
	}
	if on && start > from {
		out = append(out, Span{from, start})
	}
	return out
}

// Begun returns how many calls the VUs begin while they are active when each takes so long with the pause behind it: the last of a
// VU is whole, though it ends behind its time.
func Begun(stages []Stage, each time.Duration) int64 {
	var n int64
	for vu := range int(math.Ceil(Peak(stages))) {
		for _, s := range Active(stages, vu) {
			n += int64((s.To - s.From + each - 1) / each)
		}
	}
	return n
}

// Arrivals gives the intended times of an open model's arrivals, in order. It is a pure function of its stages and its
// random source and reads no clock.
type Arrivals struct {
	stages []Stage
	rnd    *rand.Rand // nil: evenly spaced

	// owned by the caller of Next
	next  float64       // how many arrivals are expected before the next one
	base  float64       // expected before the current stage
	start time.Duration // of the current stage
	level float64       // at its start
}

// NewArrivals makes the arrivals of stages whose targets are arrivals a second. With a random source they are a Poisson
// process whose rate follows the stages, else they are evenly spaced.
func NewArrivals(stages []Stage, rnd *rand.Rand) *Arrivals {
	a := &Arrivals{stages: stages, rnd: rnd}
	if rnd != nil {
		a.next = rnd.ExpFloat64()
	}
	return a
}

// Ahead moves evenly spaced arrivals: the first is due after a share of its interval, 0 to 1. It must be called before Next.
func (a *Arrivals) Ahead(share float64) *Arrivals {
	if a.rnd == nil {
		a.next = share
	}
	return a
}

// Next returns when the next arrival is due, as time after the start; false when there is none before the stages' end.
func (a *Arrivals) Next() (at time.Duration, ok bool) {
	for len(a.stages) > 0 {
		s := a.stages[0]
		d := time.Duration(s.Duration).Seconds()
		in := (a.level + s.Target) / 2 * d
		// The millionth keeps 1,000/s × 10 s from being 10,001 arrivals because a product is not exact.
		if k := a.next - a.base; k < in-1e-6 {
			at = a.start + time.Duration(offset(a.level, s.Target, d, k)*1e9)
			a.next++
			if a.rnd != nil {
				a.next += a.rnd.ExpFloat64() - 1
			}
			return at, true
		}
		a.base += in
		a.start += time.Duration(s.Duration)
		a.level = s.Target
		a.stages = a.stages[1:]
	}
	return 0, false
}

// offset returns after how many seconds of a stage from rate r0 to r1 in d seconds k arrivals are expected: the solution of
// r0·t + (r1−r0)·t²/2d = k, in the form that loses no digits when the rates are close.
func offset(r0, r1, d, k float64) float64 {
	if k <= 0 {
		return 0
	}
	root := math.Sqrt(max(r0*r0+2*(r1-r0)*k/d, 0))
	return min(2*k/(r0+root), d)
}

// Expected returns how many arrivals the stages ask for.
func Expected(stages []Stage) float64 {
	var n, level float64
	for _, s := range stages {
		n += (level + s.Target) / 2 * time.Duration(s.Duration).Seconds()
		level = s.Target
	}
	return n
}
