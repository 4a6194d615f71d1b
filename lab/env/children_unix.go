//go:build unix

package env

import (
	"syscall"
	"time"
)

// childrenCPU is the CPU time of our children that have ended and been waited for, and of theirs.
func childrenCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
