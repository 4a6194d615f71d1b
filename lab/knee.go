package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"toll/lab/check"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/lab/result"
	"toll/lab/stats"
)

const (
	kneePrecision = .03 // by which the sides of a search differ at the end
	kneeFirstStep = 2.  // of a search that knows nothing
	kneeStep      = 1.12
	kneeApart     = 1.12 // from where the knee is expected, a search starts so far below or above

	// A stretch is so many bounds long: a rate 2 % above what a contender can do then builds up a wait that is longer than the
	// bound, and is seen to miss.
	stretchBounds  = 50
	longestStretch = time.Minute
	leadShare      = 4 // a stretch's lead is a quarter of its window

	// So many calls may be in flight as arrive in four bounds, and in a fiftieth of the window: with more, the mean is far
	// above the bound by Little's law, and a freeze that fills it delays more than one call in a hundred.
	inFlightBounds = 4
	inFlightShare  = 50
	leastInFlight  = 100

	leastOver   = 1.2 // a stretch has so many times the successes that its quantile needs
	clientTries = 5   // in a row, before a search ends because of the client

	// A call sent later than a tenth of the bound is late. Calls that took too long from their send are the client's doing if
	// there are at most so many of them for each late one: a burst makes those behind it wait as well.
	lateCall = .1
	dragged  = 5
)

// A hunt is one lane's search for its knee in one block.
type hunt struct {
	lane    *lane
	search  *stats.Search
	got     result.KneeSearch
	trials  []*stretched // those that held
	slot    int
	clients int // stretches in a row that said nothing because of the client
	over    bool
	dead    bool // the contender is gone
}

// A stretched is one stretch of a hunt with all that it measured.
type stretched struct {
	result.KneeStretch
	outcome load.Outcome
	window  load.Slice
	meter   record.Meter
	server  Usage // spent meanwhile; peaks as they stand
	before  Limited
	seen    bool
	share   float64 // of the calls, those in the window

	inFlight int // most that were allowed
}

// knee searches every lane for its knee, once a block. The searches of a block take turns, stretch by stretch, in a shuffled
// order. Instruments are searched once a round: their knee is the client's, or the socket's.
func (r *run) knee(ctx context.Context, s Setting, lanes []*lane, rnd *rand.Rand) error {
	bound, err := plan.ParseBound(r.o.Settings.Knee)
	if err != nil {
		return err
	}
	for _, l := range lanes {
		if l.crowd != nil { // it was warmed up; each stretch connects anew
			l.crowd.Close()
			l.crowd = nil
		}
		r.kneeRow(s, l)
	}
	dead := make(map[*lane]bool)
	for block := 0; block < r.o.Settings.BlocksOf(s.Round-1) && err == nil; block++ {
		var hunts []*hunt
		for _, l := range lanes {
			if instrument := l.entry.Role == result.Null || l.entry.Role == result.Floor; !dead[l] && (!instrument || block == 0) {
				hunts = append(hunts, r.hunt(s, l, bound, rnd))
			}
		}
		if err = r.takeTurns(ctx, s, hunts, bound, rnd); err == nil {
			r.progress(s, block)
		}
		for _, h := range hunts {
			h.keep(s)
			dead[h.lane] = dead[h.lane] || h.dead
		}
	}
	return err
}

// kneeRow makes sure of the lane's row and begins its round.
func (r *run) kneeRow(s Setting, l *lane) {
	key := rowKey(s, l.entry)
	if r.rows[key] == nil {
		r.rows[key] = &rowState{setting: s, entry: l.entry, serverOK: true, procs: runtime.GOMAXPROCS(0), behind: make([]Usage, len(l.entry.Backends)), knee: &result.Knee{Bound: r.o.Settings.Knee, Searches: []result.KneeSearch{}}}
	}
	l.row = r.rows[key]
	l.row.warm = append(l.row.warm, l.warm...)
	l.row.rounds = append(l.row.rounds, result.Round{Round: s.Round, Failed: map[string]int64{}, Blocks: []result.Block{}})
}

