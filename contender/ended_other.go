//go:build !linux

package contender

// ended can't tell here; whoever waits for the child will.
func ended(int) bool { return false }
