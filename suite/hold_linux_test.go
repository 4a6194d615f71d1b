package suite

import (
	"slices"
	"testing"

	"toll/contender"
	"toll/contender/place"
	"toll/lab/load"
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
	h.hold(8)
	h.plan.Settings.Model = plan.Open
	if h.hold(1); !slices.Equal(h.held.Contenders, place.Held(usable, 2).Contenders) {
		t.Errorf("an open load: contenders are held to %v; want them apart from the client, whose pacer spins", h.held.Contenders)
	}
	if err := h.release(); err != nil {
		t.Fatal(err)
	}
	if got, _ := place.Usable(); !slices.Equal(got, usable) || h.held.Contenders != nil {
		t.Errorf("let go: %v and %v; want %v", got, h.held.Contenders, usable)
	}
	far := &house{plan: h.plan, remote: new(remote)}
	if far.hold(8); far.held.let != nil {
		t.Error("a client whose contenders are on another machine is held")
	}
	free := &house{}
	free.hold(1)
	if got, _ := place.Usable(); !slices.Equal(got, usable) {
		t.Errorf("without a plan that wants it, this process is held to %v", got)
	}
}

func TestARunKeepsProcessorsAwakeWhereItsPlanAsks(t *testing.T) {
	free := new(house)
	if free.hold(1); free.awake != (wakefulness{}) {
		t.Errorf("a plan that does not ask for it keeps processors awake: %+v", free.awake)
	}
	asks := plan.Plan{Settings: plan.Settings{Idle: plan.Poll}}
	far := &house{plan: asks, remote: new(remote)}
	if far.hold(1); far.awake != (wakefulness{}) || far.polling() == nil {
		t.Errorf("contenders are on another machine, and processors are said to poll (%+v)", far.awake)
	}
	h := &house{plan: asks}
	if err := h.polling(); err == nil {
		t.Error("before anything was started, processors are said to poll")
	}
	h.hold(1)
	own, can := place.Poll()
	if can == nil {
		defer own.Close()
	}
	if err := h.polling(); (err == nil) != (can == nil) {
		t.Errorf("polling: %v; what keeps this machine from it: %v", err, can)
	}
	if err := h.letSleep(); err != nil || h.awake.polling != nil {
		t.Errorf("letting processors sleep: %v", err)
	}
}

func TestAnEngineThatCallsIsTheClientOfWhatItStarts(t *testing.T) {
	t.Parallel()
	engine := func(*contender.Process) load.Target { return nil }
	h := &house{held: holding{Placement: place.Placement{Client: place.Set{0}, Contenders: place.Set{1}}}}
	for name, x := range map[string]struct {
		seat        seat
		own, behind place.Set
	}{
		"called by the lab":    {seat{}, place.Set{1}, nil},
		"calls its own worker": {seat{engine: engine, calling: true}, place.Set{0}, place.Set{1}},
		"calls far away":       {seat{engine: engine, calling: true, away: true}, place.Set{0, 1}, nil},
		"both in one process":  {seat{engine: engine}, place.Set{0, 1}, nil},
	} {
		own, behind := h.places(x.seat)
		if !slices.Equal(own, x.own) || !slices.Equal(behind, x.behind) {
			t.Errorf("%s: %v and %v; want %v and %v", name, own, behind, x.own, x.behind)
		}
	}
	free := &house{}
	if own, behind := free.places(seat{engine: engine, calling: true}); len(own)+len(behind) != 0 {
		t.Errorf("not held: %v and %v", own, behind)
	}
}
