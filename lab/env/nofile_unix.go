//go:build unix

package env

import "syscall"

// openFiles returns the soft limit in force; the Go runtime raised it to the hard one when it started.
func openFiles() *uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return nil
	}
	return new(uint64(l.Cur))
}
