//go:build !linux

package system

import "time"

// burn keeps a core busy for d. Without a clock of the thread's own, what others take of the core counts as well.
func burn(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
		fibonacci(12, nil)
	}
}
