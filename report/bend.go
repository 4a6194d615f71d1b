package report

import (
	"fmt"

	"toll/lab/result"
)

// A bend is throughput against latency of one case and phase, a line per contender through its concurrencies.
type bend struct {
	Title          string
	Lines          []sweep
	XTicks, YTicks []tick
}

type sweep struct {
	Name   string
	Colour int
	Role   string
	Points []point
	Steps  []step
	Bend   string
}

type point struct {
	X, Y, Text string
	Bend       bool
}

type step struct{ X1, Y1, X2, Y2 string }

// bends returns a chart for every case and phase that was measured at several concurrencies.
func bends(d *result.Document, colours map[string]int) []bend {
	var out []bend
	var titles []string
	rows := make(map[string]map[string][]*result.Row)
	names := make(map[string][]string)
	for _, g := range d.Groups() {
		title := g.Case + " · " + g.Phase
		if rows[title] == nil {
			rows[title] = make(map[string][]*result.Row)
			titles = append(titles, title)
		}
		for _, r := range ordered(g) {
			if r.Latency == nil || r.Throughput == nil || *r.Throughput <= 0 || r.Latency.P50 <= 0 || r.Role == result.Control {
				continue
			}
			if rows[title][r.Contender.Name] == nil {
				names[title] = append(names[title], r.Contender.Name)
			}
			rows[title][r.Contender.Name] = append(rows[title][r.Contender.Name], r)
		}
	}
	for _, title := range titles {
		if k, ok := newBend(title, names[title], rows[title], colours); ok {
			out = append(out, k)
		}
	}
	return out
}

func newBend(title string, names []string, rows map[string][]*result.Row, colours map[string]int) (bend, bool) {
	var rates, times []float64
	several := false
	for _, n := range names {
		several = several || len(rows[n]) > 1
		for _, r := range rows[n] {
			rates, times = append(rates, *r.Throughput), append(times, r.Latency.P50)
		}
	}
	if !several {
		return bend{}, false
	}
	x, y := logAxis(rates), logAxis(times)
	k := bend{Title: title, XTicks: x.ticks(), YTicks: y.flipped()}
	for _, n := range names {
		k.Lines = append(k.Lines, newLoad(n, rows[n], x, y, colours[n]))
	}
	return k, true
}

// flipped returns the ticks of an axis that grows upwards.
func (a axis) flipped() []tick {
	out := a.ticks()
	for i := range out {
		var v float64
		fmt.Sscan(out[i].At, &v)
		out[i].At = percent(100 - v)
	}
	return out
}

func newLoad(name string, rows []*result.Row, x, y axis, colour int) sweep {
	l := sweep{Name: name, Colour: colour, Role: rows[0].Role}
	best := 0
	for i, r := range rows {
		if *r.Throughput/r.Latency.P50 > *rows[best].Throughput/rows[best].Latency.P50 {
			best = i
		}
	}
	for i, r := range rows {
		p := point{X: x.at(*r.Throughput), Y: percent(100 - y.place(r.Latency.P50)), Bend: i == best && len(rows) > 1,
			Text: fmt.Sprintf("%s, %s: %s calls/s, p50 %s µs", name, callersText(r.Concurrency), digits(*r.Throughput), digits(r.Latency.P50))}
		if i > 0 {
			last := l.Points[i-1]
			l.Steps = append(l.Steps, step{last.X, last.Y, p.X, p.Y})
		}
		l.Points = append(l.Points, p)
	}
	if len(rows) > 1 {
		l.Bend = callersText(rows[best].Concurrency)
	}
	return l
}
