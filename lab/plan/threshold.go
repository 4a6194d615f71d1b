package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// A Threshold is a bound on one figure of one contender, or of each: "rest-raw ratio <= 0.75", "p99<50ms", or k6's
// "http_req_duration p(95)<500".
type Threshold struct {
	Contender string  // "" = every contender
	Metric    string  // one of Metrics, or p and a percentile: p95, p99.9
	Op        string  // < <= > >=
	Bound     float64 // µs for a time, a share (0 to 1) for failures and ok
}

// Metrics are the figures, beside percentiles, that a threshold can bound: times in µs, failures and ok as a share of the
// calls (0 to 1), throughput in successes a second.
var Metrics = [...]string{"ratio", "min", "mean", "max", "failures", "ok", "throughput", "cpu", "ops", "dropped"}

// operators, longest first.
var operators = [...]string{"<=", ">=", "<", ">"}

// ParseThreshold parses "CONTENDER METRIC OP NUMBER", "METRIC OP NUMBER" (spaces may be left out, times may have a unit:
// "p99<50ms", shares may be percent: "failures<1%"), or k6's "METRIC AGGREGATE OP NUMBER".
func ParseThreshold(expr string) (Threshold, error) {
	left, op, right := splitOperator(expr)
	if op == "" {
		return Threshold{}, fmt.Errorf("threshold %q: expected METRIC OP NUMBER, such as \"p99<50ms\", \"rest-raw ratio <= 0.75\" or \"http_req_failed rate<0.05\"", expr)
	}
	t := Threshold{Op: op}
	words := strings.Fields(left)
	scale := 1.0
	var err error
	switch {
	case len(words) == 2 && k6Metrics()[words[0]] != nil:
		t.Metric, scale, err = k6Metric(words[0], words[1])
	case len(words) == 2:
		t.Contender, t.Metric = words[0], words[1]
	case len(words) == 1:
		t.Metric = words[0]
	default:
		err = fmt.Errorf("%q before %s: expected one metric, or a contender and a metric", left, op)
	}
	if err == nil {
		t.Bound, err = t.parseBound(right, scale)
	}
	if err != nil {
		return Threshold{}, fmt.Errorf("threshold %q: %w", expr, err)
	}
	return t, nil
}

func splitOperator(expr string) (left, op, right string) {
	for i := range expr {
		for _, o := range operators {
			if strings.HasPrefix(expr[i:], o) {
				return strings.TrimSpace(expr[:i]), o, strings.TrimSpace(expr[i+len(o):])
			}
		}
	}
	return "", "", ""
}

