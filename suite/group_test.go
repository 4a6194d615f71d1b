package suite

import (
	"strings"
	"testing"

	"toll/contender"
	"toll/lab"
)

// An engine has rows of its own layer alone, and a reason for every case that it lacks.
func TestPeersOfTheBenchmarkGroupHaveRowsOfTheirLayer(t *testing.T) {
	t.Parallel()
	const (
		layer   = "its adapter has the engine alone: see phase engine"
		wrapped = "its calls take and return encrypted and signed Nostr events: see phase engine+envelope"
		binding = "its binding adds one member at a time and takes in no commits"
	)
	for _, c := range []struct{ peer, phase, of, want string }{
		{openMLS, groupPhase, "create_group/32", ""},
		{openMLS, groupEnvelopePhase, "create_group/32", layer},
		{openMLS, groupStorePhase, "join_welcome", layer},
		{openMLS, groupPhase, "commit/8", "its adapter has no such case"},
		{openMLSWasm, groupPhase, "join_welcome", ""},
		{openMLSWasm, groupPhase, "create_group/8", binding},
		{mdk, groupEnvelopePhase, "create_group/32", ""},
		{mdk, groupEnvelopePhase, "ingest_commit/8", ""},
		{mdk, groupPhase, "create_group/32", wrapped},
		{mdk, groupStorePhase, "send_app_message", wrapped},
		{mdk, groupEnvelopePhase, "commit/8", "its commit without proposals replaces the member's signature key as well"},
		{mdk, groupEnvelopePhase, "join_welcome/1000", "its adapter has no such case"},
		{"another", groupPhase, "join_welcome", ""},
		{"another", groupEnvelopePhase, "join_welcome", layer},
	} {
		got := refusesGroup(lab.Setting{Case: c.of, Phase: c.phase}, contender.Manifest{Name: c.peer, Driver: engineDriver})
		if got != c.want {
			t.Errorf("%s %s %s: %q, want %q", c.peer, c.phase, c.of, got, c.want)
		}
	}
	if got := refusesGroup(lab.Setting{Phase: groupPhase}, contender.Manifest{Name: "x", Driver: "rest"}); !strings.Contains(got, "asks engines") {
		t.Errorf("a REST server: %q", got)
	}
}

// A run without them says how each is entered, in the plan that has its phase.
func TestPeersOfTheBenchmarkGroupThatAreNotEntered(t *testing.T) {
	t.Parallel()
	_, gaps := groupBench{house: &house{}}.visitors(lab.Setting{Case: "join_welcome", Phase: groupPhase})
	var got []string
	for _, g := range gaps {
		got = append(got, g.Row+": "+g.Reason)
	}
	want := []string{
		"ts-mls: not entered; run: toll contender build ts-mls, then --with ts-mls",
		"openmls-wasm: not entered; run: toll contender build openmls-wasm, then --with openmls-wasm",
		"openmls: not entered; run: toll contender build openmls, then --with openmls",
		"mdk: not entered; run: toll contender build mdk, then --profile envelope --with mdk",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
