package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Work is a stretch that is ready to run.
type Work struct {
	// Call makes call i of the stretch, from 0: a caller that is done with one takes the next, so each caller's follow one
	// another, in growing order. caller is below the question's callers. Times of its own shares go into parts.
	Call func(ctx context.Context, caller, i int, parts *Parts) error
	// Check verifies the results after the clock has stopped and returns how many it verified; nil when Call did.
	Check func() (int, error)
	// Close ends what the work holds; nil for nothing.
	Close func() error
	// Collected says that no garbage collection should fall into the window: one is made before it, as the engine discloses.
	Collected bool
}

// A Failure is a call's failure of a kind; other errors count as kind "other".
type Failure struct {
	Kind string
	Err  error
}

// Error returns the kind and the cause.
func (f *Failure) Error() string { return f.Kind + ": " + f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Parts takes the named shares of one call's time. It belongs to one caller.
type Parts struct{ times map[string][]int64 }

// Add notes d as the named share of the call in progress.
func (p *Parts) Add(name string, d time.Duration) {
	if p.times == nil {
		p.times = make(map[string][]int64)
	}
	p.times[name] = append(p.times[name], int64(d))
}

// A caller is one of a stretch's callers and what it has to tell.
type caller struct {
	ns       []int64
	active   time.Duration // from its first call to its last reply
	parts    Parts
	failed   map[string]int64
	failedNS int64
	why      error
}

// run makes a stretch's calls and reports them.
func run(ctx context.Context, q Question, w Work) Answer {
	a := Answer{ID: q.ID}
	callers := make([]caller, min(q.Callers, q.Calls))
	for i := range callers {
		// A caller may make more than its share, never twice as many unless others stand still.
		callers[i].ns = make([]int64, 0, min(q.Calls, 2*q.Calls/len(callers)+1))
	}
	if w.Collected {
		runtime.GC()
	}
	var next atomic.Int64
	a.metered(func() time.Duration {
		begin := time.Now()
		together(len(callers), func(c int) { callers[c].calls(ctx, begin, c, &next, q.Calls, w.Call) })
		return time.Since(begin)
	})
	for _, c := range callers {
		a.add(c)
	}
	a.Checked = int64(len(a.NS))
	w.over(&a)
	return a
}

// metered runs a window and notes how long it took and what it cost the process.
func (a *Answer) metered(window func() time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before) // stops the world, outside the window
	user, sys, known := processCPU()
	a.Elapsed = int64(window())
	if u, y, ok := processCPU(); ok && known {
		inUser := int64(u - user)
		all := inUser + int64(y-sys)
		a.CPU, a.User = &all, &inUser
	}
	runtime.ReadMemStats(&after)
	objects, bytes := int64(after.Mallocs-before.Mallocs), int64(after.TotalAlloc-before.TotalAlloc)
	a.Allocs, a.Bytes = &objects, &bytes
}

// over verifies the results and ends the work.
func (w Work) over(a *Answer) {
	if w.Check != nil {
		n, err := w.Check()
		if a.Checked = int64(n); err != nil {
			a.Error = "verifying the results: " + err.Error()
		}
	}
	if w.Close != nil {
		if err := w.Close(); err != nil {
			a.Error = cmp.Or(a.Error, "closing: "+err.Error())
		}
	}
}

// calls makes calls until all of the stretch are made. Callers take them as they get free, so that all have something in
// flight until the last; dealt out beforehand, the slowest caller's share would be the stretch's time. A call lasts until
// the clock is read after it, from where the one before ended: one reading each.
func (c *caller) calls(ctx context.Context, begin time.Time, at int, next *atomic.Int64, n int, call func(context.Context, int, int, *Parts) error) {
	first := time.Since(begin)
	now := first
	for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
		err := call(ctx, at, i, &c.parts)
		start := now
		now = time.Since(begin)
		if err == nil {
			c.ns = append(c.ns, int64(now-start))
			continue
		}
		c.failedNS += int64(now - start)
		c.fail(err)
	}
	c.active = now - first
}

func (c *caller) fail(err error) {
	c.why = cmp.Or(c.why, err)
	if c.failed == nil {
		c.failed = make(map[string]int64)
	}
	kind := "other"
	if f, ok := errors.AsType[*Failure](err); ok {
		kind = f.Kind
	}
	c.failed[kind]++
}

func (a *Answer) add(c caller) {
	a.NS = append(a.NS, c.ns...)
	a.tell(c)
	active := c.active
	if a.Active != nil {
		active += time.Duration(*a.Active)
	}
	a.Active = (*int64)(&active)
}

// tell adds what is told of a caller beside the times of its successes.
func (a *Answer) tell(c caller) {
	a.FailedNS += c.failedNS
	for name, times := range c.parts.times {
		if a.Parts == nil {
			a.Parts = make(map[string][]int64)
		}
		a.Parts[name] = append(a.Parts[name], times...)
	}
	for kind, n := range c.failed {
		if a.Failed == nil {
			a.Failed = make(map[string]int64)
		}
		a.Failed[kind] += n
	}
	if c.why != nil {
		a.Why = cmp.Or(a.Why, fmt.Sprintf("%.300s", c.why))
	}
}

// together runs f for each of n callers and waits: inline for one, so that no hand-over is in its window.
func together(n int, f func(int)) {
	if n == 1 {
		f(0)
		return
	}
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}
