package suite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
)

// The phases of the benchmark spawn: in one process, over HTTP on connections that are kept, and on a new connection for
// every request. Each is a table of its own: a row of one is never divided by a row of another.
const (
	inprocPhase  = "inproc"
	keepPhase    = "http"
	newConnPhase = "http-new"
)

type spawnBench struct{ *house }

func openSpawn(h *house) (lab.Opener, error) { return spawnBench{h}, nil }

// A spawner is a contender of the benchmark.
type spawner struct {
	sdk   string
	serve []string // arguments behind "toll serve"
	path  string   // of its calls; none for an engine
	role  string
}

// spawners lists ours of a phase by name, and the phase's baseline.
func spawners(phase string) (all map[string]spawner, baseline string) {
	if phase == inprocPhase {
		return map[string]spawner{
			"floor":          {sdk: "a goroutine and a channel", serve: []string{"spawn-floor"}},
			"toll-goroutine": {sdk: "toll's agents, each start on a goroutine of its own", serve: []string{"spawn-engine"}},
			"toll-inline":    {sdk: "toll's agents that promise not to block, on the caller's goroutine", serve: []string{"spawn-inline"}},
			"null":           {sdk: "a call that does nothing", serve: []string{"null-engine"}, role: result.Null},
		}, "floor"
	}
	level := func(name string) []string { return []string{"spawn", "--isolation", name} }
	return map[string]spawner{
		"no-op":          {sdk: "the same server, spawning nothing", serve: level("goroutine"), path: "/v1/noop"},
		"toll-goroutine": {sdk: "toll's agents in the server's process", serve: level("goroutine"), path: "/v1/spawn"},
		"toll-inline":    {sdk: "the same, of agents that promise not to block", serve: level("inline"), path: "/v1/spawn"},
		"process-warm":   {sdk: "toll's agents in processes that are kept started", serve: level("warm"), path: "/v1/spawn"},
		"process-cold":   {sdk: "toll's agents in processes that are started for them", serve: level("cold"), path: "/v1/spawn"},
		"null":           {sdk: "toll's raw client, one canned reply", serve: []string{"null"}, path: "/v1/noop", role: result.Null},
		"floor":          {sdk: "raw socket, echo", serve: []string{"echo"}, path: "echo", role: result.Floor},
	}, "no-op"
}

// Baselines returns the names of the contenders that others of a plan are read against: the plan's own, and where each phase has
// one, those.
func (b Benchmark) Baselines(p plan.Plan) []string {
	out := []string{p.Baseline}
	if b.Name == "spawn" {
		for _, phase := range p.Phases {
			_, baseline := spawners(phase)
			out = append(out, baseline)
		}
	}
	return out
}

// Open starts the contenders of the setting's phase.
func (b spawnBench) Open(ctx context.Context, s lab.Setting) (lab.Set, error) {
	count, live, err := spawnCase(s.Case)
	if err != nil {
		return lab.Set{}, err
	}
	if s.Phase != inprocPhase && s.Phase != keepPhase && s.Phase != newConnPhase {
		return lab.Set{}, fmt.Errorf("phase %q is none of the benchmark spawn; want %s, %s or %s", s.Phase, inprocPhase, keepPhase, newConnPhase)
	}
	if count == 0 && s.Phase != inprocPhase {
		return lab.Set{}, nil // an ask crosses no socket; what it costs over HTTP is the benchmark gateway's
	}
	all, baseline := spawners(s.Phase)
	var seats []seat
	var crowded []result.Gap
	for _, name := range b.plan.Contenders {
		o, here := all[name]
		if live > 0 && strings.HasPrefix(name, "process-") && here {
			crowded = append(crowded, gap(s, name, fmt.Sprintf("%d children in processes of their own are more than a machine is asked for", live)))
			continue
		}
		if !here {
			if !isSpawner(name) {
				return lab.Set{}, fmt.Errorf("contender %q is none of the benchmark spawn", name)
			}
			continue
		}
		seat, err := b.seat(s, name, o, count, live)
		if err != nil {
			return lab.Set{}, err
		}
		if name == baseline {
			control := seat
			seat.role, control.role = result.Baseline, result.Control
			seats = append(seats, control)
		}
		seats = append(seats, seat)
	}
	outside, gaps := b.guests(s, count, live)
	set := b.open(ctx, s, append(seats, outside...))
	set.Gaps = append(append(set.Gaps, crowded...), gaps...)
	return set, nil
}

