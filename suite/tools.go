package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
	"toll/system"
)

type toolsBench struct{ *house }

func openTools(h *house) (lab.Opener, error) { return toolsBench{h}, nil }

// toolsPhase is the only one there is.
const toolsPhase = "tcp"

// toolsDriver is what a manifest says whose contender serves the tools of published benchmarks over MCP.
const toolsDriver = "mcp-tools"

// callsTools reports whether a manifest's contender serves them.
func callsTools(m contender.Manifest) bool { return m.Driver == toolsDriver }

// A toolsCase is one iteration of a published method.
type toolsCase struct {
	set      string
	sessions bool          // whether ours gives sessions, as the publication's Go server did
	delay    time.Duration // in each iteration, that the client asks a tool for
}

func toolsCaseOf(name string) (toolsCase, error) {
	switch name {
	case "tmdevlab/v1":
		return toolsCase{system.ToolSets()[0], true, 10 * time.Millisecond}, nil
	case "tmdevlab/v2":
		return toolsCase{set: system.ShopTools}, nil
	}
	return toolsCase{}, fmt.Errorf("case %q is none of the benchmark tools; want tmdevlab/v1 or tmdevlab/v2", name)
}

// A toolServer is a contender of ours.
type toolServer struct {
	sdk   string
	serve func(toolsCase) []string
	role  string
	rest  bool // a path for each tool instead of MCP
}

func toolServers() map[string]toolServer {
	ops := func(envelope string) []string { return []string{"ops", "--envelope", envelope} }
	return map[string]toolServer{
		"toll": {sdk: "toll's MCP server, sessions as the publication's Go server, JSON", serve: func(c toolsCase) []string {
			if c.sessions {
				return ops("mcp-stateful")
			}
			return ops("mcp")
		}},
		"toll-stateless": {sdk: "toll's MCP server, no sessions, JSON", serve: func(toolsCase) []string { return ops("mcp") }},
		"toll-gateway": {
			sdk:  "toll's gateway, an agent or a pool of them for each tool; plain HTTP: no sessions to begin and to end",
			rest: true, serve: func(toolsCase) []string { return []string{"gateway"} },
		},
		"null":  {sdk: "one canned reply to each request of an iteration", role: result.Null},
		"floor": {sdk: "raw socket, echo", role: result.Floor},
	}
}

// Open starts one server process per contender, each with backends of its own.
func (b toolsBench) Open(ctx context.Context, s lab.Setting) (lab.Set, error) {
	c, err := toolsCaseOf(s.Case)
	if err != nil {
		return lab.Set{}, err
	}
	if s.Phase != "" && s.Phase != toolsPhase {
		return lab.Set{}, fmt.Errorf("phase %q is none of the benchmark tools; it has %s", s.Phase, toolsPhase)
	}
	for name := range b.plan.Backends {
		if !slices.Contains(backendNames(c.set), name) {
			return lab.Set{}, fmt.Errorf("backends: %q; case %s has %s", name, s.Case, strings.Join(backendNames(c.set), ", "))
		}
	}
	var seats []seat
	for _, name := range b.plan.Contenders {
		seat, err := b.seat(s, name, c)
		if err != nil {
			return lab.Set{}, err
		}
		seats = append(seats, seat)
		if name == b.plan.Baseline {
			again := seat
			seats[len(seats)-1].role, again.role = result.Baseline, result.Control
			seats = append(seats, again)
		}
	}
	guests, gaps := b.visitors(s, c)
	set := b.open(ctx, s, append(seats, guests...))
	set.Gaps = append(append(set.Gaps, gaps...), b.lacks...)
	return set, nil
}

