package gateway

import (
	"sync"
	"time"
)

// The valve's constants, after CoDel (RFC 8289): a queue that drains now and then is a burst and does no harm; one that
// stands for a whole interval only makes everybody late.
const (
	leastInterval = 100 * time.Millisecond
	intervalOf    = 4 // intervals are at least so many times what the route allows
	burstOf       = 8 // a queue that is not known to stand may hold so many times what one that stands may
	leastInside   = 2 // one that is handled and one that waits: the agent is never idle because of the valve
	fewest        = 5 // answers that make a rate
)

// A valve bounds how long the requests of a route take when more come than its agent answers. CoDel drops what has waited too
// long from the end of a queue; the valve refuses at its entrance, at once, what would. How many may be inside follows from
// Little's law: the rate at which they are answered × the time that they may take.
type valve struct {
	within   time.Duration
	interval time.Duration

	mu       sync.Mutex
	inside   int           // guarded by mu
	busy     spell         // guarded by mu: since the route was last empty
	begun    time.Duration // guarded by mu: the interval in progress
	come     int           // guarded by mu: in it, those that were refused included
	now      spell         // guarded by mu: the interval's answers
	rate     float64       // guarded by mu: the highest at which requests were answered while others waited, a second
	standing bool          // guarded by mu
}

// A spell counts answers since a time.
type spell struct {
	from     time.Duration // since the gateway's start, as are all
	answered int
	least    time.Duration // that one of those answered took
}

func (s *spell) add(took time.Duration) {
	if s.answered == 0 || took < s.least {
		s.least = took
	}
	s.answered++
}

// rate is how many were answered a second up to now.
func (s *spell) rate(now time.Duration) float64 {
	return float64(s.answered) / max(now-s.from, 1).Seconds()
}

// newValve makes the valve of a route; nil, which refuses nobody, without a bound.
func newValve(within time.Duration) *valve {
	if within == 0 {
		return nil
	}
	return &valve{within: within, interval: max(leastInterval, intervalOf*within)}
}

// enter lets a request in that comes at now, or refuses it.
func (v *valve) enter(now time.Duration) bool {
	if v == nil {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.roll(now)
	v.come++
	if most := v.most(); most > 0 && v.inside >= most {
		if !v.standing { // too long for a burst
			v.standing = true
			v.begun, v.come, v.now = now, 1, spell{from: now}
		}
		return false
	}
	if v.inside == 0 {
		v.busy = spell{from: now}
	}
	v.inside++
	return true
}

// leave counts a request out that took so long.
func (v *valve) leave(now, took time.Duration) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.roll(now)
	v.inside--
	v.now.add(took)
	v.busy.add(took)
	if v.busy.answered >= fewest {
		v.rate = max(v.rate, v.busy.rate(now))
	}
}

// most is how many may be inside; 0 while nothing is known of the route.
func (v *valve) most() int {
	n := v.rate * v.within.Seconds()
	if !v.standing {
		n *= burstOf
	}
	if v.rate == 0 && !v.standing {
		return 0
	}
	return max(int(n+.5), leastInside)
}

// roll ends the interval in progress when its time is over, and judges it. It must be called with mu held.
func (v *valve) roll(now time.Duration) {
	lasted := now - v.begun
	if lasted < v.interval {
		return
	}
	late := v.now.answered > 0 && v.now.least > v.within || v.now.answered == 0 && v.inside > 0
	switch {
	case v.standing:
		v.standing = float64(v.come) > v.rate*lasted.Seconds() // else what stands drains
	case late:
		v.standing, v.rate = true, v.now.rate(now)
	}
	v.begun, v.come, v.now = now, 0, spell{from: now}
}
