package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"toll/contender"
	"toll/system"
)

// busFlags are those of serve that only the processes of the bus have.
type busFlags struct {
	Carrier string `help:"bus: how it is reached, inproc, direct, direct-mailbox, routed, nats, zmtp, zmtp-proxy, nats-go or floor." placeholder:"NAME"`
	At      string `help:"bus: where it connects to, a worker, a router, a NATS server or a proxy. Without it, bus starts what it needs." placeholder:"ADDR"`
	Own     bool   `help:"bus: a connection for each caller instead of one for all."`
}

// busEngine is the calling process of the bus benchmark. Unless --at says where they are, it starts the processes that it
// calls: a worker and, where one stands between, a broker.
func (c *serveCmd) busEngine(ctx context.Context, s *streams) error {
	if !slices.Contains(system.Carriers(), c.Bus.Carrier) {
		return usage("serve bus: --carrier %q: want one of %s", c.Bus.Carrier, strings.Join(system.Carriers(), ", "))
	}
	at, stop, err := c.busProcesses(ctx)
	if err != nil {
		return exit(exitNotMeasured, fmt.Errorf("serve bus: %w", errors.Join(err, stop())))
	}
	client := system.NewBusClient(c.Bus.Carrier, at, c.Bus.Own)
	err = c.engine(ctx, s, client.Bench)
	return errors.Join(err, client.Close(), stop())
}

// busProcesses starts what the carrier needs and returns where callers connect.
func (c *serveCmd) busProcesses(ctx context.Context) (at string, stop func() error, err error) {
	var started []*contender.Process
	stop = func() error {
		var errs []error
		for _, p := range slices.Backward(started) {
			errs = append(errs, p.Stop(context.WithoutCancel(ctx)))
		}
		return errors.Join(errs...)
	}
	if c.Bus.At != "" || c.Bus.Carrier == system.Inproc {
		return c.Bus.At, stop, nil
	}
	for _, args := range system.BusProcesses(c.Bus.Carrier) {
		if at != "" {
			args = append(args, "--at", at)
		}
		spec, err := contender.Self(append([]string{"serve"}, args...)...)
		if err != nil {
			return "", stop, err
		}
		p, err := contender.Start(ctx, spec)
		if err != nil {
			return "", stop, err
		}
		started = append(started, p)
		at = p.Ready().Addr
	}
	return at, stop, nil
}
