package load

import (
	"context"
	"sync"
	"time"

	"toll/lab/plan"
	"toll/lab/record"
)

// Closed runs one VU per caller, each calling again as soon as its reply is there (the closed model), until d has passed.
// A call in flight then is finished and counted. It returns one merged shard and the time from the start to the last
// reply. An error means that every VU gave up or ctx ended; the shard holds what was measured until then.
func Closed(ctx context.Context, callers []Caller, d, timeout time.Duration) (*record.Shard, time.Duration, error) {
	c := &crowd{callers: callers}
	out, err := c.Run(ctx, Load{Stages: plan.Hold(float64(len(callers)), d), Timeout: timeout, GiveUp: true})
	return out.Shard(), out.Elapsed, err
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
