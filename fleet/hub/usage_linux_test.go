package hub_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/nats-io/nats-server/v2/server/pse"

	"toll/fleet/hub"
)

// The server's package must not find the file of its own process any more: its look once a second ends with the first that fails.
// Another version of the library that keeps the name elsewhere fails here.
func TestTheServersPackageDoesNotLookAtItsProcess(t *testing.T) {
	hub.LeaveUsage()
	var cpu float64
	var resident, virtual int64
	if err := pse.ProcUsage(&cpu, &resident, &virtual); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it looked: %v, %d bytes; error %v", cpu, resident, err)
	}
}
