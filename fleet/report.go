package fleet

import (
	"slices"
	"time"

	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
)

// A Report is what a run came to.
type Report struct {
	Verdict Verdict
	OnLoss  string

	Workers, WorkersComplete int
	Slices, SlicesGot        int // of all workers, warm-up included: those that the plan has, those that arrived
	Merged                   int // slices of time that are merged, warm-up included
	Duplicates, Strays       int // slices that came again, and that belonged to nobody

	Groups  []Group // merged, in the order of time
	Members []MemberReport
	Events  []Event

	Begins  time.Duration // when the window does, after the start
	Cut     time.Duration // up to where slices are merged
	Bound   time.Duration // the largest of the clocks' bounds
	Spread  time.Duration // between the first and the last worker's start
	Spreads bool          // it is large enough for the clocks' bound
}

// A MemberReport is one worker's part. Its figures are of the window.
type MemberReport struct {
	ID          string
	Segment     plan.Segment
	Hello       Hello
	Calibration *Calibration
	Totals      *Totals // nil when it never sent them
	Complete    bool
	Lost        string // why it was lost or stopped; empty when it was not
	LostAt      time.Duration
	Got         int // slices
	Duplicates  int
	Limited     int // slices whose calls were sent late
	OK, Failed  int64
	Dropped     int64
	Latency     *record.Hist
	Late        *record.Hist
	CPU         time.Duration
	Ahead       time.Duration // of its clock
	Bound       time.Duration // of that
}

// Report is what the run came to so far.
func (c *Coordinator) Report() *Report {
	r := &Report{
		Verdict: c.Verdict(), OnLoss: c.cfg.OnLoss, Workers: c.cfg.Workers, Slices: c.cfg.Workers * len(c.leg.Times), Merged: c.mark,
		Strays: c.strays, Groups: c.groups, Events: c.events, Begins: c.leg.begins(),
	}
	if c.mark > 0 {
		r.Cut = c.leg.Times[c.mark-1].To
	}
	var first, last time.Duration
	for i, m := range c.order {
		x := MemberReport{
			ID: m.id, Segment: m.segment, Hello: m.hello, Calibration: m.calibration, Totals: m.totals, Complete: m.complete, Got: m.got,
			Duplicates: m.duplicates, Limited: m.limited, OK: m.window.ok, Dropped: m.window.dropped, Latency: &m.latency, Late: &m.late, CPU: m.cpu,
		}
		for _, n := range m.window.failed {
			x.Failed += n
		}
		if m.lost || m.short {
			x.Lost, x.LostAt = m.why, m.since
		}
		x.Ahead, x.Bound = m.clock.offset()
		r.Bound = max(r.Bound, x.Bound)
		r.SlicesGot += m.got
		r.Duplicates += m.duplicates
		if m.complete {
			r.WorkersComplete++
		}
		if m.totals != nil {
			late := m.totals.StartLate
			if i == 0 {
				first, last = late, late
			}
			first, last = min(first, late), max(last, late)
		}
		r.Members = append(r.Members, x)
	}
	r.Spread, r.Spreads = OneWay(last-first, r.Bound)
	return r
}

// clone returns a copy that shares no histogram with r.
func (r *Report) clone() *Report {
	c := *r
	c.Groups, c.Members = slices.Clone(r.Groups), slices.Clone(r.Members)
	for i := range c.Groups {
		s := new(record.Shard)
		s.Merge(c.Groups[i].Shard)
		c.Groups[i].Shard = s
	}
	for i := range c.Members {
		latency, late := new(record.Hist), new(record.Hist)
		latency.Merge(c.Members[i].Latency)
		late.Merge(c.Members[i].Late)
		c.Members[i].Latency, c.Members[i].Late = latency, late
	}
	return &c
}

// Whole reports whether the window was run to its end by all.
func (r *Report) Whole() bool { return r.Verdict.Word == Complete }

// Outcome is the merged window as the lab knows it, and the warm-up's shard. What only a whole load has (the number in flight, the
// bursts) is left out of one that was cut.
func (r *Report) Outcome() (out load.Outcome, warm *record.Shard) {
	warm = new(record.Shard)
	for _, g := range r.Groups {
		if g.Warm {
			warm.Merge(g.Shard)
			continue
		}
		out.Slices = append(out.Slices, load.Slice{Stage: g.Stage, From: g.From - r.Begins, To: g.To - r.Begins, Shard: g.Shard})
		out.Arrivals += g.Shard.Ops() + g.Shard.Dropped
	}
	out.Elapsed = max(r.Cut-r.Begins, 0)
	away := new(load.Elsewhere)
	out.Elsewhere = away
	for _, m := range r.Members {
		away.Meter.CPU += m.CPU
		away.Cores += m.Hello.Host.GOMAXPROCS
		t := m.Totals
		if t == nil || !r.Whole() {
			continue
		}
		out.Elapsed = max(out.Elapsed, t.Elapsed-r.Begins)
		out.InFlightMost += t.InFlightMost
		out.InFlight += t.InFlight
		out.Bursts += t.Bursts
		out.BurstMost = max(out.BurstMost, t.BurstMost)
		out.Threads += t.Threads
		away.Meter.Allocs += t.Allocs
		away.Meter.AllocBytes += t.AllocBytes
		away.Allocs = true
	}
	return out, warm
}

// Calibrations adds up what the workers measured of the null target.
func (r *Report) Calibrations() (out load.Outcome, err error) {
	sum := new(record.Shard)
	away := new(load.Elsewhere)
	for _, m := range r.Members {
		k := m.Calibration
		if k == nil || k.NoNull != "" {
			continue
		}
		s, err := record.ParseShard(k.Null)
		if err != nil {
			return out, err
		}
		sum.Merge(s)
		out.Elapsed = max(out.Elapsed, k.Elapsed)
		out.Threads += k.Threads
		away.Meter.CPU += k.CPU
		away.Cores += m.Hello.Host.GOMAXPROCS
	}
	out.Slices = []load.Slice{{Stage: 1, To: out.Elapsed, Shard: sum}}
	out.Elsewhere = away
	return out, nil
}
