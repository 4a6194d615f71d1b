package tools

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// sleep waits for d or until ctx ends, whose cause it then returns. A query of 10 ms is to take 10 ms: it waits on a timer
// descriptor, which wakes when it is due and not on the next millisecond.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return sleepByTimer(ctx, d)
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(fd, 0, &spec, nil); err != nil {
		unix.Close(fd)
		return sleepByTimer(ctx, d)
	}
	timer := os.NewFile(uintptr(fd), "timerfd")
	defer timer.Close()
	defer context.AfterFunc(ctx, func() { timer.SetReadDeadline(time.Unix(1, 0)) })()
	var expired [8]byte
	if _, err := timer.Read(expired[:]); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("waiting: %w", err)
	}
	return nil
}
