//go:build unix

package record

import (
	"syscall"
	"time"
)

func processCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("getrusage of ourselves: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
