package suite

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/result"
	"toll/system"
)

// groupProcs is GOMAXPROCS of our engines: a group has one writer, so each is measured on one core. One contender has two.
const groupProcs = "1"

// The phases are layers that are never mixed: an engine in memory; with every group in a store on a disk; with every
// message in an envelope.
const (
	groupPhase         = "engine"
	groupStorePhase    = "engine+store"
	groupEnvelopePhase = "engine+envelope"
)

type groupBench struct{ *house }

func openGroup(h *house) (lab.Opener, error) { return groupBench{h}, nil }

// A groupOurs is an engine of ours: how it is served, where its curves come from, on how many cores.
type groupOurs struct {
	serve, seam, role, procs, sdk string
}

// quietHeap is how our engines keep the heap out of the times, said in their rows.
const quietHeap = "heap touched before a stretch, collector off within it"

// groupContenders lists our engines by name, with what is to be known of them: validation and update path.
func groupContenders() map[string]groupOurs {
	return map[string]groupOurs{
		"toll":        {serve: "group", seam: "standard", sdk: groupSDK + "standard library curves, verify=single; " + quietHeap},
		"toll-fast":   {serve: "group", seam: "fast", sdk: groupSDK + "own curves, verify=batch; " + quietHeap},
		"toll-fast-2": {serve: "group", seam: "fast", procs: "2", sdk: groupSDK + "own curves, verify=batch, two cores; " + quietHeap},
		"toll-voi":    {serve: "group", seam: "voi", sdk: groupSDK + "curve25519-voi, verify=batch; " + quietHeap},
		"floor-std":   {serve: "group-floor", seam: "standard", sdk: "the cryptography alone, standard library; " + quietHeap},
		"floor-fast":  {serve: "group-floor", seam: "fast", sdk: "the cryptography alone, own curves, verify=batch; " + quietHeap},
		"null":        {serve: "null-engine", role: result.Null, sdk: "a call that does nothing"},
	}
}

// groupSDK is what all of toll's engines are.
const groupSDK = "toll's RFC 9420 engine; validates everything; commits with an update path; "

// Open starts a process for each engine. It is asked for one case in its life, so that none inherits what another left.
func (g groupBench) Open(ctx context.Context, s lab.Setting) (lab.Set, error) {
	if s.Phase != groupPhase && s.Phase != groupStorePhase && s.Phase != groupEnvelopePhase || s.Concurrency != 1 {
		return lab.Set{}, fmt.Errorf("phase %q with %d callers is none of the benchmark group; it has phases %s, %s and %s with one, because a group has one writer",
			s.Phase, s.Concurrency, groupPhase, groupStorePhase, groupEnvelopePhase)
	}
	var seats []seat
	var lacks []result.Gap
	for _, name := range g.plan.Contenders {
		if name == "toll-voi" && !system.VoiCurves() {
			lacks = append(lacks, gap(s, name, "this binary has no curve25519-voi; build it with the tag voi"))
			continue
		}
		if s.Phase != groupPhase && groupContenders()[name].serve == "group-floor" {
			lacks = append(lacks, gap(s, name, "it is the cryptography alone: see phase engine"))
			continue
		}
		seat, err := g.seat(s, name)
		if err != nil {
			return lab.Set{}, err
		}
		if name != g.plan.Baseline {
			seats = append(seats, seat)
			continue
		}
		again := seat
		seat.role, again.role = result.Baseline, result.Control
		seats = append(seats, seat, again)
	}
	guests, gaps := g.visitors(s)
	set := g.open(ctx, s, append(seats, guests...))
	set.Gaps = append(append(set.Gaps, gaps...), lacks...)
	return set, nil
}

func (g groupBench) seat(s lab.Setting, name string) (seat, error) {
	o, ok := groupContenders()[name]
	if !ok {
		return seat{}, fmt.Errorf("contender %q is none of the benchmark group", name)
	}
	out := seat{contender: result.Contender{Name: name, Language: "go", SDK: o.sdk}, role: o.role, engine: groupEngine(s, nil)}
	if o.seam != "" {
		input := map[string]string{"seam": o.seam}
		if o.serve == "group" {
			input["layer"] = s.Phase
		}
		if s.Phase == groupStorePhase {
			dir, err := os.MkdirTemp(g.dir, name+"-")
			if err != nil {
				return seat{}, err
			}
			input["dir"] = dir
		}
		out.engine = groupEngine(s, input)
	}
	out.spec = func() (contender.Spec, error) {
		spec, err := contender.Self("serve", o.serve)
		spec.Env = []string{"GOMAXPROCS=" + cmp.Or(o.procs, groupProcs)}
		return spec, err
	}
	digest, err := g.digest(name, func() (string, error) {
		spec, err := out.spec()
		return spec.Digest(), err
	})
	out.contender.CommandSHA256 = digest
	return out, err
}

