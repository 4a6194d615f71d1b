package lab

import (
	"context"
	"errors"
	"time"

	"toll/lab/load"
	"toll/lab/result"
)

// held is what a contender held on to before a round's calls.
type held struct {
	bytes int64
	at    time.Time
	ok    bool
}

// errNoCollect is why what a contender holds on to is not known.
var errNoCollect = errors.New("it can't be asked to collect its garbage")

// holding asks a contender what it holds on to, in heap and stacks.
func (r *run) holding(ctx context.Context, s Setting, e Entry) (int64, bool) {
	c, ok := e.Process.(Collector)
	err := errNoCollect
	var got Counters
	if ok {
		got, err = c.Collect(ctx)
	}
	if err != nil {
		r.gap(r.rowName(s, e)+": retained", err.Error())
		return 0, false
	}
	return got.Heap + got.Stack, true
}

// holdBefore notes what each lane that will leave sessions behind holds on to when those of its warm-up are forgotten. An
// error is ctx's.
func (r *run) holdBefore(ctx context.Context, s Setting, lanes []*lane) error {
	var wait time.Duration
	for _, l := range lanes {
		wait = max(wait, forgetting*l.entry.Idle)
	}
	if err := pause(ctx, wait); err != nil {
		return err
	}
	for _, l := range lanes {
		if l.entry.Idle > 0 {
			l.held.bytes, l.held.ok = r.holding(ctx, s, l.entry)
			l.held.at = time.Now()
		}
	}
	return nil
}

// forgetting is how many times the idle time a contender is given: it may look for idle sessions only now and then.
const forgetting = 2

// pause waits for d, or until ctx ends, which is then the error.
func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// holdAfter notes what the abandoned sessions of a round cost, at once and when they have been idle for long enough to be
// forgotten. An error is ctx's.
func (r *run) holdAfter(ctx context.Context, s Setting, lanes []*lane, got []load.LaneResult) error {
	var wait time.Duration
	for i, l := range lanes {
		if !l.held.ok || got[i].Dead != nil {
			continue
		}
		now, ok := r.holding(ctx, s, l.entry)
		if ok && time.Since(l.held.at) >= l.entry.Idle {
			r.gap(r.rowName(s, l.entry)+": retained", "the calls took longer than a session may be idle, so that some may have been forgotten before they were counted")
			ok = false
		}
		if l.held.ok = ok; ok {
			l.row.retained.Sessions += got[i].Shard.Latency.Count()
			l.row.retainedAt += now - l.held.bytes
			wait = max(wait, forgetting*l.entry.Idle)
		}
	}
	if err := pause(ctx, wait); err != nil {
		return err
	}
	for _, l := range lanes {
		if !l.held.ok {
			continue
		}
		if now, ok := r.holding(ctx, s, l.entry); ok {
			l.row.retainedLater += now - l.held.bytes
		}
	}
	return nil
}

// retention reduces what the rounds found of abandoned sessions; nil where none were.
func (s *rowState) retention() *result.Retained {
	if s.retained.Sessions == 0 {
		return nil
	}
	n := float64(s.retained.Sessions)
	return &result.Retained{
		Sessions: s.retained.Sessions, IdleS: s.entry.Idle.Seconds(),
		Bytes: result.Round3(float64(s.retainedAt) / n), BytesAfterIdle: result.Round3(float64(s.retainedLater) / n),
	}
}
