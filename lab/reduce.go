package lab

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"toll/lab/check"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/lab/result"
	"toll/lab/stats"
)

// A rowState is a row while rounds are added to it.
type rowState struct {
	setting   Setting
	entry     Entry
	shard     record.Shard
	rounds    []result.Round
	elapsed   time.Duration
	active    time.Duration
	clientCPU time.Duration
	server    Usage // used in the windows; RSS and threads are the largest seen
	serverOK  bool
	procs     int // GOMAXPROCS of the lab while it called
	metered   metered
	outcomes  []load.Outcome // of turns under load
	warm      []load.Outcome

	knee          *result.Knee // its searches, where blocks are such
	inFlightLimit int          // of a knee's stretches, the largest
	capacities    []float64    // of the baseline, one a round
	handled       handled      // in the windows

	retained                  result.Retained // its Sessions only, until they are reduced
	retainedAt, retainedLater int64           // bytes held on to more than before the calls, at once and after the idle time

	spent record.Meter // by this process on those turns
	brief bool         // its turns were an instrument's own

	behind []Usage // used by its backends in the windows; nil when one of them does not say
}

func (r *run) rowName(s Setting, e Entry) string {
	row := result.Row{Case: s.Case, Phase: s.Phase, Concurrency: s.Concurrency, Contender: e.Contender, Role: e.Role}
	return row.ID()
}

// keep adds what a lane measured in one round to its row.
func (r *run) keep(s Setting, l *lane, got load.LaneResult) {
	key := rowKey(s, l.entry)
	row := r.rows[key]
	if row == nil {
		row = &rowState{
			setting: s, entry: l.entry, serverOK: true, procs: runtime.GOMAXPROCS(0), brief: l.turn != nil, behind: make([]Usage, len(l.entry.Backends)),
		}
		r.rows[key] = row
	}
	l.row = row
	if l.capacity > 0 {
		row.capacities = append(row.capacities, l.capacity)
	}
	var spent *time.Duration // by the server in this round
	if after, ok := r.usage(s, l); ok && l.usable {
		spent = result.Ptr(after.CPU - l.before.CPU)
		row.server.CPU += *spent
		row.server.User += after.User - l.before.User
		row.server.System += after.System - l.before.System
		row.limited(l.before.Limited, after.Limited)
		row.server.RSSPeak = max(row.server.RSSPeak, after.RSSPeak)
		row.server.Threads = max(row.server.Threads, after.Threads)
	} else {
		row.serverOK = false
	}
	row.addBehind(l.behind, r.behind(s, l))
	row.warm = append(row.warm, l.warm...)
	round := result.Round{Round: s.Round, Ops: got.Shard.Ops() + got.Shard.Dropped, OK: got.Shard.Latency.Count(), Failed: failures(got.Shard)}
	for _, st := range got.Stretches {
		row.elapsed += st.Elapsed
		row.active += st.Active
		row.clientCPU += st.CPU
		round.ElapsedS += st.Elapsed.Seconds()
		if st.Outcome != nil {
			row.outcomes = append(row.outcomes, *st.Outcome)
			row.spent = row.spent.Add(st.Meter)
			if len(got.Stretches) == 1 && len(st.Outcome.Slices) > 1 && r.o.Settings.BlocksOf(s.Round-1) == 1 && !r.comparing() {
				round.Blocks = sliceBlocks(st)
				continue
			}
		}
		b := result.Block{Slot: st.Slot, OK: st.OK}
		if st.OK > 0 {
			b.P50, b.Min = result.Ptr(micros(st.Median)), result.Ptr(micros(st.Min))
		}
		round.Blocks = append(round.Blocks, b)
	}
	if calls := got.Shard.Ops(); spent != nil && calls > 0 && l.engine() == nil {
		round.ServerCPU = result.Ptr(micros(float64(*spent) / float64(calls)))
	}
	round.ElapsedS = result.Round5(round.ElapsedS)
	if round.OK > 0 {
		round.P50 = result.Ptr(micros(float64(got.Shard.Latency.Quantile(.5))))
	}
	row.rounds = append(row.rounds, round)
	row.shard.Merge(got.Shard)
	switch {
	case got.Dead != nil:
		r.fail(s, label(l.entry), fmt.Sprintf("in round %d: %v", s.Round, got.Dead))
	case round.OK == 0 && round.Ops > 0 && l.crowd == nil:
		// Calls are what a load is about, right or wrong; a comparison has nothing to compare where none is right.
		r.fail(s, label(l.entry), fmt.Sprintf("in round %d: not one of its %d replies was right: %s", s.Round, round.Ops, kinds(round.Failed)))
	}
}

