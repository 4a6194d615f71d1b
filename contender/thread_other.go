//go:build !linux

package contender

// isMainThread does not matter where there is nothing to enter.
func isMainThread() bool { return false }
