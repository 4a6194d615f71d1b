package load

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// spin is how long before an arrival a waiter stops sleeping: about what waking up takes on an idle core.
const spin = 60 * time.Microsecond

// A Pacer waits precisely: it sleeps on a timer descriptor, which wakes through the runtime's poller when it is due and not
// on the next millisecond as the runtime's own timers do (golang/go#44343), and spins for the last microseconds. It is for
// one goroutine at a time.
type Pacer struct{ timer *os.File }

// NewPacer makes a pacer. It must be closed.
func NewPacer() (*Pacer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("a timer to pace arrivals by: %w", err)
	}
	return &Pacer{os.NewFile(uintptr(fd), "timerfd")}, nil
}

// Close frees the timer.
func (p *Pacer) Close() error { return p.timer.Close() }

// NewPause makes what one VU waits by when it thinks, for Load.Pauses: as precise as a Pacer's sleep, without its spinning. done
// frees it.
func NewPause() (wait Wait, done func()) {
	p, err := NewPacer()
	if err != nil {
		return ByTimer, func() {}
	}
	return func(ctx context.Context, begin time.Time, at time.Duration) {
		for ctx.Err() == nil {
			d := at - time.Since(begin)
			if d <= 0 {
				return
			}
			if p.sleep(min(d, time.Second)) != nil {
				ByTimer(ctx, begin, at)
			}
		}
	}, func() { p.Close() }
}

// Wait is a [Wait]. A wait of a second or more looks at ctx every second.
func (p *Pacer) Wait(ctx context.Context, begin time.Time, at time.Duration) {
	for ctx.Err() == nil {
		d := at - time.Since(begin) - spin
		if d <= 0 {
			break
		}
		if p.sleep(min(d, time.Second)) != nil {
			ByTimer(ctx, begin, at)
		}
	}
	for time.Since(begin) < at && ctx.Err() == nil {
		runtime.Gosched()
	}
}

func (p *Pacer) sleep(d time.Duration) error {
	var setErr error
	c, err := p.timer.SyscallConn()
	if err != nil {
		return err
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := c.Control(func(fd uintptr) { setErr = unix.TimerfdSettime(int(fd), 0, &spec, nil) }); err != nil || setErr != nil {
		return fmt.Errorf("setting the timer: %w", setErr)
	}
	var expired [8]byte
	_, err = p.timer.Read(expired[:])
	return err
}
