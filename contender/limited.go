package contender

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"toll/contender/limits"
)

// Limited is what is in force on a process and what it has met.
type Limited struct {
	Mechanism string // limits.CgroupV2 and so on, the name of a container runtime, or Unlimited
	Limits    limits.Limits
	limits.Usage
	UsageKnown bool // the mechanism counts
}

// Unlimited is the mechanism of a process that nothing limits.
const Unlimited = "none"

// confine makes the group that the process is to run in. A container's limits are its runtime's affair.
func (p *Process) confine() error {
	l := p.spec.Limits
	if l == (limits.Limits{}) || p.box != nil {
		return nil
	}
	g, err := limits.Open(l)
	switch {
	case err == nil:
		p.setGroup(g)
	case p.spec.AllowUnlimited && errors.Is(err, limits.ErrUnavailable):
	default:
		return fmt.Errorf("%s: %w", p.spec.Name, err)
	}
	return nil
}

// unbox finds the process in the container that its runtime's client has started, and reads back what holds it.
func (p *Process) unbox(ctx context.Context) error {
	pid, err := p.box.inspect(ctx, &p.ready)
	if err != nil {
		return err
	}
	if err := p.box.near(p.cmd.Process.Pid, pid); err != nil {
		return err
	}
	p.kin.move(pid)
	if len(p.spec.Processors) > 0 {
		if err := p.spec.Processors.InForce(pid); err != nil {
			return err
		}
	}
	l := p.spec.Limits
	if l == (limits.Limits{}) {
		return nil
	}
	g, err := limits.Seen(p.box.kind(), pid, l)
	if err == nil {
		err = g.InForce(pid)
	}
	if err == nil {
		p.setGroup(g)
	}
	if p.spec.AllowUnlimited {
		return nil
	}
	return err
}

func (p *Process) setGroup(g *limits.Group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.group = g
}

// limiting is the group that holds the process; nil where none does.
func (p *Process) limiting() *limits.Group {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.group
}

// placed reports whether we hold the process to processors. A container's runtime does it for one.
func (p *Process) placed() bool { return len(p.spec.Processors) > 0 && p.box == nil }

// placeBehind holds what the process has started to other processors than itself.
func (p *Process) placeBehind() error {
	all, err := p.kin.pids()
	if err != nil {
		return err
	}
	for _, pid := range all {
		if pid == p.cmd.Process.Pid {
			continue
		}
		if err := p.spec.Behind.Move(pid); err != nil {
			return fmt.Errorf("holding what it has started: %w", err)
		}
	}
	return nil
}

// free removes the group.
func (p *Process) free() error {
	g := p.limiting()
	if g == nil {
		return nil
	}
	if err := g.Close(); err != nil {
		return fmt.Errorf("%s: %w", p.spec.Name, err)
	}
	return nil
}

// limitFlags are a container runtime's arguments that hold l.
func limitFlags(l limits.Limits) []string {
	var out []string
	if l.CPUs > 0 {
		out = append(out, "--cpus="+strconv.FormatFloat(l.CPUs, 'f', -1, 64))
	}
	if l.Memory > 0 {
		bytes := strconv.FormatInt(l.Memory, 10)
		out = append(out, "--memory="+bytes, "--memory-swap="+bytes)
	}
	return out
}

// Limited returns what limits the process and what it has met.
func (p *Process) Limited() (Limited, error) {
	g := p.limiting()
	if g == nil {
		return Limited{Mechanism: Unlimited}, nil
	}
	l := Limited{Mechanism: g.Mechanism, Limits: g.Limits}
	if l.Mechanism == limits.Taskset {
		return l, nil
	}
	u, err := g.Usage()
	if err != nil {
		return l, fmt.Errorf("%s: %w", p.spec.Name, err)
	}
	l.Usage, l.UsageKnown = u, true
	return l, nil
}

// killedInBox is how the client of a container's runtime ends when the container was killed: 128 and the signal's number.
const killedInBox = 128 + 9

// tooLarge says that a process ended because it reached its memory limit, if it did. The group of a container goes with it.
func (p *Process) tooLarge() string {
	g := p.limiting()
	if g == nil || g.Limits.Memory == 0 {
		return ""
	}
	most := limits.Limits{Memory: g.Limits.Memory}.String()
	if p.box != nil {
		if p.cmd.ProcessState.ExitCode() != killedInBox {
			return ""
		}
		return ", it was killed, as for reaching its memory limit, " + most
	}
	if u, err := g.Usage(); err != nil || u.OOMKills == 0 {
		return ""
	}
	return ", it reached its memory limit, " + most
}
