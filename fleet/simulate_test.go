package fleet_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"toll/fleet"
	"toll/lab/plan"
)

// simulate runs a simulation, and fails when what is merged is silently not what was made.
func simulate(t *testing.T, s fleet.Simulation) *fleet.Simulated {
	t.Helper()
	out, err := fleet.Simulate(s)
	if err != nil {
		t.Fatal(err)
	}
	if out.Silent != "" {
		t.Errorf("%s, but: %s", out.Report.Verdict, out.Silent)
	}
	return out
}

func events(r *fleet.Report) string {
	var b strings.Builder
	for _, e := range r.Events {
		fmt.Fprintf(&b, "%.1f %s: %s\n", e.At.Seconds(), e.Worker, e.What)
	}
	return b.String()
}

// fault is a run of 4 workers and 20 s, with its verdict and what must be among its events.
func TestFaultsHaveTheirVerdicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults  []fleet.SimulatedFault
		onLoss  string
		again   float64
		rejoin  time.Duration
		verdict string // its beginning, an expression
		event   string
		merged  [2]int // at least and at most
	}{
		"none":                                         {verdict: "complete", merged: [2]int{20, 20}},
		"worker killed":                                {faults: []fleet.SimulatedFault{{At: 7500 * time.Millisecond, Kind: "kill", Worker: 2}}, verdict: `degraded: worker w0003 lost at [67]\.`, event: "given up", merged: [2]int{7, 7}},
		"worker killed, continue":                      {faults: []fleet.SimulatedFault{{At: 7500 * time.Millisecond, Kind: "kill", Worker: 2}}, onLoss: fleet.Continue, verdict: `degraded: worker w0003 lost at [67]\.`, event: "given up", merged: [2]int{20, 20}},
		"two workers killed":                           {faults: []fleet.SimulatedFault{{At: 7500 * time.Millisecond, Kind: "kill", Worker: 2}, {At: 3500 * time.Millisecond, Kind: "kill", Worker: 0}}, verdict: `degraded: worker w0001 lost at [23]\..*, worker w0003 lost at [67]\.`, merged: [2]int{2, 3}},
		"coordinator restarted":                        {faults: []fleet.SimulatedFault{{At: 5300 * time.Millisecond, Kind: "restart", For: 4 * time.Second}}, verdict: "complete", event: "started anew", merged: [2]int{20, 20}},
		"coordinator away too long":                    {faults: []fleet.SimulatedFault{{At: 2300 * time.Millisecond, Kind: "restart", For: 14 * time.Second}}, rejoin: 8 * time.Second, verdict: `degraded: worker w000. stopped at (9|1[01])\.`, event: "no word from the coordinator", merged: [2]int{8, 11}},
		"coordinator restarted at the end":             {faults: []fleet.SimulatedFault{{At: 19900 * time.Millisecond, Kind: "restart", For: 5 * time.Second}}, verdict: "complete", merged: [2]int{20, 20}},
		"worker killed while the coordinator is away":  {faults: []fleet.SimulatedFault{{At: 7 * time.Second, Kind: "restart", For: 3 * time.Second}, {At: 7500 * time.Millisecond, Kind: "kill", Worker: 2}}, verdict: `degraded: worker w0003 lost at (9|10)\.`, event: "given up", merged: [2]int{7, 7}},
		"clock stepped":                                {faults: []fleet.SimulatedFault{{At: 4 * time.Second, Kind: "step", Worker: 1, For: 5 * time.Second}, {At: 9 * time.Second, Kind: "step", Worker: 3, For: -5 * time.Second}}, verdict: "complete", event: "wall clock was set by -5.000 s", merged: [2]int{20, 20}},
		"duplicate slices":                             {again: .3, verdict: "complete", merged: [2]int{20, 20}},
		"stream deleted":                               {faults: []fleet.SimulatedFault{{At: 9500 * time.Millisecond, Kind: "delete"}}, verdict: "complete", merged: [2]int{20, 20}},
		"stream deleted while the coordinator is away": {faults: []fleet.SimulatedFault{{At: 9500 * time.Millisecond, Kind: "restart", For: 2 * time.Second}, {At: 10 * time.Second, Kind: "delete"}}, verdict: "complete", merged: [2]int{20, 20}},
		"partition healed":                             {faults: []fleet.SimulatedFault{{At: 6 * time.Second, Kind: "partition", Worker: 1, For: 5 * time.Second}}, verdict: "complete", event: "back after", merged: [2]int{20, 20}},
		"partition not healed":                         {faults: []fleet.SimulatedFault{{At: 6 * time.Second, Kind: "partition", Worker: 1, For: time.Hour}}, verdict: `degraded: worker w0002 lost at [56]\.`, merged: [2]int{4, 6}},
		"slice missing for good":                       {faults: []fleet.SimulatedFault{{At: 11200 * time.Millisecond, Kind: "lose", Worker: 0, Slice: 12}, {At: 27 * time.Second, Kind: "kill", Worker: 0}}, verdict: "refused: worker w0001: slice 12 of 20 is missing", merged: [2]int{0, 20}},
		"slice forged":                                 {faults: []fleet.SimulatedFault{{At: 11200 * time.Millisecond, Kind: "forge", Worker: 0, Slice: 3}}, verdict: "refused: worker w0001: two different slices came as its slice 3", merged: [2]int{0, 20}},
		"slice forged beforehand":                      {faults: []fleet.SimulatedFault{{At: 1200 * time.Millisecond, Kind: "forge", Worker: 0, Slice: 3}}, verdict: "refused: worker w0001: two different slices came as its slice 3", merged: [2]int{0, 20}},
		"stopped":                                      {faults: []fleet.SimulatedFault{{At: 11500 * time.Millisecond, Kind: "stop"}}, verdict: "stopped: asked to", merged: [2]int{11, 12}},
	} {
		for _, loss := range []float64{0, .1} {
			t.Run(fmt.Sprint(name, ", loss ", loss), func(t *testing.T) {
				t.Parallel()
				out := simulate(t, fleet.Simulation{
					Workers: 4, Duration: 20 * time.Second, Loss: loss, Again: c.again, Skew: 5 * time.Second, OnLoss: c.onLoss, Rejoin: c.rejoin, Seed: 3, Faults: c.faults,
				})
				r := out.Report
				if !regexp.MustCompile("^"+c.verdict).MatchString(r.Verdict.String()) || !strings.Contains(events(r), c.event) {
					t.Errorf("verdict %q, want %q; events, which want %q:\n%s", r.Verdict, c.verdict, c.event, events(r))
				}
				if r.Merged < c.merged[0] || r.Merged > c.merged[1] {
					t.Errorf("%d slices are merged, want %d to %d", r.Merged, c.merged[0], c.merged[1])
				}
				if c.again > 0 && r.Duplicates == 0 {
					t.Error("no duplicate was noticed")
				}
			})
		}
	}
}

