package suite

import (
	"embed"
	"fmt"

	"toll/lab/plan"
)

//go:embed plans/replicas/*.yaml
var replicas embed.FS

// A Replica is a published method as a plan.
type Replica struct {
	Name  string
	About string
}

// Replicas lists the published methods that there are plans of.
func Replicas() []Replica {
	return []Replica{
		{"tmdevlab-v1-as-run", "the first TM Dev Lab benchmark of MCP servers, with the 10 users of its raw files"},
		{"tmdevlab-v1-as-stated", "the same with the 50 users of its page"},
		{"tmdevlab-v2", "the second: three tools before a catalogue and a Redis server, 50 users"},
		{"civitas-mlast", "the gateway of the M-LAST benchmark: an agent behind plain HTTP, 50 users"},
	}
}

// LookupReplica returns the benchmark and the plan of a published method. ok is false when there is none of that name.
func LookupReplica(name string) (b Benchmark, p plan.Plan, ok bool, err error) {
	for _, r := range Replicas() {
		if r.Name != name {
			continue
		}
		file := "plans/replicas/" + name + ".yaml"
		data, err := replicas.ReadFile(file)
		if err != nil {
			return b, p, true, fmt.Errorf("replica %s: %w", name, err)
		}
		if p, err = plan.Parse(file, data); err != nil {
			return b, p, true, err
		}
		b, err = Lookup(p.Benchmark)
		return b, p, true, err
	}
	return b, p, false, nil
}
