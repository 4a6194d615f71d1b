//go:build !linux

package driver

import (
	"context"
	"errors"

	"toll/lab/load"
)

// Gather connects VUs that a goroutine each drives.
func (h *HTTP) Gather(ctx context.Context, vus int) (load.Crowd, error) {
	if h.Client == ClientLoop {
		return nil, errors.New("client loop needs Linux; use client raw")
	}
	return load.Goroutines(ctx, h, vus)
}
