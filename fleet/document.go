package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"toll/lab"
	"toll/lab/check"
	"toll/lab/plan"
	"toll/lab/result"
)

// The flags of a worker: why its part may be of itself and not of the target.
const (
	Straggler     = "straggler"     // its calls were sent late
	ClientBound   = "client-bound"  // it used nearly all of its cores
	Overcommitted = "overcommitted" // it carried more than half of what it was calibrated at
	StartedLate   = "started-late"
)

// mostCPU is the share of its cores from which on a worker is client-bound, lateStart how late it may start.
const (
	mostCPU   = .8
	lateStart = 50 * time.Millisecond
)

func micros(d time.Duration) float64 { return result.Round3(float64(d) / 1e3) }

// Document is the report as documents hold it. control is the CPU time of coordinator and server, in shares of the workers'.
func (r *Report) Document(control *float64) *result.Fleet {
	f := &result.Fleet{
		Verdict: r.Verdict.Word, Detail: r.Verdict.Detail, OnLoss: r.OnLoss, WorkersExpected: r.Workers, WorkersComplete: r.WorkersComplete,
		SlicesExpected: r.Slices, SlicesGot: r.SlicesGot, Duplicates: r.Duplicates, Strays: r.Strays, MergedS: result.Round3(max(r.Cut-r.Begins, 0).Seconds()),
		ClockBound: micros(r.Bound), ControlCPU: control, Workers: []result.FleetWorker{}, Events: []result.FleetEvent{},
	}
	if r.Spreads {
		f.StartSpread = result.Ptr(micros(r.Spread))
	}
	for i := range r.Members {
		f.Workers = append(f.Workers, r.Members[i].document(max(r.Cut-r.Begins, 0)))
	}
	for _, e := range r.Events {
		f.Events = append(f.Events, result.FleetEvent{AtS: result.Round3(e.At.Seconds()), Worker: e.Worker, What: e.What})
	}
	return f
}

func (m *MemberReport) document(over time.Duration) result.FleetWorker {
	h := m.Hello
	w := result.FleetWorker{
		Worker: m.ID, Number: m.Segment.Number, Complete: m.Complete, Lost: m.Lost, SlicesGot: m.Got, Duplicates: m.Duplicates, OK: m.OK, Failed: m.Failed,
		Dropped: m.Dropped, Latency: lab.Latency(m.Latency), Limited: m.Limited, ClockAhead: micros(m.Ahead), ClockBound: micros(m.Bound),
		Cores: h.Host.Cores, GOMAXPROCS: h.Host.GOMAXPROCS, OS: h.Build.OS, Arch: h.Build.Arch, CPUModel: h.Host.CPU, Kernel: h.Host.Kernel, Flags: []string{},
	}
	flag := func(on bool, name string) {
		if on {
			w.Flags = append(w.Flags, name)
		}
	}
	if over > 0 {
		rate := float64(m.OK) / over.Seconds()
		w.Throughput = result.Ptr(result.Round3(rate))
		share := m.CPU.Seconds() / over.Seconds() / float64(max(h.Host.GOMAXPROCS, 1))
		w.CPU = result.Ptr(result.Round5(share))
		flag(share > mostCPU, ClientBound)
		if k := m.Calibration; k != nil && k.Rate > 0 {
			flag(rate > mostOfCalibrated*k.Rate, Overcommitted)
		}
	}
	if m.Late.Count() > 0 {
		late := time.Duration(m.Late.Quantile(.99))
		w.LateP99 = result.Ptr(micros(late))
		flag(!timely(late) || m.Limited > 0, Straggler)
	}
	if k := m.Calibration; k != nil && k.NoNull == "" {
		w.Calibrated, w.TimerP99 = result.Ptr(result.Round3(k.Rate)), result.Ptr(micros(k.Late))
		if k.Floor > 0 {
			w.FloorP50 = result.Ptr(micros(k.Floor))
		}
	}
	if t := m.Totals; t != nil {
		w.StartLate = result.Ptr(micros(t.StartLate))
		w.SteppedMS = result.Round3(t.Stepped.Seconds() * 1000)
		if max(t.Stepped, -t.Stepped) < leastStep {
			w.SteppedMS = 0
		}
		flag(t.StartLate > lateStart, StartedLate)
	}
	return w
}

// Annotate puts what the document of a fleet's run must say beside its figures into it, and judges it again.
func (r *Report) Annotate(d *result.Document, control *float64) {
	f := r.Document(control)
	whole := plan.Total(d.Plan.Shape(d.Plan.Concurrency[0]))
	for i := range d.Rows {
		row := &d.Rows[i]
		row.Processes = slices.DeleteFunc(row.Processes, func(p result.Process) bool { return p.Role == "client" })
		for _, w := range f.Workers {
			row.Processes = append(row.Processes, result.Process{Role: "client", GOMAXPROCS: result.Ptr(w.GOMAXPROCS)})
		}
		if row.Role != "" {
			continue
		}
		row.Fleet = f
		for _, w := range f.Workers {
			if len(w.Flags) > 0 {
				row.Warnings = append(row.Warnings, fmt.Sprintf("worker %s: %s", w.Worker, strings.Join(w.Flags, ", ")))
			}
		}
		if f.Verdict != result.FleetComplete {
			row.Warnings = append(row.Warnings, fmt.Sprintf("%s: %s; the figures are of the first %.1f s of %.1f s, on_loss %s", f.Verdict, f.Detail, f.MergedS, whole.Seconds(), f.OnLoss))
		}
	}
	if cut := max(r.Cut-r.Begins, 0); cut < whole && !d.Partial {
		d.Partial = true
		d.Method.Deviations = append(d.Method.Deviations, plan.Deviation{What: "completed", Claimed: whole.String(), Ran: cut.String() + ", " + r.Verdict.String()})
	}
	d.Verdict = check.Verdict(d)
}
