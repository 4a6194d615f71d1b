package contender_test

import (
	"context"
	"testing"

	"toll/contender"
	"toll/contender/place"
)

// What a process has started is held to other processors than itself.
func TestWhatAProcessHasStartedIsHeldBehindIt(t *testing.T) {
	t.Parallel()
	usable, err := place.Usable()
	if err != nil {
		t.Fatal(err)
	}
	s := spec(t, "family")
	s.Processors, s.Behind = usable[:1], usable[len(usable)-1:]
	p, err := contender.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(context.Background())
	u, err := p.Usage()
	if err != nil || len(u.PIDs) != 2 {
		t.Fatalf("%+v, %v", u, err)
	}
	at := map[int]place.Set{u.PIDs[0]: s.Processors, u.PIDs[1]: s.Behind} // a child's pid is above its parent's
	for pid, want := range at {
		if err := want.InForce(pid); err != nil {
			t.Error(err)
		}
	}
}
