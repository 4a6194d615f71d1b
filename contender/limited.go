package contender

import (
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
		p.group = g
	case p.spec.AllowUnlimited && errors.Is(err, limits.ErrUnavailable):
	default:
		return fmt.Errorf("%s: %w", p.spec.Name, err)
	}
	return nil
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
	if p.group == nil {
		return nil
	}
	if err := p.group.Close(); err != nil {
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
	l := Limited{Mechanism: Unlimited}
	switch {
	case p.box != nil && p.spec.Limits != limits.Limits{}:
		return Limited{Mechanism: p.box.kind(), Limits: p.spec.Limits}, nil
	case p.group == nil:
		return l, nil
	}
	l.Mechanism, l.Limits = p.group.Mechanism, p.group.Limits
	if l.Mechanism == limits.Taskset {
		return l, nil
	}
	u, err := p.group.Usage()
	if err != nil {
		return l, fmt.Errorf("%s: %w", p.spec.Name, err)
	}
	l.Usage, l.UsageKnown = u, true
	return l, nil
}

// tooLarge says that a process ended because it reached its memory limit, if it did.
func (p *Process) tooLarge() string {
	if p.group == nil || p.group.Limits.Memory == 0 {
		return ""
	}
	if u, err := p.group.Usage(); err != nil || u.OOMKills == 0 {
		return ""
	}
	return ", it reached its memory limit, " + limits.Limits{Memory: p.group.Limits.Memory}.String()
}
