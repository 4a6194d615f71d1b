//go:build !linux

package contender

// ulimitFlags is empty: containers run in a machine of their own here.
func ulimitFlags() []string { return nil }
