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

	// Of a system that counts the calls of its handlers and how long they took.
	Handled   *int64 `json:"handled,omitempty"`
	HandlerNS *int64 `json:"handler_ns,omitempty"`
}

// Stats reads the usage. It stops the world for some microseconds, so it belongs outside a window.
func Stats() Usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Usage{Allocs: m.Mallocs, AllocBytes: m.TotalAlloc, Heap: m.HeapAlloc, Stack: m.StackInuse, GC: m.NumGC, GOMAXPROCS: runtime.GOMAXPROCS(0)}
}

// Stats reads the usage of the process and what the system's handlers have done, where it counts that.
func (r *Running) Stats() Usage {
	u := Stats()
	if h, ok := r.server.(interface {
		handled() (calls, ns int64, ok bool)
	}); ok {
		if calls, ns, ok := h.handled(); ok {
			u.Handled, u.HandlerNS = &calls, &ns
		}
	}
	return u
}
