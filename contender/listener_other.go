//go:build !linux

package contender

import "fmt"

// A Listener is the processes that listen at an address of this machine and that we did not start.
type Listener struct{}

// Listening can't tell here.
func Listening(_, addr string) (*Listener, error) {
	return nil, fmt.Errorf("who listens at %s: %w", addr, ErrUnsupported)
}

// Usage can't tell here.
func (*Listener) Usage() (Usage, error) { return Usage{}, ErrUnsupported }
