package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// callContext is one VU's context, used again for each of its calls: making a context and a timer per call would put two
// allocations of ours into every window. Its deadline is that of the call in progress. It does not end with the run's
// context, because stopping a VU lets its call finish; the executor looks at the run's context between calls.
type callContext struct {
	values  context.Context
	base    time.Time
	timeout time.Duration
	until   atomic.Int64 // ns after base at which the call in progress is overdue; 0 between calls
	timer   *time.Timer

	mu      sync.Mutex
	done    chan struct{} // guarded by mu
	overdue bool          // guarded by mu
	stopped bool          // guarded by mu
}

func newCallContext(ctx context.Context, base time.Time, timeout time.Duration) *callContext {
	c := &callContext{values: ctx, base: base, timeout: timeout, done: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(c.period(), c.watch)
	return c
}

// period is how often the watchdog looks: a call is told that it is overdue at most a quarter of its timeout late, and
// drivers that set a deadline on their connection are on time.
func (c *callContext) period() time.Duration { return max(c.timeout/4, time.Millisecond) }

func (c *callContext) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return
	}
	if until := c.until.Load(); until != 0 && int64(time.Since(c.base)) >= until && !c.overdue {
		c.overdue = true
		close(c.done)
	}
	c.timer.Reset(c.period())
}

// begin starts the deadline of a call that starts at the given time after base.
func (c *callContext) begin(at time.Duration) { c.until.Store(int64(at + c.timeout)) }

// end ends the call.
func (c *callContext) end() {
	c.until.Store(0)
}

// renew must follow a call that failed: if the watchdog ended the context, the next call needs another one. The one that
// ended stays so, because whoever was told of its end may ask it why at any time.
func (c *callContext) renew() *callContext {
	c.mu.Lock()
	overdue := c.overdue
	c.mu.Unlock()
	if !overdue {
		return c
	}
	c.stop()
	return newCallContext(c.values, c.base, c.timeout)
}

func (c *callContext) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}

// Deadline returns that of the call in progress.
func (c *callContext) Deadline() (time.Time, bool) {
	until := c.until.Load()
	return c.base.Add(time.Duration(until)), until != 0
}

// Done is closed when the call in progress is overdue.
func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// Err is context.DeadlineExceeded when the call in progress is overdue.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.overdue {
		return context.DeadlineExceeded
	}
	return nil
}

// Value returns the run's values.
func (c *callContext) Value(key any) any { return c.values.Value(key) }
