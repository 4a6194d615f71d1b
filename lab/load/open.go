package load

import (
	"context"
	"slices"
	"sync"
	"time"

	"toll/lab/plan"
	"toll/lab/record"
)

// overdue is how far behind its intended start an arrival is before sending it counts as catching up.
const overdue = time.Millisecond

// open sends each arrival when it is due, on a connection that is free, or on a new one while fewer than l.InFlight are in
// use. What comes back does not slow down what goes out.
func (c *crowd) open(ctx context.Context, l Load) (Outcome, error) {
	p := &pool{crowd: c, load: l, sheet: NewSheet(l), ctx: ctx, begin: time.Now()}
	for i := len(c.callers) - 1; i >= 0; i-- {
		p.idle = append(p.idle, p.worker(c.callers[i]))
	}
	arrivals := plan.NewArrivals(l.Stages, l.Rand).Ahead(l.Ahead)
	slice := 0
	p.sheet.Hold(0)
	stopSweeping := p.sweepWhen()
	var behind int64
	for {
		at, ok := arrivals.Next()
		if !ok || ctx.Err() != nil {
			break
		}
		if next := p.sheet.At(slice, at); next != slice {
			p.sheet.Move(slice, next)
			slice = next
		}
		now := time.Since(p.begin)
		if now < at {
			l.Wait(ctx, p.begin, at)
			now = time.Since(p.begin)
			if ctx.Err() != nil {
				break
			}
		}
		behind = p.out.Behind(behind, now-at)
		p.out.Arrivals++
		if !p.send(at, slice) {
			p.sheet.Drop(slice)
		}
	}
	p.out.Behind(behind, 0)
	stopSweeping()
	p.sheet.Release(slice)
	p.finish()
	p.out.Slices, p.out.Elapsed = p.sheet.Slices(), time.Since(p.begin)
	return p.out, ctx.Err()
}

// Behind counts bursts: run is how many arrivals in a row were sent overdue, late how late this one is. It returns the new
// run.
func (o *Outcome) Behind(run int64, late time.Duration) int64 {
	if late > overdue {
		return run + 1
	}
	if run > 1 {
		o.Bursts++
		o.BurstMost = max(o.BurstMost, run)
	}
	return 0
}

// A pool is the workers of an open-model load.
type pool struct {
	crowd   *crowd
	load    Load
	sheet   *Sheet
	ctx     context.Context
	begin   time.Time
	running sync.WaitGroup

	out Outcome // Arrivals and the bursts are owned by open, the rest is guarded by mu

	mu       sync.Mutex
	all      []*worker     // guarded by mu
	idle     []*worker     // guarded by mu; the last one freed is the next one used
	inFlight int           // guarded by mu
	changed  time.Duration // guarded by mu: when inFlight did
}

// A worker makes one call at a time on a connection of its own.
type worker struct {
	*vu
	due   chan due
	slice int
	dirty bool // it has measured something of its slice, and holds it
}

// A due arrival has an intended start and a slice.
type due struct {
	at    time.Duration
	slice int
}

// worker starts a worker; one without a caller connects when its first arrival comes.
func (p *pool) worker(c Caller) *worker {
	w := &worker{vu: newVUAt(p.ctx, c, p.load.Timeout, p.begin), due: make(chan due, 1)}
	w.shard = p.sheet.Shard()
	p.all = append(p.all, w)
	p.running.Go(func() {
		for d := range w.due {
			p.call(w, d)
		}
		p.handIn(w)
	})
	return w
}

// send hands an arrival to a worker, and reports whether there was one to be had.
func (p *pool) send(at time.Duration, slice int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inFlight >= p.load.InFlight {
		return false
	}
	var w *worker
	if n := len(p.idle); n > 0 {
		w, p.idle = p.idle[n-1], p.idle[:n-1]
	} else {
		w = p.worker(nil)
	}
	p.count(1)
	p.sheet.Hold(slice)
	w.due <- due{at, slice}
	return true
}

// count changes the number of calls in flight by one. It must be called with mu held.
func (p *pool) count(by int) {
	now := time.Since(p.begin)
	p.out.InFlight += time.Duration(p.inFlight) * (now - p.changed)
	p.changed = now
	p.inFlight += by
	p.out.InFlightMost = max(p.out.InFlightMost, p.inFlight)
}

// call makes one call and frees the worker.
func (p *pool) call(w *worker, d due) {
	if w.dirty && d.slice == w.slice {
		p.sheet.Release(d.slice) // once is enough
	} else {
		p.handIn(w)
		w.slice, w.dirty = d.slice, true
	}
	start := time.Since(p.begin)
	err := p.connect(w)
	if err == nil {
		w.ctx.begin(start)
		err = w.caller.Call(w.ctx, w.shard.Mark())
		w.now = time.Since(p.begin)
		w.ctx.end()
	} else {
		w.now = time.Since(p.begin)
	}
	w.shard.Sent(w.now-start, start-d.at, err)
	if err != nil {
		w.ctx = w.ctx.renew()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(-1)
	p.idle = append(p.idle, w)
}

// handIn adds what a worker measured to its slice. The worker must not be making a call.
func (p *pool) handIn(w *worker) {
	if w.dirty {
		p.sheet.Add(w.slice, w.shard)
		p.sheet.Release(w.slice)
		w.dirty = false
	}
}

// sweepEvery is how often workers that have nothing to do are looked for whose slices are over.
const sweepEvery = 100 * time.Millisecond

// sweepWhen has idle workers' slices handed in while the load runs, if slices are delivered, until stop.
func (p *pool) sweepWhen() (stop func()) {
	if !p.sheet.Streams() {
		return func() {}
	}
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(sweepEvery)
		defer tick.Stop()
		now := 0
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			now = p.sheet.At(now, time.Since(p.begin))
			for p.sweep(now) {
			}
		}
	})
	return func() {
		close(over)
		wg.Wait()
	}
}

// sweep hands in the slice of one idle worker if it lies before another, and reports whether there was one. Meanwhile that
// worker gets no call, unless it is the only one: then the others wait.
func (p *pool) sweep(before int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.idle, func(w *worker) bool { return w.dirty && w.slice < before })
	if i < 0 {
		return false
	}
	w := p.idle[i]
	if len(p.idle) == 1 {
		p.handIn(w)
		return true
	}
	p.idle = slices.Delete(p.idle, i, i+1)
	p.mu.Unlock()
	p.handIn(w)
	p.mu.Lock()
	p.idle = slices.Insert(p.idle, min(i, len(p.idle)), w)
	return true
}

// connect makes sure of the worker's connection; making one is part of the call's time, as it would be a user's.
func (p *pool) connect(w *worker) error {
	if w.caller != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), p.load.Timeout)
	defer cancel()
	c, err := p.crowd.target.Open(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = record.Fail(record.Timeout, err)
		}
		return err
	}
	w.caller = c
	return nil
}

// finish lets the calls in flight end, and keeps the connections for the next load.
func (p *pool) finish() {
	for _, w := range p.all {
		close(w.due)
	}
	p.running.Wait()
	p.crowd.callers = nil
	for _, w := range p.all {
		w.stop()
		if w.caller != nil {
			p.crowd.callers = append(p.crowd.callers, w.caller)
		}
	}
}
