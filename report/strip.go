package report

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"

	"toll/lab/result"
)

// The box that a strip is drawn in, and how far a block may lie off: half as long or half as long again.
const (
	stripWidth  = 1000
	stripHeight = 40
	stripRange  = .5
)

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

func strips(rows []*result.Row, colours map[string]int) []strip {
	var out []strip
	for _, r := range rows {
		if s, ok := newStrip(r); ok {
			s.Colour = colours[r.Contender.Name]
			out = append(out, s)
		}
	}
	return out
}

func newStrip(r *result.Row) (strip, bool) {
	all := r.BlockP50s()
	if len(all) < 2 {
		return strip{}, false
	}
	moved := r.Moved()
	middle := moved.Middle
	s := strip{Name: name(r), Role: r.Role}
	total := 0
	for _, x := range r.Rounds {
		total += len(x.Blocks)
	}
	var points strings.Builder
	at, pen := 0, "M"
	for _, x := range r.Rounds {
		from := stripWidth * at / total
		for _, b := range x.Blocks {
			if v := r.Level(b); v == nil {
				pen = "M" // a block without a success is a hole
			} else {
				off := max(-stripRange, min(stripRange, *v/middle-1))
				fmt.Fprintf(&points, "%s%d %d", pen, stripWidth*(2*at+1)/(2*total), int(math.Round(stripHeight/2*(1-off/stripRange))))
				pen = "L"
			}
			at++
		}
		s.Rounds = append(s.Rounds, from)
		if x.Outlier != "" {
			s.Outliers = append(s.Outliers, across{from, stripWidth*at/total - from})
		}
	}
	s.Points = template.HTMLAttr(fmt.Sprintf(`d="%s"`, points.String()))
	s.Drifts = moved.Drifting
	if !math.IsNaN(moved.ThirdsRatio) {
		s.Text = fmt.Sprintf("last third %.2f × the first", moved.ThirdsRatio)
	}
	return s, true
}

// partNames returns the names of a row's parts in a fixed order.
func partNames(r *result.Row) []string { return slices.Sorted(maps.Keys(r.Parts)) }
