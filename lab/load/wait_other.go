//go:build !linux

package load

import (
	"context"
	"runtime"
	"time"
)

// spin is how long before an arrival a waiter stops sleeping: the runtime's timers may be a millisecond late.
const spin = 1200 * time.Microsecond

// A Pacer waits precisely: it sleeps until shortly before an arrival and spins for the rest. It is for one goroutine at a
// time.
type Pacer struct{}

// NewPacer makes a pacer. It must be closed.
func NewPacer() (*Pacer, error) { return new(Pacer), nil }

// Close does nothing here.
func (*Pacer) Close() error { return nil }

// NewPause makes what one VU waits by when it thinks, for Load.Pauses.
func NewPause() (wait Wait, done func()) { return ByTimer, func() {} }

// Wait is a [Wait].
func (*Pacer) Wait(ctx context.Context, begin time.Time, at time.Duration) {
	ByTimer(ctx, begin, at-spin)
	for time.Since(begin) < at && ctx.Err() == nil {
		runtime.Gosched()
	}
}
