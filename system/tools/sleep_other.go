//go:build !linux

package tools

import (
	"context"
	"time"
)

// sleep waits for d or until ctx ends, whose cause it then returns.
func sleep(ctx context.Context, d time.Duration) error { return sleepByTimer(ctx, d) }
