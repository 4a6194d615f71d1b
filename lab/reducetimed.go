package lab

import (
	"cmp"
	"fmt"
	"time"

	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/lab/result"
)

// comparing reports whether several contenders are measured side by side.
func (r *run) comparing() bool {
	n := 0
	for _, c := range r.plan.Contenders {
		if c != result.Null && c != result.Floor {
			n++
		}
	}
	return n+len(r.plan.With) > 1
}

// sliceBlocks makes blocks of the slices of one turn.
func sliceBlocks(st load.Stretch) []result.Block {
	var out []result.Block
	for _, sl := range st.Outcome.Slices {
		h := &sl.Shard.Latency
		b := result.Block{Slot: st.Slot, Stage: sl.Stage, OK: h.Count()}
		if b.OK > 0 {
			b.P50, b.Min = result.Ptr(micros(float64(h.Quantile(.5)))), result.Ptr(micros(float64(h.Min())))
		}
		out = append(out, b)
	}
	return out
}

// threads returns how many threads drove the row's connections, 0 when goroutines did.
func (s *rowState) threads() int {
	n := 0
	for _, o := range s.outcomes {
		n = max(n, o.Threads)
	}
	return n
}

// elsewhere is what other machines spent that drove the VUs, nil when this one did.
func (s *rowState) elsewhere() *load.Elsewhere {
	for _, o := range s.outcomes {
		if o.Elsewhere != nil {
			return o.Elsewhere
		}
	}
	return nil
}

func unverified(e Entry) string {
	return cmp.Or(map[bool]string{true: "only the replies' status and framing were looked at, not their content"}[e.Client != ""],
		"replies were drained undecoded; only their status was looked at")
}

// timed adds what only a load under time has: the open model's generator, the stages, the warm-up.
func (r *run) timed(s *rowState, row *result.Row) {
	if len(s.outcomes) == 0 {
		return
	}
	set := r.o.Settings
	if n := len(s.capacities); n > 0 {
		set.Rate = set.Shares[s.setting.Phase] * s.capacities[n-1]
	}
	stages := set.Shape(s.setting.Concurrency)
	if row.Role == result.Null && !r.comparing() || s.brief {
		r.ceiling(s, row, briefly(stages))
		stages = nil
	} else {
		r.ceiling(s, row, stages)
	}
	if set.Model == plan.Open {
		r.schedule(s, row)
	}
	if len(set.Stages) > 0 && stages != nil {
		row.Stages = periods(stages, s.outcomes)
	}
	if len(s.warm) > 0 {
		all := periods(plan.Hold(plan.Peak(set.Shape(s.setting.Concurrency)), time.Duration(set.WarmupTime)), s.warm)
		if len(all) > 0 {
			row.WarmUp = &all[0]
		}
	}
}

// ceiling says which rate no contender could exceed: that of the load's VUs if nothing but the pauses and delays that the load
// itself asks for took any time. A VU's last call counts whole in both, which in a short turn is most of a percent.
func (r *run) ceiling(s *rowState, row *result.Row, stages []plan.Stage) {
	fixed := time.Duration(r.o.Settings.Think) + s.entry.Delay
	if fixed <= 0 || len(stages) == 0 || r.o.Settings.Model != plan.Closed {
		return
	}
	row.Ceiling = result.Ptr(result.Round3(float64(plan.Begun(stages, fixed)) / plan.Total(stages).Seconds()))
}

