package report

import (
	"fmt"
	"strings"

	"toll/lab/result"
)

// A fleetBlock is what a page shows of the machines that put a row's load on.
type fleetBlock struct {
	Verdict string
	Whole   bool // every slice of every worker is there
	Facts   []fact
	Workers []fleetLine // what is merged comes first
	More    int         // workers that are not shown
	Events  []fleetMoment
}

// A fleetLine is one worker's figures, or those that were merged of all.
type fleetLine struct {
	Name, Role string
	Cells      []string // as fleetHeads
	Flags      []string
	Lost       string
}

// A fleetMoment is something that happened.
type fleetMoment struct{ At, Worker, What string }

// Heads are those of the workers' columns; times are µs.
func (fleetBlock) Heads() []string {
	return []string{"slices", "ok", "failed", "ok/s", "p50", "p99", "max", "may carry", "late p99", "CPU %"}
}

// newFleetBlock makes the block of a group's row that several machines put the load on; nil where it was one.
func newFleetBlock(rows []*result.Row) *fleetBlock {
	for _, r := range rows {
		if r.Fleet != nil {
			return fleetBlockOf(r)
		}
	}
	return nil
}

func fleetBlockOf(r *result.Row) *fleetBlock {
	f := r.Fleet
	b := &fleetBlock{Verdict: f.Verdict, Whole: f.Verdict == result.FleetComplete, More: max(len(f.Workers)-mostWorkers, 0)}
	if f.Detail != "" {
		b.Verdict += ": " + f.Detail
	}
	b.Facts = []fact{
		{"workers complete", fmt.Sprintf("%d of %d", f.WorkersComplete, f.WorkersExpected)},
		{"slices", fmt.Sprintf("%d of %d; %d came again and were merged once", f.SlicesGot, f.SlicesExpected, f.Duplicates)},
		{"merged", fmt.Sprintf("%.1f s of the load", f.MergedS)},
		{"on loss", f.OnLoss},
		{"clocks", "within " + micros(f.ClockBound)},
		{"starts", "apart by less than the clocks can show"},
	}
	if f.StartSpread != nil {
		b.Facts[5].Text = "apart by " + micros(*f.StartSpread)
	}
	if f.ControlCPU != nil {
		b.Facts = append(b.Facts, fact{"control plane", fmt.Sprintf("%.2f %% of the workers' CPU time", 100**f.ControlCPU)})
	}
	each := 0
	if f.WorkersExpected > 0 {
		each = f.SlicesExpected / f.WorkersExpected
	}
	var failed int64
	for _, n := range r.Failed {
		failed += n
	}
	all := fleetLine{Name: "merged", Role: "merged"}
	all.Cells = fleetCells(f.SlicesGot, f.SlicesExpected, r.OK, failed, r.Throughput, r.Latency)
	all.Cells = append(all.Cells, "", "", "")
	b.Workers = append(b.Workers, all)
	for _, w := range f.Workers[:min(len(f.Workers), mostWorkers)] {
		b.Workers = append(b.Workers, fleetWorker(w, each))
	}
	for _, e := range f.Events {
		b.Events = append(b.Events, fleetMoment{fmt.Sprintf("%.1f s", e.AtS), e.Worker, e.What})
	}
	return b
}

func fleetWorker(w result.FleetWorker, slices int) fleetLine {
	line := fleetLine{Name: w.Worker, Flags: w.Flags, Lost: w.Lost, Cells: fleetCells(w.SlicesGot, slices, w.OK, w.Failed, w.Throughput, w.Latency)}
	half, share := "", ""
	if w.Calibrated != nil {
		half = figureOf(*w.Calibrated / 2)
	}
	if w.CPU != nil {
		share = fmt.Sprintf("%.0f", 100**w.CPU)
	}
	line.Cells = append(line.Cells, half, orNothing(w.LateP99), share)
	switch {
	case w.Lost != "":
		line.Role = "lost"
	case len(w.Flags) > 0:
		line.Role = "flagged"
	}
	return line
}

// fleetCells are those that a worker and what is merged have in common.
func fleetCells(got, expected int, ok, failed int64, rate *float64, l *result.Latency) []string {
	cells := []string{fmt.Sprintf("%d/%d", got, expected), fmt.Sprint(ok), fmt.Sprint(failed), orNothing(rate), "", "", ""}
	if l != nil {
		cells[4], cells[5], cells[6] = figureOf(l.P50), atLeast(l.P99, 1000), figureOf(l.Max)
	}
	return cells
}

// Marks is what stands behind a worker's figures: its flags, and why it was lost.
func (l fleetLine) Marks() string {
	marks := strings.Join(l.Flags, ", ")
	if l.Lost != "" {
		marks = strings.TrimPrefix(marks+"; lost: "+l.Lost, "; ")
	}
	return marks
}
