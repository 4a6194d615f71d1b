package load

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"toll/lab/record"
)

// A Lane is one contender's place in an interleaved comparison: one Caller per VU, all of them its own, or an engine.
type Lane struct {
	Name    string
	Callers []Caller

	Engine        Engine // in place of Callers: makes a stretch by itself
	EngineCallers int    // how many operations it has in progress at a time

	Crowd Crowd // in place of both, where the blocks have a load; an engine's, when it is paced
	Load  *Load // in place of the blocks', where this lane has one of its own
}

// Blocks says how an interleaved comparison runs.
type Blocks struct {
	Blocks   int           // shuffled passes over all lanes
	Calls    int           // calls of each lane in each block, dealt evenly over its VUs
	Each     int           // calls of each VU in each block at least; 0 means 1
	Duration time.Duration // when > 0, each lane runs closed for so long instead of making Calls calls
	Load     *Load         // when not nil, each lane's crowd runs it instead
	Fixed    bool          // keep the lanes' order: a published method, never ours
	Timeout  time.Duration // of one call; 0 means DefaultTimeout
	Rand     *rand.Rand    // shuffles the blocks
	Progress func(block int)
}

// A Stretch is what one lane did in one block.
type Stretch struct {
	Block, Slot int           // Slot is the lane's place in the block's order, from 0
	Elapsed     time.Duration // wall time from the first call to the last reply, preparations included
	Active      time.Duration // sum over the VUs of the time from each one's first call to its last reply, less preparations
	CPU         time.Duration // CPU time of this process meanwhile, all its threads
	OK          int64         // successes
	Median, Min float64       // of the successes, ns; 0 without any
	Outcome     *Outcome      // of a load, all it measured; nil otherwise
	Meter       record.Meter  // of a load: what this process spent on it
	Raw         []int64       // latencies of the successes, ns, VU by VU in the order of the calls; nil with a duration
}

// A LaneResult is what Interleave measured of one lane.
type LaneResult struct {
	Shard     *record.Shard
	Stretches []Stretch
	Dead      error // why the lane stopped before its last block; nil if it did not
}

