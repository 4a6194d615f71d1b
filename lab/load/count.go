package load

import (
	"context"
	"time"

	"toll/lab/record"
)

// DefaultTimeout bounds a call when the plan does not.
const DefaultTimeout = 5 * time.Second

// Counted is what Count measured.
type Counted struct {
	Shard *record.Shard
	Meter record.Meter // what this process spent on the calls, Prepare left out
}

// Count makes n calls on c, one after another, on the calling goroutine, so that what this process allocates is
// attributable to them. It stops early, with the error, when ctx ends or nobody answers.
func Count(ctx context.Context, c Caller, n int, timeout time.Duration) (Counted, error) {
	v := newVU(ctx, c, timeout)
	defer v.stop()
	v.shard.KeepRaw(n)
	out := Counted{Shard: v.shard}
	whole := record.ReadMeter()
	for range n {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if !v.ready() {
			return out, v.dead
		}
		var one record.Meter
		if v.prepare != nil {
			one = record.ReadMeter()
		}
		alive := v.timed()
		if v.prepare != nil {
			out.Meter = out.Meter.Add(record.ReadMeter().Sub(one))
		}
		if !alive {
			return out, v.dead
		}
	}
	if v.prepare == nil {
		out.Meter = record.ReadMeter().Sub(whole)
	}
	return out, nil
}
