//go:build !linux

package hub

// LeaveUsage does nothing here: it is about a file of Linux.
func LeaveUsage() {}
