package http1_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toll/wire/http1"
)

// streams answers with the events a and b, and with what it was told in between.
func streams(_ context.Context, req *http1.Request, reply *http1.Reply) {
	reply.ContentType = "text/event-stream"
	reply.Header = append(reply.Header, "X-A: b\r\n"...)
	w, err := reply.Stream()
	if err != nil {
		panic(err)
	}
	io.WriteString(w, "data: a\n\n")
	io.WriteString(w, "")
	fmt.Fprintf(w, "data: %s\n\n", req.Body)
}

func TestAStreamIsChunkedAndTheConnectionGoesOn(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, http1.Config{}, streams)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	in := bufio.NewReader(nc)
	for i := range 3 {
		fmt.Fprintf(nc, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n%d", i)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		want := fmt.Sprintf("data: a\n\ndata: %d\n\n", i)
		if err != nil || string(body) != want || resp.StatusCode != 200 || resp.Header.Get("X-A") != "b" ||
			resp.Header.Get("Content-Type") != "text/event-stream" || len(resp.TransferEncoding) != 1 {
			t.Errorf("%d: %q, %v, %v %v", i, body, err, resp.Header, resp.TransferEncoding)
		}
	}
}

func TestAStreamInHTTP10EndsWithTheConnection(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, http1.Config{}, streams)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	io.WriteString(nc, "POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx")
	got, err := io.ReadAll(nc)
	head, body, _ := strings.Cut(string(got), "\r\n\r\n")
	if err != nil || body != "data: a\n\ndata: x\n\n" || strings.Contains(head, "chunked") || !strings.Contains(head, "Connection: close") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAStreamThatBreaksIsNotWhole(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before string
		want   string
	}{
		"after its head": {"data: a\n\n", "200"}, "before its head": {"", "500"},
	} {
		_, addr := serve(t, http1.Config{}, func(_ context.Context, _ *http1.Request, reply *http1.Reply) {
			w, err := reply.Stream()
			if err != nil {
				t.Error(err)
			}
			if _, err := reply.Stream(); err == nil {
				t.Error("a stream was begun twice")
			}
			io.WriteString(w, tt.before)
			panic("broken")
		})
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		got, _ := io.ReadAll(nc)
		nc.Close()
		if !strings.HasPrefix(string(got), "HTTP/1.1 "+tt.want) || strings.HasSuffix(string(got), "0\r\n\r\n") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAWatchSeesTheClientGo(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	_, addr := serve(t, http1.Config{}, func(ctx context.Context, _ *http1.Request, reply *http1.Reply) {
		ctx = reply.Watch(ctx)
		reply.Watch(ctx) // a second one changes nothing
		<-ctx.Done()
		ended <- ctx.Err()
	})
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	nc.Close()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
}

// A client that goes on to send its next request is not gone, and its request is not lost.
func TestAWatchLosesNothing(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	_, addr := serve(t, http1.Config{}, func(ctx context.Context, req *http1.Request, reply *http1.Reply) {
		ctx = reply.Watch(ctx)
		if string(req.Target) == "/0" {
			<-proceed
		}
		if ctx.Err() != nil {
			t.Error("gone")
		}
		reply.Body = append(reply.Body, req.Target...)
	})
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	in := bufio.NewReader(nc)
	io.WriteString(nc, "GET /0 HTTP/1.1\r\nHost: a\r\n\r\n")
	io.WriteString(nc, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
	close(proceed)
	for i := range 6 {
		if i > 2 {
			fmt.Fprintf(nc, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != fmt.Sprint("/", i) {
			t.Errorf("%d: %q, %v", i, body, err)
		}
	}
}

// A shutdown waits for a watched request as for any other, and its deadlines do not end the watch.
func TestAWatchedRequestIsAnsweredBeforeTheEnd(t *testing.T) {
	slow := func(ctx context.Context, req *http1.Request, reply *http1.Reply) {
		ctx = reply.Watch(ctx)
		select {
		case <-time.After(time.Hour): // longer than every timeout of the server
		case <-ctx.Done():
			t.Error("taken for gone")
		}
		echo(ctx, req, reply)
	}
	inBubble(t, slow, func(s *http1.Server, dial func() net.Conn) {
		nc := dial()
		io.WriteString(nc, get)
		synctest.Wait()
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		got, _ := io.ReadAll(nc)
		if !strings.HasPrefix(string(got), "HTTP/1.1 200") {
			t.Errorf("%q", got)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
