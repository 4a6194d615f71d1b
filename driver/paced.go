package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/wire/engine"
)

// Gather makes the engine a crowd for loads of the open model: the schedule is ours, the engine keeps it.
func (e *Engine) Gather(context.Context, int) (load.Crowd, error) { return pacedEngine{e}, nil }

var _ load.Gatherer = (*Engine)(nil)

// A pacedEngine is an engine that is told when each call is due.
type pacedEngine struct{ *Engine }

// Run asks for one stretch that follows the load's arrivals. Latencies count from when a call was due.
func (e pacedEngine) Run(ctx context.Context, l load.Load) (out load.Outcome, err error) {
	if !l.Open {
		return out, e.warm(ctx, l)
	}
	l = l.WithDefaults()
	q, err := e.question(l.InFlight)
	if err != nil {
		return out, err
	}
	due := schedule(l, &q)
	switch {
	case len(due) == 0:
		return out, errors.New("the load has no arrivals")
	case len(due) > engine.MaxCalls:
		return out, fmt.Errorf("case %s: more than %d arrivals in a turn, the most that an engine is told of", e.Case, engine.MaxCalls)
	}
	ctx, cancel := context.WithTimeout(ctx, plan.Total(l.Stages)+l.Timeout)
	defer cancel()
	a, err := e.ask(ctx, q)
	if err != nil {
		return out, err
	}
	return outcome(a, l, due), nil
}

// Close has nothing to do: the process is the contender's.
func (pacedEngine) Close() error { return nil }

// warm makes the calls of a warm-up, which is closed.
func (e pacedEngine) warm(ctx context.Context, l load.Load) error {
	if l.Calls == 0 {
		return errors.New("an engine makes calls by number or by schedule, not for a time")
	}
	callers := max(1, int(plan.Peak(l.Stages)))
	_, err := e.Engine.Run(ctx, callers, int(l.Calls), new(record.Shard))
	return err
}

// schedule returns when the arrivals of a load are due and puts the gaps between them into the question.
func schedule(l load.Load, q *engine.Question) []time.Duration {
	arrivals := plan.NewArrivals(l.Stages, l.Rand)
	var due []time.Duration
	var last time.Duration
	for at, ok := arrivals.Next(); ok && len(due) <= engine.MaxCalls; at, ok = arrivals.Next() {
		due = append(due, at)
		q.Due = append(q.Due, int64(at-last))
		last = at
	}
	q.Calls = len(due)
	return due
}

// outcome sorts an answer's calls into the load's slices.
func outcome(a engine.Answer, l load.Load, due []time.Duration) load.Outcome {
	out := load.Outcome{
		Elapsed: time.Duration(a.Elapsed), Arrivals: int64(len(due)),
		InFlightMost: a.Paced.Most, InFlight: time.Duration(a.Paced.InFlight),
	}
	sheet := load.NewSheet(l)
	shards := make([]record.Shard, sheet.Len())
	slice := 0
	var behind int64
	for i, at := range due {
		slice = sheet.At(slice, at)
		s, late := &shards[slice], time.Duration(a.Paced.Late[i])
		switch ns := a.NS[i]; {
		case late < 0:
			s.Dropped++
		case ns < 0: // a failure, counted by its kind
			s.Late.Record(int64(late))
		default:
			s.Sent(time.Duration(ns), late, nil)
		}
		behind = out.Behind(behind, late)
	}
	out.Behind(behind, 0)
	account(a, &shards[0])
	for i := range shards {
		sheet.Add(i, &shards[i])
	}
	out.Slices = sheet.Slices()
	return out
}
