package result

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"toll/lab/plan"
	"toll/lab/stats"
)

// Level is the confidence of every interval in a document.
const Level = 0.95

// BlockP50 is the statistic of a block that ratios divide.
const BlockP50 = "block_p50"

// RoundCPU is what CPU ratios divide: the server's CPU time per operation in a round.
const RoundCPU = "round_server_cpu"

// outlierMADs is how many median absolute deviations the baseline of a round may lie off before the round is marked.
const outlierMADs = 5

// A Group is the rows that may be compared: one case, phase and concurrency.
type Group struct {
	Case, Phase string
	Concurrency int
	Rows        []*Row
}

// Groups returns the measured rows, group by group, in the order of their first row.
func (d *Document) Groups() []*Group {
	var out []*Group
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Kind != Measured {
			continue
		}
		at := slices.IndexFunc(out, func(g *Group) bool {
			return g.Case == r.Case && g.Phase == r.Phase && g.Concurrency == r.Concurrency
		})
		if at < 0 {
			at = len(out)
			out = append(out, &Group{r.Case, r.Phase, r.Concurrency, nil})
		}
		out[at].Rows = append(out[at].Rows, r)
	}
	return out
}

// With returns the group's row of a role, nil without one.
func (g *Group) With(role string) *Row {
	for _, r := range g.Rows {
		if r.Role == role {
			return r
		}
	}
	return nil
}

// Floor returns the group's floor; of several the slowest, which is the one that does the contenders' own work. nil when none
// has a latency.
func (g *Group) Floor() *Row {
	var out *Row
	for _, r := range g.Rows {
		if r.Role == Floor && r.Latency != nil && (out == nil || r.Latency.P50 > out.Latency.P50) {
			out = r
		}
	}
	return out
}

// ID names a row in gaps, anomalies and messages.
func (r *Row) ID() string {
	id := r.Case + " " + r.Phase + " " + r.Contender.Name
	if r.Phase == "" {
		id = r.Case + " " + r.Contender.Name
	}
	if r.Role == Control {
		id += " (control)"
	}
	if r.Concurrency > 1 {
		id += fmt.Sprintf(" ×%d", r.Concurrency)
	}
	return id
}

// Compare derives every measured row's ratio and rank, and the marks of outlier rounds, from the blocks that the rows hold.
func (d *Document) Compare() {
	for i := range d.Rows {
		if k := d.Rows[i].Knee; k != nil {
			d.Rows[i].Knee = k.derived()
		}
	}
	for _, g := range d.Groups() {
		base := g.With(Baseline)
		if base == nil {
			continue
		}
		g.markOutliers(base)
		for _, r := range g.Rows {
			if r.Role != Baseline {
				r.Ratio = ratioOf(r, base)
				r.CPURatio = cpuRatio(r, base)
			}
		}
		g.rank()
		g.rankCPU()
	}
	d.Ladder = d.ladder()
}

// Deviations computes what ran differently from the method that the plan claims, and what toll's own method would not do
// whoever claims it: a fixed order, replies that nobody looked into.
func (d *Document) Deviations() []plan.Deviation {
	claimed := d.Plan.Settings
	if d.Plan.Claims != nil {
		claimed = *d.Plan.Claims
	}
	out := plan.Deviations(claimed, d.Plan.Settings)
	if d.Plan.Processes == plan.Shared {
		out = append(out, plan.Deviation{What: "processes", Claimed: plan.Separate, Ran: plan.Shared})
	}
	if d.Method.Hop.Kind == RemoteHost {
		out = append(out, plan.Deviation{What: "processes", Claimed: "started anew for each round", Ran: "the target's, which live through all rounds"})
	}
	out = append(out, d.ungiven()...)
	var blind []string
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Kind == Measured && r.OK > 0 && r.Verified == 0 && !slices.Contains(blind, r.Contender.Name) {
			blind = append(blind, r.Contender.Name)
		}
	}
	if len(blind) > 0 {
		out = append(out, plan.Deviation{What: "replies", Claimed: "verified", Ran: "drained undecoded: " + strings.Join(blind, ", ")})
	}
	return out
}

// ungiven is what the plan asks of the machine and the machine did not give.
func (d *Document) ungiven() (out []plan.Deviation) {
	if d.Plan.Settings.Processors == plan.Held && d.Method.Processors != plan.Held {
		out = append(out, plan.Deviation{What: "processors", Claimed: plan.Held, Ran: plan.Any})
	}
	if d.Plan.Settings.Idle == plan.Poll && d.Method.Idle != plan.Poll {
		out = append(out, plan.Deviation{What: "idle", Claimed: plan.Poll, Ran: plan.Any})
	}
	return out
}

// Whole is the name of the rung that goes all the way: from the first step's beginning to the end of the steps that follow
// one another.
const Whole = "all steps"

