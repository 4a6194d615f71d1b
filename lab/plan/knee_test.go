package plan_test

import (
	"testing"
	"time"

	"toll/lab/plan"
)

func TestParseBound(t *testing.T) {
	t.Parallel()
	b, err := plan.ParseBound("p99<5ms")
	if err != nil || b.Name != "p99" || b.Quantile != .99 || b.Limit != 5*time.Millisecond || b.Holds(b.Limit) || !b.Holds(b.Limit-1) {
		t.Errorf("%+v, %v", b, err)
	}
	if b, err = plan.ParseBound("p99.9 <= 20000"); err != nil || b.Limit != 20*time.Millisecond || !b.Holds(b.Limit) {
		t.Errorf("%+v, %v", b, err)
	}
	for expr, want := range map[string]string{
		"":                 `knee "": expected a bound such as p99<5ms`,
		"5ms":              `knee "5ms": expected a bound such as p99<5ms`,
		"p99<":             `knee "p99<": expected a bound such as p99<5ms`,
		"p99>5ms":          `knee "p99>5ms": expected < or <=`,
		"toll p99<5ms":     `knee "toll p99<5ms": it bounds every contender; expected no name before p99`,
		"mean<5ms":         `knee "mean<5ms": mean is not one of p50, p90, p95, p99 and p99.9`,
		"p42<5ms":          `knee "p42<5ms": p42 is not one of p50, p90, p95, p99 and p99.9`,
		"throughput<5":     `knee "throughput<5": throughput is not one of p50, p90, p95, p99 and p99.9`,
		"p99<0":            `knee "p99<0": the bound is 0s; expected more than 0 and at most 10s`,
		"p99<1h":           `knee "p99<1h": the bound is 1h0m0s; expected more than 0 and at most 10s`,
		"p99<NaN":          `knee "p99<NaN": expected a bound such as p99<5ms`,
		"failures rate<1%": `knee "failures rate<1%": expected a bound such as p99<5ms`,
	} {
		if _, err := plan.ParseBound(expr); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", expr, err, want)
		}
	}
}

func FuzzParseBound(f *testing.F) {
	f.Add("p99<5ms")
	f.Add("p99.9 <= 20000")
	f.Fuzz(func(t *testing.T, expr string) {
		b, err := plan.ParseBound(expr)
		if err == nil && (b.Limit <= 0 || b.Quantile < .5 || b.Quantile > .9991) {
			t.Errorf("%q is %+v", expr, b)
		}
	})
}

func TestAKneeNeedsAnOpenModel(t *testing.T) {
	t.Parallel()
	s := plan.Settings{Model: plan.Open, Order: plan.Shuffled, Concurrency: []int{1}, Rounds: 1, Blocks: 1, Calls: 1, Warmup: 1, Rate: 100, Duration: plan.Duration(time.Second), Knee: "p99<5ms"}
	if field, msg := s.Check(); msg != "" {
		t.Errorf("%s: %s", field, msg)
	}
	closed, staged, bad := s, s, s
	closed.Model, closed.Rate = plan.Closed, 0
	staged.Rate, staged.Duration, staged.Stages = 0, 0, plan.Hold(100, time.Second)
	bad.Knee = "p99>5ms"
	for want, x := range map[string]plan.Settings{
		"knee is given, but the model is closed; expected model: open":                closed,
		"both a knee and stages; a knee's stretches have one rate each, from rate on": staged,
		`knee "p99>5ms": expected < or <=`:                                            bad,
	} {
		if field, msg := x.Check(); field != "knee" || msg != want {
			t.Errorf("%s: %s; want %s", field, msg, want)
		}
	}
}