// kinds lists failures, the most frequent first.
func kinds(failed map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(failed), func(a, b string) int {
		return cmp.Or(cmp.Compare(failed[b], failed[a]), cmp.Compare(a, b))
	})
	for i, n := range names {
		names[i] = fmt.Sprintf("%s %d", n, failed[n])
	}
	return strings.Join(names, ", ")
}

// addBehind adds what the backends used in one round.
func (s *rowState) addBehind(before, after []Usage) {
	if s.behind == nil || len(before) != len(s.behind) || len(after) != len(s.behind) {
		s.behind = nil
		return
	}
	for i := range s.behind {
		sum := &s.behind[i]
		sum.CPU += after[i].CPU - before[i].CPU
		sum.User += after[i].User - before[i].User
		sum.System += after[i].System - before[i].System
		sum.RSSPeak, sum.Threads = max(sum.RSSPeak, after[i].RSSPeak), max(sum.Threads, after[i].Threads)
		addLimited(&sum.Limited, before[i].Limited, after[i].Limited)
	}
}

// document reduces what the rounds kept.
func (r *run) document(started time.Time, partial bool) *result.Document {
	d := &result.Document{
		Schema:      result.Schema,
		Benchmark:   r.plan.Benchmark,
		Started:     started.UTC().Truncate(time.Second),
		ElapsedS:    result.Round3(time.Since(started).Seconds()),
		Seed:        r.o.Seed,
		Partial:     partial,
		Toll:        r.o.Toll,
		Environment: r.o.Environ,
		Gaps:        []result.Gap{},
		Anomalies:   []result.Anomaly{},
		Thresholds:  []result.Threshold{},
	}
	watched := r.watched()
	if r.o.Watch != nil {
		d.Environment.Noise = r.o.Watch(r.theirs + watched)
	}
	r.plan.Claims = &r.o.Claimed
	d.Plan = result.PlanEcho{Plan: r.plan, SHA256: r.plan.Digest()}
	d.Method = r.method()
	for _, key := range r.order {
		if row := r.rows[key]; row != nil {
			d.Rows = append(d.Rows, r.row(row))
		}
	}
	d.Method.Hop.CarrierCores = r.carrier
	if rtt := r.floorRTT(); rtt != nil {
		d.Method.Hop.MeasuredRTT = rtt
	}
	d.Gaps = append(d.Gaps, r.gaps...)
	if r.o.Settings.Idle == plan.Poll {
		r.idle(d)
	}
	d.Method.Deviations = d.Deviations()
	if v, ok := r.limitDeviation(d.Method.Limits.Mechanism); ok {
		d.Method.Deviations = append(d.Method.Deviations, v)
	}
	if partial {
		d.Method.Deviations = append(d.Method.Deviations, plan.Interrupted(r.done, r.total))
	}
	d.Compare()
	nearTheClients(d)
	d.Examine()
	if watched > 0 {
		d.Anomalies = append(d.Anomalies, result.Anomaly{Kind: result.Noisy, Row: d.Benchmark,
			Detail: fmt.Sprintf("the run was watched; the page's %.0f ms of CPU time are charged to the client, row by row as long as each took", watched.Seconds()*1000)})
	}
	if r.carrier != nil {
		if text := carrierText(*r.carrier); text != "" {
			d.Anomalies = append(d.Anomalies, result.Anomaly{Kind: result.HopBound, Row: d.Benchmark, Detail: text})
		}
	}
	d.Judge(r.plan.Thresholds)
	d.Verdict = check.Verdict(d)
	return d
}