// groupEngine asks an engine for the setting's case; what input says beside it is for engines of ours alone.
func groupEngine(s lab.Setting, input map[string]string) func(*contender.Process) load.Target {
	return func(p *contender.Process) load.Target {
		if input == nil {
			return &driver.Engine{Asker: p, Case: s.Case}
		}
		return &driver.Engine{Asker: p, Case: s.Case, Input: input}
	}
}

// The peers that toll has manifests of.
const (
	tsMLS       = "ts-mls"
	openMLSWasm = "openmls-wasm"
	openMLS     = "openmls"
	mdk         = "mdk"
)

// groupPeers lists them.
func groupPeers() []string { return []string{tsMLS, openMLSWasm, openMLS, mdk} }

// foreignCases are those that an adapter of ours asks for: groups of a thousand are ours alone, by the time they take to
// set up, and so are commits by themselves.
func foreignCases() []string {
	return append(wasmCases(), "create_group/8", "create_group/32", "join_welcome/32", "ingest_commit/8")
}

// wasmCases are those that the binding of OpenMLS has calls for: it adds one member at a time and takes in no commits.
func wasmCases() []string {
	return []string{"create_group/1", "join_welcome", "send_app_message", "send_app_message/first", "ingest_app_message"}
}

// visitors seats the engines that manifests brought, and says why one has no row.
func (g groupBench) visitors(s lab.Setting) (seats []seat, gaps []result.Gap) {
	for _, m := range g.outside {
		if why := refusesGroup(s, m); why != "" {
			gaps = append(gaps, gap(s, m.Name, why))
			continue
		}
		seats = append(seats, seat{contender: g.outsider(m, ""), spec: m.Spec, engine: groupEngine(s, nil)})
	}
	for _, name := range groupPeers() {
		if !slices.ContainsFunc(g.outside, func(m contender.Manifest) bool { return m.Name == name }) {
			gaps = append(gaps, result.Gap{Row: name, Reason: fmt.Sprintf("not entered; run: toll contender build %s, then %s--with %s", name, groupProfile(name), name)})
		}
	}
	if strings.HasPrefix(s.Case, "ingest_app_message") {
		gaps = append(gaps, gap(s, "mdk, published", "its bench panics in bench_deferred_outbound_preflight_matrix before it reaches this case"))
	}
	return seats, gaps
}

// refusesGroup says why an outside contender has no place in a setting, "" when it has.
func refusesGroup(s lab.Setting, m contender.Manifest) string {
	switch {
	case m.Driver != engineDriver:
		return fmt.Sprintf("its manifest says driver %s; this benchmark asks engines", m.Driver)
	case m.Name == mdk && s.Phase != groupEnvelopePhase:
		return "its calls take and return encrypted and signed Nostr events: see phase engine+envelope"
	case m.Name != mdk && s.Phase != groupPhase:
		return "its adapter has the engine alone: see phase engine"
	case m.Name == mdk && strings.HasPrefix(s.Case, "commit/"):
		return "its commit without proposals replaces the member's signature key as well"
	case !slices.Contains(foreignCases(), s.Case):
		return "its adapter has no such case"
	case m.Name == openMLSWasm && !slices.Contains(wasmCases(), s.Case):
		return "its binding adds one member at a time and takes in no commits"
	}
	return ""
}

// groupProfile is what has a peer's phase, if the benchmark's own plan has not.
func groupProfile(name string) string {
	if name == mdk {
		return "--profile envelope "
	}
	return ""
}

// callsGroup reports whether a manifest's contender is an engine with the cases of the benchmark group.
func callsGroup(m contender.Manifest) bool {
	return m.Driver == engineDriver && slices.Contains(groupPeers(), m.Name)
}

// The drivers of contenders that one benchmark calls: engines make stretches; the others answer the requests of the benchmark of
// that name.
const (
	engineDriver  = "engine"
	gatewayDriver = "gateway"
	spawnDriver   = "spawn"
)

// doesWork reports whether a manifest's contender is an engine that says it does a benchmark's work.
func doesWork(m contender.Manifest, work string) bool {
	return m.Driver == engineDriver && slices.Contains(m.Operations, work)
}
