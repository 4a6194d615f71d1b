package suite

import (
	"slices"
	"testing"
)

func TestSpawnCases(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]int{
		"spawn/1": {1, 0}, "spawn/16": {16, 0}, "spawn/256": {256, 0}, "ask": {0, 0},
		"spawn/1@1k": {1, 1000}, "spawn/16@100k": {16, 100_000}, "ask@5k": {0, 5000},
	} {
		count, live, err := spawnCase(name)
		if err != nil || count != want[0] || live != want[1] {
			t.Errorf("%s: %d children, %d live, %v", name, count, live, err)
		}
	}
	for _, name := range []string{"", "spawn", "spawn/", "spawn/2", "spawn/1@", "spawn/1@k", "spawn/1@0k", "spawn/1@1", "spawn/1@2000k", "call/32B", "ask/1"} {
		if _, _, err := spawnCase(name); err == nil {
			t.Errorf("%q is a case", name)
		}
	}
}

// Every contender of the plans has a place in some phase, and every phase has its baseline.
func TestSpawnPhasesHaveTheirBaselines(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{inprocPhase, keepPhase, newConnPhase} {
		all, baseline := spawners(phase)
		if b, ok := all[baseline]; !ok || b.role != "" {
			t.Errorf("%s has no contender %s", phase, baseline)
		}
	}
	b, err := Lookup("spawn")
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range append([]string{""}, b.Profiles()...) {
		p, err := b.Plan(profile)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Contenders {
			if !isSpawner(c) {
				t.Errorf("plan %q: %s is in no phase", profile, c)
			}
		}
		for _, c := range p.Cases {
			if _, _, err := spawnCase(c); err != nil {
				t.Errorf("plan %q: %v", profile, err)
			}
		}
	}
}

// What --only leaves of a plan must keep what the others are read against, in each phase.
func TestEachPhaseOfSpawnHasItsBaseline(t *testing.T) {
	t.Parallel()
	b, err := Lookup("spawn")
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Plan("")
	if err != nil {
		t.Fatal(err)
	}
	got := b.Baselines(p)
	for _, want := range []string{"floor", "no-op"} {
		if !slices.Contains(got, want) {
			t.Errorf("the baselines are %v; want %s among them", got, want)
		}
	}
}
