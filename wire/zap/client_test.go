package zap_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"toll/wire/mux"
	"toll/wire/zap"
)

// loopback returns the two ends of a connection.
func loopback(t testing.TB, network string) (client, server net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

var contentType = zap.Pair{Name: []byte("Content-Type"), Value: []byte("application/zap")}

// echoHTTP answers with the request's target and body; /panic panics, /stream answers in pieces.
func echoHTTP(_ context.Context, req *zap.Request, resp *zap.Response) {
	resp.Headers = append(resp.Headers, contentType)
	switch string(req.Target) {
	case "/panic":
		panic("boom")
	case "/huge":
		resp.Body = make([]byte, zap.MaxMessage)
	case "/stream":
		resp.Trailer = pairs("count", "3")
		resp.Chunks = func(yield func([]byte) bool) {
			for i := range 3 {
				if !yield(fmt.Appendf(nil, "piece %d", i)) {
					return
				}
			}
		}
	case "/bad stream":
		resp.Chunks = func(yield func([]byte) bool) {
			yield([]byte("one"))
			panic("boom")
		}
	default:
		resp.Body = append(append(resp.Body, req.Target...), req.Body...)
	}
}

// exchange connects a client to a server; ended has what Serve returned.
func exchange(t testing.TB, network string) (c *zap.Client, ended <-chan error) {
	client, server := loopback(t, network)
	done := make(chan error, 1)
	go func() {
		done <- (&zap.Server{Handle: echoHTTP}).Serve(context.Background(), server)
		server.Close()
	}()
	return zap.NewClient(client, 0), done
}

func TestAClientIsAnswered(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "unix"} {
		c, ended := exchange(t, network)
		var resp zap.Response
		for _, n := range []int{0, 1, 100, 4096, 1 << 20, 10} {
			body := bytes.Repeat([]byte("x"), n)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := c.Call(ctx, &zap.Request{Method: []byte("POST"), Target: []byte("/echo"), Body: body}, &resp); err != nil {
				t.Fatalf("%s, %d bytes: %v", network, n, err)
			}
			cancel()
			if resp.Status != 200 || string(resp.Body) != "/echo"+string(body) || len(resp.Headers) != 1 {
				t.Errorf("%s, %d bytes: %d, %d headers, body of %d", network, n, resp.Status, len(resp.Headers), len(resp.Body))
			}
		}
		c.Close()
		if err := <-ended; err != nil {
			t.Errorf("serving ended with %v", err)
		}
		if err := c.Call(t.Context(), new(zap.Request), &resp); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

func TestAStreamedBodyComesInPieces(t *testing.T) {
	t.Parallel()
	c, _ := exchange(t, "tcp")
	var resp zap.Response
	for range 2 {
		if _, err := c.Chunk(t.Context(), &resp); err == nil || err.Error() != "zap: no streamed body is there to read" {
			t.Errorf("before it: %v", err)
		}
		if err := c.Call(t.Context(), &zap.Request{Target: []byte("/stream")}, &resp); err != nil || !resp.Streamed || len(resp.Headers) != 1 {
			t.Fatalf("%+v, %v", resp, err)
		}
		if err := c.Call(t.Context(), new(zap.Request), new(zap.Response)); err == nil || err.Error() != "zap: the last response's body is not read to its end" {
			t.Errorf("a call before its end: %v", err)
		}
		for i := range 3 {
			if chunk, err := c.Chunk(t.Context(), &resp); err != nil || string(chunk) != fmt.Sprintf("piece %d", i) {
				t.Errorf("%q, %v", chunk, err)
			}
		}
		if _, err := c.Chunk(t.Context(), &resp); err != io.EOF || len(resp.Trailer) != 1 {
			t.Errorf("at the end: %v, trailer %v", err, resp.Trailer)
		}
	}
}

func TestAPanicIsAnsweredWith500AndEndsTheConnection(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/panic": `zap: handling "/panic": panic: boom`,
		"/huge":  "zap: reply of 67108967 bytes: too large",
	} {
		c, ended := exchange(t, "tcp")
		var resp zap.Response
		if err := c.Call(t.Context(), &zap.Request{Target: []byte(target)}, &resp); err != nil || resp.Status != 500 || resp.Body != nil {
			t.Errorf("%d %q, %v", resp.Status, resp.Body, err)
		}
		if err := <-ended; err == nil || err.Error() != want {
			t.Errorf("serving ended with %v, want %s", err, want)
		}
	}
	c, ended := exchange(t, "tcp")
	var resp zap.Response
	if err := c.Call(t.Context(), &zap.Request{Target: []byte("/bad stream")}, &resp); err != nil {
		t.Error(err)
	}
	c.Chunk(t.Context(), &resp)
	if _, err := c.Chunk(t.Context(), &resp); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a body that breaks off: %v", err)
	}
	if err := <-ended; err == nil || err.Error() != `zap: streaming "/bad stream": panic: boom` {
		t.Errorf("serving ended with %v", err)
	}
}

