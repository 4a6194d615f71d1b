package driver_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"testing"

	"toll/driver"
	"toll/lab/load"
	"toll/lab/record"
)

// serveCanned answers every request with the same bytes and allocates nothing while it does.
func serveCanned(t testing.TB, reply []byte) (addr string) {
	t.Helper()
	return accepting(t, "tcp", func(nc net.Conn) {
		buf := make([]byte, 1<<17)
		for {
			for n, whole := 0, 0; whole == 0 || n < whole; {
				k, err := nc.Read(buf[n:])
				if err != nil {
					return
				}
				n += k
				whole = requestSize(buf[:n])
			}
			nc.Write(reply)
		}
	})
}

// requestSize returns the size of the request that b begins with, 0 while its head is incomplete.
func requestSize(b []byte) int {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0
	}
	_, after, _ := bytes.Cut(b[:end], []byte("Content-Length: "))
	n, _, _ := bytes.Cut(after, []byte("\r\n"))
	size, err := strconv.Atoi(string(n))
	if err != nil {
		panic(err)
	}
	return end + 4 + size
}

// mustNotAllocate calls c under each of the contexts that an executor may use.
func mustNotAllocate(t *testing.T, c load.Caller) {
	t.Helper()
	cancellable, cancel := context.WithCancel(context.Background())
	defer cancel()
	for name, ctx := range map[string]context.Context{"plain": context.Background(), "cancellable": cancellable} {
		allocs := testing.AllocsPerRun(500, func() {
			if err := c.Call(ctx, record.Mark{}); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%v allocations a call under a %s context, want 0", allocs, name)
		}
	}
}

// The tests of this file measure the whole process, so they do not run in parallel.

func TestRawCallDoesNotAllocate(t *testing.T) {
	for _, size := range []int{0, 32, 4096, 65536} {
		addr := serveCanned(t, driver.NoteReply(1, size))
		mustNotAllocate(t, open(t, &driver.REST{Addr: addr, ConstantID: 1, Note: size}))
	}
}

func TestRawCallWithTimeoutDoesNotAllocate(t *testing.T) {
	addr := serveCanned(t, driver.NoteReply(1, 32))
	mustNotAllocate(t, open(t, &driver.REST{Addr: addr, ConstantID: 1, Note: 32, Timeout: 1 << 40}))
}

func TestChunkedAndEscapedReplyDoesNotAllocate(t *testing.T) {
	const body = `{"x":[{"y":1.5}],"status":"d\u006fne","note":"the quick","id":1}`
	reply := fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nX: y\r\n\r\n", len(body), body)
	mustNotAllocate(t, open(t, &driver.REST{Addr: serveCanned(t, []byte(reply)), ConstantID: 1, Note: 9}))
}

func TestEchoDoesNotAllocate(t *testing.T) {
	mustNotAllocate(t, open(t, &driver.Echo{Addr: serveEcho(t, "tcp", nil)}))
	mustNotAllocate(t, open(t, &driver.Echo{Addr: serveEcho(t, "unix", nil), Size: 4096}))
}

func BenchmarkREST(b *testing.B) {
	for _, size := range []int{32, 4096, 65536} {
		addr := serveCanned(b, driver.NoteReply(1, size))
		for _, client := range clients {
			b.Run(fmt.Sprintf("%dB/%s", size, client), func(b *testing.B) {
				c, err := (&driver.REST{Addr: addr, Client: client, ConstantID: 1, Note: size}).Open(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				defer load.Close(c)
				b.ReportAllocs()
				for b.Loop() {
					if err := c.Call(context.Background(), record.Mark{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func TestRawMCPCallDoesNotAllocate(t *testing.T) {
	const message = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"id\":1,\"note\":\"the quick\"}"}],` +
		`"structuredContent":{"id":1,"note":"the quick","status":"done","owner":"toll"},"isError":false,"resultType":"complete"}}`
	const events = "event: message\ndata: " + message + "\n\n"
	for _, reply := range []string{
		fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s\r\nContent-Length: %d\r\n\r\n%s", len(message), message),
		fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(events), events),
	} {
		mustNotAllocate(t, open(t, &driver.MCP{Addr: serveCanned(t, []byte(reply)), ConstantID: 1, Note: 9}))
	}
}
