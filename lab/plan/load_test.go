package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/lab/plan"
)

// head is a plan without a load.
const head = `schema: toll.plan/v1
benchmark: load
cases: [request]
contenders: [target]
baseline: target
`

// What a k6 script says of its load and its bounds is accepted as it stands there.
func TestK6StagesAndThresholdsAreAcceptedVerbatim(t *testing.T) {
	t.Parallel()
	p, err := plan.Parse("k6.yaml", []byte(head+`
stages: [
  { duration: '10s', target: 50 },
  { duration: '5m', target: 50 },
  { duration: '10s', target: 0 },
]
thresholds: {
  http_req_failed: ['rate<0.05'],
  http_req_duration: ['p(95)<500', 'avg<200', { threshold: 'max<2000', abortOnFail: false }],
}
`))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(published(), p.Stages); d != "" {
		t.Error(d)
	}
	want := plan.Thresholds{"http_req_failed rate<0.05", "http_req_duration p(95)<500", "http_req_duration avg<200", "http_req_duration max<2000"}
	if d := cmp.Diff(want, p.Thresholds); d != "" {
		t.Error(d)
	}
	bounds := []plan.Threshold{
		{Metric: "failures", Op: "<", Bound: .05}, {Metric: "p95", Op: "<", Bound: 500_000},
		{Metric: "mean", Op: "<", Bound: 200_000}, {Metric: "max", Op: "<", Bound: 2_000_000},
	}
	for i, e := range p.Thresholds {
		got, err := plan.ParseThreshold(e)
		if err != nil || got != bounds[i] {
			t.Errorf("%q: %+v, %v; want %+v", e, got, err, bounds[i])
		}
	}
}

func TestShortThresholds(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]plan.Threshold{
		"p99<50ms":                   {Metric: "p99", Op: "<", Bound: 50_000},
		"p99.9 <= 1s":                {Metric: "p99.9", Op: "<=", Bound: 1e6},
		"p50<300":                    {Metric: "p50", Op: "<", Bound: 300},
		"failures<1%":                {Metric: "failures", Op: "<", Bound: .01},
		"throughput>1000":            {Metric: "throughput", Op: ">", Bound: 1000},
		"new ratio<=1.03":            {Contender: "new", Metric: "ratio", Op: "<=", Bound: 1.03},
		"dropped_iterations count<1": {Metric: "dropped", Op: "<", Bound: 1},
	} {
		if got, err := plan.ParseThreshold(expr); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", expr, got, err, want)
		}
	}
	for _, bad := range []string{"p99", "p0<1", "p101<1", "p99<fast", "p99<-1", "http_req_failed p(95)<1", "http_reqs med<1", "p99<1%", "a b c<1", "<1", "p(95)<500"} {
		if got, err := plan.ParseThreshold(bad); err == nil {
			t.Errorf("%q is %+v, want an error", bad, got)
		}
	}
}

func TestABadLoadNamesItsPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ yaml, want string }{
		{"rate: 5", "p.yaml:6:7: rate is given, but the model is closed; expected model: open"},
		{"model: open\nrate: 5", "p.yaml:1:1: the model is open; expected for how long the rate is held"},
		{"model: open\nrate: 5\nduration: 1s\narrivals: odd", `p.yaml:9:11: arrivals is "odd"; expected even or poisson`},
		{"model: open\nrate: 5\nstages: [{duration: 1s, target: 2}]", "p.yaml:7:7: both a rate and stages; the stages' targets are rates"},
		{"model: open\nrate: 5\nduration: 1s\nthink: 1s", "p.yaml:9:8: think is given, but the model is open: arrivals wait for nobody"},
		{"stages: [{duration: 1s, target: 20000}]", "p.yaml:6:10: stage 1 has the target 20000; expected 0 to 10000 VUs"},
		{"stages: [{duration: 1s, target: 0}]", "p.yaml:6:9: the stages take 1s and reach 0; expected more than 0 of both, and at most 24h0m0s"},
		{"stages: [{duration: 1s, targets: 0}]", `p.yaml:6:25: unknown field "targets"; did you mean "target"?`},
		{"thresholds: {http_req_failed: ['p(95)<1']}", `p.yaml:6:32: threshold "http_req_failed p(95)<1": http_req_failed has no aggregate "p(95)" here`},
		{"thresholds: {my_metric: ['rate<1']}", `p.yaml:6:14: thresholds: "my_metric" is not a metric of k6 that has a counterpart here`},
		{"thresholds: {checks: [{threshold: 'rate>0.9', abortOnFail: true}]}", "p.yaml:6:47: thresholds: abortOnFail is not supported: a run is always measured to its end"},
		{"thresholds: 5", "p.yaml:6:13: thresholds: expected a list of expressions, or metrics with a list each"},
	} {
		_, err := plan.Parse("p.yaml", []byte(head+c.yaml+"\n"))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got  %v\n want %s", strings.ReplaceAll(c.yaml, "\n", "; "), err, c.want)
		}
	}
}

func TestTheLoadsShape(t *testing.T) {
	t.Parallel()
	closed := plan.Settings{Model: plan.Closed, Duration: plan.Duration(time.Second)}
	open := plan.Settings{Model: plan.Open, Rate: 2000, Duration: plan.Duration(time.Second)}
	if d := cmp.Diff(plan.Hold(50, time.Second), closed.Shape(50)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(plan.Hold(2000, time.Second), open.Shape(50)); d != "" {
		t.Error(d)
	}
	if n := open.MostInFlight(); n != 4000 {
		t.Errorf("at most %d in flight, want 4000: 2 s of arrivals", n)
	}
	if open.Rate = 10; open.MostInFlight() != 1000 {
		t.Errorf("at most %d in flight, want 1000", open.MostInFlight())
	}
}

func FuzzParseThreshold(f *testing.F) {
	for _, s := range []string{"p99<50ms", "http_req_failed rate<0.05", "http_req_duration p(95)<500", "a ratio <= 1", "failures<1%", "<", "p<1", "p99.9>=1s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		th, err := plan.ParseThreshold(s)
		if err != nil {
			return
		}
		if !(th.Bound >= 0) || th.Metric == "" || th.Holds(th.Bound) == (th.Op == "<" || th.Op == ">") {
			t.Errorf("%q is %+v", s, th)
		}
	})
}
