package result_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"toll/lab/result"
)

// run returns a document whose contender "raw" takes raw µs and whose machine is slow times slower than another's.
func run(raw, slow float64, seed uint64, minute int) *result.Document {
	d := document()
	d.Started = d.Started.Add(time.Duration(minute) * time.Minute)
	d.Environment.MachineKey, d.Environment.CPU.BrandCPUID, d.Environment.CPU.Logical = "abcdef", "a CPU", 2
	d.Method.Hop.Kind = "loopback"
	d.Plan.SHA256 = d.Plan.Digest()
	r := rand.New(rand.NewPCG(seed, 5))
	shake := func(v float64) float64 { return v * slow * math.Exp(r.NormFloat64()/200) }
	d.Rows = []result.Row{
		made("rest", result.Baseline, shake(100), 10*seed+1), made("rest", result.Control, shake(100), 10*seed+2),
		made("raw", "", shake(raw), 10*seed+3), made("floor", result.Floor, shake(20), 10*seed+4),
	}
	for i, level := range []float64{100, 100, raw, 20} {
		d.Rows[i].Latency.P50 = shake(level)
	}
	d.Compare()
	return d
}

func verdictOf(t *testing.T, c *result.Comparison, row string) result.Difference {
	t.Helper()
	for _, x := range c.Rows {
		if strings.HasSuffix(x.Row, row) {
			return x
		}
	}
	t.Fatalf("no row %s in %+v", row, c.Rows)
	return result.Difference{}
}

func TestWithinFindsWhatIsBeyondIntervalAndFloor(t *testing.T) {
	t.Parallel()
	c, err := result.Within(run(110, 1, 1, 0))
	if err != nil || c.Sequential || len(c.Rows) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, x := range c.Rows {
		if x.Verdict != result.Worse || x.Pairs != 20 || x.Value < 1.08 || x.Value > 1.12 || !x.Missed(.03) || x.Missed(.2) {
			t.Errorf("10 %% slower: %+v", x)
		}
	}
	if c, _ = result.Within(run(90, 1, 2, 0)); c.Rows[0].Verdict != result.Better || len(c.Missed(0)) > 0 {
		t.Errorf("10 %% faster: %+v", c.Rows[0])
	}
	if c, _ = result.Within(run(100, 1, 3, 0)); c.Rows[0].Verdict != result.NoDifference {
		t.Errorf("the same: %+v", c.Rows[0])
	}
	d := run(110, 1, 4, 0)
	d.Rows[1].Role = "other" // without a control nobody knows what the run can't show
	if c, _ = result.Within(d); c.Rows[0].Verdict != result.NoDifference || c.Rows[0].Floor != nil {
		t.Errorf("no control: %+v", c.Rows[0])
	}
	d.Rows = d.Rows[:1]
	if _, err = result.Within(d); err == nil || err.Error() != "compare: the run has no contender beside its baseline" {
		t.Errorf("%v", err)
	}
}

// Two runs one after the other: a machine that became slower is no difference of a contender, and no interval is trusted.
func TestSequentialRunsCancelTheMachineAndSaySo(t *testing.T) {
	t.Parallel()
	c, err := result.Compare([]*result.Document{run(50, 1, 1, 0)}, []*result.Document{run(50, 1.4, 2, 60)})
	if err != nil || !c.Sequential || !strings.Contains(c.Design, "no interval can be trusted") {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, row := range []string{"raw", "rest"} {
		if x := verdictOf(t, c, row); x.Verdict != result.NoDifference {
			t.Errorf("the machine became slower: %+v", x)
		}
	}
	c, err = result.Compare([]*result.Document{run(50, 1, 1, 0)}, []*result.Document{run(60, 1, 2, 60)})
	if err != nil {
		t.Fatal(err)
	}
	if x := verdictOf(t, c, "raw"); x.Verdict != result.Worse || x.Value < 1.15 || x.Value > 1.25 {
		t.Errorf("20 %% slower: %+v", x)
	}
}

func TestRunsInTurnsArePaired(t *testing.T) {
	t.Parallel()
	var before, after []*result.Document
	for i := range 8 {
		slow := 1 + float64(i)/4 // the machine becomes slower all the time
		before = append(before, run(50, slow, uint64(2*i), 10*i))
		after = append(after, run(55, slow, uint64(2*i+1), 10*i+5))
	}
	c, err := result.Compare(before, after)
	if err != nil || c.Sequential || c.Design != "8 pairs of runs that took turns" {
		t.Fatalf("%+v, %v", c, err)
	}
	if x := verdictOf(t, c, "raw"); x.Verdict != result.Worse || x.Value < 1.08 || x.Value > 1.12 || x.Lo == nil {
		t.Errorf("10 %% slower: %+v", x)
	}
	if x := verdictOf(t, c, "rest"); x.Verdict != result.NoDifference {
		t.Errorf("the same: %+v", x)
	}
	for i := range after {
		after[i].Started = after[i].Started.Add(24 * time.Hour)
	}
	if c, err = result.Compare(before, after); err != nil || !c.Sequential || !strings.Contains(c.Design, "did not take turns") {
		t.Errorf("one side after the other: %+v, %v", c, err)
	}
	if c, err = result.Compare(before, after[:3]); err != nil || !strings.Contains(c.Design, "8 runs of one side and 3 of the other") {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestWhatDiffersIsNotCompared(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*result.Document){
		"compare: the plans differ: cases call/32B and call/0B; calls 100 and 50": func(d *result.Document) {
			d.Plan.Cases, d.Plan.Calls = []string{"call/0B"}, 50
			d.Plan.SHA256 = d.Plan.Digest()
		},
		"compare: the machines differ: key abcdef (a CPU, 2 CPUs) and fedcba (a CPU, 64 CPUs)": func(d *result.Document) {
			d.Environment.MachineKey, d.Environment.CPU.Logical = "fedcba", 64
		},
		"compare: the hops differ: loopback with 0 ms and netns with 2.5 ms": func(d *result.Document) {
			d.Method.Hop.Kind, d.Method.Hop.ConfiguredRTT = "netns", 2.5
		},
	} {
		a, b := run(50, 1, 1, 0), run(50, 1, 2, 1)
		for _, d := range []*result.Document{a, b} {
			d.Plan.Cases, d.Plan.Calls = []string{"call/32B"}, 100
			d.Plan.SHA256 = d.Plan.Digest()
		}
		change(b)
		if _, err := result.Compare([]*result.Document{a}, []*result.Document{b}); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if _, err := result.Compare(nil, []*result.Document{document()}); err == nil {
		t.Error("a side without a result was compared")
	}
}

func TestADifferenceInConnectionTrackingIsTold(t *testing.T) {
	t.Parallel()
	const told = "; connections over loopback were tracked in some of the runs and not in others, which shows in every round trip"
	for _, x := range []struct {
		before, after *bool
		want          bool
	}{{nil, nil, false}, {new(true), new(true), false}, {new(false), nil, false}, {new(false), new(true), true}} {
		before, after := run(50, 1, 1, 0), run(50, 1, 2, 60)
		before.Environment.OS.Conntrack, after.Environment.OS.Conntrack = x.before, x.after
		c, err := result.Compare([]*result.Document{before}, []*result.Document{after})
		if err != nil || strings.Contains(c.Design, told) != x.want {
			t.Errorf("%+v: %q, %v", x, c.Design, err)
		}
	}
}
