package suite

import (
	"errors"
	"testing"

	"toll/contender"
	"toll/contender/hop"
	"toll/contender/limits"
	"toll/driver"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
)

// What is not behind the hop is a gap: a row that says so must have crossed it.
func TestWhatCrossesNoHopIsNotPlaced(t *testing.T) {
	t.Parallel()
	g := loopback()
	g.Limits = limits.Limits{CPUs: 1}
	g.link = &hop.Link{Addr: "198.18.0.2"}
	serve, err := contender.Self("serve", "ops")
	if err != nil {
		t.Fatal(err)
	}
	unix := serve
	unix.Command = append(unix.Command, "--unix", "/s")
	outside := contender.Spec{Name: "theirs", Command: []string{"server", "--port", "{port}"}}
	engine := seat{engine: func(*contender.Process) load.Target { return nil }}
	line := seat{line: func(*contender.Process, *driver.Wire) load.Target { return nil }}
	for want, c := range map[string]struct {
		spec contender.Spec
		seat seat
	}{
		"it is asked over its standard input, which crosses no hop":  {serve, engine},
		"it is asked over its standard input, which crosses no hop ": {serve, line},
		"a unix socket crosses no hop":                               {unix, seat{}},
		errNoHost.Error():                                            {outside, seat{}},
	} {
		if err := g.place(&c.spec, c.seat); err == nil || err.Error() != want && err.Error()+" " != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := g.place(&serve, seat{}); err != nil || serve.Hop != g.link || serve.Limits.CPUs != 1 || serve.Command[len(serve.Command)-1] != "{host}:0" {
		t.Errorf("%+v, %v", serve, err)
	}
	floor, _ := contender.Self("serve", "echo")
	if err := g.place(&floor, seat{role: result.Floor}); err != nil || floor.Limits != (limits.Limits{}) || floor.Hop != g.link {
		t.Errorf("the floor is an instrument: %+v, %v", floor, err)
	}
}

func TestAPlansGroundIsChecked(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]plan.Settings{
		"limits.cpus: -1; expected 0.01 to 4096":                                               {Limits: plan.Quota{CPUs: -1}},
		`limits.memory: size "1G"; expected a whole number of KiB, MiB or GiB, such as 512MiB`: {Limits: plan.Quota{Memory: "1G"}},
		`hop "wan"; expected loopback, netns or netns:5ms`:                                     {Hop: "wan"},
	} {
		if _, err := GroundOf(plan.Plan{Settings: s}, false); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	g, err := GroundOf(plan.Plan{Settings: plan.Settings{Hop: "netns:5ms", Limits: plan.Quota{CPUs: .5, Memory: "1GiB"}}}, true)
	if err != nil || g.result() != (result.Hop{Kind: "netns", ConfiguredRTT: 5}) || g.Limits.Memory != 1<<30 || !g.AllowUnlimited {
		t.Errorf("%+v, %v", g, err)
	}
	if !isUnplaced(&unplaced{errNoHost}) || isUnplaced(errors.New("x")) {
		t.Error("a contender that has no place is a gap, another error is not")
	}
}
