package zap_test

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
	"toll/wire/zap"
)

// note is the operation of the benchmarks: 32 bytes of text and a number.
type note struct {
	ID   int64
	Text string
}

var thirtyTwo = "thirty-two bytes of text, no more"[:32]

func BenchmarkCodec(b *testing.B) {
	c := codec[note](b)
	v, buf := &note{1, thirtyTwo}, make([]byte, 0, 4096)
	m := c.Append(nil, v)
	var got note
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Append(buf[:0], v)
		}
	})
	b.Run("view", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.View(m, &got)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Decode(m, &got)
		}
	})
	lc := codec[lists](b)
	l := &lists{7, []string{"a", "", "ccc"}, []int32{1, -2}, []bool{true}, [][]byte{{9}}, []small{{1, "x"}, {2, ""}}, "end"}
	lm := lc.Append(nil, l)
	var gotLists lists
	b.Run("append lists", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			lc.Append(buf[:0], l)
		}
	})
	b.Run("decode lists", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			lc.Decode(lm, &gotLists)
		}
	})
}

func BenchmarkFrame(b *testing.B) {
	r, buf := exampleRequest(), make([]byte, 0, 4096)
	m := r.Append(nil)[4:]
	var got zap.Request
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Append(buf[:0])
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			got.Parse(m)
		}
	})
}

// A caller makes one call of note and checks the echo.
type caller func() error

func httpCaller(b *testing.B, network string) caller {
	client, server := loopback(b, network)
	done := make(chan struct{})
	go func() { (&zap.Server{Handle: echoHTTP}).Serve(context.Background(), server); close(done) }()
	b.Cleanup(func() { client.Close(); <-done })
	in, out := codec[note](b), codec[note](b)
	c, body := zap.NewClient(client, 0), []byte(nil)
	req := zap.Request{Method: []byte("POST"), Target: []byte("/"), Proto: []byte("HTTP/1.1"), Headers: pairs("Content-Type", "application/zap")}
	var resp zap.Response
	var v note
	return func() error {
		v.ID++
		v.Text = thirtyTwo
		body = in.Append(body[:0], &v)
		req.Body = body
		if err := c.Call(context.Background(), &req, &resp); err != nil {
			return err
		}
		return check(out, resp.Body[1:], v.ID) // the target stands before the echo
	}
}

// rpcConn is one connection, for many callers.
func rpcConn(b *testing.B, network string) *mux.Conn {
	client, server := loopback(b, network)
	done := make(chan struct{})
	go func() { echoRPC(nil).Serve(server); close(done) }()
	c := mux.New(client, zap.RPCFraming{}, mux.Config{})
	b.Cleanup(func() { c.Close(); <-done })
	return c
}

func rpcCaller(b *testing.B, conn *mux.Conn) caller {
	in, out := codec[note](b), codec[note](b)
	x := &zap.RPCCall{RPCRequest: zap.RPCRequest{Method: 1}}
	var v note
	return func() error {
		v.ID++
		v.Text = thirtyTwo
		x.Payload = in.Append(x.Payload[:0], &v)
		if err := conn.Call(context.Background(), x); err != nil {
			return err
		}
		return check(out, x.Body, v.ID)
	}
}

func check(c *zap.Codec[note], body []byte, id int64) error {
	var got note
	if err := c.View(body, &got); err != nil || got.ID != id {
		return fmt.Errorf("sent %d, got %+v, %v", id, got, err)
	}
	return nil
}

// bareCaller writes and reads n bytes, the size of a request; nothing is encoded.
func bareCaller(b *testing.B, network string, n int) caller {
	client, server := loopback(b, network)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, n)
		for {
			if _, err := io.ReadFull(server, buf); err != nil {
				return
			}
			server.Write(buf)
		}
	}()
	b.Cleanup(func() { client.Close(); <-done })
	buf := make([]byte, n)
	return func() error { return writeRead(client, buf) }
}

func writeRead(nc net.Conn, buf []byte) error {
	if _, err := nc.Write(buf); err != nil {
		return err
	}
	_, err := io.ReadFull(nc, buf)
	return err
}

// BenchmarkCallAlone makes blocks of calls of each kind in turn, so that noise that lasts hits all, and reports how many
// times a bare write and read each costs.
func BenchmarkCallAlone(b *testing.B) {
	for _, network := range []string{"tcp", "unix"} {
		b.Run(network, func(b *testing.B) {
			kinds := []caller{bareCaller(b, network, 200), httpCaller(b, network), rpcCaller(b, rpcConn(b, network))}
			var took [3]time.Duration
			for turn := 0; b.Loop(); turn++ {
				for i := range kinds {
					k := (i + turn) % len(kinds)
					start := time.Now()
					for range 50 {
						if err := kinds[k](); err != nil {
							b.Fatal(err)
						}
					}
					took[k] += time.Since(start)
				}
			}
			b.ReportMetric(float64(took[1])/float64(took[0]), "http/bare")
			b.ReportMetric(float64(took[2])/float64(took[0]), "rpc/bare")
			b.ReportMetric(float64(took[2])/float64(took[1]), "rpc/http")
			b.ReportMetric(float64(took[1].Microseconds())/float64(b.N)/50, "http-µs")
		})
	}
}

// BenchmarkCrowd lets callers-1 goroutines call beside the benchmark's own and reports the calls a second of all. ZAP-HTTP
// has a connection per caller, ZAP-RPC one for all.
func BenchmarkCrowd(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("http/%d", callers), func(b *testing.B) {
			crowd(b, callers, func() caller { return httpCaller(b, "tcp") })
		})
		b.Run(fmt.Sprintf("rpc/%d", callers), func(b *testing.B) {
			conn := rpcConn(b, "tcp")
			crowd(b, callers, func() caller { return rpcCaller(b, conn) })
		})
	}
}

func crowd(b *testing.B, callers int, newCaller func() caller) {
	var calls atomic.Int64
	var over atomic.Bool
	var wg sync.WaitGroup
	one := newCaller()
	for range callers - 1 {
		call := newCaller()
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