// hunt begins a search: the first with what the plan says, later ones in turn below and above what the ones before have found.
func (r *run) hunt(s Setting, l *lane, bound plan.Bound, rnd *rand.Rand) *hunt {
	search := &stats.Search{
		Start: r.o.Settings.Rate, Step: kneeFirstStep, Precision: kneePrecision,
		Least: leastOver * float64(needed(bound)) / longestStretch.Seconds(), Most: plan.MaxRate,
	}
	h := &hunt{lane: l, search: search, got: result.KneeSearch{Round: s.Round, Stretches: []result.KneeStretch{}}}
	if near := l.row.expected(); near > 0 {
		h.got.FromAbove = len(l.row.knee.Searches)%2 == 1
		apart := kneeApart * (1 + kneePrecision*rnd.Float64()) // so that searches do not try the same rates
		if !h.got.FromAbove {
			apart = 1 / apart
		}
		search.Start, search.Step = near*apart, kneeStep
	}
	search.Start = math.Round(max(search.Start, search.Least)*10) / 10
	return h
}

// expected is where the searches so far found the knee, or the highest rate that held; 0 without any.
func (s *rowState) expected() float64 {
	var found []float64
	held := 0.
	for _, x := range s.knee.Searches {
		if v, ok := x.Value(); ok {
			found = append(found, math.Log(v))
		}
		if x.Held != nil {
			held = max(held, *x.Held)
		}
	}
	if len(found) > 0 {
		return math.Exp(stats.HodgesLehmann(found))
	}
	return held
}

// needed is how many successes a bound's quantile needs (rule 10).
func needed(b plan.Bound) int64 {
	for _, q := range quantiles {
		if q.q >= b.Quantile-1e-9 {
			return q.least
		}
	}
	return check.LeastP999
}

// takeTurns runs the hunts' stretches, one each in turn, until all are over. An error is ctx's.
func (r *run) takeTurns(ctx context.Context, s Setting, hunts []*hunt, bound plan.Bound, rnd *rand.Rand) error {
	going := append([]*hunt(nil), hunts...)
	for len(going) > 0 {
		rnd.Shuffle(len(going), func(i, j int) { going[i], going[j] = going[j], going[i] })
		var next []*hunt
		for slot, h := range going {
			h.slot = slot
			err := r.turn(ctx, s, h, bound, rnd)
			if ctx.Err() != nil {
				for _, h := range hunts {
					h.finish(result.StoppedEnd)
				}
				return ctx.Err()
			}
			if err != nil {
				r.fail(s, label(h.lane.entry), fmt.Sprintf("in round %d: %v", s.Round, err))
				h.finish(result.StoppedEnd)
				h.dead = true
			}
			if !h.over {
				next = append(next, h)
			}
		}
		going = next
	}
	return nil
}

// turn runs one stretch of a hunt. An error says that the contender is gone.
func (r *run) turn(ctx context.Context, s Setting, h *hunt, bound plan.Bound, rnd *rand.Rand) error {
	rate, more := h.search.Next()
	if !more {
		h.finish("")
		return nil
	}
	x, err := r.stretch(ctx, s, h.lane, math.Round(rate*10)/10, bound, rnd)
	if err != nil {
		return err
	}
	h.got.Stretches = append(h.got.Stretches, x.KneeStretch)
	switch x.Outcome {
	case result.Clients:
		if h.clients++; h.clients == clientTries {
			h.search.Stop()
			h.finish(result.ClientBoundEnd)
		}
		return nil
	case result.Holds:
		h.trials = append(h.trials, x)
	}
	h.clients = 0
	h.search.Add(x.Outcome == result.Holds)
	return nil
}

// finish notes how the search ended; an empty reason is the search's own.
func (h *hunt) finish(why string) {
	if h.over {
		return
	}
	h.over = true
	held, missed, end := h.search.Result()
	h.got.End = cmp.Or(why, end)
	round := func(v float64) *float64 {
		if v == 0 {
			return nil
		}
		return result.Ptr(math.Round(v*10) / 10)
	}
	h.got.Held, h.got.Missed = round(held), round(missed)
}

// errNobody is why a contender has no stretch.
var errNobody = errors.New("nobody answered")

