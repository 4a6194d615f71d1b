package report

import (
	"fmt"
	"strings"

	"toll/lab/result"
)

// mostWorkers is how many workers' rows a text shows; the document has all.
const mostWorkers = 20

// fleetText says which machines put a row's load on and how their parts were merged; empty where it was one.
func fleetText(r *result.Row) string {
	f := r.Fleet
	if f == nil {
		return ""
	}
	var b strings.Builder
	word := f.Verdict
	if f.Detail != "" {
		word += ": " + f.Detail
	}
	fmt.Fprintf(&b, "fleet      %s · %d of %d workers complete, %d of %d slices, %d came again and were merged once · on loss: %s\n", word, f.WorkersComplete, f.WorkersExpected,
		f.SlicesGot, f.SlicesExpected, f.Duplicates, f.OnLoss)
	spread := "less than their bound shows"
	if f.StartSpread != nil {
		spread = micros(*f.StartSpread)
	}
	fmt.Fprintf(&b, "           clocks within %s, starts apart by %s", micros(f.ClockBound), spread)
	if f.ControlCPU != nil {
		fmt.Fprintf(&b, ", coordinator and server used %.2f %% of the workers' CPU time", 100**f.ControlCPU)
	}
	fmt.Fprintf(&b, "\n  %-22s %8s %8s %8s %8s %8s %8s %8s %6s\n", "worker · µs", "ok", "ok/s", "p50", "p99", "max", "half of", "late p99", "cpu %")
	for i, w := range f.Workers {
		if i == mostWorkers {
			fmt.Fprintf(&b, "  and %d more, which the document has\n", len(f.Workers)-mostWorkers)
			break
		}
		p50, p99, most := "", "", ""
		if l := w.Latency; l != nil {
			p50, p99, most = figureOf(l.P50), atLeast(l.P99, 1000), figureOf(l.Max)
		}
		share := ""
		if w.CPU != nil {
			share = fmt.Sprintf("%.0f", 100**w.CPU)
		}
		half := w.Calibrated
		if half != nil {
			half = result.Ptr(*half / 2)
		}
		fmt.Fprintf(&b, "  %-22.22s %8d %8s %8s %8s %8s %8s %8s %6s %s\n", w.Worker, w.OK, orNothing(w.Throughput), p50, p99, most, orNothing(half), orNothing(w.LateP99), share,
			strings.Join(append(append([]string{}, w.Flags...), w.Lost), " "))
	}
	for _, e := range f.Events {
		fmt.Fprintf(&b, "  %6.1f s %s\n", e.AtS, strings.Trim(e.Worker+": "+e.What, ": "))
	}
	return strings.TrimRight(b.String(), "\n")
}

func orNothing(f *float64) string {
	if f == nil {
		return ""
	}
	return figureOf(*f)
}

// fleetTexts are those of a group's rows.
func fleetTexts(g *result.Group) string {
	for _, r := range g.Rows {
		if text := fleetText(r); text != "" {
			return "```\n" + text + "\n```"
		}
	}
	return ""
}
