package load

import (
	"context"
	"errors"
	"sync"
	"time"

	"toll/lab/plan"
	"toll/lab/record"
)

// A crowd is VUs that are a Caller and, while a load runs, a goroutine each.
type crowd struct {
	target  Target
	callers []Caller // owned by Run while it runs
}

func newCrowd(ctx context.Context, t Target, vus int) (*crowd, error) {
	c := &crowd{target: t}
	for range vus {
		caller, err := t.Open(ctx)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.callers = append(c.callers, caller)
	}
	return c, nil
}

// Close closes the callers.
func (c *crowd) Close() error {
	var errs []error
	for _, caller := range c.callers {
		errs = append(errs, Close(caller))
	}
	c.callers = nil
	return errors.Join(errs...)
}

// Run puts the load on the target.
func (c *crowd) Run(ctx context.Context, l Load) (Outcome, error) {
	l = l.WithDefaults()
	if l.Open {
		return c.open(ctx, l)
	}
	return c.closed(ctx, l)
}

func (c *crowd) closed(ctx context.Context, l Load) (Outcome, error) {
	sheet := NewSheet(l)
	sheet.Hold(0)
	begin := time.Now()
	var vus []*vu
	var walks []func()
	for i, caller := range c.callers {
		spans := plan.Active(l.Stages, i)
		calls := Share(l.Calls, i, len(c.callers))
		if len(spans) == 0 || calls == 0 {
			continue
		}
		v := newVUAt(ctx, caller, l.Timeout, begin)
		v.shard = sheet.Shard()
		v.persists = !l.GiveUp
		defer v.stop()
		vus = append(vus, v)
		w := walk{vu: v, sheet: sheet, calls: calls, think: l.Think, wait: ByTimer, slice: sheet.At(0, spans[0].From)}
		if l.Think > 0 && l.Pauses != nil {
			var done func()
			w.wait, done = l.Pauses()
			defer done()
		}
		sheet.Hold(w.slice)
		walks = append(walks, func() { w.run(ctx, spans) })
	}
	sheet.Release(0)
	if len(walks) == 1 {
		walks[0]() // inline, so that no hand-over between goroutines is in its window
	} else {
		var wg sync.WaitGroup
		for _, w := range walks {
			wg.Go(w)
		}
		wg.Wait()
	}
	out := Outcome{Slices: sheet.Slices(), Elapsed: time.Since(begin)}
	if err := ctx.Err(); err != nil {
		return out, err
	}
	return out, firstDead(vus)
}

// Share deals calls evenly over VUs: the share of number i of n. No calls (0) means no bound (-1).
func Share(calls int64, i, n int) int64 {
	if calls == 0 {
		return -1
	}
	s := calls / int64(n)
	if int64(i) < calls%int64(n) {
		s++
	}
	return s
}

// A walk is one VU's way through a load.
type walk struct {
	*vu
	sheet *Sheet
	calls int64 // left to make; -1: no bound
	think time.Duration
	wait  Wait // for the end of a pause

	slice int
	mark  time.Duration // up to where its active time is counted
}

// run makes calls whenever the VU is active. A call in flight at the end of a span is finished and counted.
func (w *walk) run(ctx context.Context, spans []plan.Span) {
	for _, span := range spans {
		w.leave(span.From)
		ByTimer(ctx, w.base, span.From)
		w.now = time.Since(w.base)
		w.mark = w.now
		for w.now < span.To && ctx.Err() == nil && w.calls != 0 {
			if at := w.sheet.At(w.slice, w.now); at != w.slice {
				w.flush(at)
			}
			if !w.call() {
				break
			}
			w.calls--
			w.pause(ctx, span.To)
		}
		w.shard.Active += w.now - w.mark
		w.mark = w.now
	}
	w.flush(w.slice)
	w.sheet.Release(w.slice)
}

// leave hands in what was measured, where slices are delivered, if nothing follows in its slice before a time.
func (w *walk) leave(until time.Duration) {
	if !w.sheet.Streams() {
		return
	}
	if at := w.sheet.At(w.slice, until); at != w.slice {
		w.flush(at)
	}
}

// pause thinks, or waits before it bothers a target again that does not answer. Neither is active time.
func (w *walk) pause(ctx context.Context, end time.Duration) {
	d := w.think
	if w.persists && w.silent > 0 && w.silence() {
		d = max(d, min(time.Millisecond<<min(w.silent-1, 10), 100*time.Millisecond))
	}
	if d == 0 {
		return
	}
	w.shard.Active += w.now - w.mark
	w.mark = w.now
	until := min(w.now+d, max(end, w.now))
	w.leave(until)
	w.wait(ctx, w.base, until)
	w.now = time.Since(w.base)
	w.mark = w.now
}

// flush hands in what was measured in the slice that is over.
func (w *walk) flush(next int) {
	w.shard.Active += w.now - w.mark
	w.mark = w.now
	w.sheet.Add(w.slice, w.shard)
	w.sheet.Move(w.slice, next)
	w.slice = next
}

// silence reports whether the last failure took no time, so that the next one would follow at once.
func (w *walk) silence() bool { return w.last == record.Connect || w.last == record.Closed }