// stretch holds one rate for a time on connections of its own.
func (r *run) stretch(ctx context.Context, s Setting, l *lane, rate float64, bound plan.Bound, rnd *rand.Rand) (*stretched, error) {
	crowd, err := load.Gather(ctx, l.entry.Target, r.vus(s))
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	defer crowd.Close()
	window := max(time.Duration(r.o.Settings.Duration), time.Duration(leastOver*float64(needed(bound))/rate*1e9), stretchBounds*bound.Limit)
	window = min(window, max(longestStretch, stretchBounds*bound.Limit))
	lead := window / leadShare
	ld := r.load(s, rnd)
	ld.Stages = []plan.Stage{{Target: rate}, {Duration: plan.Duration(lead), Target: rate}}
	for range result.Spells {
		ld.Stages = append(ld.Stages, plan.Stage{Duration: plan.Duration(window / result.Spells), Target: rate})
	}
	if ld.InFlight = r.o.Settings.InFlight; ld.InFlight == 0 {
		ld.InFlight = max(leastInFlight, int(rate*max(inFlightBounds*bound.Limit, window/inFlightShare).Seconds()))
	}
	if ld.Rand != nil {
		ld.Rand = rand.New(rand.NewPCG(rnd.Uint64(), 4))
	}
	before, seen := r.usage(s, l)
	meter := record.ReadMeter()
	out, err := crowd.Run(ctx, ld)
	x := &stretched{inFlight: ld.InFlight, outcome: out, meter: record.ReadMeter().Sub(meter), before: before.Limited}
	if err != nil {
		return nil, err
	}
	if after, ok := r.usage(s, l); ok && seen {
		x.seen, x.server = true, after
		l.row.server.Limited.Mechanism, l.row.server.Limited.Known = after.Limited.Mechanism, after.Limited.Known
		x.server.CPU -= before.CPU
		x.server.User -= before.User
		x.server.System -= before.System
	}
	x.judge(rate, bound, window, r.generatorCores(out))
	if x.OK == 0 && x.Failed > 0 && len(out.Shard().Failures) == 1 && out.Shard().Failures[record.Connect] > 0 {
		return nil, errNobody
	}
	return x, nil
}

// generatorCores is how many cores an open model's generator may use.
func (r *run) generatorCores(out load.Outcome) int {
	procs := runtime.GOMAXPROCS(0)
	if out.Threads > 0 {
		return min(procs, out.Threads)
	}
	return procs
}

// judge decides how a stretch came out: as most of its spells did. A freeze of the machine spoils the spell that it falls into and
// perhaps the next; at a rate above what the contender can do, what waits grows from spell to spell. The client's CPU time decides
// nothing here, since its pacer spins before each arrival; how fast it can be is what the null target's knee says.
func (x *stretched) judge(rate float64, bound plan.Bound, window time.Duration, cores int) {
	all := x.outcome.Shard()
	x.window = load.Slice{Shard: new(record.Shard)}
	for _, sl := range x.outcome.Slices {
		if sl.Stage > 1 {
			switch spell(sl.Shard, bound) {
			case result.Holds:
				x.Held++
			case result.Misses:
				x.Over++
			}
			x.window.Shard.Merge(sl.Shard)
		}
	}
	w := x.window.Shard
	x.window.To = window
	x.Rate, x.ElapsedS = rate, result.Round5(window.Seconds())
	x.OK, x.Failed, x.Dropped = w.Latency.Count(), all.Failed(), all.Dropped
	if n := all.Ops(); n > 0 {
		x.share = float64(w.Ops()) / float64(n)
	}
	if spent := x.outcome.Elapsed.Seconds(); spent > 0 {
		x.ClientOf = result.Round3(x.meter.CPU.Seconds() / spent / float64(cores))
	}
	at := func(h *record.Hist, q float64) *float64 {
		if h.Count() == 0 {
			return nil
		}
		return result.Ptr(micros(float64(h.Quantile(q))))
	}
	x.P50, x.Late = at(&w.Latency, .5), at(&w.Late, .99)
	if x.OK >= needed(bound) {
		x.Bounded, x.Service = at(&w.Latency, bound.Quantile), at(&w.Service, bound.Quantile)
	}
	switch {
	case x.Holds():
		x.Outcome = result.Holds
	case x.Failed == 0 && !x.Telling():
		x.Outcome = result.Clients
	default:
		x.Outcome = result.Misses
	}
}

// spell decides how a part of a stretch came out. One over the bound is the contender's unless calls that the client sent late can
// explain it: a generator that falls behind sends bursts, whose wait is its own doing.
func spell(s *record.Shard, bound plan.Bound) string {
	calls := s.Latency.Count() + s.Failed() + s.Dropped
	over := s.Latency.CountAbove(int64(bound.Limit)) + s.Failed() + s.Dropped
	if calls > 0 && float64(over) <= (1-bound.Quantile)*float64(calls) {
		return result.Holds
	}
	late := s.Late.CountAbove(int64(lateCall * float64(bound.Limit)))
	slow := s.Service.CountAbove(int64(bound.Limit)) + s.Dropped + s.Failed()
	if late > 0 && slow <= dragged*late && slow < s.Latency.Count()/2 {
		return result.Clients
	}
	return result.Misses
}