// isSpawner says whether any phase has a contender of the name; suture is one that a manifest brings.
func isSpawner(name string) bool {
	for _, phase := range []string{inprocPhase, keepPhase} {
		if all, _ := spawners(phase); all[name].serve != nil {
			return true
		}
	}
	return false
}

func (b spawnBench) seat(s lab.Setting, name string, o spawner, count, live int) (seat, error) {
	out := seat{contender: result.Contender{Name: name, Language: "go", SDK: o.sdk}, role: o.role}
	args := append([]string{"serve"}, o.serve...)
	digest, err := b.digest(strings.Join(args, " "), func() (string, error) {
		spec, err := contender.Self(args...)
		return spec.Digest(), err
	})
	if err != nil {
		return out, err
	}
	out.contender.CommandSHA256 = digest
	if o.path == "" {
		out.engine = func(p *contender.Process) load.Target { return spawnEngine(p, s.Case, live) }
	} else {
		cold := s.Phase == newConnPhase
		out.target = func(r contender.Ready, wire *driver.Wire) load.Target {
			if name == "floor" {
				return &driver.Echo{Addr: r.Addr, Size: floorHead, Seed: uint64(s.Seed), Wire: wire}
			}
			return &driver.Spawn{Addr: r.Addr, Path: o.path, Count: count, Live: live, Cold: cold, Null: name == "null", Wire: wire}
		}
	}
	if name == "null" && o.path != "" {
		reply, err := b.fixture("spawn-reply", driver.SpawnReply())
		if err != nil {
			return out, err
		}
		args = append(args, "--reply", reply)
	}
	out.spec = func() (contender.Spec, error) { return contender.Self(args...) }
	return out, nil
}

func spawnEngine(p *contender.Process, name string, live int) load.Target {
	return &driver.Engine{Asker: p, Case: name, Input: map[string]int{"live": live}}
}

// guests seats the outside contenders: they are asked what ours are asked.
func (b spawnBench) guests(s lab.Setting, count, live int) (seats []seat, gaps []result.Gap) {
	for _, m := range b.outside {
		switch {
		case m.Driver == spawnDriver && s.Phase == inprocPhase:
			gaps = append(gaps, gap(s, m.Name, "it is called over HTTP"))
		case m.Driver == spawnDriver && count == 0:
			gaps = append(gaps, gap(s, m.Name, "case ask is one of engines"))
		case m.Driver == spawnDriver:
			cold := s.Phase == newConnPhase
			seats = append(seats, seat{contender: b.outsider(m, clientText(driver.ClientRaw)), spec: m.Spec,
				target: func(r contender.Ready, wire *driver.Wire) load.Target {
					return &driver.Spawn{Addr: r.Addr, Path: "/v1/spawn", Count: count, Live: live, Cold: cold, Wire: wire}
				}})
		case m.Driver != engineDriver:
			gaps = append(gaps, gap(s, m.Name, fmt.Sprintf("its manifest says driver %s; this benchmark asks engines and calls by driver %s", m.Driver, spawnDriver)))
		case s.Phase != inprocPhase:
			gaps = append(gaps, gap(s, m.Name, "an engine is measured in its process"))
		default:
			seats = append(seats, seat{contender: b.outsider(m, ""), spec: m.Spec, engine: func(p *contender.Process) load.Target {
				return spawnEngine(p, s.Case, live)
			}})
		}
	}
	return seats, gaps
}

// callsSpawn reports whether a manifest's contender spawns.
func callsSpawn(m contender.Manifest) bool { return m.Driver == spawnDriver || doesWork(m, "spawn") }

// spawnCase reads a case: spawn/16 spawns 16 children a call, spawn/1@100k one while 100,000 others live; ask spawns none.
func spawnCase(name string) (count, live int, err error) {
	bad := fmt.Errorf("case %q is none of the benchmark spawn; expected spawn/1, spawn/16 or spawn/256, or ask, and how many children live meanwhile, such as spawn/1@100k", name)
	kind, crowd, crowded := strings.Cut(name, "@")
	if crowded {
		thousands, ok := strings.CutSuffix(crowd, "k")
		if live, err = strconv.Atoi(thousands); !ok || err != nil || live < 1 || live > 1000 {
			return 0, 0, bad
		}
		live *= 1000
	}
	switch kind {
	case "ask":
		return 0, live, nil
	case "spawn/1", "spawn/16", "spawn/256":
		count, _ = strconv.Atoi(strings.TrimPrefix(kind, "spawn/"))
		return count, live, nil
	}
	return 0, 0, bad
}
