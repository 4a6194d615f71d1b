package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
)

// capacityTime is for how long the baseline is kept busy to learn how much it answers, after half of it to warm up.
const capacityTime = time.Second

// offer measures what the baseline answers a second while as many VUs as the concurrency keep it busy, and makes the phase's
// share of it the rate of this round, where the plan gives shares. undo takes the rate back.
func (r *run) offer(ctx context.Context, s Setting, lanes []*lane) (undo func(), err error) {
	undo = func() {}
	share, ok := r.o.Settings.Shares[s.Phase]
	if !ok {
		return undo, nil
	}
	var base *lane
	for _, l := range lanes {
		if l.entry.Role == result.Baseline {
			base = l
		}
	}
	if base == nil || base.crowd == nil {
		return undo, errors.New("the baseline, whose capacity the rates are shares of, can't be called")
	}
	busy := load.Load{Timeout: time.Duration(r.o.Settings.Timeout), GiveUp: true, Slices: 1}
	var out load.Outcome
	for _, d := range []time.Duration{capacityTime / 2, capacityTime} {
		busy.Stages = plan.Hold(float64(s.Concurrency), d)
		if out, err = base.crowd.Run(ctx, busy); err != nil {
			return undo, fmt.Errorf("measuring the baseline's capacity: %w", err)
		}
	}
	answered := out.Shard().Latency.Count()
	if answered == 0 {
		return undo, errors.New("measuring the baseline's capacity: none of its calls succeeded")
	}
	capacity := float64(answered) / out.Elapsed.Seconds()
	for _, l := range lanes {
		l.capacity = capacity
	}
	r.o.Settings.Rate = share * capacity
	return func() { r.o.Settings.Rate = 0 }, nil
}

// offered says of an open-model row what its rate was a share of: the mean over the rounds.
func (r *run) offered(s *rowState, o *result.Open) {
	if share, ok := r.o.Settings.Shares[s.setting.Phase]; ok && len(s.capacities) > 0 {
		var sum float64
		for _, c := range s.capacities {
			sum += c
		}
		o.Share, o.Capacity = result.Ptr(share), result.Ptr(result.Round3(sum/float64(len(s.capacities))))
	}
}
