package check_test

import (
	"strings"
	"testing"

	"toll/lab/check"
	"toll/lab/result"
)

// fleetOf makes a row one that two workers measured.
func fleetOf(r *result.Row) {
	half := r.OK / 2
	r.Fleet = &result.Fleet{
		Verdict: result.FleetComplete, OnLoss: "invalidate", WorkersExpected: 2, WorkersComplete: 2, SlicesExpected: 20, SlicesGot: 20, ClockBound: 30,
		Workers: []result.FleetWorker{
			{Worker: "w1", Complete: true, SlicesGot: 10, OK: half, Dropped: r.Dropped, ClockBound: 30, Flags: []string{}},
			{Worker: "w2", Complete: true, SlicesGot: 10, OK: r.OK - half, ClockBound: 20, Flags: []string{}},
		},
		Events: []result.FleetEvent{},
	}
}

func TestAFleetsRowAddsUp(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(f *result.Fleet){
		"":                                  func(*result.Fleet) {},
		"the workers have ":                 func(f *result.Fleet) { f.Workers[0].OK-- },
		"degraded: worker w2 lost at 4.0 s": func(f *result.Fleet) { f.Verdict, f.Detail = result.FleetDegraded, "worker w2 lost at 4.0 s" },
		"it says complete, with 19 of 20":   func(f *result.Fleet) { f.SlicesGot, f.Workers[1].SlicesGot = 19, 9 },
		"it says complete, with 20 of 20 slices and 1 of 2":             func(f *result.Fleet) { f.WorkersComplete, f.Workers[1].Complete = 1, false },
		"20 slices and 2 workers complete by the workers' own rows, 21": func(f *result.Fleet) { f.SlicesGot = 21 },
		"a start spread of 200.000 µs across clocks":                    func(f *result.Fleet) { f.StartSpread = result.Ptr(200.) },
		"worker w1 has a clock bound of 30.000 µs, the fleet one of 10": func(f *result.Fleet) { f.ClockBound = 10 },
	} {
		d := good(t)
		fleetOf(row(d, ""))
		spoil(row(d, "").Fleet)
		found := check.Rules(d)
		switch {
		case want == "" && len(found) > 0:
			t.Errorf("nothing is wrong, but: %v", found)
		case want != "" && (len(found) == 0 || found[0].Rule != 11 || !strings.HasPrefix(found[0].Text, want)):
			t.Errorf("%v, want %s", found, want)
		}
	}
}
