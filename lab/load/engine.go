package load

import (
	"context"
	"slices"
	"time"

	"toll/lab/record"
)

// An Engine is a Target that makes a whole stretch by itself, in its own process and on its own clock: a library, an actor
// core. One call over a pipe would cost more than the operation.
type Engine interface {
	// Run has n operations made by so many callers at a time and adds their outcomes to s: latencies, failures, parts, how
	// long each caller was at it (Active) and what the engine says they cost. elapsed is the engine's own time for them. An error means that the engine gave no
	// answer to believe, and won't.
	Run(ctx context.Context, callers, n int, s *record.Shard) (elapsed time.Duration, err error)
}

// longestStretch bounds a stretch however many calls it has.
const longestStretch = 2 * time.Minute

// RunEngine is e.Run with a deadline: each caller's calls may take their timeout, one after another.
func RunEngine(ctx context.Context, e Engine, callers, n int, timeout time.Duration, s *record.Shard) (time.Duration, error) {
	each := (n + callers - 1) / callers
	ctx, cancel := context.WithTimeout(ctx, min(time.Duration(each)*timeout, longestStretch))
	defer cancel()
	return e.Run(ctx, callers, n, s)
}

// asked is the lane's share of one block when its target is an engine.
func (r *laneRun) asked(ctx context.Context, b Blocks, s *Stretch) {
	n := r.perVU * r.lane.EngineCallers
	shard := new(record.Shard)
	shard.KeepRaw(n)
	cpu := record.ReadCPU()
	elapsed, err := RunEngine(ctx, r.lane.Engine, r.lane.EngineCallers, n, b.Timeout, shard)
	s.CPU = record.ReadCPU() - cpu
	if ctx.Err() == nil {
		r.dead = err
	}
	s.Elapsed, s.Active = elapsed, shard.Active
	s.Raw = shard.Raw()
	s.OK = int64(len(s.Raw))
	s.Median, s.Min = medianMin(slices.Clone(s.Raw))
	r.total.Merge(shard)
}
