package tools

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// An alarm is a timer descriptor. One that is dropped closes its descriptor when it is collected.
type alarm struct {
	file *os.File
	fd   int // of file
}

// alarms are kept from one wait to the next: making one, telling the poller of it and closing it are three system calls more
// than waiting takes.
var alarms sync.Pool

func newAlarm() (*alarm, error) {
	if a, ok := alarms.Get().(*alarm); ok {
		return a, nil
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &alarm{os.NewFile(uintptr(fd), "timerfd"), fd}, nil
}

// sleep waits for d or until ctx ends, whose cause it then returns. A query of 10 ms is to take 10 ms: it waits on a timer
// descriptor, which wakes when it is due and not on the next millisecond.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	a, err := newAlarm()
	if err != nil {
		return sleepByTimer(ctx, d)
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(a.fd, 0, &spec, nil); err != nil {
		a.file.Close()
		return sleepByTimer(ctx, d)
	}
	stop := context.AfterFunc(ctx, func() { a.file.SetReadDeadline(time.Unix(1, 0)) })
	var expired [8]byte
	_, err = a.file.Read(expired[:])
	if stop() && err == nil {
		alarms.Put(a)
		return nil
	}
	a.file.Close() // its deadline is past, or will be
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("waiting: %w", err)
}