// schedule says how the generator kept its schedule.
func (r *run) schedule(s *rowState, row *result.Row) {
	o := &result.Open{Spread: cmp.Or(r.o.Settings.Arrivals, plan.Even), InFlightLimit: r.o.Settings.MostInFlight()}
	if s.knee != nil {
		o.InFlightLimit = s.inFlightLimit
	}
	var over time.Duration
	for _, x := range s.outcomes {
		o.Arrivals += x.Arrivals
		o.InFlightMost = max(o.InFlightMost, x.InFlightMost)
		o.Bursts += x.Bursts
		o.BurstMost = max(o.BurstMost, x.BurstMost)
		if n := len(x.Slices); n > 0 {
			over += x.Slices[n-1].To
		}
	}
	if s.knee != nil { // the leads are in no figure
		o.Arrivals, over = s.shard.Ops()+s.shard.Dropped, s.elapsed
	}
	if over > 0 {
		o.Offered = result.Round3(float64(o.Arrivals) / over.Seconds())
	}
	if h := &s.shard.Late; h.Count() > 0 {
		o.Late = &result.Lateness{P50: micros(float64(h.Quantile(.5))), Max: micros(float64(h.Max()))}
		if h.Count() >= leastForP99 {
			o.Late.P99 = result.Ptr(micros(float64(h.Quantile(.99))))
		}
	}
	r.offered(s, o)
	row.Open = o
	if row.Dropped > 0 {
		row.Warnings = append(row.Warnings, fmt.Sprintf("saturated: %d of %d arrivals found %d calls in flight and were dropped", row.Dropped, o.Arrivals, o.InFlightLimit))
	}
	if o.Bursts > 0 {
		row.Warnings = append(row.Warnings, fmt.Sprintf("the generator fell more than 1 ms behind %d times and caught up by sending up to %d calls at once; their wait is in the latency", o.Bursts, o.BurstMost))
	}
	if o.Late != nil && o.Late.P99 != nil && row.Latency != nil && *o.Late.P99 > row.Latency.P50*lateShare {
		row.Warnings = append(row.Warnings, fmt.Sprintf("client-bound: calls were sent up to %.0f µs late at p99, more than a tenth of the p50 of %.0f µs", *o.Late.P99, row.Latency.P50))
	}
}

// lateShare is how late calls may be sent at p99, in shares of the p50, before the row says client-bound (rule 7).
const lateShare = .1

const leastForP99 = 1000

// periods adds up the outcomes' slices by stage. Stages that are jumps have none.
func periods(stages []plan.Stage, outcomes []load.Outcome) []result.Period {
	var out []result.Period
	var from time.Duration
	var level float64
	for i, st := range stages {
		d := time.Duration(st.Duration)
		if d > 0 {
			p := result.Period{FromS: from.Seconds(), ToS: (from + d).Seconds(), From: level, To: st.Target}
			fill(&p, i, outcomes)
			out = append(out, p)
		}
		from, level = from+d, st.Target
	}
	return out
}

func fill(p *result.Period, stage int, outcomes []load.Outcome) {
	sum := new(record.Shard)
	turns := 0
	for _, o := range outcomes {
		there := false
		for _, sl := range o.Slices {
			if sl.Stage == stage {
				sum.Merge(sl.Shard)
				there = true
			}
		}
		if there {
			turns++
		}
	}
	p.Parts = parts(sum)
	p.OK, p.Failed, p.Dropped, p.Latency = sum.Latency.Count(), failures(sum), sum.Dropped, latency(&sum.Latency)
	if turns > 0 {
		p.Throughput = result.Round3(float64(p.OK) / (p.ToS - p.FromS) / float64(turns))
	}
}

// tail puts the timeouts above all successes; nil when nothing timed out.
func tail(s *record.Shard, limit time.Duration) *result.Tail {
	timeouts := s.Failures[record.Timeout]
	ok := s.Latency.Count()
	if timeouts == 0 {
		return nil
	}
	all := ok + timeouts
	at := func(q float64) float64 {
		if rank := int64(q*float64(all) + .999999); rank <= ok {
			return micros(float64(s.Latency.AtRank(rank)))
		}
		return micros(float64(max(limit, time.Duration(s.Latency.Max()))))
	}
	t := &result.Tail{Timeouts: timeouts, Limit: micros(float64(limit)), AtLeastFrom: result.Round5(float64(ok) / float64(all)), P50: at(.5)}
	for _, q := range []struct {
		to    **float64
		q     float64
		least int64
	}{{&t.P90, .9, 100}, {&t.P95, .95, 200}, {&t.P99, .99, 1000}} {
		if all >= q.least {
			*q.to = result.Ptr(at(q.q))
		}
	}
	return t
}
