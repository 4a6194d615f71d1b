package tools

import (
	"context"
	"time"
)

// sleepByTimer waits by the runtime's timers, which may be a millisecond late (golang/go#44343).
func sleepByTimer(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
