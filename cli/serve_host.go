package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"

	"toll/lab/plan"
	"toll/suite"
	"toll/system"
)

// hostFlags are those of serve that only gateway-host and spawn-host have.
type hostFlags struct {
	CPUs           float64 `name:"cpus" help:"gateway-host, spawn-host: limit each contender's process tree to so many cores' worth of CPU time." placeholder:"N"`
	Memory         string  `help:"gateway-host, spawn-host: limit each contender's process tree to so much memory, such as 1GiB." placeholder:"SIZE"`
	AllowUnlimited bool    `help:"gateway-host, spawn-host: serve where the limits can't be held."`
}

// host starts a process for each contender of a benchmark, at the ports where run --target looks for them, until ctx ends or
// stdin closes. They answer whoever connects: it is for a network of one's own.
func (c *serveCmd) host(ctx context.Context, s *streams, benchmark string) error {
	h, err := suite.OpenHost(ctx, benchmark, c.Addr, version().Version, plan.Quota{CPUs: c.Host.CPUs, Memory: c.Host.Memory}, c.Host.AllowUnlimited)
	if err != nil {
		return exit(exitNotMeasured, fmt.Errorf("serve %s: %w", c.System, err))
	}
	line := ready{h.Addr, version().Version, c.System, "go", runtime.GOMAXPROCS(0)}
	if err := json.NewEncoder(s.out).Encode(line); err != nil {
		return errors.Join(exit(exitNotMeasured, err), h.Close())
	}
	over := make(chan struct{})
	go func() {
		answer(s.in, s.out, system.Stats)
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
	if err := h.Close(); err != nil {
		return exit(exitNotMeasured, fmt.Errorf("serve %s: %w", c.System, err))
	}
	return nil
}
