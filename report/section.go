package report

import (
	"bytes"
	"fmt"
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
	Knee           *knee       // nil where no search was made
	Fleet          *fleetBlock // nil where one machine put the load on
}

func newSection(d *result.Document, g *result.Group, index int, colours map[string]int) section {
	rows := ordered(g)
	notes := newFootnotes(rows)
	s := section{
		ID: fmt.Sprintf("g%d", index), Index: index, Callers: g.Concurrency, Title: strings.TrimSpace(g.Case + " · " + g.Phase), Sub: callersText(g.Concurrency),
		Verdict: verdictText(g), Forest: newForest(g, rows, notes, colours), Table: newFigures(g, rows, notes), Notes: notes.lines(),
		Loop: loopText(g), Control: controlText(g), Strips: strips(rows, colours),
		Knee: newKnee(g, rows, colours), Fleet: newFleetBlock(rows),
	}
	if g.Phase == "" {
		s.Title = g.Case
	}
	if _, r := loneTarget(d); r != nil {
		var b bytes.Buffer
		alone := *r
		alone.Fleet = nil // it has a block of its own
		loadScreen(&b, d, g, &alone)
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
	if text := kneeVerdict(g); text != "" {
		return text
	}
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
