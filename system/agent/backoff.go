package agent

import (
	"math"
	"time"
)

// A Growth is how the wait before a restart grows.
type Growth uint8

// The growths.
const (
	Constant    Growth = iota // Base each time
	Linear                    // Base × n
	Exponential               // Base × 2^(n-1)
)

// A Backoff says how long to wait before a restart. The zero value does not wait.
type Backoff struct {
	Growth Growth
	Base   time.Duration
	Cap    time.Duration // of the wait, jitter included; 1 min when 0
	Jitter float64       // up to this share is added, 0.25 for a quarter
}

// Delay returns the wait before the restart after the nth failure within the window, n from 1. random is from [0, 1).
func (b Backoff) Delay(n int, random float64) time.Duration {
	limit := b.Cap
	if limit <= 0 {
		limit = time.Minute
	}
	d := float64(b.Base)
	switch b.Growth {
	case Linear:
		d *= float64(n)
	case Exponential:
		d *= math.Pow(2, float64(n-1))
	}
	d += d * b.Jitter * random
	if d >= float64(limit) {
		return limit
	}
	return time.Duration(d)
}

// A window counts failures within a time. Times are monotonic.
type window struct{ at []time.Time }

// add notes a failure and returns how many there have been within the time before it, itself included. It remembers no more
// than limit+1 of them.
func (w *window) add(now time.Time, within time.Duration, limit int) int {
	keep := w.at[:0]
	for _, t := range w.at {
		if now.Sub(t) < within {
			keep = append(keep, t)
		}
	}
	if len(keep) > limit {
		keep = keep[:copy(keep, keep[len(keep)-limit:])]
	}
	w.at = append(keep, now)
	return len(w.at)
}
