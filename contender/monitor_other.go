//go:build !linux

package contender

import (
	"context"

	"toll/contender/owner"
)

// removeMonitored finds nothing: podman's monitors run on Linux.
func removeMonitored(context.Context, string) (found bool, err error) { return false, nil }

// cleanMonitors finds nothing either.
func cleanMonitors(context.Context) []owner.Found { return nil }