// ladder derives the plan's steps in every group that has their contenders.
func (d *Document) ladder() []Rung {
	var out []Rung
	steps := d.Plan.Ladder
	if len(steps) == 0 {
		return nil
	}
	whole := plan.Step{Step: Whole, From: steps[0].From, To: steps[0].To}
	for _, s := range steps {
		if s.From == whole.To {
			whole.To = s.To
		}
	}
	for _, g := range d.Groups() {
		for _, s := range append(slices.Clone(steps), whole) {
			from, to := g.named(s.From), g.named(s.To)
			if from == nil || to == nil {
				continue
			}
			if q := ratioOf(to, from); q != nil {
				out = append(out, Rung{g.Case, g.Phase, g.Concurrency, s.Step, s.From, s.To, q.Value, q.Lo, q.Hi, q.Blocks})
			}
		}
	}
	return out
}

// named returns the group's row of a contender, its control left aside.
func (g *Group) named(name string) *Row {
	for _, r := range g.Rows {
		if r.Contender.Name == name && r.Role != Control {
			return r
		}
	}
	return nil
}

// A pair is one block in which both rows have a success.
type pair struct {
	round, block int
	row, base    float64
}

// pairs lines up the levels of two rows' blocks by round and place.
func pairs(r, base *Row, keep func(Round) bool) []pair {
	return pairsOf((*Row).Level, r, base, keep)
}

// pairsOf lines up a statistic of two rows' blocks.
func pairsOf(of func(*Row, Block) *float64, r, base *Row, keep func(Round) bool) []pair {
	var out []pair
	for _, b := range base.Rounds {
		at := slices.IndexFunc(r.Rounds, func(x Round) bool { return x.Round == b.Round })
		if at < 0 || !keep(b) {
			continue
		}
		for i := range min(len(b.Blocks), len(r.Rounds[at].Blocks)) {
			if p, q := of(r, r.Rounds[at].Blocks[i]), of(base, b.Blocks[i]); p != nil && q != nil && *p > 0 && *q > 0 {
				out = append(out, pair{b.Round, i, *p, *q})
			}
		}
	}
	return out
}

func columns(ps []pair) (row, base []float64) {
	for _, p := range ps {
		row, base = append(row, p.row), append(base, p.base)
	}
	return row, base
}

func ratioOf(r, base *Row) *Ratio {
	row, b := columns(pairs(r, base, func(Round) bool { return true }))
	if len(row) == 0 {
		return nil
	}
	q := stats.PairedRatio(row, b, Level)
	out := &Ratio{To: base.Contender.Name, Of: BlockP50, Value: Round5(q.Value), Blocks: q.Blocks}
	out.Lo, out.Hi = interval(q)
	if r.Knee != nil {
		out.Of = KneeTime
	} else if r.Latency != nil && base.Latency != nil && base.Latency.Min > 0 {
		out.MinValue = Ptr(Round5(r.Latency.Min / base.Latency.Min))
	}
	out.Without = without(r, base)
	return out
}

// cpuRatio divides what the two servers spent per operation, round by round; nil where that is not known of both.
func cpuRatio(r, base *Row) *Ratio {
	var row, b []float64
	for _, x := range base.Rounds {
		at := slices.IndexFunc(r.Rounds, func(y Round) bool { return y.Round == x.Round })
		if at < 0 || x.ServerCPU == nil || r.Rounds[at].ServerCPU == nil || *x.ServerCPU <= 0 || *r.Rounds[at].ServerCPU <= 0 {
			continue
		}
		row, b = append(row, *r.Rounds[at].ServerCPU), append(b, *x.ServerCPU)
	}
	if len(row) == 0 {
		return nil
	}
	q := stats.PairedRatio(row, b, Level)
	out := &Ratio{To: base.Contender.Name, Of: RoundCPU, Value: Round5(q.Value), Blocks: q.Blocks}
	out.Lo, out.Hi = interval(q)
	return out
}

func without(r, base *Row) *Without {
	var marked []int
	for _, x := range base.Rounds {
		if x.Outlier != "" {
			marked = append(marked, x.Round)
		}
	}
	row, b := columns(pairs(r, base, func(x Round) bool { return x.Outlier == "" }))
	if len(marked) == 0 || len(row) == 0 {
		return nil
	}
	q := stats.PairedRatio(row, b, Level)
	w := &Without{Rounds: marked, Value: Round5(q.Value), Blocks: q.Blocks}
	w.Lo, w.Hi = interval(q)
	return w
}

func interval(q stats.Ratio) (lo, hi *float64) {
	if !q.Interval {
		return nil, nil
	}
	return Ptr(Round5(q.Lo)), Ptr(Round5(q.Hi))
}