func TestClocksAgreeWithinTheirBound(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		out := simulate(t, fleet.Simulation{Workers: 8, Duration: 6 * time.Second, Skew: time.Hour, Loss: .05, Seed: seed})
		if r := out.Report; r.Bound <= 0 || r.Bound > 2*time.Millisecond {
			t.Errorf("bound %v over a way of 1 to 2 ms", r.Bound)
		}
	}
}

func TestOneWayFiguresNeedTenTimesTheBound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d, bound time.Duration
		ok       bool
	}{{9 * time.Millisecond, time.Millisecond, false}, {10 * time.Millisecond, time.Millisecond, true}, {-11 * time.Millisecond, time.Millisecond, true}, {time.Second, 0, false}} {
		if _, ok := fleet.OneWay(c.d, c.bound); ok != c.ok {
			t.Errorf("%v with a bound of %v: %v", c.d, c.bound, ok)
		}
	}
}

func TestASimulationIsTheSameAgain(t *testing.T) {
	t.Parallel()
	s := fleet.Simulation{Workers: 20, Duration: 10 * time.Second, Loss: .1, Again: .1, Skew: time.Second, Seed: 5}
	a, b := simulate(t, s), simulate(t, s)
	if a.ToCoordinator != b.ToCoordinator || a.ToWorkers != b.ToWorkers || a.Slices != b.Slices || a.Took != b.Took {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func shortSettings() plan.Settings {
	return plan.Settings{Model: plan.Closed, Duration: plan.Duration(3 * time.Second), Concurrency: []int{2}, Rounds: 1, Blocks: 1}
}

func TestPlansThatAFleetCantSpread(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*fleet.Config){
		"0 workers; expected 1 to 10000":                                                  func(c *fleet.Config) { c.Workers = 0 },
		"the plan's turns are calls, not a time; a fleet spreads a load that lasts":       func(c *fleet.Config) { c.Settings.Duration = 0 },
		"the plan ends after a number of calls; a fleet spreads a load that lasts":        func(c *fleet.Config) { c.Settings.CallsOnly = true },
		"the plan has 2 rounds, 1 blocks and 1 concurrencies; a fleet runs one load once": func(c *fleet.Config) { c.Settings.Rounds = 2 },
		"3 workers for 2 VUs; expected a VU for each at least":                            func(c *fleet.Config) { c.Workers = 3 },
	} {
		c := fleet.Config{Run: "run", Workers: 1, Settings: shortSettings()}
		change(&c)
		if err := c.Check(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
