package system

import "runtime"

// Usage is what this process has used since its start, as a contender reports it on the line stats.
type Usage struct {
	Allocs     uint64 `json:"allocs"`      // heap objects allocated
	AllocBytes uint64 `json:"alloc_bytes"` // bytes allocated
	Heap       uint64 `json:"heap"`        // bytes of heap in use
	Stack      uint64 `json:"stack"`       // bytes of stacks in use
	GC         uint32 `json:"gc"`          // collections
	GOMAXPROCS int    `json:"gomaxprocs"`
}

// Stats reads the usage. It stops the world for some microseconds, so it belongs outside a window.
func Stats() Usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Usage{m.Mallocs, m.TotalAlloc, m.HeapAlloc, m.StackInuse, m.NumGC, runtime.GOMAXPROCS(0)}
}
