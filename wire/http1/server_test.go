package http1_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toll/wire/http1"
)

// echo answers with what it understood: method, target and body.
func echo(_ context.Context, req *http1.Request, reply *http1.Reply) {
	if string(req.Target) == "/panic" {
		panic("asked to")
	}
	reply.ContentType = "text/plain"
	reply.Body = fmt.Appendf(reply.Body, "%s %s %s", req.Method, req.Path(), req.Body)
}

// serve starts a server on loopback and returns its address.
func serve(t testing.TB, cfg http1.Config, h http1.Handler) (*http1.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := http1.New(cfg, h)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return s, l.Addr().String()
}

// exchange sends raw bytes and returns all that comes back until the server closes or the replies are n.
func exchange(t *testing.T, addr, raw string, n int) (replies []string, closed bool) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(nc, raw); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(nc)
	for range n {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return replies, true
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, fmt.Sprint(resp.StatusCode, " ", strings.TrimSpace(string(body))))
		closed = resp.Close
	}
	return replies, closed
}

const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

func TestRequestsAndTheirReplies(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, http1.Config{MaxBody: 1000, MaxHead: 2000}, echo)
	long := strings.Repeat("x", 1000)
	for name, c := range map[string]struct {
		raw    string
		want   []string
		closed bool
	}{
		"get":                     {get, []string{"200 GET /"}, false},
		"length":                  {"POST /a?b=c HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", []string{"200 POST /a abc"}, false},
		"empty length":            {"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", []string{"200 POST /a"}, false},
		"chunked":                 {"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n", []string{"200 POST /a abcde"}, false},
		"chunked then pipelined":  {"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + get + get, []string{"200 POST /a abc", "200 GET /", "200 GET /"}, false},
		"pipelined":               {get + "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi" + get, []string{"200 GET /", "200 POST /b hi", "200 GET /"}, false},
		"empty line first":        {"\r\n" + get, []string{"200 GET /"}, false},
		"absolute form":           {"GET http://a/x?y HTTP/1.1\r\nHost: a\r\n\r\n", []string{"200 GET /x"}, false},
		"close":                   {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n" + get, []string{"200 GET /"}, true},
		"1.0":                     {"GET / HTTP/1.0\r\n\r\n", []string{"200 GET /"}, true},
		"1.0 keep-alive":          {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + "GET /2 HTTP/1.0\r\n\r\n", []string{"200 GET /", "200 GET /2"}, true},
		"body at its bound":       {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + long, []string{"200 POST / " + long}, false},
		"panic":                   {"GET /panic HTTP/1.1\r\nHost: a\r\n\r\n" + get, []string{"500 internal error"}, true},
		"body over its bound":     {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", []string{"413 body of more than 1000 bytes"}, true},
		"chunks over the bound":   {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n" + long + "\r\n1\r\nx\r\n0\r\n\r\n", []string{"413 body of more than 1000 bytes"}, true},
		"trailer without a name":  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n0\r\n\r\n", []string{"400 a header line without a name"}, true},
		"huge chunk":              {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", []string{"400 malformed chunk size"}, true},
		"huge length":             {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999999999\r\n\r\n", []string{"413 body of more than 1000 bytes"}, true},
		"head over its bound":     {"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 3000) + "\r\n\r\n", []string{"431 head of more than 2000 bytes"}, true},
		"too many lines":          {"GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 130) + "\r\n", []string{"431 more than 128 header lines"}, true},
		"no host":                 {"GET / HTTP/1.1\r\n\r\n", []string{"400 0 Host header lines; expected one"}, true},
		"two hosts":               {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", []string{"400 2 Host header lines; expected one"}, true},
		"both lengths":            {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []string{"400 both Content-Length and Transfer-Encoding"}, true},
		"two lengths":             {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", []string{"400 bad or repeated Content-Length"}, true},
		"list of lengths":         {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc", []string{"400 bad or repeated Content-Length"}, true},
		"signed length":           {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", []string{"400 bad or repeated Content-Length"}, true},
		"other coding":            {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", []string{"501 a transfer coding other than chunked"}, true},
		"coding twice":            {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", []string{"501 a transfer coding other than chunked"}, true},
		"disguised coding":        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\nabc", []string{"501 a transfer coding other than chunked"}, true},
		"coding in 1.0":           {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []string{"400 Transfer-Encoding in HTTP/1.0"}, true},
		"space before colon":      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", []string{"400 malformed header name"}, true},
		"folded":                  {"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", []string{"400 a folded header line"}, true},
		"no name":                 {"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", []string{"400 a header line without a name"}, true},
		"bare LF":                 {"GET / HTTP/1.1\nHost: a\n\n", []string{"400 a line that does not end with CRLF"}, true},
		"bare LF within":          {"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", []string{"400 a line that does not end with CRLF"}, true},
		"bare CR":                 {"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", []string{"400 a CR within a line"}, true},
		"NUL in a value":          {"GET / HTTP/1.1\r\nHost: a\x00\r\n\r\n", []string{"400 a control character in a header value"}, true},
		"one word":                {"GET\r\nHost: a\r\n\r\n", []string{"400 malformed request line"}, true},
		"0.9":                     {"GET /\r\n\r\n", []string{"400 malformed request line"}, true},
		"two spaces":              {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", []string{"400 a target that is neither a path nor an absolute address"}, true},
		"no path":                 {"GET x HTTP/1.1\r\nHost: a\r\n\r\n", []string{"400 a target that is neither a path nor an absolute address"}, true},
		"bad method":              {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", []string{"400 malformed method"}, true},
		"HTTP/2":                  {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []string{"505 this server speaks HTTP/1.1"}, true},
		"other protocol":          {"\x16\x03\x01\x02\x00 x y\r\n\r\n", []string{"400 malformed method"}, true},
		"other expectation":       {"POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 1\r\n\r\nx", []string{"417 an expectation other than 100-continue"}, true},
		"malformed size":          {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", []string{"400 malformed chunk size"}, true},
		"size with a space":       {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1 1\r\nx\r\n0\r\n\r\n", []string{"400 malformed chunk size"}, true},
		"negative size":           {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n", []string{"400 malformed chunk size"}, true},
		"chunk longer than said":  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n", []string{"400 a chunk longer than its size"}, true},
		"chunk line with LF only": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n", []string{"400 a line that does not end with CRLF"}, true},
		"endless chunk extension": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("e", 500), []string{"400 a chunk's line of more than 256 bytes"}, true},
		"endless trailers":        {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("t: "+strings.Repeat("x", 200)+"\r\n", 60), []string{"431 trailers of more than 8192 bytes"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := len(c.want)
			if c.closed {
				n++ // nothing may follow
			}
			got, closed := exchange(t, addr, c.raw, n)
			if strings.Join(got, "|") != strings.Join(c.want, "|") || closed != c.closed {
				t.Errorf("sent %q\ngot  %q, closed %v\nwant %q, closed %v", c.raw, got, closed, c.want, c.closed)
			}
		})
	}
}

func TestHeadGetsNoBody(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, http1.Config{}, echo)
	resp, err := http.Head("http://" + addr + "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.ContentLength != int64(len("HEAD /x ")) || resp.Header.Get("Date") == "" {
		t.Errorf("got %+v", resp)
	}
}

func TestContinueIsSaidOnlyWhenTheBodyIsAwaited(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, http1.Config{}, echo)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(nc, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	in := bufio.NewReader(nc)
	if line, err := in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	in.ReadString('\n')
	io.WriteString(nc, "hi")
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(resp.Body); string(body) != "POST / hi" {
		t.Errorf("got %q", body)
	}
}

func TestARequestMayArriveByteByByte(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, http1.Config{}, echo)
	for _, raw := range []string{
		"\r\nPOST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
		"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	} {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(10 * time.Second))
		for i := range len(raw) {
			if _, err := nc.Write([]byte{raw[i]}); err != nil {
				t.Fatal(err)
			}
		}
		resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(resp.Body); string(body) != "POST /a abc" {
			t.Errorf("got %q", body)
		}
	}
}

// pipe serves one end of an in-memory connection, so that time is virtual.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	close(p.closed)
	return nil
}

func (p *pipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// inBubble runs f against a server whose client is in memory and whose clock is virtual.
func inBubble(t *testing.T, h http1.Handler, f func(s *http1.Server, dial func() net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		s := http1.New(http1.Config{}, h)
		l := &pipe{make(chan net.Conn), make(chan struct{})}
		done := make(chan error, 1)
		go func() { done <- s.Serve(l) }()
		f(s, func() net.Conn {
			a, b := net.Pipe()
			l.conns <- b
			return a
		})
		s.Shutdown(t.Context())
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
}

func TestSlowClientsAreCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		sent  string
		after time.Duration
		want  string
	}{
		"idle":          {"", 2 * time.Minute, ""},
		"slow head":     {"GET / HTTP/1.1\r\nHo", 10 * time.Second, "HTTP/1.1 408"},
		"slow body":     {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc", 30 * time.Second, "HTTP/1.1 408"},
		"slow chunk":    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc", 30 * time.Second, "HTTP/1.1 408"},
		"slow trailers": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n", 30 * time.Second, "HTTP/1.1 408"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, echo, func(_ *http1.Server, dial func() net.Conn) {
				nc := dial()
				start := time.Now()
				if c.sent != "" {
					io.WriteString(nc, c.sent)
				}
				got, _ := io.ReadAll(nc)
				if took := time.Since(start); took != c.after || !strings.HasPrefix(string(got), c.want) || c.want == "" && len(got) > 0 {
					t.Errorf("cut off after %v with %.60q; want %v and %q", took, got, c.after, c.want)
				}
				nc.Close()
			})
		})
	}
}

// A client that sends a byte every second must not move its deadline.
func TestTricklingDoesNotExtendADeadline(t *testing.T) {
	inBubble(t, echo, func(_ *http1.Server, dial func() net.Conn) {
		nc := dial()
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, b := range []byte("GET / HTTP/1.1\r\nX: " + strings.Repeat("y", 100)) {
				if _, err := nc.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		got, _ := io.ReadAll(nc)
		if took := time.Since(start); took > 11*time.Second || !strings.HasPrefix(string(got), "HTTP/1.1 408") {
			t.Errorf("after %v: %q", took, got)
		}
		nc.Close()
		wg.Wait()
	})
}

func TestShutdownAnswersWhatIsInFlightAndEndsWhatIsIdle(t *testing.T) {
	slow := func(ctx context.Context, req *http1.Request, reply *http1.Reply) {
		time.Sleep(3 * time.Second)
		echo(ctx, req, reply)
	}
	inBubble(t, slow, func(s *http1.Server, dial func() net.Conn) {
		busy, idle := dial(), dial()
		io.WriteString(busy, get)
		synctest.Wait()
		start := time.Now()
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		if got, _ := io.ReadAll(idle); len(got) > 0 || time.Since(start) > 0 {
			t.Errorf("the idle connection got %q after %v", got, time.Since(start))
		}
		got, _ := io.ReadAll(busy)
		if !strings.HasPrefix(string(got), "HTTP/1.1 200") || !strings.Contains(string(got), "Connection: close") || time.Since(start) != 3*time.Second {
			t.Errorf("the call in flight got %q after %v", got, time.Since(start))
		}
		if err := <-done; err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
}

func TestShutdownBreaksOffWhatTakesTooLong(t *testing.T) {
	hangs := func(ctx context.Context, _ *http1.Request, _ *http1.Reply) { <-ctx.Done() }
	inBubble(t, hangs, func(s *http1.Server, dial func() net.Conn) {
		nc := dial()
		io.WriteString(nc, get)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shutdown: %v", err)
		}
		nc.Close()
	})
}

// cannedClient exchanges the same bytes over and over without allocating.
func cannedClient(t testing.TB, addr string, size int) func() {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	raw := []byte("POST /v1/note HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	buf := make([]byte, size)
	return func() {
		if _, err := nc.Write(raw); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(nc, buf); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARequestAllocatesNothing(t *testing.T) {
	_, addr := serve(t, http1.Config{}, func(_ context.Context, _ *http1.Request, reply *http1.Reply) {
		reply.Body = append(reply.Body, "hello"...)
	})
	call := cannedClient(t, addr, len("HTTP/1.1 200 OK\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\nContent-Length: 5\r\n\r\nhello"))
	call()
	if n := testing.AllocsPerRun(500, call); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

func BenchmarkServer(b *testing.B) {
	size := len("HTTP/1.1 200 OK\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\nContent-Length: 5\r\n\r\nhello")
	b.Run("http1", func(b *testing.B) {
		_, addr := serve(b, http1.Config{}, func(_ context.Context, _ *http1.Request, reply *http1.Reply) {
			reply.Body = append(reply.Body, "hello"...)
		})
		call := cannedClient(b, addr, size)
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	})
	b.Run("net-http", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "hello")
		})}
		go s.Serve(l)
		defer s.Close()
		call := cannedClient(b, l.Addr().String(), size)
		b.ReportAllocs()
		for b.Loop() {
			call()
		}
	})
}

// FuzzServer holds the loop to what net/http's server makes of the same bytes: what we accept, it accepts, with the same
// method and body, and the connection goes on at the same place.
func FuzzServer(f *testing.F) {
	f.Add([]byte(get + get))
	f.Add([]byte("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + get))
	f.Add([]byte("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var ours []string
		s := http1.New(http1.Config{}, func(_ context.Context, req *http1.Request, reply *http1.Reply) {
			ours = append(ours, string(req.Method)+" "+string(req.Body))
			if _, err := url.ParseRequestURI(string(req.Target)); err != nil {
				reply.Close = true // net/http refuses what net/url can't parse; the loop leaves that to its handler
				ours = ours[:len(ours)-1]
			}
		})
		a, b := net.Pipe()
		l := &pipe{make(chan net.Conn, 1), make(chan struct{})}
		l.conns <- b
		go s.Serve(l)
		go io.Copy(io.Discard, a)
		a.SetWriteDeadline(time.Now().Add(time.Second))
		a.Write(raw)
		a.Close()
		s.Shutdown(context.Background())
		in := bufio.NewReader(strings.NewReader(string(raw)))
		for i, got := range ours {
			if first, _ := in.Peek(2); string(first) == "\r\n" {
				in.Discard(2) // one empty line before a request: RFC 9112 §2.2 allows it, net/http does not
			}
			req, err := http.ReadRequest(in)
			if err != nil {
				t.Fatalf("request %d: we took %q, net/http says %v", i, got, err)
			}
			body, err := io.ReadAll(req.Body)
			if want := req.Method + " " + string(body); err != nil || got != want {
				t.Fatalf("request %d: we read %q, net/http %q, %v", i, got, want, err)
			}
		}
	})
}
