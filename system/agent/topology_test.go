package agent_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/system/agent"
	"toll/wire/envelope"
)

func kit() agent.Kit {
	return agent.Kit{
		Classes: map[string]agent.Class{"echo": {New: func(config map[string]any) (agent.Handler, error) {
			if config["bad"] == true {
				return nil, errors.New("bad config")
			}
			return agent.HandlerFunc(func(_ *agent.Context, m *envelope.Message) (any, error) {
				if m.Type == "crash" {
					panic("boom")
				}
				return map[string]any{"payload": m.Payload, "greeting": config["greeting"]}, nil
			}), nil
		}}},
		Isolations: map[string]agent.Isolation{"cold": &agent.Processes{}},
	}
}

func TestATopologyRunsAsItIsWritten(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	top, err := agent.ParseTopology("shop.yaml", data, kit())
	if err != nil {
		t.Fatal(err)
	}
	rt := newRuntime(t, top.Config(agent.Config{}))
	root, err := top.Run(t.Context(), rt, kit())
	if err != nil {
		t.Fatal(err)
	}
	v, err := rt.Call(t.Context(), &envelope.Message{Type: "x", Recipient: "echo"})
	if d := cmp.Diff(map[string]any{"payload": nil, "greeting": "hello"}, v); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
	for i, want := range []error{nil, nil, agent.MaxChildren} {
		_, err := rt.SpawnInto(t.Context(), "sessions", &agent.SpawnRequest{Class: "echo", Spawner: "me", Name: "s" + string(rune('0'+i))})
		if !errors.Is(err, want) {
			t.Errorf("spawn %d: %v, want %v", i, err, want)
		}
	}
	view := func(kind, name string, epoch uint64, handled uint64, children ...agent.View) agent.View {
		state := "up"
		if kind == "agent" {
			state = "running"
		}
		return agent.View{Kind: kind, Name: name, State: state, Epoch: epoch, Handled: handled, Children: children}
	}
	sessions := view("dynamic", "sessions", 0, 0, view("agent", "s0", 3, 0), view("agent", "s1", 4, 0))
	sessions.Count = 2
	want := []agent.View{view("supervisor", "root", 0, 0,
		view("agent", "echo", 1, 1), view("supervisor", "pool", 0, 0, view("agent", "worker", 2, 0)), sessions)}
	if d := cmp.Diff(want, rt.Tree()); d != "" {
		t.Error(d)
	}
	// No restarts: one crash is the end of the root.
	_, err = rt.Call(t.Context(), &envelope.Message{Type: "crash", Recipient: "echo"})
	wantCode(t, err, envelope.Crashed)
	if err := root.Wait(); !errors.Is(err, agent.ErrGaveUp) {
		t.Errorf("got %v", err)
	}
}

