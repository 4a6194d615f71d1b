package mux_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toll/wire/mux"
)

// bare is a connection per caller, a write and a read per call: what a connection that is shared is compared with.
type bare struct {
	nc  net.Conn
	buf []byte
}

func newBare(b *testing.B, size int) *bare {
	b.Helper()
	nc, server := loopback(b)
	go func() {
		defer server.Close()
		buf := make([]byte, size)
		for {
			if _, err := io.ReadFull(server, buf); err != nil {
				return
			}
			if _, err := server.Write(buf); err != nil {
				return
			}
		}
	}()
	b.Cleanup(func() { nc.Close() })
	return &bare{nc, make([]byte, size)}
}

func (e *bare) call() error {
	if _, err := e.nc.Write(e.buf); err != nil {
		return err
	}
	_, err := io.ReadFull(e.nc, e.buf)
	return err
}

const payload = 50 // with the frame's length, number and mark: 66 bytes

// BenchmarkCallAlone interleaves blocks of calls and of bare writes and reads: noise that lasts hits both.
func BenchmarkCallAlone(b *testing.B) {
	c := pair(b, &mux.Server{Framing: lengthID{}, Handle: same, Quick: quick}, mux.Config{})
	floor := newBare(b, 16+payload)
	e, ctx := &echo{size: payload}, context.Background()
	var ours, theirs time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		for range 50 {
			if err := c.Call(ctx, e); err != nil {
				b.Fatal(err)
			}
		}
		middle := time.Now()
		for range 50 {
			if err := floor.call(); err != nil {
				b.Fatal(err)
			}
		}
		ours, theirs = ours+middle.Sub(start), theirs+time.Since(middle)
	}
	b.ReportMetric(float64(ours)/float64(theirs), "x-bare")
}

// crowd lets callers-1 goroutines call until the benchmark is over, beside its own loop, and reports calls a second of all.
func crowd(b *testing.B, callers int, newCall func() func() error) {
	var calls atomic.Int64
	var over atomic.Bool
	var wg sync.WaitGroup
	one := newCall()
	for range callers - 1 {
		call := newCall()
		wg.Go(func() {
			for !over.Load() {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
				calls.Add(1)
			}
		})
	}
	b.ReportAllocs()
	before, start := calls.Load(), time.Now()
	for b.Loop() {
		if err := one(); err != nil {
			b.Fatal(err)
		}
		calls.Add(1)
	}
	b.ReportMetric(float64(calls.Load()-before)/time.Since(start).Seconds(), "calls/s")
	over.Store(true)
	wg.Wait()
}

func BenchmarkCrowd(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("mux/%d", callers), func(b *testing.B) {
			c := pair(b, &mux.Server{Framing: lengthID{}, Handle: same, Quick: quick}, mux.Config{})
			crowd(b, callers, func() func() error {
				e, ctx := &echo{size: payload}, context.Background()
				return func() error { return c.Call(ctx, e) }
			})
		})
		b.Run(fmt.Sprintf("bare/%d", callers), func(b *testing.B) {
			crowd(b, callers, func() func() error { return newBare(b, 16+payload).call })
		})
	}
}
