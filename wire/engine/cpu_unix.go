//go:build unix

package engine

import (
	"syscall"
	"time"
)

// processCPU is the time of all threads, in user mode and in the system.
func processCPU() (user, system time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, false
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano()), true
}
