package suite

import (
	"slices"
	"testing"

	"toll/contender/place"
	"toll/lab/plan"
)

// It holds the whole test process for a moment, so it is not parallel.
func TestARunIsHeldForItsCallersAndLetGo(t *testing.T) {
	usable, err := place.Usable()
	if err != nil {
		t.Fatal(err)
	}
	h := &house{plan: plan.Plan{Settings: plan.Settings{Processors: plan.Held}}}
	defer h.release()
	for _, callers := range []int{1, 1, 8} {
		h.hold(callers)
		want := place.Held(usable, callers)
		got, err := place.Usable()
		if err != nil || !slices.Equal(got, want.Client) || !slices.Equal(h.held.Contenders, want.Contenders) {
			t.Errorf("%d callers: this process may use %v and contenders %v; want %+v (%v)", callers, got, h.held.Contenders, want, err)
		}
	}
	if err := h.release(); err != nil {
		t.Fatal(err)
	}
	if got, _ := place.Usable(); !slices.Equal(got, usable) || h.held.Contenders != nil {
		t.Errorf("let go: %v and %v; want %v", got, h.held.Contenders, usable)
	}
	free := &house{}
	free.hold(1)
	if got, _ := place.Usable(); !slices.Equal(got, usable) {
		t.Errorf("without a plan that wants it, this process is held to %v", got)
	}
}
