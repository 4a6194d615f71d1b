package load

import (
	"context"
	"fmt"
	"time"

	"toll/lab/record"
)

// giveUpAfter calls in a row that found nobody answering, a VU stops: a dead contender must not cost the run a timeout
// per call.
const giveUpAfter = 5

// A vu is one virtual user: one Caller, one outstanding call.
type vu struct {
	caller   Caller
	prepare  Preparer // nil unless the caller is one
	shard    *record.Shard
	base     time.Time
	ctx      *callContext
	now      time.Duration // after base: when the last call ended
	silent   int           // calls in a row that found nobody answering
	last     string        // kind of the last failure
	persists bool          // never gives up
	dead     error         // why the VU gave up
}

func newVU(ctx context.Context, c Caller, timeout time.Duration) *vu {
	return newVUAt(ctx, c, timeout, time.Now())
}

// newVUAt makes a VU whose times count from base.
func newVUAt(ctx context.Context, c Caller, timeout time.Duration, base time.Time) *vu {
	v := &vu{caller: c, shard: new(record.Shard), base: base, ctx: newCallContext(ctx, base, timeout)}
	v.prepare, _ = c.(Preparer)
	return v
}

// stop frees what the VU holds beside its caller.
func (v *vu) stop() { v.ctx.stop() }

// call prepares and makes one call. It returns false when the VU has given up.
func (v *vu) call() bool { return v.ready() && v.timed() }

// ready does what must not be in the window.
func (v *vu) ready() bool {
	if v.prepare == nil || v.dead != nil {
		return v.dead == nil
	}
	begin := time.Now()
	if err := v.prepare.Prepare(v.ctx.values); err != nil {
		v.dead = fmt.Errorf("preparing a call: %w", err)
	}
	v.shard.Active -= time.Since(begin) // of the time from the VU's start, this was not spent on calls
	return v.dead == nil
}

// timed makes one call and records it: the window.
func (v *vu) timed() bool {
	took, err := v.window()
	v.shard.Done(took, err)
	return v.after(err)
}

// window makes one call and returns how long it took.
func (v *vu) window() (took time.Duration, err error) {
	start := time.Since(v.base)
	v.ctx.begin(start)
	err = v.caller.Call(v.ctx, v.shard.Mark())
	v.now = time.Since(v.base)
	v.ctx.end()
	return v.now - start, err
}

// after judges the outcome of a call: false when the VU has given up.
func (v *vu) after(err error) bool {
	if err != nil {
		return v.failed(err)
	}
	v.silent = 0
	return true
}

func (v *vu) failed(err error) bool {
	v.ctx = v.ctx.renew()
	v.last = record.KindOf(err)
	switch v.last {
	case record.Timeout, record.Connect, record.Closed, record.Crashed:
		v.silent++
	default:
		v.silent = 0
	}
	if v.silent >= giveUpAfter && !v.persists {
		v.dead = fmt.Errorf("%d calls in a row got no reply; the last: %w", v.silent, err)
	}
	return v.dead == nil
}
