// Command libzmq is an engine of the bus benchmark: it makes round trips to a process of its own over libzmq's DEALER and
// ROUTER, times them itself and verifies every reply. It is built with the tag libzmq, because it needs a C library.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

type question struct {
	ID      int64  `json:"id"`
	Case    string `json:"case"`
	Calls   int    `json:"calls"`
	Callers int    `json:"callers"`
}

type answer struct {
	ID      int64            `json:"id"`
	Error   string           `json:"error,omitempty"`
	NS      []int64          `json:"ns"`
	Elapsed int64            `json:"elapsed_ns"`
	CPU     int64            `json:"cpu_ns"`
	Allocs  int64            `json:"allocs"`
	Bytes   int64            `json:"alloc_bytes"`
	Failed  map[string]int64 `json:"failed,omitempty"`
	Why     string           `json:"why,omitempty"`
	Checked int64            `json:"checked"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if err := worker(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := engine(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func engine() error {
	e, err := start()
	if err != nil {
		return err
	}
	defer e.close()
	out := json.NewEncoder(os.Stdout)
	out.Encode(map[string]any{"ready": "stdio:", "version": version(), "name": "libzmq", "language": "c", "gomaxprocs": runtime.GOMAXPROCS(0)})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 2<<20)
	for lines.Scan() {
		text := lines.Text()
		switch {
		case text == "stats":
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			out.Encode(map[string]any{"allocs": m.Mallocs, "alloc_bytes": m.TotalAlloc, "heap": m.HeapAlloc, "gc": m.NumGC, "gomaxprocs": runtime.GOMAXPROCS(0)})
		case len(text) > 0 && text[0] == '{':
			var q question
			if err := json.Unmarshal([]byte(text), &q); err != nil {
				out.Encode(answer{Error: err.Error()})
				continue
			}
			out.Encode(e.stretch(q))
		}
	}
	return lines.Err()
}

func sizeOf(name string) int {
	return map[string]int{"rtt/128B": 128, "rtt/4KiB": 4 << 10}[name]
}

func (e *zmq) stretch(q question) answer {
	a := answer{ID: q.ID, NS: []int64{}}
	size := sizeOf(q.Case)
	if size == 0 || q.Calls < 1 || q.Calls > 1<<16 || q.Callers < 1 || q.Callers > 1024 {
		a.Error = fmt.Sprintf("case %q with %d calls by %d callers is none of this engine", q.Case, q.Calls, q.Callers)
		return a
	}
	for len(e.callers) < q.Callers {
		c, err := e.dial()
		if err != nil {
			a.Error = err.Error()
			return a
		}
		e.callers = append(e.callers, c)
	}
	callers := min(q.Callers, q.Calls)
	ns, failed := make([][]int64, callers), make([]error, callers)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, begin := cpuTime(), time.Now()
	var wg sync.WaitGroup
	for v := range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			body := make([]byte, size)
			for i := v; i < q.Calls && failed[v] == nil; i += callers {
				at := time.Now()
				failed[v] = e.callers[v].roundTrip(body, uint64(i)<<16|uint64(v))
				if failed[v] == nil {
					ns[v] = append(ns[v], int64(time.Since(at)))
				}
			}
		}()
	}
	wg.Wait()
	a.Elapsed, a.CPU = int64(time.Since(begin)), cpuTime()-cpu
	runtime.ReadMemStats(&after)
	a.Allocs, a.Bytes = int64(after.Mallocs-before.Mallocs), int64(after.TotalAlloc-before.TotalAlloc)
	for v := range ns {
		a.NS = append(a.NS, ns[v]...)
		if failed[v] != nil {
			a.Why = failed[v].Error()
		}
	}
	a.Checked = int64(len(a.NS))
	if n := int64(q.Calls) - a.Checked; n > 0 {
		a.Failed = map[string]int64{"other": n}
	}
	return a
}

func cpuTime() int64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
