package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"toll/lab/plan"
	"toll/lab/result"
	"toll/lab/stats"
)

// A gate decides whether the second target is slower than the first by more than a bound. It looks at the ratio at block
// counts set beforehand, each look at its share of 5 %, and ends the run at the first look that decides.
type gate struct{ result.Gate }

// The looks of a gate, and how its blocks are dealt.
const (
	gateRounds = 8
	gateBlock  = 250 * time.Millisecond
)

// The decisions.
const (
	gatePass      = "pass"
	gateFail      = "fail"
	gateUndecided = "undecided"
)

// gate reads --gate, nil without one.
func (c *loadCmd) gate(targets int) (*gate, error) {
	if c.Gate == "" {
		return nil, nil
	}
	text, _ := strings.CutSuffix(c.Gate, "%")
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v < 1000) {
		return nil, fmt.Errorf("--gate %q: want a share such as 3%%", c.Gate)
	}
	if targets != 2 {
		return nil, errors.New("--gate: needs two targets, by --vs or --vs-cmd")
	}
	if c.Stages != "" {
		return nil, errors.New("--gate: not with --stages: a gate looks at blocks of one level")
	}
	looks := []int{20, 40, 80}
	return &gate{result.Gate{Bound: v / 100, Planned: looks, Level: 1 - .05/float64(len(looks))}}, nil
}

// apply sets the blocks that the looks are made of.
func (g *gate) apply(s *plan.Settings) {
	s.Rounds, s.Blocks = gateRounds, g.Planned[len(g.Planned)-1]
	if s.Duration == plan.Duration(10*time.Second/blocksOfComparison) {
		s.Duration = plan.Duration(gateBlock)
	}
}

// look is called after each round and reports whether the run may end.
func (g *gate) look(d *result.Document) bool {
	row, base := g.rows(d)
	if row == nil || row.Ratio == nil || !slices.Contains(g.Planned, row.Ratio.Blocks) {
		return false
	}
	g.Contender = row.Contender.Name
	a, b := common(row, base)
	q := stats.PairedRatio(a, b, g.Level)
	l := result.Look{Blocks: q.Blocks, Value: result.Round5(q.Value), Decision: gateUndecided}
	if q.Interval {
		l.Lo, l.Hi = result.Ptr(result.Round5(q.Lo)), result.Ptr(result.Round5(q.Hi))
		switch bound := 1 + g.Bound; {
		case q.Lo > bound:
			l.Decision = gateFail
		case q.Hi < bound:
			l.Decision = gatePass
		}
	}
	g.Looks = append(g.Looks, l)
	g.Decision = l.Decision
	return l.Decision != gateUndecided
}

// rows are the second target's and the baseline's.
func (g *gate) rows(d *result.Document) (row, base *result.Row) {
	for _, group := range d.Groups() {
		base = group.With(result.Baseline)
		for _, r := range group.Rows {
			if r.Role == "" {
				return r, base
			}
		}
	}
	return nil, nil
}

// common lines up the blocks that both rows have.
func common(row, base *result.Row) (a, b []float64) {
	for i, x := range row.Rounds {
		if i >= len(base.Rounds) {
			break
		}
		for k := range min(len(x.Blocks), len(base.Rounds[i].Blocks)) {
			if p, q := x.Blocks[k].P50, base.Rounds[i].Blocks[k].P50; p != nil && q != nil {
				a, b = append(a, *p), append(b, *q)
			}
		}
	}
	return a, b
}

// conclude puts the gate into the document.
func (g *gate) conclude(d *result.Document) {
	if len(g.Looks) == 0 {
		g.Decision = gateUndecided
	} else if l := g.Looks[len(g.Looks)-1]; l.Lo != nil {
		g.Smallest = math.Max(*l.Hi-l.Value, l.Value-*l.Lo)
	}
	for _, group := range d.Groups() {
		if c := group.With(result.Control); c != nil && c.Ratio != nil && c.Ratio.Lo != nil {
			g.Smallest = max(g.Smallest, result.NoiseFloor(*c.Ratio.Lo, *c.Ratio.Hi))
		}
	}
	g.Smallest = result.Round5(g.Smallest)
	d.Gate = &g.Gate
}

// verdict turns the decision into an exit code.
func (g *gate) verdict(*result.Document) error {
	switch g.Decision {
	case gatePass:
		return nil
	case gateFail:
		return exit(exitMissed, fmt.Errorf("gate missed: %s is slower by more than %.3g %%", g.Contender, 100*g.Bound))
	}
	return exit(exitNotMeasured, fmt.Errorf("gate undecided: this run could not show less than ± %.1f %%; the gate is %.3g %%", 100*g.Smallest, 100*g.Bound))
}