// idle says whether processors with nothing to do stayed awake, which the plan asks for.
func (r *run) idle(d *result.Document) {
	err := errors.New("nothing keeps them from sleep")
	if r.o.Polling != nil {
		err = r.o.Polling()
	}
	if err != nil {
		d.Gaps = append(d.Gaps, result.Gap{Row: "method.idle", Reason: err.Error()})
		return
	}
	d.Method.Idle = plan.Poll
}

// watched charges what others spent on showing the run to the client of each row, in the proportion of the rows' times.
func (r *run) watched() time.Duration {
	if r.o.Watched == nil {
		return 0
	}
	spent := r.o.Watched()
	var elapsed time.Duration
	for _, s := range r.rows {
		elapsed += s.elapsed
	}
	if spent <= 0 || elapsed <= 0 {
		return 0
	}
	for _, s := range r.rows {
		s.clientCPU += time.Duration(float64(spent) * float64(s.elapsed) / float64(elapsed))
	}
	return spent
}

func (r *run) method() result.Method {
	s := r.o.Settings
	m := result.Method{
		Model: s.Model, Order: s.Order, Concurrency: s.Concurrency, Processes: cmp.Or(r.plan.Processes, plan.Separate),
		Hop: r.o.Hop, Limits: r.limits(), Replicates: s.Rounds,
	}
	for _, row := range r.rows {
		if len(row.entry.ClientOn) > 0 {
			m.Processors = plan.Held
		}
	}
	return m
}

// limits are those in force on the contenders: what the plan asked for, by the mechanisms that their processes name. A container's
// runtime may hold some and control groups of ours the others.
func (r *run) limits() result.Limits {
	out := result.Limits{Mechanism: "none"}
	throttled := time.Duration(0)
	var by []string
	for _, s := range r.rows {
		// The floor and the null target have none, whatever the contenders have.
		if m := s.server.Limited; m.Mechanism != "" && m.Mechanism != "none" {
			by = append(by, m.Mechanism)
		}
		throttled += s.server.Limited.Throttled
	}
	if by == nil {
		return out
	}
	slices.Sort(by)
	out.Mechanism = strings.Join(slices.Compact(by), ", ")
	asked := r.o.Settings.Limits
	if asked.CPUs > 0 {
		out.CPUs = result.Ptr(asked.CPUs)
	}
	if r.o.MemoryLimit > 0 {
		out.MemoryMB = result.Ptr(result.Round3(float64(r.o.MemoryLimit) / (1 << 20)))
	}
	out.ThrottledMS = result.Ptr(result.Round3(throttled.Seconds() * 1000))
	return out
}

// limitDeviation is what was asked for where it was not in force on every contender.
func (r *run) limitDeviation(mechanism string) (plan.Deviation, bool) {
	asked, free := r.o.Settings.Limits, r.unlimited()
	v := plan.Deviation{What: "limits", Claimed: asked.String(), Ran: result.NoneInForce}
	if mechanism != "none" {
		v.Ran += " on " + strings.Join(free, ", ")
	}
	return v, asked != (plan.Quota{}) && (mechanism == "none" || len(free) > 0)
}

