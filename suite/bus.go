package suite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"toll/contender"
	"toll/contender/place"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
	"toll/system"
)

// busProcs is GOMAXPROCS of every process of the bus benchmark, one where the phase says so. Left to the machine, it decides
// tables by a factor of two.
const busProcs = 2

// procs returns GOMAXPROCS of the processes of a setting: threads that take turns on one processor are in each other's way.
func (b busBench) procs(s lab.Setting, one bool) string {
	b.hold(s.Concurrency)
	n := busProcs
	for _, side := range []place.Set{b.held.Client, b.held.Contenders} {
		if len(side) > 0 {
			n = min(n, len(side))
		}
	}
	if one {
		n = 1
	}
	return strconv.Itoa(n)
}

type busBench struct{ *house }

func openBus(h *house) (lab.Opener, error) { return busBench{h}, nil }

// A busPhase is one of the benchmark's tables. What takes part in one is never ranked or divided across tables: within a
// process there is no socket, and through a broker there are two.
type busPhase struct {
	baseline   string
	contenders map[string]string // with what each is made of
}

func busPhases() map[string]busPhase {
	return map[string]busPhase{
		"inproc": {system.Inproc, map[string]string{
			system.Inproc: "an agent asked in its own process",
		}},
		"direct": {system.Direct, map[string]string{
			system.Direct:        "toll's frames, answered where they are read",
			system.DirectMailbox: "toll's frames, answered by an agent through its mailbox",
			system.ZMTP:          "toll's ZMTP 3.1, DEALER to ROUTER",
			system.SocketFloor:   "raw socket, echo",
		}},
		"brokered": {system.NATSGo, map[string]string{
			system.NATSGo:    "nats.go request and reply, embedded nats-server",
			system.NATS:      "toll's frames over nats.go, embedded nats-server",
			system.Routed:    "toll's frames through toll's router",
			system.ZMTPProxy: "toll's ZMTP 3.1, PUB and SUB through an XSUB/XPUB proxy",
		}},
	}
}

// What ends the name of a phase in which each caller has a connection of its own, and of one whose processes have a single
// thread for their Go code.
const (
	perCaller = "-per-caller"
	oneThread = "-one-thread"
)

// Open starts the calling process of each contender of the phase; it starts the worker, and the broker, that it calls.
func (b busBench) Open(ctx context.Context, s lab.Setting) (lab.Set, error) {
	name, one := strings.CutSuffix(s.Phase, oneThread)
	name, own := strings.CutSuffix(name, perCaller)
	phase, ok := busPhases()[name]
	if !ok || own && name == "inproc" {
		return lab.Set{}, fmt.Errorf("phase %q is none of the benchmark bus; want inproc, direct or brokered, the latter two perhaps with %s and %s behind", s.Phase, perCaller, oneThread)
	}
	procs := b.procs(s, one)
	var seats []seat
	for _, c := range b.plan.Contenders {
		sdk, here := phase.contenders[c]
		if !here && c != "null" {
			if !knownToBus(c) {
				return lab.Set{}, fmt.Errorf("contender %q is none of the benchmark bus", c)
			}
			continue
		}
		seat, err := b.seat(s, c, sdk, own, procs)
		if err != nil {
			return lab.Set{}, err
		}
		seats = append(seats, seat)
		if c == phase.baseline {
			seats[len(seats)-1].role = result.Baseline
			seat.role = result.Control
			seats = append(seats, seat)
		}
	}
	guests, gaps := b.guests(s, name, own, procs)
	set := b.open(ctx, s, append(seats, guests...))
	set.Gaps = append(set.Gaps, gaps...)
	if strings.HasPrefix(s.Case, "one-way/") {
		set.Gaps = append(set.Gaps, result.Gap{Row: "method.hop.measured_rtt_ms", Reason: "a case without replies has no round trip"})
	}
	return set, nil
}