// peer reads a request and writes what it is told, on one end of a pipe.
func peer(t *testing.T, reply []byte, then func(nc net.Conn)) *zap.Client {
	a, b := net.Pipe()
	go func() {
		defer b.Close()
		in := mux.NewReader(b, zap.HTTPFraming{})
		if _, err := in.Next(); err != nil {
			return
		}
		b.Write(reply)
		if then != nil {
			then(b)
		}
	}()
	t.Cleanup(func() { a.Close() })
	return zap.NewClient(a, 1<<20)
}

func TestAfterAnErrorAClientSaysWhyItCantBeUsed(t *testing.T) {
	t.Parallel()
	ok := (&zap.Response{Status: 200}).Append(nil)
	for name, c := range map[string]struct {
		reply []byte
		want  string
	}{
		"closed":     {nil, "zap: reading the response: unexpected EOF"},
		"truncated":  {ok[:30], "zap: reading the response: 30 bytes of a frame of 68: unexpected EOF"},
		"too large":  {[]byte("\x00\x10\x00\x01"), "zap: reading the response: zap: frame of 1048577 bytes, at most 1048576: too large"},
		"2^32 - 1":   {[]byte("\xff\xff\xff\xff"), "zap: reading the response: zap: frame of 4294967295 bytes, at most 1048576: too large"},
		"a request":  {(&zap.Request{}).Append(nil), "zap: type 1 instead of 2: unexpected type of message"},
		"no message": {append([]byte{0, 0, 0, 16}, make([]byte, 16)...), "zap: magic 00000000: not a ZAP message"},
	} {
		client := peer(t, c.reply, nil)
		if err := client.Call(t.Context(), new(zap.Request), new(zap.Response)); err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
		if err := client.Call(t.Context(), new(zap.Request), new(zap.Response)); err == nil || err.Error() != "zap: connection unusable: "+c.want || client.Err() == nil {
			t.Errorf("%s: the next call: %v", name, err)
		}
	}
	client := peer(t, append(bytes.Clone(ok), ok...), nil)
	if err := client.Call(t.Context(), new(zap.Request), new(zap.Response)); err != nil {
		t.Errorf("two replies, the first: %v", err)
	}
	if err := client.Call(t.Context(), new(zap.Request), new(zap.Response)); err == nil || err.Error() != "zap: more arrived than the request asked for" {
		t.Errorf("two replies, the second: %v", err)
	}
}

func TestARequestTooLargeIsNotSent(t *testing.T) {
	t.Parallel()
	client := peer(t, (&zap.Response{Status: 200}).Append(nil), nil)
	err := client.Call(t.Context(), &zap.Request{Body: make([]byte, 1<<20)}, new(zap.Response))
	if !errors.Is(err, zap.ErrTooLarge) || err.Error() != "request not sent: zap: frame of 1048640 bytes, at most 1048576: too large" {
		t.Errorf("got %v", err)
	}
	if err := client.Call(t.Context(), new(zap.Request), new(zap.Response)); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestAClientKeepsDeadlinesAndNoticesCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(nc net.Conn) { io.Copy(io.Discard, nc) }
		client := peer(t, nil, silent)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second+1)
		defer cancel()
		began := time.Now()
		if err := client.Call(ctx, new(zap.Request), new(zap.Response)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != time.Second+1 {
			t.Errorf("after %v", took)
		}
		if err := client.Call(context.Background(), new(zap.Request), new(zap.Response)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the next call: %v", err)
		}

		client = peer(t, nil, silent)
		hour, stop := context.WithTimeout(context.Background(), time.Hour)
		time.AfterFunc(time.Minute, stop)
		began = time.Now()
		if err := client.Call(hour, new(zap.Request), new(zap.Response)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+10*time.Millisecond {
			t.Errorf("after %v", took)
		}
		if err := client.Call(hour, new(zap.Request), new(zap.Response)); !errors.Is(err, context.Canceled) {
			t.Errorf("the next call: %v", err)
		}

		a, _ := net.Pipe()
		stuck := zap.NewClient(a, 0)
		began = time.Now()
		if err := stuck.Call(context.Background(), new(zap.Request), new(zap.Response)); err == nil || err.Error() != "zap: writing the request: write pipe: i/o timeout" {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("after %v", took)
		}
	})
}

