package receipt

import (
	"fmt"
	"testing"
)

func TestNothingAcknowledgedIsLostWithThePower(t *testing.T) {
	t.Parallel()
	const cuts = 40 // toll receipt crashtest makes more
	r, err := PowerCuts{Cuts: cuts, Seed: 1}.Run(t.Context())
	if err != nil || r.Failed() {
		t.Fatalf("%v: %+v", err, r)
	}
	if r.Acknowledged < cuts || r.Replayed == 0 || r.TornBytes == 0 || r.Rotations == 0 || r.Repeats == 0 {
		t.Errorf("the drill shows too little: %+v", r)
	}
	for _, kind := range []string{syncData, syncCut, syncName, syncFolder} {
		if r.Syncs[kind] == 0 {
			t.Errorf("no sync of kind %s was asked for: %v", kind, r.Syncs)
		}
	}
}

// Each kind of sync is needed: without any one of them the same drill loses something.
func TestEverySyncIsNeeded(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{syncData, syncCut, syncName, syncFolder} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r, err := PowerCuts{Cuts: 1000, Seed: 2, skip: kind}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !r.Failed() {
				t.Errorf("without the sync of kind %s nothing was lost in %d cuts", kind, r.Crashes)
			}
			if testing.Verbose() {
				fmt.Printf("%s: after %d cuts: %s\n", kind, r.Crashes, r.First)
			}
		})
	}
}
