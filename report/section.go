package report

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"toll/lab/result"
)

// A section is one case, phase and concurrency on the page.
type section struct {
	ID, Title, Sub string
	Index, Callers int
	Verdict        string
	Screen         string // what a load's one target is shown as on a terminal
	Forest         forest
	Table          figures
	Notes          []string
	Loop, Control  string
	CPU, Parts     []bar
	CPUKeys        []string
	PartKeys       []string
	Strips         []strip
}

func newSection(d *result.Document, g *result.Group, index int, colours map[string]int) section {
	rows := ordered(g)
	notes := newFootnotes(rows)
	s := section{
		ID: fmt.Sprintf("g%d", index), Index: index, Callers: g.Concurrency, Title: strings.TrimSpace(g.Case + " · " + g.Phase), Sub: callersText(g.Concurrency),
		Verdict: verdictText(g), Forest: newForest(g, rows, notes, colours), Table: newFigures(g, rows, notes), Notes: notes.lines(),
		Loop: loopText(g), Control: controlText(g), Strips: strips(rows, colours),
	}
	if g.Phase == "" {
		s.Title = g.Case
	}
	if _, r := loneTarget(d); r != nil {
		var b bytes.Buffer
		loadScreen(&b, d, g, r)
		s.Screen = b.String()
	}
	s.CPU, s.CPUKeys = cpuBars(rows)
	s.Parts, s.PartKeys = partBars(rows)
	return s
}

func callersText(n int) string {
	if n == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", n)
}

