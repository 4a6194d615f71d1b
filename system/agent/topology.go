package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// TopologySchema is what the first key of a topology file says.
const TopologySchema = "toll.topology/v1"

// maxTopology bounds a topology file, maxNodes what it may hold and maxDepth how deep its supervisors may stand.
const (
	maxTopology = 1 << 20
	maxNodes    = 10_000
	maxDepth    = 16
)

// A Topology is a tree of agents and supervisors, as people write it down.
type Topology struct {
	Schema string `yaml:"schema"`
	Limits struct {
		MaxAgents   int `yaml:"max_agents"`
		DeadLetters int `yaml:"dead_letters"`
	} `yaml:"limits"`
	Root Node `yaml:"root"`
}

// A Node is an agent, a supervisor or a dynamic supervisor: exactly one of the three names is given. Of the rest it may only
// give what its kind has.
type Node struct {
	Agent      string `yaml:"agent"`
	Supervisor string `yaml:"supervisor"`
	Dynamic    string `yaml:"dynamic"`

	// Of an agent.
	Class        string         `yaml:"class"`
	Config       map[string]any `yaml:"config"`
	Mailbox      int            `yaml:"mailbox"`
	Control      int            `yaml:"control"`
	Full         string         `yaml:"full"` // reject, block, drop_oldest
	Shutdown     span           `yaml:"shutdown"`
	Drain        string         `yaml:"drain"` // now, current, all
	Inline       bool           `yaml:"inline"`
	Deliveries   int            `yaml:"deliveries"`
	StartTimeout span           `yaml:"start_timeout"`
	Restart      string         `yaml:"restart"`     // permanent, transient, temporary; of a dynamic supervisor's children too
	Significant  bool           `yaml:"significant"` // of a supervisor's child of either kind

	// Of a supervisor.
	Strategy     string  `yaml:"strategy"`      // one_for_one, one_for_all, rest_for_one
	AutoShutdown string  `yaml:"auto_shutdown"` // never, any_significant, all_significant
	Children     []Node  `yaml:"children"`
	Backoff      backoff `yaml:"backoff"`
	MaxRestarts  *int    `yaml:"max_restarts"` // of a dynamic supervisor: of one child
	Within       span    `yaml:"within"`

	// Of a dynamic supervisor.
	Classes             []string `yaml:"classes"`
	MaxChildren         int      `yaml:"max_children"`
	MaxSpawns           int      `yaml:"max_total_spawns"`
	MaxPerSpawner       int      `yaml:"max_children_per_spawner"`
	MaxSpawnsPerSpawner int      `yaml:"max_total_spawns_per_spawner"`
	Spawners            []string `yaml:"spawners"`
	Isolation           string   `yaml:"isolation"` // of those that the program offers; empty for its own process
}

type backoff struct {
	Growth string  `yaml:"growth"` // constant, linear, exponential
	Base   span    `yaml:"base"`
	Cap    span    `yaml:"cap"`
	Jitter float64 `yaml:"jitter"`
}

// A span is a duration written like 250ms or 10s.
type span time.Duration

// UnmarshalYAML parses s; its error has a position.
func (s *span) UnmarshalYAML(n ast.Node) error {
	v, err := time.ParseDuration(n.GetToken().Value)
	if err != nil || v < 0 {
		return &yaml.SyntaxError{Token: n.GetToken(), Message: fmt.Sprintf("%q is not a duration such as 250ms or 10s", n.GetToken().Value)}
	}
	*s = span(v)
	return nil
}

// A Kit is what a program offers to topologies: classes by name, and places by name where dynamic children can run.
type Kit struct {
	Classes    map[string]Class
	Isolations map[string]Isolation
}

