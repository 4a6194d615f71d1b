package record

import (
	"syscall"
	"time"
)

func processCPU() time.Duration {
	var created, exited, kernel, user syscall.Filetime
	self, err := syscall.GetCurrentProcess()
	if err == nil {
		err = syscall.GetProcessTimes(self, &created, &exited, &kernel, &user)
	}
	if err != nil {
		panic("process times of ourselves: " + err.Error())
	}
	return duration(kernel) + duration(user)
}

// duration turns a span in units of 100 ns into a Duration; Filetime.Nanoseconds would shift it to the Unix epoch.
func duration(f syscall.Filetime) time.Duration {
	return time.Duration(int64(f.HighDateTime)<<32+int64(f.LowDateTime)) * 100
}
