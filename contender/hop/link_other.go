//go:build !linux

package hop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// A Link is a namespace and the way to it; there is none on this system.
type Link struct {
	Hop
	Addr  string
	Delay string
}

// Open says that there are no network namespaces here.
func Open(_ context.Context, h Hop, _ func() *exec.Cmd) (*Link, error) {
	return nil, fmt.Errorf("%w (%s): network namespaces are Linux's, this is %s", ErrUnavailable, h, runtime.GOOS)
}

// Enter never runs: there is no link without Open.
func (*Link) Enter(*exec.Cmd) (func() error, error) { return nil, ErrUnavailable }

// Carried never runs.
func (*Link) Carried() (time.Duration, bool) { return 0, false }

// Close never runs.
func (*Link) Close() error { return nil }

// Shuttle never runs.
func Shuttle(context.Context, *os.File, *os.File, time.Duration) error { return ErrUnavailable }
