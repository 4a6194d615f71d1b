package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// Work is a stretch that is ready to run.
type Work struct {
	// Call makes call i of the stretch, from 0; those of one caller follow one another. caller is below the question's
	// callers. Times of its own shares go into parts.
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
	ns     []int64
	parts  Parts
	failed map[string]int64
	why    error
}

// run makes a stretch's calls and reports them.
func run(ctx context.Context, q Question, w Work) Answer {
	a := Answer{ID: q.ID}
	callers := make([]caller, min(q.Callers, q.Calls))
	for i := range callers {
		callers[i].ns = make([]int64, 0, q.Calls/len(callers)+1)
	}
	if w.Collected {
		runtime.GC()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before) // stops the world, outside the window
	user, sys, known := processCPU()
	begin := time.Now()
	together(len(callers), func(c int) { callers[c].calls(ctx, c, len(callers), q.Calls, w.Call) })
	a.Elapsed = int64(time.Since(begin))
	if u, y, ok := processCPU(); ok && known {
		inUser := int64(u - user)
		all := inUser + int64(y-sys)
		a.CPU, a.User = &all, &inUser
	}
	runtime.ReadMemStats(&after)
	objects, bytes := int64(after.Mallocs-before.Mallocs), int64(after.TotalAlloc-before.TotalAlloc)
	a.Allocs, a.Bytes = &objects, &bytes
	for _, c := range callers {
		a.add(c)
	}
	a.Checked = int64(len(a.NS))
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
	return a
}

// calls makes every call that falls to one caller.
func (c *caller) calls(ctx context.Context, at, callers, n int, call func(context.Context, int, int, *Parts) error) {
	for i := at; i < n; i += callers {
		start := time.Now()
		err := call(ctx, at, i, &c.parts)
		took := time.Since(start)
		if err == nil {
			c.ns = append(c.ns, int64(took))
			continue
		}
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
}

func (a *Answer) add(c caller) {
	a.NS = append(a.NS, c.ns...)
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
