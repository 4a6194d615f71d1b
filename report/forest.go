package report

import "toll/lab/result"

// A forest is ratios and their intervals on one logarithmic axis, in hundredths of its width.
type forest struct {
	Rows          []tree
	Ticks         []tick
	One           string
	BandLo, BandW string // the control's interval; empty without
}

type tree struct {
	Name, Rank, Text, Role string
	Colour                 int
	At, Lo, Width          string // empty when there is no ratio or no interval
	Shown                  int
}

type tick struct{ At, Text string }

func newForest(g *result.Group, rows []*result.Row, notes *footnotes, colours map[string]int) forest {
	var values []float64
	for _, r := range rows {
		if q := r.Ratio; q != nil {
			values = append(values, q.Value)
			if q.Lo != nil {
				values = append(values, *q.Lo, *q.Hi)
			}
		}
	}
	if len(values) == 0 {
		return forest{}
	}
	a := logAxis(append(values, .9, 1.1))
	f := forest{One: a.at(1), Ticks: a.ticks()}
	if c := g.With(result.Control); c != nil && c.Ratio != nil && c.Ratio.Lo != nil {
		f.BandLo, f.BandW = a.at(*c.Ratio.Lo), a.span(*c.Ratio.Lo, *c.Ratio.Hi)
	}
	for _, r := range rows {
		t := tree{Name: name(r) + notes.marks(r), Rank: r.Rank, Text: ratioText(r), Role: r.Role, Colour: colours[r.Contender.Name], Shown: shown(r, g)}
		switch q := r.Ratio; {
		case r.Role == result.Baseline:
			t.At = a.at(1)
		case q != nil:
			t.At = a.at(q.Value)
			if q.Lo != nil {
				t.Lo, t.Width = a.at(*q.Lo), a.span(*q.Lo, *q.Hi)
			}
		}
		f.Rows = append(f.Rows, t)
	}
	return f
}