// parseBound reads the number; scale is µs (or shares) per unit of a number without a unit.
func (t Threshold) parseBound(text string, scale float64) (float64, error) {
	_, quantile := t.Quantile()
	isTime := quantile || slices.Contains([]string{"min", "mean", "max"}, t.Metric)
	if !isTime && !slices.Contains(Metrics[:], t.Metric) {
		return 0, fmt.Errorf("%q is not one of %s, or a percentile such as p99", t.Metric, strings.Join(Metrics[:], ", "))
	}
	if d, err := time.ParseDuration(text); isTime && err == nil && d >= 0 {
		if _, plain := strconv.ParseFloat(text, 64); plain != nil {
			return float64(d) / float64(time.Microsecond), nil
		}
	}
	if share, ok := strings.CutSuffix(text, "%"); ok && (t.Metric == "failures" || t.Metric == "ok") {
		text, scale = share, .01
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0) {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return v * scale, nil
}

// Quantile returns which quantile (0 to 1) the metric is, and whether it is one.
func (t Threshold) Quantile() (q float64, ok bool) {
	text, ok := strings.CutPrefix(t.Metric, "p")
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v <= 100) {
		return 0, false
	}
	return v / 100, true
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

// A k6Scale says what an aggregate of a k6 metric is here, and our units per one of k6's.
type k6Scale struct {
	metric string
	scale  float64
}

// k6Metrics are the built-in metrics of k6 that have a counterpart here, with their aggregates. k6 counts time in ms.
func k6Metrics() map[string]map[string]k6Scale {
	trend := map[string]k6Scale{"avg": {"mean", 1e3}, "min": {"min", 1e3}, "med": {"p50", 1e3}, "max": {"max", 1e3}}
	return map[string]map[string]k6Scale{
		"http_req_duration":  trend,
		"iteration_duration": trend,
		"http_req_failed":    {"rate": {"failures", 1}},
		"checks":             {"rate": {"ok", 1}},
		"http_reqs":          {"rate": {"throughput", 1}, "count": {"ops", 1}},
		"iterations":         {"rate": {"throughput", 1}, "count": {"ops", 1}},
		"dropped_iterations": {"count": {"dropped", 1}},
	}
}

func k6Metric(name, aggregate string) (metric string, scale float64, err error) {
	if s, ok := k6Metrics()[name][aggregate]; ok {
		return s.metric, s.scale, nil
	}
	p, isP := strings.CutPrefix(aggregate, "p(")
	if p, closed := strings.CutSuffix(p, ")"); isP && closed && k6Metrics()[name]["avg"].metric != "" {
		metric = "p" + strings.TrimSpace(p)
		if _, ok := (Threshold{Metric: metric}).Quantile(); ok {
			return metric, 1e3, nil
		}
	}
	return "", 0, fmt.Errorf("%s has no aggregate %q here", name, aggregate)
}

// Thresholds are a plan's: a list of expressions, or k6's map from a metric to a list of them.
type Thresholds []string

// UnmarshalYAML reads both shapes; the error carries its position.
func (t *Thresholds) UnmarshalYAML(n ast.Node) error {
	*t = nil
	switch n := n.(type) {
	case *ast.NullNode:
		return nil
	case *ast.SequenceNode:
		return t.list("", n)
	case *ast.MappingValueNode:
		return t.metric(n)
	case *ast.MappingNode:
		for _, v := range n.Values {
			if err := t.metric(v); err != nil {
				return err
			}
		}
		return nil
	}
	return badThreshold(n, "thresholds: expected a list of expressions, or metrics with a list each")
}

func badThreshold(n ast.Node, format string, args ...any) error {
	return &yaml.SyntaxError{Token: n.GetToken(), Message: fmt.Sprintf(format, args...)}
}

func (t *Thresholds) metric(v *ast.MappingValueNode) error {
	name := v.Key.GetToken().Value
	if k6Metrics()[name] == nil {
		return badThreshold(v.Key, "thresholds: %q is not a metric of k6 that has a counterpart here", name)
	}
	if list, ok := v.Value.(*ast.SequenceNode); ok {
		return t.list(name+" ", list)
	}
	return badThreshold(v.Value, "thresholds: %s: expected a list of expressions", name)
}

func (t *Thresholds) list(prefix string, n *ast.SequenceNode) error {
	for _, v := range n.Values {
		text, err := expression(v)
		if err != nil {
			return err
		}
		if _, err := ParseThreshold(prefix + text); err != nil {
			return badThreshold(v, "%v", err)
		}
		*t = append(*t, prefix+text)
	}
	return nil
}

// expression reads a scalar, or k6's {threshold: …, abortOnFail: false}.
func expression(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.MappingValueNode:
		if n.Key.GetToken().Value == "threshold" {
			return n.Value.GetToken().Value, nil
		}
	case *ast.MappingNode:
		text := ""
		for _, v := range n.Values {
			switch key := v.Key.GetToken().Value; {
			case key == "threshold":
				text = v.Value.GetToken().Value
			case key != "abortOnFail" || v.Value.GetToken().Value != "false":
				return "", badThreshold(v.Key, "thresholds: %s is not supported: a run is always measured to its end", key)
			}
		}
		if text != "" {
			return text, nil
		}
	}
	return "", badThreshold(n, "thresholds: expected an expression such as \"p(95)<500\"")
}
