package check

import (
	"fmt"
	"slices"
	"strings"

	"toll/lab/result"
)

// A quantile is shown only from so many successes on (rule 10), so that about ten lie beyond it.
const (
	LeastP90  = 100
	LeastP95  = 200
	LeastP99  = 1_000
	LeastP999 = 10_000
)

// ClientBound is the share of its cores above which the client, not the contender, may be what a row measures.
const ClientBound = 0.85

// leastBlocks is how many blocks an interval needs.
const leastBlocks = 6

// A Violation is one rule that the document breaks, and where.
type Violation struct {
	Rule int    // of the design's sixteen
	Row  string // "" when the document as a whole is meant
	Text string
}

// String returns rule, row and text.
func (v Violation) String() string {
	if v.Row == "" {
		return fmt.Sprintf("rule %d: %s", v.Rule, v.Text)
	}
	return fmt.Sprintf("rule %d: %s: %s", v.Rule, v.Row, v.Text)
}

// Rules returns every rule that d breaks, in their order.
func Rules(d *result.Document) []Violation {
	c := &checker{doc: d}
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Kind == result.Measured {
			c.measured(r)
		} else {
			c.foreign(r)
		}
	}
	for _, g := range d.Groups() {
		c.group(g)
	}
	c.derived()
	c.method()
	slices.SortStableFunc(c.found, func(a, b Violation) int { return a.Rule - b.Rule })
	return c.found
}

// Verdict is what the rules say of d, as the document itself carries it.
func Verdict(d *result.Document) result.Verdict {
	v := result.Verdict{Publishable: true, Reasons: []string{}}
	for _, f := range Rules(d) {
		v.Publishable = false
		v.Reasons = append(v.Reasons, f.String())
	}
	if d.Partial {
		v.Publishable = false
		v.Reasons = append(v.Reasons, "the run was interrupted")
	}
	return v
}

type checker struct {
	doc   *result.Document
	found []Violation
}

func (c *checker) add(rule int, r *result.Row, format string, args ...any) {
	v := Violation{Rule: rule, Text: fmt.Sprintf(format, args...)}
	if r != nil {
		v.Row = r.ID()
	}
	c.found = append(c.found, v)
}

func warned(r *result.Row, about string) bool {
	return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, about) })
}
