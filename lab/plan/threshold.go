package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Threshold is a bound that a plan sets on one figure of one contender: "rest-raw ratio <= 0.75".
type Threshold struct {
	Contender string
	Metric    string // one of Metrics
	Op        string // < <= > >=
	Bound     float64
}

// Metrics are the figures a threshold can bound: times in µs, failures as a share of the calls (0 to 1).
var Metrics = [...]string{"ratio", "p50", "p99", "max", "failures", "throughput", "cpu"}

// ParseThreshold parses "CONTENDER METRIC OP NUMBER".
func ParseThreshold(expr string) (Threshold, error) {
	const want = "expected CONTENDER METRIC OP NUMBER, such as \"rest-raw ratio <= 0.75\""
	f := strings.Fields(expr)
	if len(f) != 4 {
		return Threshold{}, fmt.Errorf("threshold %q: %s", expr, want)
	}
	t := Threshold{Contender: f[0], Metric: f[1], Op: f[2]}
	if !slices.Contains(Metrics[:], t.Metric) {
		return Threshold{}, fmt.Errorf("threshold %q: %q is not one of %s", expr, t.Metric, strings.Join(Metrics[:], ", "))
	}
	if !slices.Contains([]string{"<", "<=", ">", ">="}, t.Op) {
		return Threshold{}, fmt.Errorf("threshold %q: %q is not one of <, <=, >, >=", expr, t.Op)
	}
	var err error
	if t.Bound, err = strconv.ParseFloat(f[3], 64); err != nil || !(t.Bound >= 0) {
		return Threshold{}, fmt.Errorf("threshold %q: %q is not a number", expr, f[3])
	}
	return t, nil
}

// Holds reports whether v keeps the bound.
func (t Threshold) Holds(v float64) bool {
	switch t.Op {
	case "<":
		return v < t.Bound
	case "<=":
		return v <= t.Bound
	case ">":
		return v > t.Bound
	default:
		return v >= t.Bound
	}
}
