//go:build !linux

package driver

import (
	"context"
	"errors"

	"toll/lab/load"
)

// LoopWorks says whether this system has client loop.
const LoopWorks = false

// Gather connects VUs that a goroutine each drives.
func (h *HTTP) Gather(ctx context.Context, vus int) (load.Crowd, error) {
	if h.Client == ClientLoop {
		return nil, errors.New("client loop needs Linux; use client raw")
	}
	return load.Goroutines(ctx, h, vus)
}
