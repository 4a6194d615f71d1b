package record

import (
	"runtime"
	"time"
)

// Meter is a reading of what this process has used so far. Two readings around a window give the client's cost; both are
// taken outside it.
type Meter struct {
	CPU                time.Duration // user and system time of all threads
	Allocs, AllocBytes uint64        // heap objects and bytes allocated since start
}

// ReadCPU reads this process' CPU time only: one system call, no pause.
func ReadCPU() time.Duration { return processCPU() }

// ReadMeter reads CPU time and allocations. It stops the world for some microseconds.
func ReadMeter() Meter {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Meter{CPU: processCPU(), Allocs: m.Mallocs, AllocBytes: m.TotalAlloc}
}

// Sub returns what was used between o and m.
func (m Meter) Sub(o Meter) Meter {
	return Meter{m.CPU - o.CPU, m.Allocs - o.Allocs, m.AllocBytes - o.AllocBytes}
}

// Add returns the sum of two differences.
func (m Meter) Add(o Meter) Meter {
	return Meter{m.CPU + o.CPU, m.Allocs + o.Allocs, m.AllocBytes + o.AllocBytes}
}
