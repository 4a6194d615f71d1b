package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/lab/plan"
)

const good = `schema: toll.plan/v1
benchmark: transport
cases: [call/32B]
phases: [tcp, unix]
contenders: [rest, rest-raw, floor]
baseline: rest
rounds: 4
blocks: 10
timeout: 2s
full:
  concurrency: [1, 8]
  blocks: 60
thresholds:
  - rest-raw ratio <= 0.75
`

func TestParseFillsInTheDefaults(t *testing.T) {
	t.Parallel()
	p, err := plan.Parse("p.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want := plan.Settings{
		Model: "closed", Order: "shuffled", Concurrency: []int{1}, Rounds: 4, Blocks: 10, Calls: 100, Warmup: 300,
		Timeout: plan.Duration(2 * time.Second),
	}
	if d := cmp.Diff(want, p.Settings); d != "" {
		t.Errorf("settings (-want +got):\n%s", d)
	}
	if got := p.AtFull(); got.Blocks != 60 || got.Rounds != 4 {
		t.Errorf("full: got %+v", got.Settings)
	}
}

func TestABadPlanNamesFileLineColumnAndWhatWasExpected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown key":        {"rounds: 4", "round: 4", `p.yaml:7:1: unknown field "round"`},
		"wrong type":         {"rounds: 4", "rounds: [4]", "p.yaml:7:9: "},
		"not yaml":           {"cases: [call/32B]", "cases: [call/32B", "p.yaml:4:1: "},
		"other schema":       {"toll.plan/v1", "toll.plan/v2", `p.yaml:1:9: schema is "toll.plan/v2"; expected toll.plan/v1`},
		"baseline unknown":   {"baseline: rest", "baseline: grpc", `p.yaml:6:11: baseline "grpc" is not among the contenders rest, rest-raw, floor`},
		"zero concurrency":   {"concurrency: [1, 8]", "concurrency: [1, 0]", "p.yaml:11:20: concurrency is 0; expected 1 to 10000"},
		"twice":              {"[tcp, unix]", "[tcp, tcp]", `p.yaml:4:15: phases: "tcp" stands twice`},
		"null unquoted":      {"floor]", "null]", `p.yaml:5:30: contenders holds an empty name; a contender called null is written "null"`},
		"bad duration":       {"timeout: 2s", "timeout: 2 seconds", `p.yaml:9:10: "2 seconds" is not a duration such as 250ms or 10s`},
		"too many blocks":    {"blocks: 10", "blocks: 1000000", "p.yaml:8:9: blocks is 1000000; expected 1 to 100000"},
		"blocks over rounds": {"blocks: 10", "blocks: 3", "p.yaml:8:9: 3 blocks can't be dealt over 4 rounds; expected at least one a round"},
		"threshold":          {"rest-raw ratio <=", "rest-raw p50", `p.yaml:14:5: threshold "rest-raw p50 0.75": expected METRIC OP NUMBER, such as "p99<50ms", "rest-raw ratio <= 0.75" or "http_req_failed rate<0.05"`},
		"two documents":      {"schema:", "---\na: 1\n---\nschema:", "p.yaml"},
		"no contenders":      {"contenders: [rest, rest-raw, floor]\n", "", "p.yaml:1:1: contenders is missing; expected at least the baseline"},
		"open model":         {"rounds: 4", "model: open", `p.yaml:7:8: model is open; expected a rate and a duration, or stages`},
		"fixed misspelled":   {"rounds: 4", "order: fix", `p.yaml:7:8: order is "fix"; expected shuffled or fixed`},
		"negative timeout":   {"timeout: 2s", "timeout: -2s", "p.yaml:9:10: timeout is -2s; expected more than 0 and at most 24h0m0s"},
	} {
		in := strings.Replace(good, c.from, c.to, 1)
		_, err := plan.Parse("p.yaml", []byte(in))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
	for _, in := range []string{"", "   \n", "- 1\n", "42", "\x00", strings.Repeat("a", 2<<20)} {
		if _, err := plan.Parse("p.yaml", []byte(in)); err == nil {
			t.Errorf("%.10q: no error", in)
		}
	}
}

func TestBlocksAreDealtEvenly(t *testing.T) {
	t.Parallel()
	for rounds := 1; rounds < 9; rounds++ {
		for blocks := rounds; blocks < 30; blocks++ {
			s := plan.Settings{Rounds: rounds, Blocks: blocks}
			sum, first, last := 0, s.BlocksOf(0), s.BlocksOf(rounds-1)
			for r := range rounds {
				sum += s.BlocksOf(r)
			}
			if sum != blocks || first-last > 1 || last < 1 {
				t.Errorf("%d blocks over %d rounds: sum %d, first %d, last %d", blocks, rounds, sum, first, last)
			}
		}
	}
}

func TestDeviationsAreComputed(t *testing.T) {
	t.Parallel()
	claimed := plan.Settings{Order: "shuffled", Blocks: 20, Rounds: 5, Concurrency: []int{1}}
	if d := plan.Deviations(claimed, claimed); len(d) != 0 {
		t.Errorf("same settings: got %v", d)
	}
	ran := claimed
	ran.Blocks, ran.Order = 6, "fixed"
	want := []plan.Deviation{{What: "order", Claimed: "shuffled", Ran: "fixed"}, {What: "blocks", Claimed: "20", Ran: "6"}}
	if d := cmp.Diff(want, plan.Deviations(claimed, ran)); d != "" {
		t.Error(d)
	}
	ramped := claimed
	ramped.Stages = []plan.Stage{{plan.Duration(250 * time.Millisecond), 10}, {plan.Duration(5 * time.Minute), 10}}
	want = []plan.Deviation{{What: "stages", Claimed: "[]", Ran: "[250ms→10 5m0s→10]"}}
	if d := cmp.Diff(want, plan.Deviations(claimed, ramped)); d != "" {
		t.Error(d)
	}
	claimed.Order = "fixed"
	if d := plan.Deviations(claimed, ran); len(d) != 2 || d[0].What != "order" {
		t.Errorf("a published fixed order is still a deviation from ours: got %v", d)
	}
}

func TestThresholds(t *testing.T) {
	t.Parallel()
	th, err := plan.ParseThreshold("rest-raw ratio <= 0.75")
	if err != nil || !th.Holds(.75) || th.Holds(.76) {
		t.Errorf("got %+v, %v", th, err)
	}
	for _, bad := range []string{"", "a b", "a ratio = 1", "a mood < 1", "a ratio < x", "a ratio < -1", "a ratio < NaN"} {
		if th, err := plan.ParseThreshold(bad); err == nil {
			t.Errorf("%q: got %+v", bad, th)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := plan.Parse("p.yaml", data)
		if err == nil && (p.Baseline == "" || p.Blocks < p.Rounds) {
			t.Errorf("accepted %q as %+v", data, p)
		}
	})
}