// verdictText says in one sentence what a group shows, and no more than it shows.
func verdictText(g *result.Group) string {
	var best []*result.Row
	for _, r := range ordered(g) {
		if r.Ranked() && (r.Rank == "1" || strings.HasPrefix(r.Rank, "1–")) {
			best = append(best, r)
		}
	}
	base := g.With(result.Baseline)
	switch only := slices.DeleteFunc(slices.Clone(g.Rows), func(r *result.Row) bool { return !r.Ranked() }); {
	case base == nil && len(only) == 1 && only[0].Latency != nil:
		return fmt.Sprintf("%s answered %s calls a second, half of them within %s µs.", only[0].Contender.Name, figure(only[0].Throughput), digits(only[0].Latency.P50))
	case base == nil:
		return "There is no baseline to divide by."
	case len(best) == 0:
		return "No ranking could be shown."
	case len(best) > 1:
		names := make([]string, len(best))
		for i, r := range best {
			names[i] = r.Contender.Name
		}
		return fmt.Sprintf("%s and %s share the first place: which is fastest could not be shown.", strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
	case best[0] == base:
		return fmt.Sprintf("%s, the baseline, is fastest.", base.Contender.Name)
	}
	return fmt.Sprintf("%s is fastest: %s of %s's time.", best[0].Contender.Name, ratioText(best[0]), base.Contender.Name)
}

// figures is a group's table.
type figures struct {
	Heads []head
	Rows  []figureRow
}

type head struct{ ID, Over, Text string }

type figureRow struct {
	Role  string
	Cells []string
}

func newFigures(g *result.Group, rows []*result.Row, notes *footnotes) figures {
	var wanted []column
	for _, c := range columns() {
		if c.id == "contender" {
			c.cell = func(r *result.Row, _ *result.Group) string { return name(r) + notes.marks(r) }
		}
		wanted = append(wanted, c)
	}
	t := tableOf(g, rows, wanted)
	var out figures
	for _, c := range t.columns {
		out.Heads = append(out.Heads, head{c.id, c.over, c.head})
	}
	for i, r := range rows {
		out.Rows = append(out.Rows, figureRow{r.Role, t.rows[i]})
	}
	return out
}

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

// An axis is logarithmic; places on it are hundredths of its width.
type axis struct{ lo, hi float64 }

// logAxis holds the values and 5 % beyond them on both sides.
func logAxis(values []float64) axis {
	a := axis{math.Inf(1), math.Inf(-1)}
	for _, v := range values {
		if v > 0 && !math.IsInf(v, 1) {
			a.lo, a.hi = min(a.lo, v), max(a.hi, v)
		}
	}
	if a.lo >= a.hi {
		a.lo, a.hi = a.lo/2, a.hi*2
	}
	more := math.Pow(a.hi/a.lo, .05)
	return axis{a.lo / more, a.hi * more}
}

func (a axis) place(v float64) float64 {
	return 100 * math.Log(v/a.lo) / math.Log(a.hi/a.lo)
}

func (a axis) at(v float64) string { return percent(a.place(v)) }

func (a axis) span(lo, hi float64) string { return percent(a.place(hi) - a.place(lo)) }

// ticks marks round values, the densest set that leaves at least a tenth of the axis between two.
func (a axis) ticks() []tick {
	for _, steps := range [][]float64{{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9}, {1, 1.2, 1.4, 1.6, 2, 2.5, 3, 4, 5, 6, 8}, {1, 1.5, 2, 3, 5, 7}, {1, 2, 5}, {1, 3}, {1}} {
		var out []tick
		last, close := math.Inf(-1), false
		for e := math.Floor(math.Log10(a.lo)); e <= math.Ceil(math.Log10(a.hi)); e++ {
			for _, s := range steps {
				v := s * math.Pow(10, e)
				at := a.place(v)
				if at < 1 || at > 99 {
					continue
				}
				close = close || at-last < 9
				last = at
				out = append(out, tick{percent(at), round(v)})
			}
		}
		if !close {
			return out
		}
	}
	return nil
}

// round prints the round values of an axis: 0.15, 20, 5000, 20k, 1M.
func round(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.4gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.4gk", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

func percent(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	return strings.TrimSuffix(strings.TrimSuffix(fmt.Sprintf("%.1f", v), "0"), ".")
}

// A bar is stacked shares of one row.
type bar struct {
	Name, Role, Text string
	Shares           []share
}

type share struct {
	Name, Text string
	Key        int
	At, Width  string
}

// stack lays out what each row's shares add up to, on an axis that all bars have in common.
func stack(bars []bar, values [][]float64, keys []string) []bar {
	most := 0.0
	for _, v := range values {
		sum := 0.0
		for _, x := range v {
			sum += x
		}
		most = max(most, sum)
	}
	for i := range bars {
		at, sum := 0.0, 0.0
		for j, x := range values[i] {
			if w := 100 * x / most; x > 0 && most > 0 {
				bars[i].Shares = append(bars[i].Shares, share{keys[j], digits(x), j, percent(at), percent(w)})
				at += w
			}
			sum += x
		}
		bars[i].Text = digits(sum)
	}
	return bars
}

func cpuBars(rows []*result.Row) (bars []bar, keys []string) {
	all := []string{"client", "server", "backend"}
	var values [][]float64
	used := make([]bool, len(all))
	for _, r := range rows {
		v := make([]float64, len(all))
		for i, p := range []*float64{r.Client.CPU, serverCost(r, cpuOf), nil} {
			if i == 2 && r.Backend != nil {
				p = r.Backend.CPU
			}
			if p != nil {
				v[i], used[i] = *p, true
			}
		}
		if v[0]+v[1]+v[2] > 0 {
			bars, values = append(bars, bar{Name: name(r), Role: r.Role}), append(values, v)
		}
	}
	for i, u := range used {
		if u {
			keys = append(keys, all[i])
		}
	}
	return stack(bars, values, all), keys
}

func partBars(rows []*result.Row) (bars []bar, keys []string) {
	seen := make(map[string]bool)
	for _, r := range rows {
		for _, k := range partNames(r) {
			if !seen[k] {
				seen[k], keys = true, append(keys, k)
			}
		}
	}
	var values [][]float64
	for _, r := range rows {
		if len(r.Parts) == 0 {
			continue
		}
		v := make([]float64, len(keys))
		for i, k := range keys {
			v[i] = r.Parts[k].Mean
		}
		bars, values = append(bars, bar{Name: name(r), Role: r.Role}), append(values, v)
	}
	return stack(bars, values, keys), keys
}

// A strip is a row's block medians against its own middle one, as points of an SVG path: 0 to 1000 across, 0 to 40 down.
type strip struct {
	Name, Role, Text string
	Colour           int
	Points           template.HTMLAttr
	Rounds           []int // where a round begins
	Outliers         []across
	Drifts           bool
}

type across struct{ From, Width int }
