//go:build !linux

package limits

import (
	"fmt"
	"os/exec"
	"runtime"
)

// A Group is where a tree under limits runs; there is none on this system.
type Group struct {
	Mechanism string
	Limits    Limits
}

// Open says that limits can't be held here.
func Open(l Limits) (*Group, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w (%s): toll holds limits on Linux only, this is %s", ErrUnavailable, l, runtime.GOOS)
}

// Seen says that another process' limits can't be seen here.
func Seen(mechanism string, _ int, l Limits) (*Group, error) {
	return nil, fmt.Errorf("%w (%s): %s: toll reads limits back on Linux only, this is %s", ErrUnavailable, l, mechanism, runtime.GOOS)
}

// Enter never runs: there is no group without Open.
func (g *Group) Enter(*exec.Cmd) (func() error, error) { return nil, ErrUnavailable }

// InForce never runs.
func (g *Group) InForce(int) error { return ErrUnavailable }

// Usage never runs.
func (g *Group) Usage() (Usage, error) { return Usage{}, ErrUnavailable }

// Close never runs.
func (g *Group) Close() error { return nil }