func (b toolsBench) seat(s lab.Setting, name string, c toolsCase) (seat, error) {
	o, ok := toolServers()[name]
	if !ok {
		return seat{}, fmt.Errorf("contender %q is none of the benchmark tools", name)
	}
	out := seat{contender: result.Contender{Name: name, Language: "go", SDK: o.sdk}, role: o.role}
	serve := []string{"echo"}
	switch o.role {
	case result.Floor:
		out.target = func(r contender.Ready, wire *driver.Wire) load.Target {
			return &driver.Echo{Addr: r.Addr, Size: floorHead, Seed: uint64(s.Seed), Wire: wire}
		}
	case result.Null:
		reply, err := b.fixture("tools.http", cannedSession(c.sessions))
		if err != nil {
			return seat{}, err
		}
		serve = []string{"null"}
		out.spec = ownServer("null", "--reply", reply)
		out.target = toolsTarget(unchecked(mcpSteps(c.set, "http://127.0.0.1/api")))
	default:
		serve = append(o.serve(c), "--set", c.set)
		b.behind(&out, c, o.rest)
		out.serveWith(serve, c)
	}
	if out.spec == nil {
		out.spec = ownServer(serve...)
	}
	digest, err := b.digest(name, func() (string, error) {
		spec, err := ownServer(serve...)()
		return spec.Digest(), err
	})
	out.contender.CommandSHA256 = digest
	return out, err
}

func ownServer(args ...string) func() (contender.Spec, error) {
	return func() (contender.Spec, error) { return contender.Self(append([]string{"serve"}, args...)...) }
}

// serveWith has a server of ours told where its backends are.
func (s *seat) serveWith(serve []string, c toolsCase) {
	s.specFor = func(at map[string]string) (contender.Spec, error) {
		args := slices.Clone(serve)
		if c.set == system.ShopTools {
			args = append(args, "--catalogue", at["catalogue"], "--redis", hostPort(at["redis"]))
		}
		return ownServer(args...)()
	}
}

func hostPort(addr string) string {
	_, rest, _ := strings.Cut(addr, "://")
	return rest
}

// behind gives a seat its backends, its steps and what is known of them.
func (b toolsBench) behind(s *seat, c toolsCase, rest bool) {
	s.backends, s.delay = b.backends(c.set), c.delay
	s.targetFor = func(at map[string]string) func(contender.Ready, *driver.Wire) load.Target {
		steps := mcpSteps(c.set, at["api"]+"/api")
		if rest {
			steps = restSteps(c.set, at["api"]+"/api")
		}
		if b.plan.Semantics == plan.PublishedChecks {
			for i := range steps {
				steps[i].Eased = true
			}
		}
		return toolsTarget(steps)
	}
}

// toolsTarget makes iterations of a server.
func toolsTarget(steps []driver.Step) func(contender.Ready, *driver.Wire) load.Target {
	return func(r contender.Ready, wire *driver.Wire) load.Target {
		all := slices.Clone(steps)
		if r.Path != "" {
			for i := range all {
				if all[i].Path == mcpPath {
					all[i].Path = r.Path
				}
			}
		}
		return &driver.HTTP{Addr: r.Addr, Client: driver.ClientRaw, Steps: all, Pauses: load.NewPause, Wire: wire}
	}
}

// visitors seats the outside contenders that serve the tools, and says why one has no row.
func (b toolsBench) visitors(s lab.Setting, c toolsCase) (seats []seat, gaps []result.Gap) {
	for _, m := range b.outside {
		switch {
		case !callsTools(m):
			gaps = append(gaps, gap(s, m.Name, fmt.Sprintf("its manifest says driver %s; this benchmark calls %s", m.Driver, toolsDriver)))
			continue
		case !slices.Contains(m.Operations, c.set):
			gaps = append(gaps, gap(s, m.Name, "its manifest does not list "+c.set+" among its operations"))
			continue
		}
		out := seat{contender: b.outsider(m, "toll's raw client"), own: true}
		b.behind(&out, c, false)
		out.specFor = func(at map[string]string) (contender.Spec, error) {
			spec, err := m.Spec()
			spec.Words = map[string]string{"{set}": c.set, "{catalogue}": at["catalogue"], "{redis}": hostPort(at["redis"])}
			return spec, err
		}
		out.spec = m.Spec
		seats = append(seats, out)
	}
	return seats, gaps
}