// ParseTopology reads a topology file. An error names file, line and column, or the node that is at fault.
func ParseTopology(file string, data []byte, kit Kit) (t Topology, err error) {
	// The YAML library panics on some malformed input; that is the file's fault.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: not usable as YAML: %v", file, r)
		}
	}()
	if len(data) > maxTopology {
		return t, fmt.Errorf("%s: %d bytes; at most %d", file, len(data), maxTopology)
	}
	d := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := d.Decode(&t); err != nil {
		if errors.Is(err, io.EOF) {
			return t, fmt.Errorf("%s: empty file", file)
		}
		return t, yamlError(file, err)
	}
	var rest any
	if err := d.Decode(&rest); !errors.Is(err, io.EOF) {
		return t, fmt.Errorf("%s: more than one YAML document; expected one", file)
	}
	switch {
	case t.Schema != TopologySchema:
		return t, fmt.Errorf("%s: schema is %q; expected %s", file, t.Schema, TopologySchema)
	case t.Root.Supervisor == "":
		return t, fmt.Errorf("%s: root: expected a supervisor", file)
	case t.Limits.MaxAgents < 0 || t.Limits.DeadLetters < 0:
		return t, fmt.Errorf("%s: limits: expected no negative ones", file)
	}
	v := validator{kit: kit, names: make(map[string]bool)}
	if err := v.node(&t.Root, 0); err != nil {
		return t, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// yamlError puts the position that the library knows before its message.
func yamlError(file string, err error) error {
	if se, ok := errors.AsType[yaml.Error](err); ok && se.GetToken() != nil {
		p := se.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", file, p.Line, p.Column, se.GetMessage())
	}
	first, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return fmt.Errorf("%s: %s", file, first)
}

// A validator checks nodes before anything is started.
type validator struct {
	kit   Kit
	names map[string]bool
	nodes int
}

func (v *validator) node(n *Node, depth int) error {
	name, kind := n.name()
	switch {
	case kind == "":
		return errors.New("a node gives exactly one of agent, supervisor and dynamic")
	case len(name) > maxName:
		return fmt.Errorf("%s %.40s…: its name has %d bytes; at most %d", kind, name, len(name), maxName)
	case v.names[kind+name] || kind != "agent" && (v.names["supervisor"+name] || v.names["dynamic"+name]):
		return fmt.Errorf("%s %s: the name stands twice", kind, name)
	case depth > maxDepth:
		return fmt.Errorf("%s %s: stands more than %d supervisors deep", kind, name, maxDepth)
	}
	v.names[kind+name] = true
	if v.nodes++; v.nodes > maxNodes {
		return fmt.Errorf("more than %d nodes", maxNodes)
	}
	if err := v.fields(n, kind); err != nil {
		return fmt.Errorf("%s %s: %w", kind, name, err)
	}
	for i := range n.Children {
		c := &n.Children[i]
		if err := v.node(c, depth+1); err != nil {
			return err
		}
		if c.Significant && (n.AutoShutdown == "" || n.AutoShutdown == "never") {
			child, kind := c.name()
			return fmt.Errorf("%s %s: it is significant, and nothing follows from it: auto_shutdown of %s is never", kind, child, name)
		}
	}
	return nil
}

// name returns the node's name and kind; no kind when it is not exactly one.
func (n *Node) name() (name, kind string) {
	for k, v := range map[string]string{"agent": n.Agent, "supervisor": n.Supervisor, "dynamic": n.Dynamic} {
		if v != "" {
			if kind != "" {
				return "", ""
			}
			name, kind = v, k
		}
	}
	return name, kind
}

// fields checks what a node gives.
func (v *validator) fields(n *Node, kind string) error {
	for _, c := range []struct {
		key, value string
		of         []string
	}{
		{"full", n.Full, []string{"reject", "block", "drop_oldest"}},
		{"drain", n.Drain, []string{"now", "current", "all"}},
		{"restart", n.Restart, []string{"permanent", "transient", "temporary"}},
		{"strategy", n.Strategy, []string{"one_for_one", "one_for_all", "rest_for_one"}},
		{"auto_shutdown", n.AutoShutdown, []string{"never", "any_significant", "all_significant"}},
		{"growth", n.Backoff.Growth, []string{"constant", "linear", "exponential"}},
		{"isolation", n.Isolation, slices.Sorted(maps.Keys(v.kit.Isolations))},
	} {
		if c.value != "" && !slices.Contains(c.of, c.value) {
			return fmt.Errorf("%s is %.40q; expected one of %s", c.key, c.value, strings.Join(c.of, ", "))
		}
	}
	if n.Mailbox < 0 || n.Control < 0 || n.Deliveries < 0 || n.MaxChildren < 0 || n.MaxSpawns < 0 || n.MaxPerSpawner < 0 || n.MaxSpawnsPerSpawner < 0 {
		return errors.New("a limit is negative")
	}
	if n.Significant && n.Restart != "transient" && n.Restart != "temporary" {
		return errors.New("it is significant and permanent; restart must be transient or temporary")
	}
	if n.Backoff.Jitter < 0 || n.Backoff.Jitter > 1 {
		return fmt.Errorf("jitter is %v; expected 0 to 1", n.Backoff.Jitter)
	}
	known := slices.Sorted(maps.Keys(v.kit.Classes))
	classes := n.Classes
	if kind == "agent" {
		classes = []string{n.Class}
	}
	for _, c := range classes {
		if !slices.Contains(known, c) {
			return fmt.Errorf("class %.40q is none of %s", c, strings.Join(known, ", "))
		}
	}
	return n.foreign(kind)
}

// foreign finds a field that the kind does not have.
func (n *Node) foreign(kind string) error {
	agent := n.Class != "" || n.Config != nil || n.Mailbox != 0 || n.Control != 0 || n.Full != "" || n.Shutdown != 0 || n.Drain != "" ||
		n.Inline || n.Deliveries != 0
	supervisor := n.Strategy != "" || n.AutoShutdown != "" || n.Children != nil || n.Backoff != backoff{}
	dynamic := n.Classes != nil || n.MaxChildren|n.MaxSpawns|n.MaxPerSpawner|n.MaxSpawnsPerSpawner != 0 || n.Spawners != nil || n.Isolation != ""
	switch {
	case agent && kind != "agent":
		return errors.New("it gives what only an agent has: class, config, mailbox, control, full, shutdown, drain, inline or deliveries")
	case supervisor && kind != "supervisor":
		return errors.New("it gives what only a supervisor has: strategy, auto_shutdown, children or backoff")
	case dynamic && kind != "dynamic":
		return errors.New("it gives what only a dynamic supervisor has: classes, limits, spawners or isolation")
	case kind == "agent" && (n.MaxRestarts != nil || n.Within != 0):
		return errors.New("max_restarts and within are its supervisor's")
	case kind == "dynamic" && n.Significant:
		return errors.New("significant is an agent's or a supervisor's: a dynamic supervisor never ends by itself")
	case kind == "supervisor" && n.StartTimeout != 0:
		return errors.New("start_timeout is its children's")
	}
	return nil
}

// Config returns c with the topology's limits.
func (t Topology) Config(c Config) Config {
	c.MaxAgents, c.DeadLetters = t.Limits.MaxAgents, t.Limits.DeadLetters
	return c
}

// Run starts the topology's tree in rt.
func (t Topology) Run(ctx context.Context, rt *Runtime, kit Kit) (*Supervisor, error) {
	return rt.Supervise(ctx, t.Root.supervisor(kit))
}

func restarts(n *int) int {
	switch {
	case n == nil:
		return 0
	case *n == 0:
		return -1
	}
	return *n
}

func (n *Node) supervisor(kit Kit) SupervisorSpec {
	s := SupervisorSpec{
		Name: n.Supervisor, MaxRestarts: restarts(n.MaxRestarts), Within: time.Duration(n.Within),
		Shutdown: map[string]AutoShutdown{"any_significant": AnySignificant, "all_significant": AllSignificant}[n.AutoShutdown],
		Strategy: map[string]Strategy{"one_for_all": OneForAll, "rest_for_one": RestForOne}[n.Strategy],
		Backoff: Backoff{
			Growth: map[string]Growth{"linear": Linear, "exponential": Exponential}[n.Backoff.Growth],
			Base:   time.Duration(n.Backoff.Base), Cap: time.Duration(n.Backoff.Cap), Jitter: n.Backoff.Jitter,
		},
	}
	for i := range n.Children {
		s.Children = append(s.Children, n.Children[i].child(kit))
	}
	return s
}

func (n *Node) child(kit Kit) Child {
	name, kind := n.name()
	c := Child{
		Name: name, StartTimeout: time.Duration(n.StartTimeout), Deliveries: n.Deliveries, Significant: n.Significant,
		Drain: map[string]Drain{"current": Current, "all": All}[n.Drain],
	}
	switch kind {
	case "supervisor":
		s := n.supervisor(kit)
		c.Supervisor = &s
		c.Restart = n.restart()
	case "dynamic":
		c.Dynamic = n.dynamic(kit)
	default:
		class := kit.Classes[n.Class]
		c.Restart, c.Spec = n.restart(), n.spec(class.Spec)
		c.New = func() (Handler, error) { return class.New(n.Config) }
	}
	return c
}

func (n *Node) restart() Restart {
	return map[string]Restart{"permanent": Permanent, "transient": Transient, "temporary": Temporary}[n.Restart]
}

// spec is the class' with what the node says otherwise.
func (n *Node) spec(s Spec) Spec {
	if n.Mailbox != 0 {
		s.Mailbox = n.Mailbox
	}
	if n.Control != 0 {
		s.Control = n.Control
	}
	if n.Full != "" {
		s.Full = map[string]Full{"reject": Reject, "block": Block, "drop_oldest": DropOldest}[n.Full]
	}
	if n.Shutdown != 0 {
		s.Shutdown = time.Duration(n.Shutdown)
	}
	s.Inline = s.Inline || n.Inline
	return s
}

func (n *Node) dynamic(kit Kit) *DynamicSpec {
	d := &DynamicSpec{
		Name: n.Dynamic, Classes: make(map[string]Class), MaxChildren: n.MaxChildren, MaxSpawns: n.MaxSpawns,
		MaxPerSpawner: n.MaxPerSpawner, MaxSpawnsPerSpawner: n.MaxSpawnsPerSpawner, Spawners: n.Spawners, Restart: n.restart(),
		MaxRestarts: restarts(n.MaxRestarts), Within: time.Duration(n.Within), StartTimeout: time.Duration(n.StartTimeout),
	}
	for _, name := range n.Classes {
		c := kit.Classes[name]
		if n.Isolation != "" {
			c.Isolation = kit.Isolations[n.Isolation]
		}
		d.Classes[name] = c
	}
	return d
}
