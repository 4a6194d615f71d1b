package http1_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"toll/wire/http1"
)

// What the loop can't do, another server on the same port can: it is given the connection with the request unread.
func TestAConnectionIsHandedOverWithItsRequest(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	given := http1.NewGiven(l.Addr())
	other := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "net/http: "+r.Method+" "+r.URL.Path+" "+r.Header.Get("X-A"))
	})}
	go other.Serve(given)
	t.Cleanup(func() { other.Close() })
	s := http1.New(http1.Config{}, func(_ context.Context, req *http1.Request, reply *http1.Reply) {
		if strings.HasPrefix(string(req.Path()), "/other") {
			if err := reply.HandOver(given.Give); err != nil {
				reply.Status = 501
				reply.Body = append(reply.Body, err.Error()...)
			}
			return
		}
		reply.Body = append(reply.Body, "loop"...)
	})
	go s.Serve(l)
	t.Cleanup(func() { s.Shutdown(context.Background()) })

	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	// The second and third request are in the loop's buffer when the connection changes hands.
	io.WriteString(nc, "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /other/1 HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n\r\nPOST /other/2 HTTP/1.1\r\nHost: x\r\nX-A: 2\r\nContent-Length: 2\r\n\r\nhi")
	in := bufio.NewReader(nc)
	for _, want := range []string{"loop", "net/http: GET /other/1 1", "net/http: POST /other/2 2"} {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); err != nil || string(body) != want {
			t.Errorf("got %q, %v; want %q", body, err, want)
		}
	}

	resp, err := http.Post("http://"+l.Addr().String()+"/other", "text/plain", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 501 || string(body) != "hand over: the request has a body" {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
}

func TestAShutdownDoesNotWaitForWhatWasHandedOver(t *testing.T) {
	t.Parallel()
	taken := make(chan net.Conn, 1)
	ours, theirs := net.Pipe()
	s := http1.New(http1.Config{}, func(_ context.Context, req *http1.Request, reply *http1.Reply) {
		if req.Peer != "somebody" {
			t.Errorf("peer %v", req.Peer)
		}
		reply.HandOver(func(nc net.Conn) { taken <- nc })
	})
	s.ServeConn(theirs, "somebody")
	io.WriteString(ours, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	nc := <-taken
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	go io.WriteString(nc, "still open")
	buf := make([]byte, 10)
	if _, err := io.ReadFull(ours, buf); err != nil || string(buf) != "still open" {
		t.Errorf("%q, %v", buf, err)
	}
	nc.Close()
	after, other := net.Pipe()
	s.ServeConn(other, nil)
	if _, err := after.Read(buf); !errors.Is(err, io.EOF) {
		t.Errorf("after the shutdown a connection is taken: %v", err)
	}
}

func TestAListenerOfGivenConnections(t *testing.T) {
	t.Parallel()
	g := http1.NewGiven(&net.TCPAddr{Port: 7})
	a, b := net.Pipe()
	go g.Give(http1.Replay(a, []byte("first ")))
	nc, err := g.Accept()
	if err != nil || g.Addr().String() != ":7" {
		t.Fatal(err, g.Addr())
	}
	go func() { io.WriteString(b, "second"); b.Close() }()
	if all, err := io.ReadAll(nc); err != nil || string(all) != "first second" {
		t.Errorf("%q, %v", all, err)
	}
	g.Close()
	g.Close()
	if _, err := g.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	c, d := net.Pipe()
	g.Give(c)
	if _, err := d.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection given too late is open: %v", err)
	}
}