func TestBadTopologies(t *testing.T) {
	t.Parallel()
	head := "schema: toll.topology/v1\nroot: {supervisor: r, children: ["
	for in, want := range map[string]string{
		"":          "t.yaml: empty file",
		"a: 1":      `t.yaml:1:1: unknown field "a"`,
		"schema: x": `t.yaml: schema is "x"; expected toll.topology/v1`,
		"schema: [": "t.yaml:1:9: sequence end token ']' not found",
		"schema: toll.topology/v1\nroot: {agent: a}":                                "t.yaml: root: expected a supervisor",
		"schema: toll.topology/v1\nroot: {supervisor: r}\n---\na: 1":                "t.yaml: more than one YAML document; expected one",
		"schema: toll.topology/v1\nlimits: {max_agents: -1}\nroot: {supervisor: r}": "t.yaml: limits: expected no negative ones",
		head + "{class: echo}]}":                                                    "t.yaml: a node gives exactly one of agent, supervisor and dynamic",
		head + "{agent: a, dynamic: d}]}":                                           "t.yaml: a node gives exactly one of agent, supervisor and dynamic",
		head + "{agent: a, class: nope}]}":                                          `t.yaml: agent a: class "nope" is none of echo`,
		head + "{agent: a}]}":                                                       `t.yaml: agent a: class "" is none of echo`,
		head + "{agent: a, class: echo}, {agent: a, class: echo}]}":                 "t.yaml: agent a: the name stands twice",
		head + "{supervisor: r}]}":                                                  "t.yaml: supervisor r: the name stands twice",
		head + "{agent: a, class: echo, full: never}]}":                             `t.yaml: agent a: full is "never"; expected one of reject, block, drop_oldest`,
		head + "{agent: a, class: echo, drain: slow}]}":                             `t.yaml: agent a: drain is "slow"; expected one of now, current, all`,
		head + "{agent: a, class: echo, restart: often}]}":                          `t.yaml: agent a: restart is "often"; expected one of permanent, transient, temporary`,
		head + "{supervisor: s, strategy: any}]}":                                   `t.yaml: supervisor s: strategy is "any"; expected one of one_for_one, one_for_all, rest_for_one`,
		head + "{supervisor: s, backoff: {growth: fast}}]}":                         `t.yaml: supervisor s: growth is "fast"; expected one of constant, linear, exponential`,
		head + "{supervisor: s, backoff: {jitter: 2}}]}":                            "t.yaml: supervisor s: jitter is 2; expected 0 to 1",
		head + "{dynamic: d, isolation: vm}]}":                                      `t.yaml: dynamic d: isolation is "vm"; expected one of cold`,
		head + "{dynamic: d, class: echo}]}":                                        "t.yaml: dynamic d: it gives what only an agent has: class, config, mailbox, control, full, shutdown, drain, inline or deliveries",
		head + "{agent: a, class: echo, children: []}]}":                            "t.yaml: agent a: it gives what only a supervisor has: strategy, auto_shutdown, children or backoff",
		head + "{agent: a, class: echo, classes: [echo]}]}":                         "t.yaml: agent a: it gives what only a dynamic supervisor has: classes, limits, spawners or isolation",
		head + "{agent: a, class: echo, within: 3s}]}":                              "t.yaml: agent a: max_restarts and within are its supervisor's",
		head + "{agent: a, class: echo, significant: true}]}":                       "t.yaml: agent a: it is significant and permanent; restart must be transient or temporary",
		head + "{agent: a, class: echo, significant: true, restart: transient}]}":   "t.yaml: agent a: it is significant, and nothing follows from it: auto_shutdown of r is never",
		head + "{dynamic: d, significant: true, restart: transient}]}":              "t.yaml: dynamic d: significant is an agent's or a supervisor's: a dynamic supervisor never ends by itself",
		head + "{supervisor: s, auto_shutdown: soon}]}":                             `t.yaml: supervisor s: auto_shutdown is "soon"; expected one of never, any_significant, all_significant`,
		head + "{supervisor: s, start_timeout: 3s}]}":                               "t.yaml: supervisor s: start_timeout is its children's",
		head + "{agent: a, class: echo, mailbox: -1}]}":                             "t.yaml: agent a: a limit is negative",
		head + "{agent: a, class: echo, shutdown: soon}]}":                          `t.yaml:2:68: "soon" is not a duration such as 250ms or 10s`,
		head + "{agent: a, class: echo, colour: red}]}":                             `t.yaml:2:58: unknown field "colour"`,
		head + "{agent: " + strings.Repeat("x", 256) + ", class: echo}]}":           "t.yaml: agent " + strings.Repeat("x", 40) + "…: its name has 256 bytes; at most 255",
		strings.Repeat("#", 1<<20+1):                                                "t.yaml: 1048577 bytes; at most 1048576",
	} {
		_, err := agent.ParseTopology("t.yaml", []byte(in), kit())
		if err == nil || err.Error() != want {
			t.Errorf("%.120q\n got %v\nwant %s", in, err, want)
		}
	}
}

func FuzzParseTopology(f *testing.F) {
	data, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("schema: toll.topology/v1\nroot: {supervisor: r, children: [{agent: a, class: echo}]}"))
	f.Add([]byte("schema: !!seq\nroot: *a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if top, err := agent.ParseTopology("t.yaml", data, kit()); err == nil && (top.Schema != agent.TopologySchema || top.Root.Supervisor == "") {
			t.Errorf("accepted: %+v", top)
		}
	})
}