func TestServingStopsGracefully(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		release := make(chan struct{})
		s := &zap.Server{Handle: func(ctx context.Context, _ *zap.Request, resp *zap.Response) {
			<-release
			if ctx.Err() == nil {
				resp.Status = 204
			}
		}}
		go func() { ended <- s.Serve(ctx, b) }()
		client := zap.NewClient(a, 0)
		var resp zap.Response
		answered := make(chan error, 1)
		go func() { answered <- client.Call(context.Background(), new(zap.Request), &resp) }()
		synctest.Wait()
		cancel() // while a request is being answered
		synctest.Wait()
		close(release)
		if err := <-answered; err != nil || resp.Status != 204 {
			t.Errorf("%d, %v", resp.Status, err)
		}
		if err := <-ended; err != nil {
			t.Errorf("serving ended with %v", err)
		}
		idle, cancel := context.WithCancel(context.Background())
		go func() { ended <- s.Serve(idle, b) }()
		synctest.Wait()
		cancel() // while nothing is
		if err := <-ended; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
}

func TestServingGivesUpPeersThatDoNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, act := range map[string]func(nc net.Conn){
			"sends nothing":   func(net.Conn) {},
			"half a request":  func(nc net.Conn) { nc.Write([]byte("\x00\x00\x01\x00ZAP")) },
			"takes no reply":  func(nc net.Conn) { nc.Write((&zap.Request{}).Append(nil)) },
			"byte by byte":    func(nc net.Conn) { trickle(nc) },
			"a frame of 4GiB": func(nc net.Conn) { nc.Write([]byte("\xff\xff\xff\xff")) },
		} {
			a, b := net.Pipe()
			ended := make(chan error, 1)
			began := time.Now()
			go func() {
				ended <- (&zap.Server{Handle: echoHTTP, IdleTimeout: time.Minute, WriteTimeout: time.Minute}).Serve(context.Background(), b)
				b.Close()
			}()
			acted := make(chan struct{})
			go func() { act(a); close(acted) }()
			err := <-ended
			took := time.Since(began)
			<-acted
			if name == "a frame of 4GiB" {
				if !errors.Is(err, zap.ErrTooLarge) || took != 0 {
					t.Errorf("%s: %v after %v", name, err, took)
				}
			} else if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() || took != time.Minute {
				t.Errorf("%s: %v after %v", name, err, took)
			}
			a.Close()
		}
	})
}

// trickle sends a byte a second for as long as somebody takes it.
func trickle(nc net.Conn) {
	for _, b := range append([]byte("\x00\x00\x01\x00"), make([]byte, 256)...) {
		time.Sleep(time.Second)
		if _, err := nc.Write([]byte{b}); err != nil {
			return
		}
	}
}

func TestServingAnswersOneAfterAnother(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	ended := make(chan error, 1)
	answered := 0
	go func() {
		ended <- zap.ServeHTTPFrames(b, 0, func(req *zap.Request, resp *zap.Response) {
			resp.Body = append(append(resp.Body, req.Target...), req.Body...)
		}, func() { answered++ })
	}()
	r := exampleRequest()
	go a.Write(r.Append(r.Append(r.Append(nil)))) // all at once
	in := mux.NewReader(a, zap.HTTPFraming{})
	for range 3 {
		frame, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		var resp zap.Response
		if err := resp.Parse(frame[4:]); err != nil || resp.Status != 200 || string(resp.Body) != "/.well-known/zip/op/notebody" {
			t.Errorf("%+v, %v", resp, err)
		}
	}
	a.Close()
	if err := <-ended; err != nil || answered != 3 {
		t.Errorf("%v after %d answers", err, answered)
	}
}

func TestACallAllocatesNothing(t *testing.T) {
	c, _ := exchange(t, "unix")
	req := exampleRequest()
	var resp zap.Response
	ctx := context.Background()
	for range 10 {
		if err := c.Call(ctx, &req, &resp); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(500, func() { c.Call(ctx, &req, &resp) }); n > 0 {
		t.Errorf("%v allocations a call, both sides", n)
	}
}

// FuzzServe sends any bytes to a server: it ends, without a panic, and answers no more than it was asked.
func FuzzServe(f *testing.F) {
	r := exampleRequest()
	f.Add(r.Append(r.Append(nil)))
	f.Fuzz(func(t *testing.T, b []byte) {
		client, server := net.Pipe()
		go func() {
			client.Write(b)
			client.Close()
		}()
		go io.Copy(io.Discard, client)
		answered := 0
		zap.ServeHTTPFrames(server, 1<<16, func(req *zap.Request, resp *zap.Response) { resp.Body = append(resp.Body, req.Body...) }, func() { answered++ })
		if most := len(b) / (4 + 64); answered > most {
			t.Errorf("%d answers to %d bytes", answered, len(b))
		}
		server.Close()
	})
}
