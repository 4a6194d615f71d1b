package load

import (
	"context"
	"sync"
	"time"

	"toll/lab/record"
)

// Closed runs one VU per caller, each calling again as soon as its reply is there (the closed model), until d has passed.
// A call in flight then is finished and counted. It returns one merged shard and the time from the start to the last
// reply. An error means that every VU gave up or ctx ended; the shard holds what was measured until then.
func Closed(ctx context.Context, callers []Caller, d, timeout time.Duration) (*record.Shard, time.Duration, error) {
	vus := make([]*vu, len(callers))
	for i, c := range callers {
		vus[i] = newVU(ctx, c, timeout)
		defer vus[i].ctx.stop()
	}
	begin := time.Now()
	together(vus, func(v *vu) {
		own := time.Now()
		for time.Since(begin) < d && ctx.Err() == nil && v.call() {
		}
		v.shard.Active += time.Since(own)
	})
	elapsed := time.Since(begin)
	sum := new(record.Shard)
	for _, v := range vus {
		sum.Merge(v.shard)
	}
	if err := ctx.Err(); err != nil {
		return sum, elapsed, err
	}
	return sum, elapsed, firstDead(vus)
}

// together runs f for each VU and waits: inline for one, so that no hand-over between goroutines is in its window.
func together(vus []*vu, f func(*vu)) {
	if len(vus) == 1 {
		f(vus[0])
		return
	}
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, v := range vus {
		wg.Go(func() {
			<-start
			f(v)
		})
	}
	close(start)
	wg.Wait()
}

// firstDead returns why the first VU that gave up did, nil while all still get replies.
func firstDead(vus []*vu) error {
	for _, v := range vus {
		if v.dead != nil {
			return v.dead
		}
	}
	return nil
}
