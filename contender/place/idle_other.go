//go:build !linux

package place

// Polling is what [Poll] would have returned.
type Polling struct{}

// Poll says that this system does not let processors be kept awake.
func Poll() (*Polling, error) { return nil, ErrSleeps }

// InForce says the same.
func (*Polling) InForce() error { return ErrSleeps }

// Close does nothing.
func (*Polling) Close() error { return nil }
