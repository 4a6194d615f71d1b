package bus_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"toll/system/bus"
	"toll/wire/frame"
)

func echo(dst []byte, r *bus.Request) ([]byte, error) { return append(dst, r.Body...), nil }

func directPair(t testing.TB, h bus.Handler, quick bool) (*bus.Server, *bus.Direct, *bus.Responder) {
	t.Helper()
	r := bus.NewResponder(h, bus.Config{})
	s := bus.NewServer(r, quick)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(l) })
	d, err := bus.DialDirect(t.Context(), "tcp://"+l.Addr().String(), nil, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Close()
		s.Shutdown(context.Background())
		wg.Wait()
	})
	return s, d, r
}

func run(b *testing.B, callers int, make func() func()) {
	b.ReportAllocs()
	var wg sync.WaitGroup
	each := make2(callers, make)
	n := b.N / callers
	b.ResetTimer()
	for _, f := range each {
		wg.Go(func() {
			for range n + 1 {
				f()
			}
		})
	}
	wg.Wait()
}

func make2(n int, f func() func()) []func() {
	out := make([]func(), n)
	for i := range out {
		out[i] = f()
	}
	return out
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, callers := range []int{1, 10, 50} {
		name := map[int]string{1: "1", 10: "10", 50: "50"}[callers]
		b.Run("floor/"+name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					nc, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer nc.Close()
						buf := make([]byte, 4096)
						for {
							n, err := io.ReadAtLeast(nc, buf, 128)
							if err != nil {
								return
							}
							nc.Write(buf[:n])
						}
					}()
				}
			}()
			run(b, callers, func() func() {
				nc, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { nc.Close() })
				buf := make([]byte, 4096)
				return func() {
					nc.Write(buf[:128])
					io.ReadAtLeast(nc, buf, 128)
				}
			})
		})
		for _, quick := range []bool{true, false} {
			kind := map[bool]string{true: "direct/", false: "direct-goroutine/"}[quick]
			b.Run(kind+name, func(b *testing.B) {
				_, d, _ := directPair(b, echo, quick)
				ctx := context.Background()
				run(b, callers, func() func() {
					c := &bus.Call{Request: frame.Request{To: "target", From: "client", Op: "ping", Body: make([]byte, 128)}}
					return func() {
						if err := d.Call(ctx, c); err != nil || len(c.Answer) != 128 {
							b.Error(err)
						}
					}
				})
			})
		}
	}
}