// markOutliers marks the rounds in which the baseline's median lies far off its other rounds, on every row of the group.
func (g *Group) markOutliers(base *Row) {
	if base.Knee != nil {
		return // its rounds' medians are those of different rates
	}
	var rounds []int
	var p50 []float64
	for _, x := range base.Rounds {
		if x.P50 != nil {
			rounds, p50 = append(rounds, x.Round), append(p50, *x.P50)
		}
	}
	for i, far := range stats.MarkOutliers(p50, outlierMADs) {
		if !far {
			continue
		}
		why := fmt.Sprintf("the baseline's p50 was %.3g µs in this round and %.3g µs in the middle one", p50[i], stats.Median(p50))
		for _, r := range g.Rows {
			for j := range r.Rounds {
				if r.Rounds[j].Round == rounds[i] {
					r.Rounds[j].Outlier = why
				}
			}
		}
	}
}

// Ranked reports whether the row takes part in the ranking: contenders do, and the baseline.
func (r *Row) Ranked() bool { return r.Role == "" || r.Role == Baseline }

// BlockP50s returns the row's block medians, or the times per call at each block's knee, in the order of the blocks, without
// those that hold no success. Where blocks are
// slices of a load with stages, it returns those of the stage that has most: the others are not meant to be steady.
func (r *Row) BlockP50s() []float64 {
	var out []float64
	stage := r.mainStage()
	for _, x := range r.Rounds {
		for _, b := range x.Blocks {
			if v := r.Level(b); v != nil && b.Stage == stage {
				out = append(out, *v)
			}
		}
	}
	return out
}

func (r *Row) mainStage() int {
	count := make(map[int]int)
	main := 0
	for _, x := range r.Rounds {
		for _, b := range x.Blocks {
			if count[b.Stage]++; count[b.Stage] > count[main] {
				main = b.Stage
			}
		}
	}
	return main
}

// A place is one block of one round.
type place struct{ round, block int }

// levels returns the row's block medians, or the time per call at each block's knee, by place.
func (r *Row) levels() map[place]float64 {
	out := make(map[place]float64)
	for _, x := range r.Rounds {
		for i, b := range x.Blocks {
			if v := r.Level(b); v != nil && *v > 0 {
				out[place{x.Round, i}] = *v
			}
		}
	}
	return out
}

// rank gives each ranked row its rank range.
func (g *Group) rank() {
	ranks := g.ranks((*Row).levels)
	for _, r := range g.Rows {
		r.Rank = rankOf(r, ranks)
	}
}

// rankCPU does so by what the servers spent.
func (g *Group) rankCPU() {
	ranks := g.ranks((*Row).cpus)
	for _, r := range g.Rows {
		r.CPURank = rankOf(r, ranks)
	}
}

func rankOf(r *Row, ranks map[string]stats.Rank) string {
	if k, ok := ranks[r.Contender.Name]; ok && r.Ranked() {
		return rankText(k)
	}
	return ""
}

// cpus returns what the row's server spent per operation, round by round.
func (r *Row) cpus() map[place]float64 {
	out := make(map[place]float64)
	for _, x := range r.Rounds {
		if x.ServerCPU != nil && *x.ServerCPU > 0 {
			out[place{x.Round, 0}] = *x.ServerCPU
		}
	}
	return out
}

// ranks ranks the ranked rows by one of their figures. Rows are compared over the places that all of them have.
func (g *Group) ranks(of func(*Row) map[place]float64) map[string]stats.Rank {
	have := make(map[string]map[place]float64)
	for _, r := range g.Rows {
		if mine := of(r); r.Ranked() && len(mine) > 0 {
			have[r.Contender.Name] = mine
		}
	}
	values := make(map[string][]float64)
	for _, at := range common(have) {
		for name, mine := range have {
			values[name] = append(values[name], mine[at])
		}
	}
	_, ranks := stats.Ranks(values, Level)
	return ranks
}

// common returns the places that every row has, in their order.
func common(have map[string]map[place]float64) []place {
	count := make(map[place]int)
	for _, mine := range have {
		for at := range mine {
			count[at]++
		}
	}
	maps.DeleteFunc(count, func(_ place, n int) bool { return n < len(have) })
	return slices.SortedFunc(maps.Keys(count), func(a, b place) int {
		return cmp.Or(a.round-b.round, a.block-b.block)
	})
}

func rankText(k stats.Rank) string {
	if k.From == k.To {
		return fmt.Sprint(k.From)
	}
	return fmt.Sprintf("%d–%d", k.From, k.To)
}

// Ptr returns a pointer to v: a figure that is there.
func Ptr[T any](v T) *T { return &v }

// Round5 rounds to five decimals: enough for a ratio, and the same after a trip through JSON.
func Round5(v float64) float64 { return math.Round(v*1e5) / 1e5 }

// Round3 rounds to three decimals: nanoseconds of a figure in microseconds.
func Round3(v float64) float64 { return math.Round(v*1e3) / 1e3 }
