package engine

import (
	"context"
	"sync"
	"time"
)

// A Wait waits until a time is so long after begin, or ctx ends.
type Wait func(ctx context.Context, begin time.Time, at time.Duration)

// byTimer is Wait with the runtime's timer, which may be a millisecond late.
func byTimer(ctx context.Context, begin time.Time, at time.Duration) {
	t := time.NewTimer(at - time.Since(begin))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// runPaced makes a stretch's calls when they are due and reports them.
func runPaced(ctx context.Context, q Question, w Work, wait Wait) Answer {
	a := Answer{ID: q.ID, NS: make([]int64, q.Calls), Paced: &Paced{Late: make([]int64, q.Calls)}}
	p := &pacing{work: w, answer: &a, callers: make([]caller, q.Callers), due: make([]chan int, q.Callers)}
	for c := range q.Callers {
		p.due[c] = make(chan int, 1)
		p.idle = append(p.idle, q.Callers-1-c) // the last one freed is the next one used; the first is 0
	}
	a.metered(func() time.Duration { return p.run(ctx, q.Due, wait) })
	for _, c := range p.callers {
		a.tell(c)
	}
	for _, ns := range a.NS {
		if ns >= 0 {
			a.Checked++
		}
	}
	w.over(&a)
	return a
}

// A pacing is a paced stretch in progress.
type pacing struct {
	work    Work
	answer  *Answer // its times of a call are owned by who makes it
	begin   time.Time
	callers []caller
	due     []chan int // of each caller, the call that it is to make; closed at the end
	running sync.WaitGroup

	mu       sync.Mutex
	idle     []int         // guarded by mu: callers without a call
	started  int           // guarded by mu: callers below this number have a goroutine
	inFlight int           // guarded by mu
	changed  time.Duration // guarded by mu: when inFlight did
}

// run sends each call when it is due and returns when the last has ended.
func (p *pacing) run(ctx context.Context, gaps []int64, wait Wait) time.Duration {
	p.begin = time.Now()
	var at time.Duration
	for i, gap := range gaps {
		at += time.Duration(gap)
		for time.Since(p.begin) < at && ctx.Err() == nil {
			wait(ctx, p.begin, at)
		}
		if ctx.Err() != nil || !p.send(ctx, i, at) {
			p.answer.NS[i], p.answer.Paced.Late[i] = -1, -1
		}
	}
	for _, c := range p.due[:p.started] {
		close(c)
	}
	p.running.Wait()
	return max(time.Since(p.begin), at)
}

// send hands a call to an idle caller and reports whether there was one.
func (p *pacing) send(ctx context.Context, i int, at time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return false
	}
	c := p.idle[n-1]
	p.idle = p.idle[:n-1]
	if c >= p.started {
		p.started = c + 1
		p.running.Go(func() {
			for i := range p.due[c] {
				p.call(ctx, c, i)
			}
		})
	}
	p.answer.Paced.Late[i] = int64(at) // until it is sent
	p.due[c] <- i
	return true
}

// call makes one call.
func (p *pacing) call(ctx context.Context, c, i int) {
	own := &p.callers[c]
	p.mu.Lock()
	start := p.count(1)
	p.mu.Unlock()
	err := p.work.Call(ctx, c, i, &own.parts)
	p.mu.Lock()
	defer p.mu.Unlock()
	took := int64(p.count(-1) - start)
	p.idle = append(p.idle, c)
	p.answer.Paced.Late[i] = int64(start) - p.answer.Paced.Late[i]
	if p.answer.NS[i] = took; err != nil {
		p.answer.NS[i] = -1
		own.failedNS += took
		own.fail(err)
	}
}

// count changes the number of calls in flight by one and returns when. A call that was handed to its caller and has not begun
// is late, not in flight. mu is held.
func (p *pacing) count(by int) time.Duration {
	now := time.Since(p.begin)
	p.answer.Paced.InFlight += int64(now-p.changed) * int64(p.inFlight)
	p.changed = now
	p.inFlight += by
	p.answer.Paced.Most = max(p.answer.Paced.Most, p.inFlight)
	return now
}
