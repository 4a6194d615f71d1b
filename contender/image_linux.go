package contender

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ulimitFlags gives a container the limits on open files and processes that our own children have. A runtime's defaults are
// higher than ours may be, and raising a limit is a right that a runtime in a sandbox does not have.
func ulimitFlags() (out []string) {
	for _, l := range []struct {
		name string
		kind int
	}{{"nofile", unix.RLIMIT_NOFILE}, {"nproc", unix.RLIMIT_NPROC}} {
		var r unix.Rlimit
		if unix.Getrlimit(l.kind, &r) == nil && r.Max != unix.RLIM_INFINITY {
			out = append(out, "--ulimit", fmt.Sprintf("%s=%d:%d", l.name, min(r.Cur, r.Max), r.Max))
		}
	}
	return out
}
