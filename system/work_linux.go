package system

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// burn keeps this thread busy until it has spent d of CPU time: what others take of the core meanwhile does not count.
func burn(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for end := threadTime() + d; threadTime() < end; {
		fibonacci(12, nil) // a microsecond, so that little is spent beyond d
	}
}

// threadTime is the CPU time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic("the thread's clock: " + err.Error()) // every Linux has it
	}
	return time.Duration(t.Nano())
}
