package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// What every engine of the benchmark bus has in common: it is asked for stretches on its standard input and answers with a
// time for each call. This file is the same in every Go engine of it, so that each folder can be built by itself; a test
// holds them equal.

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
	Active  int64            `json:"active_ns"`
	CPU     int64            `json:"cpu_ns"`
	Allocs  int64            `json:"allocs"`
	Bytes   int64            `json:"alloc_bytes"`
	Failed  map[string]int64 `json:"failed,omitempty"`
	Why     string           `json:"why,omitempty"`
	Checked int64            `json:"checked"`
}

// A caller makes one round trip after the other: it sends body under a number and wants the same back.
type caller interface {
	roundTrip(body []byte, n uint64) error
}

// A bus makes callers.
type bus struct {
	dial    func() (caller, error)
	callers []caller
}

// serve answers the lines of in until it ends. first is the ready line.
func (b *bus) serve(in io.Reader, to io.Writer, first map[string]any) error {
	out := json.NewEncoder(to)
	first["ready"], first["gomaxprocs"] = "stdio:", runtime.GOMAXPROCS(0)
	if err := out.Encode(first); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 2<<20)
	for lines.Scan() {
		var said any
		switch text := lines.Text(); {
		case text == "stats":
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			said = map[string]any{"allocs": m.Mallocs, "alloc_bytes": m.TotalAlloc, "heap": m.HeapAlloc, "gc": m.NumGC, "gomaxprocs": runtime.GOMAXPROCS(0)}
		case len(text) > 0 && text[0] == '{':
			said = b.answer(lines.Bytes())
		default:
			continue
		}
		if err := out.Encode(said); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (b *bus) answer(line []byte) answer {
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return answer{Error: err.Error()}
	}
	size := map[string]int{"rtt/128B": 128, "rtt/4KiB": 4 << 10}[q.Case]
	if size == 0 || q.Calls < 1 || q.Calls > 1<<16 || q.Callers < 1 || q.Callers > 1024 {
		return answer{ID: q.ID, Error: fmt.Sprintf("case %q with %d calls by %d callers is none of this engine", q.Case, q.Calls, q.Callers)}
	}
	for len(b.callers) < q.Callers {
		c, err := b.dial()
		if err != nil {
			return answer{ID: q.ID, Error: err.Error()}
		}
		b.callers = append(b.callers, c)
	}
	return b.stretch(q, size)
}

// stretch makes a stretch's calls. Callers take them as they get free, until all are made.
func (b *bus) stretch(q question, size int) answer {
	a := answer{ID: q.ID, NS: []int64{}}
	callers := min(q.Callers, q.Calls)
	ns, failed, active := make([][]int64, callers), make([]error, callers), make([]time.Duration, callers)
	for v := range ns {
		ns[v] = make([]int64, 0, min(q.Calls, 2*q.Calls/callers+1))
	}
	var next, bad atomic.Int64
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, begin := cpuTime(), time.Now()
	var wg sync.WaitGroup
	for v := range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			body := make([]byte, size)
			first := time.Since(begin)
			now := first
			for i := next.Add(1) - 1; i < int64(q.Calls); i = next.Add(1) - 1 {
				err := b.callers[v].roundTrip(body, uint64(i)<<16|uint64(v))
				start := now
				now = time.Since(begin)
				if err != nil {
					failed[v] = err
					bad.Add(1)
					continue
				}
				ns[v] = append(ns[v], int64(now-start))
			}
			active[v] = now - first
		}()
	}
	wg.Wait()
	a.Elapsed, a.CPU = int64(time.Since(begin)), cpuTime()-cpu
	runtime.ReadMemStats(&after)
	a.Allocs, a.Bytes = int64(after.Mallocs-before.Mallocs), int64(after.TotalAlloc-before.TotalAlloc)
	for v := range ns {
		a.NS = append(a.NS, ns[v]...)
		a.Active += int64(active[v])
		if failed[v] != nil {
			a.Why = failed[v].Error()
		}
	}
	a.Checked = int64(len(a.NS))
	if n := bad.Load(); n > 0 {
		a.Failed = map[string]int64{"other": n}
	}
	return a
}

func cpuTime() int64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
