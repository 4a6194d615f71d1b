package suite_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"toll/lab/check"
	"toll/lab/plan"
	"toll/lab/result"
	"toll/suite"
)

// shipped are the plans within the program, by the names of their files.
func shipped(t *testing.T) map[string]plan.Plan {
	t.Helper()
	out := make(map[string]plan.Plan)
	for _, b := range suite.All() {
		for _, profile := range append([]string{""}, b.Profiles()...) {
			p, err := b.Plan(profile)
			if err != nil {
				t.Fatal(err)
			}
			out[strings.TrimSuffix(b.Name+"-"+profile, "-")] = p
		}
	}
	for _, r := range suite.Replicas() {
		_, p, _, err := suite.LookupReplica(r.Name)
		if err != nil {
			t.Fatal(err)
		}
		out[r.Name] = p
	}
	return out
}

// Without the floor nobody knows what the hop takes, without the null target what the lab takes: neither document is publishable.
func TestEveryPlanHasItsInstruments(t *testing.T) {
	t.Parallel()
	const shared = "the rows share one server process, as in the published method: not publishable, whatever stands beside them"
	excused := map[string]map[string]string{ // plan, instrument: why it is not there
		"transport-order":              {"floor": shared, "null": shared},
		"transport-order-shuffled":     {"floor": shared, "null": shared},
		"transport-order-sdk":          {"floor": shared, "null": shared},
		"transport-order-sdk-shuffled": {"floor": shared, "null": shared},
		"bus-one-way":                  {"floor": "a case without replies has no round trip; a gap says so"},
		"group-cores":                  {"floor": "engines have no hop; what the cryptography takes stands in the plan group"},
		"group-envelope":               {"floor": "engines have no hop, and the crypto floor has no envelope"},
	}
	for name, p := range shipped(t) {
		for _, instrument := range []string{"floor", "null"} {
			there := slices.ContainsFunc(p.Contenders, func(c string) bool { return c == instrument || strings.HasPrefix(c, instrument+"-") })
			why := excused[name][instrument]
			switch {
			case !there && why == "":
				t.Errorf("%s has no %s among its contenders, and no reason is known", name, instrument)
			case there && why != "":
				t.Errorf("%s has a %s, which it was excused from: %s", name, instrument, why)
			case why == shared && p.Processes != plan.Shared:
				t.Errorf("%s is excused because its rows share one process, and they do not", name)
			}
		}
		delete(excused, name)
	}
	if len(excused) > 0 {
		t.Errorf("there are no plans %q", slices.Collect(maps.Keys(excused)))
	}
}

// What a plan names, result check knows.
func TestEveryPlanNamesWhatADocumentMayHold(t *testing.T) {
	t.Parallel()
	for name, p := range shipped(t) {
		d := &result.Document{Benchmark: p.Benchmark, Plan: result.PlanEcho{Plan: p}}
		for _, q := range []plan.Plan{p.AtQuick(), p, p.AtFull()} {
			for _, c := range q.Cases {
				for _, phase := range q.Phases {
					for _, who := range q.Contenders {
						d.Rows = append(d.Rows, result.Row{Kind: result.Measured, Case: c, Phase: phase, Contender: result.Contender{Name: who}})
					}
				}
			}
		}
		if err := check.Identifiers(d); err != nil {
			t.Error(fmt.Errorf("%s: %w", name, err))
		}
	}
}
