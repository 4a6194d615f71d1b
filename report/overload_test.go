package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/lab/result"
)

// Of one caller's rows it is said what the framework is of a call, how much of that a bare socket would be, and what of it is
// CPU time; with more callers most of it would be waiting.
func TestWhatAFrameworkAddsIsSaidBesideTheSocket(t *testing.T) {
	t.Parallel()
	row := func(name, role string, callers int, f result.Framework) *result.Row {
		return &result.Row{Contender: result.Contender{Name: name}, Role: role, Concurrency: callers, Framework: &f}
	}
	toll := result.Framework{Handler: 4900, Overhead: 100, Share: .02, CPU: result.Ptr(60.), CPUShare: result.Ptr(.012)}
	socket := result.Framework{Handler: 4900, Overhead: 75, Share: .015}
	for name, x := range map[string]struct {
		rows []*result.Row
		want []string
	}{
		"alone":           {[]*result.Row{row("toll", "", 1, toll)}, []string{"framework of toll = total − handler, mean µs: 5000 − 4900 = 100, 2.0 % of a call; 60.0 and 1.2 % of its CPU time"}},
		"ten callers":     {[]*result.Row{row("toll", "", 10, toll)}, nil},
		"beside a socket": {[]*result.Row{row("toll", "", 1, toll), row("socket", result.Floor, 1, socket)}, []string{"framework of toll = total − handler, mean µs: 5000 − 4900 = 100, 2.0 % of a call, 25.0 and 0.5 % above the bare socket's; 60.0 and 1.2 % of its CPU time", "framework of socket (floor) = total − handler, mean µs: 4975 − 4900 = 75.0, 1.5 % of a call"}},
		"nobody has told": {[]*result.Row{{Concurrency: 1}}, nil},
	} {
		if d := cmp.Diff(x.want, frameworkText(x.rows)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
