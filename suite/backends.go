package suite

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"toll/contender"
	"toll/contender/limits"
	"toll/lab"
	"toll/lab/plan"
	"toll/system"
)

// A backend is what a contender's servers call in their turn. Each contender has its own, started anew for each round.
type backend struct {
	name   string
	limits limits.Limits
	spec   func(at map[string]string) (contender.Spec, error) // given where those before it listen
}

// backendNames lists what stands behind the tools of a set, in the order of their starts.
func backendNames(set string) []string {
	if set == system.ShopTools {
		return []string{"redis", "catalogue"}
	}
	return []string{"api"}
}

// backends describes what stands behind the tools of a set. Limits on them are the plan's.
func (h *house) backends(set string) []backend {
	var out []backend
	for _, name := range backendNames(set) {
		x := backend{name: name, limits: quota(h.plan.Backends[name])}
		switch name {
		case "redis":
			x.spec = redisServer
		case "catalogue":
			x.spec = func(at map[string]string) (contender.Spec, error) {
				spec, err := contender.Self("serve", "catalogue", "--redis", hostPort(at["redis"]))
				spec.ReadyTimeout = time.Minute // it fills the Redis server first
				return spec, err
			}
		default:
			x.spec = func(map[string]string) (contender.Spec, error) { return contender.Self("serve", name) }
		}
		out = append(out, x)
	}
	return out
}

// redisServer is the system's own, without persistence.
func redisServer(map[string]string) (contender.Spec, error) {
	const program = "redis-server"
	if _, err := exec.LookPath(program); err != nil {
		return contender.Spec{}, fmt.Errorf("%w: needs %s, which is not in PATH", contender.ErrMissing, program)
	}
	return contender.Spec{
		Name:     "redis",
		Command:  []string{program, "--bind", "{host}", "--port", "{port}", "--save", "", "--appendonly", "no", "--daemonize", "no"},
		Endpoint: "tcp://{host}:{port}", Probe: contender.Probe{TCP: true}, VersionCommand: []string{program, "--version"},
	}, nil
}

// quota reads a plan's limits, which have been checked.
func quota(q plan.Quota) limits.Limits {
	l := limits.Limits{CPUs: q.CPUs}
	if q.Memory != "" {
		l.Memory, _ = limits.ParseSize(q.Memory)
	}
	return l
}

// startBackends starts what stands behind a seat, one after the other. If one can't be started none is left.
func (h *house) startBackends(ctx context.Context, s seat) (started []lab.Backend, at map[string]string, err error) {
	at = make(map[string]string)
	for _, b := range s.backends {
		spec, err := b.spec(at)
		if err == nil {
			if err = h.ground.place(&spec, s); err != nil {
				err = &unplaced{err}
			}
			spec.Limits, spec.AllowUnlimited = b.limits, h.ground.AllowUnlimited
		}
		var p *contender.Process
		if err == nil {
			p, err = contender.Start(ctx, spec)
		}
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("backend %s: %w", b.name, err), stopBackends(ctx, started))
		}
		started = append(started, lab.Backend{Name: b.name, Process: process{p, nil}})
		at[b.name] = p.Ready().Addr
	}
	return started, at, nil
}

func stopBackends(ctx context.Context, all []lab.Backend) error {
	var errs []error
	for _, b := range all {
		errs = append(errs, b.Process.Stop(context.WithoutCancel(ctx)))
	}
	return errors.Join(errs...)
}
