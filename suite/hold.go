package suite

import (
	"cmp"
	"errors"
	"slices"

	"toll/contender/place"
	"toll/lab/plan"
)

// A holding is the processors that a run is held to now.
type holding struct {
	place.Placement              // empty sets: any
	usable          place.Set    // before anything was held; read once
	let             func() error // lets this process go again; nil when it is not held
}

// hold holds this process to its processors for a setting, and has the house's next contenders held to theirs, where the plan
// wants it. Where the system can't, nothing is held, and the document says that what ran is not what was claimed; so it is
// where what is called runs on another machine, on which nothing of ours takes its processors.
func (h *house) hold(callers int) {
	h.keepAwake()
	if h.plan.Settings.Processors != plan.Held || h.remote != nil {
		return
	}
	if h.held.usable == nil {
		usable, err := place.Usable()
		if err != nil {
			return
		}
		h.held.usable = usable
	}
	if h.plan.Settings.Model == plan.Open {
		callers = max(callers, 2) // what paces the calls looks at the clock all the time
	}
	want := place.Held(h.held.usable, callers)
	if h.held.let != nil && slices.Equal(want.Client, h.held.Client) {
		h.held.Placement = want
		return
	}
	if h.release() != nil {
		return
	}
	let, err := place.Hold(want.Client)
	if err != nil {
		return
	}
	h.held.Placement, h.held.let = want, let
}

// places returns the processors for a seat's process and for those that it starts; empty: any, and the same. An engine that
// calls others is the client of what it has started; one that calls nobody here has both sides in its own process.
func (h *house) places(s seat) (own, behind place.Set) {
	switch {
	case s.calling && !s.away:
		return h.held.Client, h.held.Contenders
	case s.engine != nil:
		return h.held.Both(), nil
	}
	return h.held.Contenders, nil
}

// A wakefulness is what keeps the machine's processors from sleep when they have nothing to do.
type wakefulness struct {
	polling *place.Polling
	err     error // why there is none
}

// keepAwake keeps processors from sleep until the run ends, where the plan wants it. Those of another machine are not ours to keep.
func (h *house) keepAwake() {
	if h.plan.Settings.Idle == plan.Poll && h.remote == nil && h.awake == (wakefulness{}) {
		h.awake.polling, h.awake.err = place.Poll()
	}
}

// polling is why processors slept.
func (h *house) polling() error {
	switch {
	case h.remote != nil:
		return errors.New("the contenders' processors are on another machine")
	case h.awake.polling == nil:
		return cmp.Or(h.awake.err, errors.New("nothing was started"))
	}
	return h.awake.polling.InForce()
}

// letSleep lets processors sleep again.
func (h *house) letSleep() error {
	if h.awake.polling == nil {
		return nil
	}
	defer func() { h.awake = wakefulness{} }()
	return h.awake.polling.Close()
}

// release lets this process run on any processor again.
func (h *house) release() error {
	if h.held.let == nil {
		return nil
	}
	let := h.held.let
	h.held.let, h.held.Placement = nil, place.Placement{}
	if err := let(); err != nil {
		return errors.Join(errors.New("letting this process run on any processor again"), err)
	}
	return nil
}