// Interleave calls every lane once per block, in a fresh random order each time. It returns one result per lane, in the
// order of the lanes. An error means that ctx ended; the results hold what was measured until then.
func Interleave(ctx context.Context, lanes []Lane, b Blocks) ([]LaneResult, error) {
	if b.Timeout == 0 {
		b.Timeout = DefaultTimeout
	}
	runs := make([]*laneRun, len(lanes))
	for i, l := range lanes {
		runs[i] = newLaneRun(ctx, l, b)
		defer runs[i].stop()
	}
	order := make([]int, len(lanes))
	for i := range order {
		order[i] = i
	}
	var err error
	for block := 0; block < b.Blocks && err == nil; block++ {
		if !b.Fixed {
			b.Rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for slot, i := range order {
			if err = ctx.Err(); err != nil {
				break
			}
			runs[i].stretch(ctx, b, block, slot)
		}
		if b.Progress != nil {
			b.Progress(block)
		}
	}
	out := make([]LaneResult, len(runs))
	for i, r := range runs {
		out[i] = r.result()
	}
	return out, err
}

// A laneRun is a lane while it runs.
type laneRun struct {
	lane      Lane
	vus       []*vu         // none when each stretch has a duration, Closed makes its own, or an engine makes it
	total     *record.Shard // of the stretches that vus did not make
	perVU     int
	stretches []Stretch
	dead      error
}

func newLaneRun(ctx context.Context, l Lane, b Blocks) *laneRun {
	r := &laneRun{
		lane:      l,
		total:     new(record.Shard),
		perVU:     max(perVU(b.Calls, max(len(l.Callers), l.EngineCallers)), b.Each),
		stretches: make([]Stretch, 0, b.Blocks),
	}
	if b.Duration > 0 || l.Engine != nil || l.Crowd != nil {
		return r
	}
	for _, c := range l.Callers {
		v := newVU(ctx, c, b.Timeout)
		v.shard.KeepRaw(r.perVU * b.Blocks)
		r.vus = append(r.vus, v)
	}
	return r
}

// perVU deals calls evenly, at least one each.
func perVU(calls, vus int) int { return max((calls+vus-1)/max(vus, 1), 1) }

func (r *laneRun) stop() {
	for _, v := range r.vus {
		v.stop()
	}
}

// stretch runs the lane's share of one block.
func (r *laneRun) stretch(ctx context.Context, b Blocks, block, slot int) {
	if r.dead != nil {
		return
	}
	s := Stretch{Block: block, Slot: slot}
	switch {
	case r.lane.Crowd != nil:
		r.loaded(ctx, b, &s)
	case r.lane.Engine != nil:
		r.asked(ctx, b, &s)
	case b.Duration > 0:
		r.closed(ctx, b, &s)
	default:
		r.counted(ctx, &s)
	}
	r.stretches = append(r.stretches, s)
}

func (r *laneRun) closed(ctx context.Context, b Blocks, s *Stretch) {
	cpu := record.ReadCPU()
	shard, elapsed, err := Closed(ctx, r.lane.Callers, b.Duration, b.Timeout)
	s.CPU = record.ReadCPU() - cpu
	if ctx.Err() == nil {
		r.dead = err
	}
	s.Elapsed, s.OK = elapsed, shard.Latency.Count()
	s.Active = shard.Active
	s.Median, s.Min = float64(shard.Latency.Quantile(.5)), float64(shard.Latency.Min())
	r.total.Merge(shard)
}

// loaded is the lane's share of one block when the blocks have a load.
func (r *laneRun) loaded(ctx context.Context, b Blocks, s *Stretch) {
	turn := b.Load
	if r.lane.Load != nil {
		turn = r.lane.Load
	}
	before := record.ReadMeter()
	out, err := r.lane.Crowd.Run(ctx, *turn)
	s.Meter = record.ReadMeter().Sub(before)
	if out.Elsewhere != nil {
		s.Meter = out.Elsewhere.Meter
	}
	s.CPU = s.Meter.CPU
	if ctx.Err() == nil {
		r.dead = err
	}
	shard := out.Shard()
	s.Outcome, s.Elapsed, s.OK, s.Active = &out, out.Elapsed, shard.Latency.Count(), shard.Active
	s.Median, s.Min = float64(shard.Latency.Quantile(.5)), float64(shard.Latency.Min())
	r.total.Merge(shard)
}

func (r *laneRun) counted(ctx context.Context, s *Stretch) {
	from := make([]int, len(r.vus))
	for i, v := range r.vus {
		from[i] = len(v.shard.Raw())
		s.Active -= v.shard.Active
	}
	cpu, begin := record.ReadCPU(), time.Now()
	together(r.vus, func(v *vu) {
		own := time.Now()
		for range r.perVU {
			if ctx.Err() != nil || !v.call() {
				break
			}
		}
		v.shard.Active += time.Since(own)
	})
	s.Elapsed, s.CPU = time.Since(begin), record.ReadCPU()-cpu
	for i, v := range r.vus {
		s.Raw = append(s.Raw, v.shard.Raw()[from[i]:]...)
		s.Active += v.shard.Active
	}
	s.OK = int64(len(s.Raw))
	s.Median, s.Min = medianMin(slices.Clone(s.Raw))
	r.dead = firstDead(r.vus)
}

func (r *laneRun) result() LaneResult {
	for _, v := range r.vus {
		r.total.Merge(v.shard)
	}
	return LaneResult{Shard: r.total, Stretches: r.stretches, Dead: r.dead}
}

// medianMin sorts raw, which must be the caller's to change.
func medianMin(raw []int64) (median, lowest float64) {
	if len(raw) == 0 {
		return 0, 0
	}
	slices.Sort(raw)
	n := len(raw)
	return float64(raw[(n-1)/2]+raw[n/2]) / 2, float64(raw[0])
}