// held returns the last stretch at the highest rate that held at the end.
func (h *hunt) held() *stretched {
	for _, x := range slices.Backward(h.trials) {
		if h.got.Held != nil && x.Rate == *h.got.Held {
			return x
		}
	}
	return nil
}

// keep adds a search to its row: the last stretch at the highest rate that held is what the row's other figures are of.
func (h *hunt) keep(s Setting) {
	row := h.lane.row
	row.knee.Searches = append(row.knee.Searches, h.got)
	round := &row.rounds[len(row.rounds)-1]
	b := result.Block{Slot: h.slot}
	if v, ok := h.got.Value(); ok {
		b.Knee = result.Ptr(v)
	}
	if x := h.held(); x != nil {
		w := x.window.Shard
		row.take(x)
		b.OK, b.P50, b.Min = w.Latency.Count(), x.P50, result.Ptr(micros(float64(w.Latency.Min())))
		round.Ops += w.Ops() + w.Dropped
		round.OK += b.OK
		for kind, n := range w.Failures {
			round.Failed[kind] += n
		}
		round.ElapsedS = result.Round5(round.ElapsedS + x.ElapsedS)
		if round.P50 == nil {
			round.P50 = b.P50
		}
	}
	round.Blocks = append(round.Blocks, b)
}

// take adds a stretch's figures to the row. What both sides spent was read around the whole of it; the window has its share by
// its calls.
func (s *rowState) take(x *stretched) {
	part := func(d time.Duration) time.Duration { return time.Duration(float64(d) * x.share) }
	s.shard.Merge(x.window.Shard)
	s.outcomes = append(s.outcomes, x.outcome)
	s.inFlightLimit = max(s.inFlightLimit, x.inFlight)
	s.elapsed += x.window.To
	s.clientCPU += part(x.meter.CPU)
	s.spent = s.spent.Add(record.Meter{
		CPU: part(x.meter.CPU), Allocs: uint64(float64(x.meter.Allocs) * x.share), AllocBytes: uint64(float64(x.meter.AllocBytes) * x.share),
	})
	if !x.seen {
		s.serverOK = false
		return
	}
	s.server.CPU += part(x.server.CPU)
	s.server.User += part(x.server.User)
	s.server.System += part(x.server.System)
	s.limited(x.before, x.server.Limited)
	s.server.RSSPeak = max(s.server.RSSPeak, x.server.RSSPeak)
	s.server.Threads = max(s.server.Threads, x.server.Threads)
}

// nearNull is from which share of the null target's knee on a contender's may be the client's own.
const nearNull = .8

// kneeWarnings says what a reader must know before believing a row's knee.
func kneeWarnings(s *rowState, row *result.Row) {
	ends := make(map[string]int)
	for _, x := range s.knee.Searches {
		ends[x.End]++
	}
	n := len(s.knee.Searches)
	if k := ends[result.ClientBoundEnd]; k > 0 {
		row.Warnings = append(row.Warnings, fmt.Sprintf("client-bound: %d of %d searches ended because the client could not send what was asked for in time", k, n))
	}
	if k := ends[stats.Unsettled]; k > 0 {
		row.Warnings = append(row.Warnings, fmt.Sprintf("%d of %d searches did not settle: the same rates held and missed in turn", k, n))
	}
	if k := ends[stats.Below]; k > 0 {
		row.Warnings = append(row.Warnings, fmt.Sprintf("in %d of %d searches no rate held the bound", k, n))
	}
}

// nearTheClients warns of each knee that may be the client's own.
func nearTheClients(d *result.Document) {
	for _, g := range d.Groups() {
		null := g.With(result.Null)
		if null == nil || null.Knee == nil {
			continue
		}
		most := null.Knee.Rate
		if most == nil {
			most = null.Knee.AtLeast
		}
		for _, r := range g.Rows {
			if k := r.Knee; r != null && most != nil && k != nil && k.Rate != nil && *k.Rate > nearNull**most {
				r.Warnings = append(r.Warnings, fmt.Sprintf("client-bound: its knee is %.0f %% of the null target's, so it may be the client's", 100**k.Rate / *most))
			}
		}
	}
}
