package lab

import (
	"context"
	"math/rand/v2"
	"time"

	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/lab/result"
)

// turnSlices is into how many parts a turn's time is divided when it is a round's only one, so that its steadiness can be seen.
const turnSlices = 20

// nullShare is how much of a load's time the null target is measured for, at most longestNull.
const (
	nullShare   = 5
	longestNull = 2 * time.Second
)

// vus returns how many connections a lane begins with.
func (r *run) vus(s Setting) int {
	if set := r.o.Settings; set.Model == plan.Closed && len(set.Stages) > 0 {
		return max(s.Concurrency, int(plan.Peak(set.Stages)+.5))
	}
	return s.Concurrency
}

// load returns what the plan puts on a lane in one turn.
func (r *run) load(s Setting, rnd *rand.Rand) load.Load {
	set := r.o.Settings
	l := load.Load{
		Stages: set.Shape(s.Concurrency), Open: set.Model == plan.Open, Think: time.Duration(set.Think),
		Timeout: time.Duration(set.Timeout), GiveUp: r.plan.Benchmark != result.Load, Wait: r.o.Wait, Pauses: r.o.Pauses,
	}
	if set.Duration > 0 && set.CallsOnly {
		l.Calls = int64(set.Calls)
	}
	if l.Open {
		l.InFlight = set.MostInFlight()
	}
	if set.Arrivals == plan.Poisson {
		l.Rand = rand.New(rand.NewPCG(uint64(s.Seed), 4))
	}
	return l
}

// alone reports whether a round is one turn of one contender: its time is then divided into slices.
func (r *run) alone(s Setting, lanes []*lane) bool {
	contenders := 0
	for _, l := range lanes {
		if l.entry.Role != result.Null {
			contenders++
		}
	}
	return r.o.Settings.Timed() && r.o.Settings.BlocksOf(s.Round-1) == 1 && contenders == 1
}

// interleave calls the lanes in shuffled blocks. The results are in the order of the lanes.
func (r *run) interleave(ctx context.Context, s Setting, lanes []*lane, rnd *rand.Rand) ([]load.LaneResult, error) {
	b := load.Blocks{
		Blocks:   r.o.Settings.BlocksOf(s.Round - 1),
		Calls:    r.o.Settings.Calls,
		Each:     r.o.Settings.CallsEach,
		Duration: time.Duration(r.o.Settings.Duration),
		Fixed:    r.o.Settings.Order == plan.Fixed,
		Timeout:  time.Duration(r.o.Settings.Timeout),
		Rand:     rnd,
		Progress: func(block int) { r.progress(s, block) },
	}
	if r.o.Settings.Timed() {
		l := r.load(s, rnd)
		b.Load = &l
	}
	if !r.alone(s, lanes) {
		r.shorten(lanes, b.Load)
		return load.Interleave(ctx, loadLanes(lanes, s.Concurrency), b)
	}
	return r.nullThenTarget(ctx, s, lanes, b)
}

// shorten gives the instruments a turn of their own where a turn has stages: they are the same all the time, and a published
// method's turns are long.
func (r *run) shorten(lanes []*lane, whole *load.Load) {
	if len(r.o.Settings.Stages) == 0 || r.plan.Benchmark == result.Load {
		return
	}
	for _, l := range lanes {
		if l.instrument() {
			turn := *whole
			turn.Stages = briefly(whole.Stages)
			l.turn = &turn
		}
	}
}

// briefly is the load's peak held for a share of its time.
func briefly(stages []plan.Stage) []plan.Stage {
	return plan.Hold(plan.Peak(stages), min(max(plan.Total(stages)/nullShare, time.Second/5), longestNull))
}

// instrument reports whether the lane is no contender.
func (l *lane) instrument() bool {
	return l.entry.Role == result.Null || l.entry.Role == result.Floor
}

// nullThenTarget measures the null target first, for a short time, and then the contender for the whole of it.
func (r *run) nullThenTarget(ctx context.Context, s Setting, lanes []*lane, b load.Blocks) ([]load.LaneResult, error) {
	out := make([]load.LaneResult, len(lanes))
	whole := *b.Load
	brief := whole
	brief.Stages = briefly(whole.Stages)
	var err error
	for _, null := range []bool{true, false} {
		for i, l := range lanes {
			if (l.entry.Role == result.Null) != null || err != nil {
				continue
			}
			turn := whole
			if null {
				turn = brief
			}
			if turn.Slices = turnSlices; turn.Calls > 0 {
				turn.Slices = 1 // nobody knows beforehand how long they take
			}
			b.Load = &turn
			var got []load.LaneResult
			if got, err = load.Interleave(ctx, loadLanes([]*lane{l}, s.Concurrency), b); len(got) > 0 {
				out[i] = got[0]
			}
		}
	}
	for i := range out {
		if out[i].Shard == nil {
			out[i].Shard = new(record.Shard)
		}
	}
	return out, err
}

// warmCrowd puts the plan's own load on a lane for the declared time, or has its VUs make the declared calls, and keeps what
// that measured apart.
func (r *run) warmCrowd(ctx context.Context, s Setting, l *lane) {
	w := r.load(s, nil)
	w.Slices = 1
	level := plan.Peak(w.Stages)
	if d := time.Duration(r.o.Settings.WarmupTime); d > 0 {
		w.Calls, w.Stages = 0, plan.Hold(level, d)
	} else {
		w.Open, w.Think, w.Calls = false, 0, int64(r.o.Settings.Warmup)
		w.Stages = plan.Hold(float64(r.vus(s)), warmLimit)
	}
	out, _ := l.crowd.Run(ctx, w) // what goes wrong here goes wrong in the window as well
	if r.o.Settings.WarmupTime > 0 {
		l.warm = append(l.warm, out)
	}
}

// warmLimit bounds a warm-up by calls.
const warmLimit = 30 * time.Second

// blocksUpTo returns how many blocks the first n rounds hold.
func (r *run) blocksUpTo(n int) int {
	sum := 0
	for i := range n {
		sum += r.o.Settings.BlocksOf(i)
	}
	return sum
}
