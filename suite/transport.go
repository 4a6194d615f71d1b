package suite

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
)

type transport struct {
	*house
	client *tls.Config // trusts the run's own authority
	guests string      // the client that outside contenders are called with
}

func openTransport(h *house) (lab.Opener, error) {
	client, err := h.authority()
	return transport{h, client, driver.ClientHTTP}, err
}

// Open starts one server process per contender: the plan's, the control, and those that manifests brought.
func (t transport) Open(ctx context.Context, s lab.Setting) (lab.Set, error) {
	w, err := transportWork(s.Case)
	if err != nil {
		return lab.Set{}, err
	}
	if t.plan.Processes == plan.Shared && s.Phase != "tcp" {
		return lab.Set{}, fmt.Errorf("a shared process serves phase tcp only")
	}
	var seats []seat
	outside, gaps := t.visitors(s, w)
	for _, name := range t.plan.Contenders {
		if slices.ContainsFunc(t.outside, func(m contender.Manifest) bool { return m.Name == name }) {
			outside, seats = moveSeat(name, outside, seats)
			continue
		}
		seat, err := t.seat(s, name, w)
		if err != nil {
			return lab.Set{}, err
		}
		seats = append(seats, seat)
		if name == t.plan.Baseline {
			seats[len(seats)-1].role = result.Baseline
			again, err := t.seat(s, name, w)
			if err != nil {
				return lab.Set{}, err
			}
			again.role = result.Control
			seats = append(seats, again)
		}
	}
	set := t.open(ctx, s, append(seats, outside...))
	set.Gaps = append(append(set.Gaps, gaps...), t.lacks...)
	return set, nil
}

// moveSeat moves the named seat, if it is there, to where the plan has it in its order.
func moveSeat(name string, from, to []seat) (rest, moved []seat) {
	for _, s := range from {
		if s.contender.Name == name {
			to = append(to, s)
		} else {
			rest = append(rest, s)
		}
	}
	return rest, to
}

// seat describes one contender of ours.
func (t transport) seat(s lab.Setting, name string, w work) (seat, error) {
	o, ok := ours()[name]
	if !ok {
		return seat{}, fmt.Errorf("contender %q is none of the benchmark transport", name)
	}
	if w.empty && o.role == "" {
		o.target, o.unverified = nil, false
		if read, there := emptyReads()[name]; there {
			o.target, o.unverified = read.target, read.unverified
		}
	}
	switch {
	case o.target == nil && o.line == nil, o.role == "" && (w.tools > 0 && !o.mcp || w.blob > 0 && !o.blobs || w.churn && !o.states):
		return seat{}, fmt.Errorf("contender %q has no call for case %s", name, w.name)
	case t.plan.Processes == plan.Shared && o.serve[0] != "ops":
		return seat{}, fmt.Errorf("contender %q is not served by a process that all contenders share", name)
	}
	serve := slices.Clone(o.serve)
	if name == "null" {
		reply, err := t.fixture(fmt.Sprintf("reply-%d", w.note), driver.NoteReply(1, w.note))
		if err != nil {
			return seat{}, err
		}
		serve = append(serve, "--reply", reply)
	}
	if w.tools > 0 && o.role == "" {
		serve = append(serve, "--tools", strconv.Itoa(w.tools))
	}
	if w.churn && o.role == "" {
		serve = append(serve, "--session-idle", churnIdle.String(), "--max-sessions", "1000000")
	}
	c := call{work: w, seed: uint64(s.Seed), tls: t.client, shared: o.shared && s.Concurrency > 1}
	out := seat{
		contender:  result.Contender{Name: name, Language: "go", SDK: o.sdk},
		role:       o.role,
		spec:       t.self(o.phase(s.Phase), name, serve),
		unverified: o.unverified,
	}
	if w.churn && o.role == "" {
		out.idle = churnIdle
	}
	if o.line != nil {
		out.line, out.launch = func(p *contender.Process, wire *driver.Wire) load.Target { return o.line(p, c.with(wire)) }, w.cold
	} else {
		out.target = func(r contender.Ready, wire *driver.Wire) load.Target {
			c := c.with(wire)
			c.addr = r.Addr
			return o.target(c)
		}
	}
	if o.phase(s.Phase) == "tls" {
		out.tls = &result.TLS{ServerVerified: true}
	}
	if c.shared {
		out.connections = "shared"
	}
	// The paths of a run's own folder are not part of what the contender is.
	digest, err := t.digest(name, func() (string, error) {
		spec, err := contender.Self(append([]string{"serve"}, o.serve...)...)
		return spec.Digest(), err
	})
	out.contender.CommandSHA256 = digest
	return out, err
}

// self is our own binary, started as anyone's is.
func (t transport) self(phase, name string, serve []string) func() (contender.Spec, error) {
	return func() (contender.Spec, error) {
		args := append([]string{"serve"}, serve...)
		switch phase {
		case "unix":
			args = append(args, "--unix", t.socket(name))
		case "tls":
			args = append(args, "--cert", filepath.Join(t.dir, "server.crt"), "--key", filepath.Join(t.dir, "server.key"), "--pq")
		}
		spec, err := contender.Self(args...)
		if phase == "stdio" {
			spec.Probe, spec.Endpoint = contender.Probe{Ask: mcpPing}, "stdio:"
		}
		return spec, err
	}
}
