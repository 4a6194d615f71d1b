package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"

	"toll/lab/plan"
	"toll/lab/result"
)

// A knee is the stretches of a group's searches, rate against the quantile that is bounded, and what they found.
type knee struct {
	Bound, BoundAt, Quantile string
	Lines                    []kneeLine
	XTicks, YTicks           []tick
	Table                    []string
}

// A kneeLine is one contender's.
type kneeLine struct {
	Name, Role, Text      string
	Colour                int
	At, BandLo, BandWidth string // of the knee and its interval; empty without
	Dots                  []kneeDot
}

type kneeDot struct{ X, Y, Text, Outcome string }

// newKnee returns the chart of a group, nil where its rows have no knee.
func newKnee(g *result.Group, rows []*result.Row, colours map[string]int) *knee {
	var rates, times []float64
	text := ""
	for _, r := range rows {
		if r.Knee == nil {
			continue
		}
		text = r.Knee.Bound
		for _, s := range r.Knee.Searches {
			for _, x := range s.Stretches {
				rates = append(rates, x.Rate)
				if x.Bounded != nil {
					times = append(times, *x.Bounded)
				}
			}
		}
	}
	bound, err := plan.ParseBound(text)
	if err != nil {
		return nil
	}
	limit := float64(bound.Limit) / float64(time.Microsecond)
	x, y := logAxis(rates), logAxis(append(times, limit))
	k := &knee{Bound: text, BoundAt: percent(100 - y.place(limit)), Quantile: bound.Name, XTicks: x.ticks(), YTicks: y.flipped()}
	for _, r := range rows {
		if r.Knee != nil {
			k.Lines = append(k.Lines, newKneeLine(r, x, y, colours[r.Contender.Name]))
		}
	}
	k.Table = kneeLines(g)
	return k
}

func newKneeLine(r *result.Row, x, y axis, colour int) kneeLine {
	l := kneeLine{Name: name(r), Role: r.Role, Colour: colour, Text: r.Knee.Text()}
	if v := r.Knee.Rate; v != nil {
		l.At = x.at(*v)
	}
	if lo, hi := r.Knee.Lo, r.Knee.Hi; lo != nil && hi != nil {
		l.BandLo, l.BandWidth = x.at(*lo), x.span(*lo, *hi)
	}
	for _, s := range r.Knee.Searches {
		for _, t := range s.Stretches {
			d := kneeDot{X: x.at(t.Rate), Y: "1", Outcome: t.Outcome, Text: fmt.Sprintf("%s at %s/s: %s", l.Name, figureOf(t.Rate), stretchText(t))}
			if t.Bounded != nil {
				d.Y = percent(100 - y.place(*t.Bounded))
			}
			l.Dots = append(l.Dots, d)
		}
	}
	return l
}

// stretchText says how a stretch came out, and why.
func stretchText(t result.KneeStretch) string {
	text := map[string]string{result.Holds: "holds", result.Misses: "misses", result.Clients: "says nothing: the client was late"}[t.Outcome]
	if t.Bounded != nil {
		text += fmt.Sprintf(", %s µs", figureOf(*t.Bounded))
	}
	if t.Failed > 0 {
		text += fmt.Sprintf(", %d failed", t.Failed)
	}
	if t.Dropped > 0 {
		text += fmt.Sprintf(", %d dropped", t.Dropped)
	}
	return text
}

// kneeLines are the knees of a group as a table; none where its rows have none.
func kneeLines(g *result.Group) []string {
	cells := [][]string{{"", "rate/s (95 %)", "searches", "held below", "missed above", "at the knee µs: p50", "p99", "server CPU µs"}}
	bound := ""
	for _, r := range ordered(g) {
		if r.Knee == nil {
			continue
		}
		bound = r.Knee.Bound
		settled := 0
		for _, s := range r.Knee.Searches {
			if _, ok := s.Value(); ok {
				settled++
			}
		}
		p50, p99, cpu := none, none, none
		if r.Latency != nil {
			p50, p99 = figureOf(r.Latency.P50), atLeast(r.Latency.P99, 1000)
		}
		if r.Server != nil {
			cpu = figure(r.Server.CPU)
		}
		sides := r.Knee.Sides()
		cells = append(cells, []string{
			name(r), strings.ReplaceAll(r.Knee.Text(), "/s", ""), fmt.Sprintf("%d of %d", settled, len(r.Knee.Searches)),
			outOf(sides.Below-sides.MissedBelow, sides.Below), outOf(sides.Above-sides.HeldAbove, sides.Above), p50, p99, cpu,
		})
	}
	if bound == "" {
		return nil
	}
	var b bytes.Buffer
	aligned(&b, cells, 2)
	out := []string{"the knee: the highest rate with " + bound + " from when each call was due in most of a stretch's spells, and nothing failed"}
	out = append(out, strings.Split(strings.TrimRight(b.String(), "\n"), "\n")...)
	for _, r := range ordered(g) {
		if r.Knee == nil {
			continue
		}
		if n := r.Knee.Sides().Disturbed; n > 0 {
			out = append(out, fmt.Sprintf("  %s: %s said nothing, because the client was late; tried again", name(r), map[bool]string{true: "1 stretch", false: fmt.Sprintf("%d stretches", n)}[n == 1]))
		}
		if below, above, ok := r.Knee.Approach(); ok && r.Role == "" || ok && r.Role == result.Baseline {
			out = append(out, fmt.Sprintf("  %s: approached from below %.0f/s, from above %.0f/s (%+.1f %%)", name(r), below, above, 100*(above/below-1)))
		}
	}
	return out
}

func outOf(n, of int) string {
	if of == 0 {
		return none
	}
	return fmt.Sprintf("%d of %d", n, of)
}

// kneeVerdict says in one sentence what the knees of a group show.
func kneeVerdict(g *result.Group) string {
	var best *result.Row
	rate := math.Inf(-1)
	n := 0
	for _, r := range g.Rows {
		if r.Knee == nil || !r.Ranked() {
			continue
		}
		n++
		if v := r.Knee.Rate; v != nil && *v > rate {
			best, rate = r, *v
		}
	}
	switch {
	case n == 0:
		return ""
	case best == nil:
		return "No knee was found on both sides."
	case n > 1 && strings.Contains(best.Rank, "–"):
		return fmt.Sprintf("%s has the highest knee of those found, %s; which is highest could not be shown.", best.Contender.Name, best.Knee.Text())
	case n > 1:
		return fmt.Sprintf("%s has the highest knee: %s with %s.", best.Contender.Name, best.Knee.Text(), best.Knee.Bound)
	}
	return fmt.Sprintf("%s answers up to %s with %s.", best.Contender.Name, best.Knee.Text(), best.Knee.Bound)
}
