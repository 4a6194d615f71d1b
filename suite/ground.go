package suite

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"toll/contender"
	"toll/contender/hop"
	"toll/contender/limits"
	"toll/lab/plan"
	"toll/lab/result"
)

// A Ground is where contenders run: under which limits, and over which hop they are reached.
type Ground struct {
	Limits         limits.Limits
	AllowUnlimited bool // run where the limits can't be held
	Hop            hop.Hop
	Target         string    // host of the processes to call in place of our own: bus, gateway, spawn
	Token          string    // file with the secret that they want, bus only; empty for none
	Fault          string    // what is done to every connection, bus only
	link           *hop.Link // nil on loopback
}

// loopback is the ground without limits and without a hop.
func loopback() Ground { return Ground{Hop: hop.Hop{Kind: hop.Loopback}} }

// GroundOf reads what a plan says of limits and hop. An error is a plan's.
func GroundOf(p plan.Plan, allowUnlimited bool) (Ground, error) {
	g := loopback()
	g.AllowUnlimited = allowUnlimited
	g.Limits.CPUs = p.Limits.CPUs
	if p.Limits.Memory != "" {
		var err error
		if g.Limits.Memory, err = limits.ParseSize(p.Limits.Memory); err != nil {
			return g, fmt.Errorf("limits.memory: %w", err)
		}
	}
	if err := g.Limits.Check(); err != nil {
		return g, fmt.Errorf("limits.%w", err)
	}
	if p.Hop != "" {
		var err error
		if g.Hop, err = hop.Parse(p.Hop); err != nil {
			return g, err
		}
	}
	return g, nil
}

// open makes the link to the hop's far side, if there is one.
func (g *Ground) open(ctx context.Context) error {
	if g.Hop.Kind == hop.Loopback {
		return nil
	}
	self, err := contender.Self("hop-shuttle", "--one-way", (g.Hop.RTT / 2).String())
	if err != nil {
		return err
	}
	g.link, err = hop.Open(ctx, g.Hop, func() *exec.Cmd { return exec.Command(self.Command[0], self.Command[1:]...) })
	return err
}

// host is where contenders listen.
func (g *Ground) host() string {
	if g.link == nil {
		return "127.0.0.1"
	}
	return g.link.Addr
}

// result is the hop as a document says it.
func (g *Ground) result() result.Hop {
	kind := g.Hop.Kind
	if g.Target != "" {
		kind = result.RemoteHost
	}
	if g.Fault != "" {
		kind += ", spoiled: " + g.Fault
	}
	out := result.Hop{Kind: kind, ConfiguredRTT: g.Hop.RTT.Seconds() * 1000}
	if g.link != nil {
		out.Mechanism = g.link.Mechanism()
	}
	return out
}

// errNoHost is why a contender can't be reached over a hop.
var errNoHost = errors.New("it listens on loopback: to be reached over a hop, its command must say {host} where it says where to listen")

// place puts a contender on the ground. The floor and the null target are instruments and have no limits.
func (g *Ground) place(spec *contender.Spec, s seat) error {
	if s.role != result.Floor && s.role != result.Null {
		spec.Limits, spec.AllowUnlimited = g.Limits, g.AllowUnlimited
	}
	spec.Host = g.host()
	if g.link == nil {
		return nil
	}
	spec.Hop = g.link
	switch {
	case s.engine != nil, s.line != nil:
		return errors.New("it is asked over its standard input, which crosses no hop")
	case isOurs(*spec) && slices.Contains(spec.Command, "--unix"):
		return errors.New("a unix socket crosses no hop")
	case isOurs(*spec):
		spec.Command = append(slices.Clone(spec.Command), "--addr", "{host}:0")
	case !slices.ContainsFunc(append(slices.Clone(spec.Command), spec.Env...), func(a string) bool { return strings.Contains(a, "{host}") }):
		return errNoHost
	}
	return nil
}

// isOurs says whether a command is our own binary, serving.
func isOurs(s contender.Spec) bool {
	self, err := contender.Self("serve")
	return err == nil && len(s.Command) > 1 && s.Command[0] == self.Command[0] && s.Command[1] == "serve"
}