// unlimited names the contenders that ran and that nothing limited; the instruments are to be so.
func (r *run) unlimited() []string {
	var out []string
	for _, key := range r.order {
		s := r.rows[key]
		if s == nil || s.entry.Role == result.Floor || s.entry.Role == result.Null || s.server.Limited.Mechanism != "none" {
			continue
		}
		if name := s.entry.Contender.Name; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// floorRTT is the p50 of the raw tcp floor called alone, ms: what the hop itself takes. An engine is its own single caller.
func (r *run) floorRTT() *float64 {
	for _, key := range r.order {
		s := r.rows[key]
		switch {
		case s == nil || s.entry.Role != result.Floor || s.entry.Handles || s.setting.Phase == "unix": // one that works is no hop
		case s.engine() && s.setting.Concurrency == 1 && s.shard.Latency.Count() > 0:
			return result.Ptr(result.Round5(float64(s.shard.Latency.Quantile(.5)) / 1e6))
		case s.metered.calls > 0 && s.metered.p50 > 0:
			return result.Ptr(result.Round5(s.metered.p50.Seconds() * 1000))
		}
	}
	return nil
}

// row reduces one row.
func (r *run) row(s *rowState) result.Row {
	e, ops := s.entry, s.shard.Ops()+s.shard.Dropped
	row := result.Row{
		Case: s.setting.Case, Contender: e.Contender, Kind: result.Measured, Role: e.Role, Phase: s.setting.Phase,
		Concurrency: s.setting.Concurrency, Connections: e.Connections,
		Ops: ops, OK: s.shard.Latency.Count(), Failed: failures(&s.shard), Dropped: s.shard.Dropped, Verified: s.shard.Latency.Count(),
		ElapsedS: result.Round5(s.elapsed.Seconds()), Rounds: s.rounds, Warnings: []string{}, TLS: e.TLS,
	}
	if n := s.shard.Doubted; n > 0 {
		row.Verified -= n
		row.Warnings = append(row.Warnings, fmt.Sprintf("%d of %d successes had a wrong reply, which by the method that was asked for fails nothing", n, row.OK))
	}
	if s.engine() {
		row.Verified = s.shard.Checked
	}
	if e.Unverified {
		row.Verified = 0
		row.Warnings = append(row.Warnings, unverified(e))
	}
	if e.Clear {
		row.Warnings = append(row.Warnings, result.InTheClear)
	}
	h := &s.shard.Latency
	row.Latency = latency(h)
	if row.Latency != nil {
		row.AboveTen = result.Ptr(h.CountAbove(10 * h.Quantile(.5)))
		row.Throughput = result.Ptr(result.Round3(float64(row.OK) / s.elapsed.Seconds()))
		row.Histogram = histogram(h)
		row.Intervals = intervals(h)
	}
	row.Parts = parts(&s.shard)
	row.BadParts = s.shard.BadParts
	row.Failing = latency(&s.shard.Failing)
	row.Service = latency(&s.shard.Service)
	row.Tail = tail(&s.shard, time.Duration(r.o.Settings.Timeout))
	row.Retained = s.retention()
	r.little(s, &row)
	r.timed(s, &row)
	r.costs(s, &row)
	framework(s, &row)
	if len(s.rounds) < r.o.Settings.Rounds && r.done == r.total {
		row.Warnings = append(row.Warnings, fmt.Sprintf("measured in %d of %d rounds; the gaps say why", len(s.rounds), r.o.Settings.Rounds))
	}
	if n := ops - row.OK - row.Dropped; n > 0 {
		row.Warnings = append(row.Warnings, fmt.Sprintf("%d of %d calls failed", n, ops))
	}
	if s.knee != nil {
		row.Knee = s.knee
		kneeWarnings(s, &row)
		if row.OK == 0 {
			r.gap(r.rowName(s.setting, e), "no rate held "+s.knee.Bound)
		}
	}
	if ok, why := stats.Steady(row.BlockP50s()); !ok {
		row.Warnings = append(row.Warnings, "no steady state: "+why)
	}
	return row
}

// parts reduces the named shares of a shard's operations; nil without any.
func parts(s *record.Shard) map[string]result.Part {
	var out map[string]result.Part
	for name, p := range s.Parts {
		if p.Count() == 0 {
			continue
		}
		if out == nil {
			out = make(map[string]result.Part)
		}
		out[name] = result.Part{Count: p.Count(), Latency: *latency(p)}
	}
	return out
}

// little checks the row against Little's law: calls in flight = rate × mean time. A VU that has made its share of a block
// waits for the others and has nothing in flight, so what counts is each one's own time.
func (r *run) little(s *rowState, row *result.Row) {
	if s.entry.CalleeClock && !s.engine() {
		row.Warnings = append(row.Warnings, "timed by the callee in its own process; Little's law does not apply")
		return
	}
	busy, inFlight := float64(s.shard.Latency.Sum()+s.shard.FailedNS), s.active
	if r.o.Settings.Model == plan.Open {
		busy, inFlight = 0, 0
		for _, o := range s.outcomes {
			all := o.Shard() // a knee's lead included
			busy += float64(all.Service.Sum() + all.FailedNS)
			inFlight += o.InFlight
		}
	}
	if busy == 0 || inFlight == 0 && s.elsewhere() != nil {
		return
	}
	row.Little = result.Ptr(result.Round5(float64(inFlight) / busy))
	if *row.Little < .95 || *row.Little > 1.05 {
		row.Warnings = append(row.Warnings, fmt.Sprintf("Little ratio %.3f is outside 0.95–1.05: time passed outside the calls", *row.Little))
	}
}

// engine reports whether the row's contender makes stretches by itself.
func (s *rowState) engine() bool {
	_, ok := s.entry.Target.(load.Engine)
	return ok
}

func failures(s *record.Shard) map[string]int64 {
	out := make(map[string]int64, len(s.Failures))
	for k, n := range s.Failures {
		out[k] = n
	}
	return out
}

// latency reduces a histogram of ns to µs; nil when it is empty. A quantile is left out without its samples (rule 10).
// Latency is a histogram as documents hold it, nil without a value.
func Latency(h *record.Hist) *result.Latency { return latency(h) }

func latency(h *record.Hist) *result.Latency {
	n := h.Count()
	if n == 0 {
		return nil
	}
	at := func(q float64, least int64) *float64 {
		if n < least {
			return nil
		}
		return result.Ptr(micros(float64(h.Quantile(q))))
	}
	return &result.Latency{
		Min: micros(float64(h.Min())), Mean: micros(h.Mean()), P50: micros(float64(h.Quantile(.5))),
		P90: at(.9, check.LeastP90), P95: at(.95, check.LeastP95), P99: at(.99, check.LeastP99), P999: at(.999, check.LeastP999),
		Max: micros(float64(h.Max())),
	}
}

// quantiles are those a row shows and the successes each needs.
var quantiles = [...]struct {
	name  string
	q     float64
	least int64
}{{"p50", .5, 1}, {"p90", .9, check.LeastP90}, {"p95", .95, check.LeastP95}, {"p99", .99, check.LeastP99}, {"p999", .999, check.LeastP999}}

// mostForInterval bounds the work: beyond so many successes an interval is narrower than a histogram's bucket.
const mostForInterval = 1_000_000

// intervals gives each quantile that a row shows its order-statistic interval. It takes the calls for independent, which
// neighbours in time are not quite: it is the least that is uncertain about the quantile.
func intervals(h *record.Hist) map[string]result.Span {
	n := h.Count()
	out := make(map[string]result.Span)
	for _, x := range quantiles {
		if n < x.least || n > mostForInterval {
			continue
		}
		if lo, hi, ok := stats.QuantileInterval(int(n), x.q, result.Level); ok {
			out[x.name] = result.Span{Lo: micros(float64(h.AtRank(int64(lo)))), Hi: micros(float64(h.AtRank(int64(hi))))}
		}
	}
	return out
}

func histogram(h *record.Hist) *result.Histogram {
	out := &result.Histogram{Count: h.Count(), Sum: h.Sum(), Min: h.Min(), Max: h.Max()}
	for hi, n := range h.Buckets() {
		out.Buckets = append(out.Buckets, [2]int64{hi, n})
	}
	return out
}

// micros turns ns into µs, to the nanosecond.
func micros(ns float64) float64 { return result.Round3(ns / 1000) }
