package suite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"toll/contender"
	"toll/contender/owner"
	"toll/contender/place"
	"toll/lab"
	"toll/lab/plan"
	"toll/lab/result"
)

//go:embed plans/*.yaml
var plans embed.FS

// A Benchmark is one question with a plan that answers it.
type Benchmark struct {
	Name  string
	About string
	open  func(*house) (lab.Opener, error)
	calls func(contender.Manifest) bool // whether a manifest's contender can take part; nil = none can
}

// All lists the benchmarks that have a plan of their own.
func All() []Benchmark {
	return []Benchmark{
		{"transport", "what one call of an operation costs over each transport", openTransport, callsTransport},
		{"gateway", "what it costs to call an agent through an HTTP gateway, in the clear and over mutual TLS", openGateway, callsGateway},
		{"bus", "what a round trip between agents costs within a process, directly and through a broker", openBus, callsBus},
		{"receipt", "what a signed receipt for every arriving request costs", openReceipt, callsReceipt},
		{"spawn", "what it costs to start an agent and to end it, in its process and over HTTP", openSpawn, callsSpawn},
		{"group", "what a member of an MLS group pays for an operation, against the cryptography it must do", openGroup, callsGroup},
	}
}

// replicated are the benchmarks whose plans are all of published methods: see Replicas.
func replicated() []Benchmark {
	return []Benchmark{
		{"tools", "what an iteration of published benchmarks of MCP servers costs", openTools, callsTools},
	}
}

// Lookup returns the benchmark of a name.
func Lookup(name string) (Benchmark, error) {
	var names []string
	for _, b := range append(All(), replicated()...) {
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return Benchmark{}, fmt.Errorf("benchmark %q is not one of %s", name, strings.Join(names, ", "))
}

// Profiles lists the benchmark's other plans by name.
func (b Benchmark) Profiles() []string {
	files, err := plans.ReadDir("plans")
	if err != nil {
		panic("the embedded plans: " + err.Error())
	}
	var out []string
	for _, f := range files {
		if name, ok := strings.CutPrefix(strings.TrimSuffix(f.Name(), ".yaml"), b.Name+"-"); ok {
			out = append(out, name)
		}
	}
	return out
}

// Plan returns the benchmark's own plan, or the named one of its profiles.
func (b Benchmark) Plan(profile string) (plan.Plan, error) {
	file := "plans/" + b.Name + ".yaml"
	if slices.ContainsFunc(replicated(), func(r Benchmark) bool { return r.Name == b.Name }) {
		var names []string
		for _, r := range Replicas() {
			names = append(names, r.Name)
		}
		return plan.Plan{}, fmt.Errorf("benchmark %s has no plan of its own; run one of %s, or a plan file", b.Name, strings.Join(names, ", "))
	}
	if profile != "" {
		if !slices.Contains(b.Profiles(), profile) {
			return plan.Plan{}, fmt.Errorf("profile %q of %s is not one of %s", profile, b.Name, strings.Join(b.Profiles(), ", "))
		}
		file = "plans/" + b.Name + "-" + profile + ".yaml"
	}
	data, err := plans.ReadFile(file)
	if err != nil {
		return plan.Plan{}, fmt.Errorf("benchmark %s: %w", b.Name, err)
	}
	return plan.Parse(file, data)
}

// Calls reports whether the benchmark can call a manifest's contender at all.
func (b Benchmark) Calls(m contender.Manifest) bool { return b.calls != nil && b.calls(m) }

// An Opener starts the contenders of a benchmark's rounds. It must be closed.
type Opener struct {
	lab.Opener
	Hop         result.Hop // between client and contenders, as configured
	MemoryLimit int64      // on each contender, bytes; 0 = none
	house       *house
}

// Lacks says which of the contenders that the benchmark is about are not built, of those that manifests describe and nobody
// entered: each is a gap that names the command.
func (o *Opener) Lacks(manifests []contender.Manifest) {
	for _, m := range manifests {
		entered := slices.ContainsFunc(o.house.outside, func(e contender.Manifest) bool { return e.Name == m.Name })
		if entered || !slices.Contains(awaited(), m.Name) {
			continue
		}
		if _, err := m.Spec(); errors.Is(err, contender.ErrMissing) {
			reason := strings.TrimPrefix(err.Error(), m.Name+": ") + "; then give --with " + m.Name
			o.house.lacks = append(o.house.lacks, result.Gap{Row: m.Name, Reason: reason})
		}
	}
}

// Carried is the CPU time of the process that carries the hop's packets; false where none does: a fleet's load
// starts nothing here, and has no house.
func (o *Opener) Carried() (time.Duration, bool) {
	if o.house == nil {
		return 0, false
	}
	if link := o.house.ground.link; link != nil {
		return link.Carried()
	}
	return 0, false
}

// Polling is why processors slept, although the plan asks for such that don't; nil when none did. A fleet's load starts nothing
// here.
func (o *Opener) Polling() error {
	if o.house == nil {
		return place.ErrSleeps
	}
	return o.house.polling()
}

// Close lets this process run on any processor again and processors sleep, and removes the link to the hop's far side and the folder that the
// opener kept sockets and fixtures in.
func (o *Opener) Close() error {
	err := errors.Join(o.house.release(), o.house.letSleep(), os.RemoveAll(o.house.dir))
	if link := o.house.ground.link; link != nil {
		err = errors.Join(err, link.Close())
	}
	return err
}

// Open prepares p's benchmark on loopback and without limits: manifests are the outside contenders that take part beside
// those of the plan.
func (b Benchmark) Open(p plan.Plan, manifests []contender.Manifest) (*Opener, error) {
	return b.OpenOn(context.Background(), loopback(), p, manifests)
}

// OpenOn prepares p's benchmark on a ground.
func (b Benchmark) OpenOn(ctx context.Context, g Ground, p plan.Plan, manifests []contender.Manifest) (*Opener, error) {
	for i, m := range manifests {
		if !slices.Contains(drivers(), m.Driver) {
			return nil, fmt.Errorf("%s: driver %q is not one of %s", m.Name, m.Driver, strings.Join(drivers(), ", "))
		}
		same := func(o contender.Manifest) bool { return o.Name == m.Name }
		taken := slices.Contains(p.Contenders, m.Name) && !slices.Contains(p.With, m.Name)
		if taken || slices.ContainsFunc(manifests[:i], same) {
			return nil, fmt.Errorf("two contenders are named %q", m.Name)
		}
	}
	if err := g.checkTarget(b.Name, p); err != nil {
		return nil, err
	}
	dir, err := owner.Folder(contender.FolderPrefix)
	if err != nil {
		return nil, fmt.Errorf("a folder for sockets: %w", err)
	}
	h := &house{plan: p, outside: manifests, dir: dir, ground: g}
	if err := h.ground.open(ctx); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if g.Target != "" {
		if err := h.preflight(ctx, b.Name); err != nil {
			os.RemoveAll(dir)
			return nil, err
		}
	}
	out := &Opener{Hop: h.ground.result(), MemoryLimit: g.Limits.Memory, house: h}
	if out.Opener, err = b.open(h); err != nil {
		return nil, errors.Join(fmt.Errorf("benchmark %s: %w", b.Name, err), out.Close())
	}
	if _, inside := out.Opener.(groupBench); inside {
		out.Hop.Kind = "none" // nothing of an operation leaves the engine
	}
	return out, nil
}
