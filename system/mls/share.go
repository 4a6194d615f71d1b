package mls

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// worthSharing is how many seals or signatures are worth a second processor.
const worthSharing = 4

// A crew works on numbered items that do not depend on each other. Waking another processor takes longer than a seal does,
// so a crew is begun as early as its items are known, and whoever needs them finishes what is left.
type crew struct {
	n, grain int64
	work     func(i int) error
	next     atomic.Int64
	others   sync.WaitGroup
	mu       sync.Mutex
	err      error // guarded by mu
}

// begin has the other processors (GOMAXPROCS) work on the items before n, if there are enough items and the seam allows it.
// finish or stop must follow.
func (s *suite) begin(n int, work func(i int) error) *crew {
	c := &crew{n: int64(n), grain: 1, work: work}
	if s.fast == nil || n < worthSharing {
		return c
	}
	others := min(runtime.GOMAXPROCS(0), n/2) - 1
	c.grain = int64(max(1, n/(8*(others+1))))
	for range others {
		c.others.Go(c.some)
	}
	return c
}

// some works on items until there are no more.
func (c *crew) some() {
	for {
		to := c.next.Add(c.grain)
		for i := to - c.grain; i < min(to, c.n); i++ {
			if err := c.work(int(i)); err != nil {
				c.mu.Lock()
				c.err = err
				c.mu.Unlock()
				c.next.Store(c.n)
				return
			}
		}
		if to >= c.n {
			return
		}
	}
}

// finish works on what is left and says what failed. Nothing runs any more when it returns.
func (c *crew) finish() error {
	c.some()
	c.others.Wait()
	return c.err
}

// stop leaves out what is left.
func (c *crew) stop() {
	c.next.Store(c.n)
	c.others.Wait()
}
