package cli

import (
	"os"
	"runtime"
	"runtime/debug"
)

// sparedWorkers is up to how many workers a coordinator keeps to one processor. What server, streams and rules cost a worker and
// second (docs/scale.md) is then 3 % of it.
const sparedWorkers = 256

// sparedGC is how far the heap of such a coordinator, some 5 MB, may grow between two collections, in percent.
const sparedGC = 400

// spare makes this process use little while it conducts a small fleet that may share the machine. It is woken some hundred times a
// second and has some ten microseconds to do each time; a second processor, which looks for work whenever the first has some, and a
// collection of a heap that is hardly used are then most of what it costs. What it returns, which may be called again, puts
// everything back. Who set GOMAXPROCS or GOGC is obeyed.
func spare(workers int) (back func()) {
	if workers > sparedWorkers {
		return func() {}
	}
	var undo []func()
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
		undo = append(undo, runtime.SetDefaultGOMAXPROCS)
	}
	if os.Getenv("GOGC") == "" {
		old := debug.SetGCPercent(sparedGC)
		undo = append(undo, func() { debug.SetGCPercent(old) })
	}
	return func() {
		for _, f := range undo {
			f()
		}
		undo = nil
	}
}
