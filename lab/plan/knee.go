package plan

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A Bound is what a knee's calls are held to: a quantile of their response time, counted from when each was due.
type Bound struct {
	Name     string  // p99
	Quantile float64 // 0 to 1
	Limit    time.Duration
	strict   bool // < and not <=
}

// bounded are the quantiles that can be bounded: those that a row shows.
var bounded = [...]string{"p50", "p90", "p95", "p99", "p99.9"}

// longestLimit bounds a bound: a stretch is many times as long.
const longestLimit = 10 * time.Second

// ParseBound reads a knee's bound, such as p99<5ms.
func ParseBound(expr string) (Bound, error) {
	t, err := ParseThreshold(expr)
	if err != nil {
		return Bound{}, fmt.Errorf("knee %q: expected a bound such as p99<5ms", expr)
	}
	b := Bound{Name: t.Metric, Limit: time.Duration(math.Round(t.Bound * 1e3)), strict: t.Op == "<"}
	switch {
	case t.Contender != "":
		return b, fmt.Errorf("knee %q: it bounds every contender; expected no name before %s", expr, t.Metric)
	case !slices.Contains(bounded[:], t.Metric):
		return b, fmt.Errorf("knee %q: %s is not one of p50, p90, p95, p99 and p99.9", expr, t.Metric)
	case t.Op != "<" && t.Op != "<=":
		return b, fmt.Errorf("knee %q: expected < or <=", expr)
	case b.Limit <= 0 || b.Limit > longestLimit:
		return b, fmt.Errorf("knee %q: the bound is %v; expected more than 0 and at most %v", expr, b.Limit, longestLimit)
	}
	b.Quantile, _ = t.Quantile()
	return b, nil
}

// What a search is like where nothing else is said: eight searches over two rounds, of stretches of a second.
const (
	kneeRounds  = 2
	kneeBlocks  = 8
	kneeStretch = Duration(time.Second)
	kneeStart   = 500
	kneeWarmup  = Duration(time.Second)
)

// SearchingFor returns s with searches for a knee in place of its own load.
func (s Settings) SearchingFor(bound string) Settings {
	if s.Knee == "" {
		s.Model, s.Rate, s.Stages, s.Think, s.CallsOnly = Open, kneeStart, nil, 0, false
		s.Rounds, s.Blocks, s.Duration, s.WarmupTime = kneeRounds, kneeBlocks, kneeStretch, kneeWarmup
		s.Concurrency = s.Concurrency[len(s.Concurrency)-1:]
	}
	s.Knee = bound
	return s
}

// Holds reports whether a quantile of a stretch keeps the bound.
func (b Bound) Holds(v time.Duration) bool { return v < b.Limit || !b.strict && v == b.Limit }

// HoldsMicros is Holds of a time in µs, as a document has it.
func (b Bound) HoldsMicros(us float64) bool { return b.Holds(time.Duration(math.Round(us * 1e3))) }
