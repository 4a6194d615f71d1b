package suite

import (
	"fmt"
	"slices"
	"strings"

	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
)

// A guestDriver is how a contender of a manifest is called.
type guestDriver struct {
	client string // as a row says it
	mcp    bool   // it has tools to list
	states bool   // it has sessions
	blobs  bool   // it can ask for a result of a given size
	shared bool   // several callers share one connection
	target func(call) load.Target
	line   func(*contender.Process, call) load.Target // over stdin and stdout; it has no address
}

// guestDrivers are those that a manifest may name and the benchmark transport calls by. client is
// the one for HTTP/1.1: the baseline's, so that what differs is the server.
func guestDrivers(client string) map[string]guestDriver {
	mcp := func(stateful bool, reply string) guestDriver {
		return guestDriver{client: clientText(client), mcp: true, states: stateful, blobs: true, target: func(c call) load.Target {
			return c.mcp(client, stateful, reply)
		}}
	}
	return map[string]guestDriver{
		"rest":     {client: clientText(client), blobs: true, target: func(c call) load.Target { return c.rest(client) }},
		"rest-h2c": {client: "net/http client over HTTP/2", shared: true, target: func(c call) load.Target { return c.rest(driver.ClientH2C) }},

		"mcp":          mcp(false, ""),
		"mcp-stateful": mcp(true, ""),
		"mcp-sse":      mcp(false, driver.ReplyEvents),
		"mcp-stdio":    {client: "toll's line client", line: mcpLine},

		"grpc": {client: "net/http client over HTTP/2", shared: true, target: func(c call) load.Target {
			return &driver.GRPC{Addr: c.addr, Note: c.note, Seed: c.seed, Cold: c.cold, Shared: c.shared, Wire: c.wire}
		}},
		"connect": {client: "net/http client", target: func(c call) load.Target {
			return &driver.Connect{Addr: c.addr, Note: c.note, Seed: c.seed, Cold: c.cold, Wire: c.wire}
		}},
	}
}

func clientText(kind string) string {
	if kind == driver.ClientRaw {
		return "toll's raw client"
	}
	return "net/http client"
}

// drivers are all that a manifest may name.
func drivers() []string {
	out := []string{"stdio", engineDriver, gatewayDriver, spawnDriver, toolsDriver}
	for name := range guestDrivers("") {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// awaited are the outside contenders that a benchmark is about, whether they are there or not.
func awaited() []string {
	return []string{"connect", "fasthttp", "go-sdk", "go-sdk-stateful", "grpc", "mcp-go", "fastmcp", "ts-sdk", "rmcp", "spring-ai"}
}

// callsTransport reports whether a manifest's driver is one that the benchmark transport calls by.
func callsTransport(m contender.Manifest) bool {
	_, ok := guestDrivers("")[m.Driver]
	return ok
}

// toolsWord and idleWord are replaced, in a manifest's command, by how many tools the case wants listed and after how long an
// idle session is to be forgotten.
const (
	toolsWord = "{tools}"
	idleWord  = "{idle}"
)

// visitors seats the outside contenders of the benchmark transport.
func (t transport) visitors(s lab.Setting, w work) (seats []seat, gaps []result.Gap) {
	for _, m := range t.outside {
		d, known := guestDrivers(t.guests)[m.Driver]
		if reason := t.unfit(m, d, known, s, w); reason != "" {
			gaps = append(gaps, gap(s, m.Name, reason))
			continue
		}
		seats = append(seats, t.guest(s, m, d, w))
	}
	return seats, gaps
}

// unfit says why a contender has no row in a setting, nothing if it has one.
func (t transport) unfit(m contender.Manifest, d guestDriver, known bool, s lab.Setting, w work) string {
	switch {
	case !known:
		return fmt.Sprintf("its manifest says driver %s, which asks an engine; this benchmark calls over connections", m.Driver)
	case w.empty:
		return "case " + emptyRead + " is made of our own contenders' calls"
	case t.plan.Processes == plan.Shared && !slices.Contains(t.plan.Contenders, m.Name):
		return "the plan has one server process, ours, for all contenders"
	case s.Phase == "unix":
		return "its manifest gives no unix socket"
	case w.tools > 0 && !d.mcp:
		return fmt.Sprintf("driver %s has no tools to list", m.Driver)
	case w.tools > 0 && !slices.ContainsFunc(m.Command, func(word string) bool { return strings.Contains(word, toolsWord) }):
		return "its manifest's command has no " + toolsWord
	case w.churn && !d.states:
		return fmt.Sprintf("driver %s has no sessions", m.Driver)
	case w.churn && !slices.ContainsFunc(m.Command, func(word string) bool { return strings.Contains(word, idleWord) }):
		return "its manifest's command has no " + idleWord
	case w.blob > 0 && (!d.blobs || !slices.Contains(m.Operations, "blob")):
		return "its manifest does not list the operation blob, or driver " + m.Driver + " can't call it"
	}
	return ""
}

func (t transport) guest(s lab.Setting, m contender.Manifest, d guestDriver, w work) seat {
	out := seat{
		contender: t.outsider(m, d.client),
		own:       true,
		spec: func() (contender.Spec, error) {
			spec, err := m.Spec()
			spec.Tools = w.tools
			if w.churn {
				spec.Idle = churnIdle
			}
			return spec, err
		},
	}
	if w.churn {
		out.idle = churnIdle
	}
	c := call{work: w, seed: uint64(s.Seed), shared: d.shared && s.Concurrency > 1}
	if d.line != nil {
		out.line, out.launch = func(p *contender.Process, wire *driver.Wire) load.Target { return d.line(p, c.with(wire)) }, w.cold
		return out
	}
	out.target = func(r contender.Ready, wire *driver.Wire) load.Target {
		c := c.with(wire)
		c.addr, c.path = r.Addr, r.Path
		return d.target(c)
	}
	if c.shared {
		out.connections = "shared"
	}
	return out
}

// outsider is what a manifest says of its contender; client is the library that we call it with.
func (h *house) outsider(m contender.Manifest, client string) result.Contender {
	digest, _ := h.digest(m.Name, func() (string, error) { return m.Digest(), nil })
	c := result.Contender{Name: m.Name, Version: m.Version, Language: m.Language, SDK: client, CommandSHA256: digest}
	if m.SDK != "" {
		c.SDK = strings.TrimPrefix(client+", "+m.SDK, ", ")
	}
	return c
}
