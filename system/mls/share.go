package mls

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// worthSharing is how many seals or signatures are worth a second processor.
const worthSharing = 4

// share does work on the items before n, in stretches: on one processor after another, or on all that there are
// (GOMAXPROCS) when there are enough items and the seam allows it. Nothing runs any more when it returns.
func (s *suite) share(n int, work func(from, to int) error) error {
	workers := min(runtime.GOMAXPROCS(0), n/2)
	if s.fast == nil || n < worthSharing || workers < 2 {
		return work(0, n)
	}
	grain := max(1, n/(4*workers))
	var next atomic.Int64
	var all sync.WaitGroup
	failures := make([]error, workers)
	one := func(w int) {
		for failures[w] == nil {
			from := int(next.Add(int64(grain))) - grain
			if from >= n {
				return
			}
			failures[w] = work(from, min(from+grain, n))
		}
	}
	for w := range workers - 1 {
		all.Go(func() { one(w) })
	}
	one(workers - 1) // the caller works too: it does not wait for a processor that has other things to do
	all.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}