// perCallerWork is what an engine's manifest lists that can't share a connection among callers.
const perCallerWork = "per-caller"

// guests seats the outside engines, such as libzmq's, beside the direct ones: each makes its round trips to a process that it
// has started itself.
func (b busBench) guests(s lab.Setting, phase string, own bool, procs string) (seats []seat, gaps []result.Gap) {
	for _, m := range b.outside {
		switch {
		case m.Driver != engineDriver:
			gaps = append(gaps, gap(s, m.Name, fmt.Sprintf("its manifest says driver %s; this benchmark asks engines", m.Driver)))
		case !doesWork(m, "bus-"+phase):
			gaps = append(gaps, gap(s, m.Name, fmt.Sprintf("its manifest does not list the operation bus-%s", phase)))
		case b.plan.Model == plan.Open:
			gaps = append(gaps, gap(s, m.Name, "outside engines make calls one after the other; they keep no schedule"))
		case s.Case != "rtt/128B" && s.Case != "rtt/4KiB":
			gaps = append(gaps, gap(s, m.Name, "outside engines make round trips"))
		default:
			connections := "shared"
			if own || doesWork(m, perCallerWork) {
				connections = "per-caller"
			}
			seats = append(seats, seat{
				contender: b.outsider(m, ""), connections: connections, calling: true,
				spec: func() (contender.Spec, error) {
					spec, err := m.Spec()
					spec.Env = append(spec.Env, "GOMAXPROCS="+procs, "CONNECTIONS="+connections)
					return spec, err
				},
				engine: func(p *contender.Process) load.Target { return &driver.Engine{Asker: p, Case: s.Case} },
			})
		}
	}
	return seats, gaps
}

// callsBus reports whether a manifest's engine makes the round trips of this benchmark; its driver alone does not say so.
func callsBus(m contender.Manifest) bool {
	return doesWork(m, "bus-direct") || doesWork(m, "bus-brokered")
}

func knownToBus(name string) bool {
	for _, p := range busPhases() {
		if _, ok := p.contenders[name]; ok {
			return true
		}
	}
	return false
}

func (b busBench) seat(s lab.Setting, name, sdk string, own bool, procs string) (seat, error) {
	args := []string{"serve", "bus", "--carrier", name}
	if own {
		args = append(args, "--own")
	}
	if b.ground.Target != "" && name != system.Inproc && name != "null" {
		host, base, err := system.BusHost(b.ground.Target)
		if err != nil {
			return seat{}, fmt.Errorf("target %s: %w", b.ground.Target, err)
		}
		args = append(args, "--at", "tcp://"+system.BusAddr(host, base, name))
	}
	if b.ground.Token != "" && name != system.Inproc && name != "null" && name != system.SocketFloor {
		args = append(args, "--token-file", b.ground.Token)
	}
	if b.ground.Fault != "" && name != system.Inproc && name != "null" {
		args = append(args, "--fault", b.ground.Fault)
	}
	out := seat{contender: result.Contender{Name: name, Language: "go", SDK: sdk}, connections: "shared"}
	out.calling = name != "null" && name != system.Inproc
	out.away = out.calling && b.ground.Target != ""
	switch {
	case name == "null":
		args, out.role, out.contender.SDK = []string{"serve", "null-engine"}, result.Null, "a call that does nothing"
	case name == system.SocketFloor:
		out.role, out.connections = result.Floor, "per-caller"
	case own:
		out.connections = "per-caller"
	}
	out.spec = func() (contender.Spec, error) {
		spec, err := contender.Self(args...)
		spec.Env = []string{"GOMAXPROCS=" + procs}
		return spec, err
	}
	out.engine = func(p *contender.Process) load.Target { return &driver.Engine{Asker: p, Case: s.Case} }
	digest, err := b.digest(strings.Join(args, " ")+procs, func() (string, error) {
		spec, err := out.spec()
		return spec.Digest(), err
	})
	out.contender.CommandSHA256 = digest
	return out, err
}
