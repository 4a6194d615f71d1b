package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A backend answers each request on a connection by the next of its texts, then closes it.
func backend(t *testing.T, texts ...string) (url string, conns *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	conns = new(atomic.Int32)
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			go func() {
				defer nc.Close()
				in := make([]byte, 4096)
				for _, text := range texts {
					if _, err := nc.Read(in); err != nil {
						return
					}
					io.WriteString(nc, text)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/", conns
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestAConnectionIsKeptAndReplaced(t *testing.T) {
	t.Parallel()
	url, conns := backend(t, fine, fine)
	c := newClient(time.Minute, 100)
	for i := range 5 { // of each connection's two, then it is closed
		a, err := c.get(t.Context(), url)
		if err != nil || a.status != 200 || string(a.body) != "ok" || !a.whole {
			t.Fatalf("request %d: %+v, %v", i+1, a, err)
		}
	}
	if n := conns.Load(); n != 3 {
		t.Errorf("%d connections for 5 requests, 2 on each; want 3", n)
	}
	// What may change something is not sent twice.
	url, _ = backend(t, fine)
	if _, err := c.do(t.Context(), http.MethodPost, url, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if a, err := c.do(t.Context(), http.MethodPost, url, []byte("{}")); err == nil {
		t.Errorf("a POST on a closed connection: %+v", a)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for text, want := range map[string]string{
		fine: "200 ok true",
		"HTTP/1.1 103 Early Hints\r\n\r\n" + fine:                       "200 ok true",
		"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n":           "404  true",
		chunked + "3\r\nabc\r\n0\r\n\r\n":                               "200 abc true",
		chunked + "9\r\nabcdefghi\r\n0\r\n\r\n":                         "200 abcdefgh false",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcdefghi":         "200 abcdefgh false",
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcd":              "200 abcd true",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc":               "reading the body: unexpected EOF",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10):          "a head of more than 65536 bytes",
		strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 6) + fine:     "more than 5 answers before the answer",
		"SSH-2.0-OpenSSH\r\n":                                           "malformed HTTP response",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabehind and wrong": "200 a true",
	} {
		url, conns := backend(t, text)
		c := newClient(time.Minute, 8)
		a, err := c.get(t.Context(), url)
		got := fmt.Sprint(a.status, " ", string(a.body), " ", a.whole)
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%.60q: %s, want %s", text, got, want)
		}
		if _, err := c.get(t.Context(), url); conns.Load() != 2 {
			t.Errorf("%.60q: %d connections for two requests of a backend that closes (%v)", text, conns.Load(), err)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	c := newClient(20*time.Millisecond, 100)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := c.get(t.Context(), "http://"+silent.Addr().String()); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a backend that is silent: %v", err)
	}
	c.timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := c.get(ctx, "http://"+silent.Addr().String()); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gives up: %v", err)
	}
	silent.Close()
	if _, err := c.get(t.Context(), "http://"+silent.Addr().String()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a backend that is gone: %v", err)
	}
	for _, bad := range []string{"http://", "http://a b/", "http://127.0.0.1:x/"} {
		if a, err := c.get(t.Context(), bad); err == nil {
			t.Errorf("%s: %+v", bad, a)
		}
	}
}

// What is not plain http:// goes by net/http.
func TestWhatIsLeftToNetHTTP(t *testing.T) {
	t.Parallel()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		if r.URL.Path == "/from" {
			http.Redirect(w, r, "/to", http.StatusFound)
			return
		}
		io.WriteString(w, r.URL.Path+user)
	})
	plain := httptest.NewServer(answer)
	t.Cleanup(plain.Close)
	secure := httptest.NewTLSServer(answer)
	t.Cleanup(secure.Close)
	c := newClient(time.Minute, 100)
	c.other.Transport = secure.Client().Transport
	for url, want := range map[string]string{
		plain.URL + "/from": "/to",
		secure.URL + "/x":   "/x",
		strings.Replace(plain.URL, "//", "//me:word@", 1) + "/": "/me",
	} {
		if a, err := c.get(t.Context(), url); err != nil || string(a.body) != want {
			t.Errorf("%s: %q, %v", url, a.body, err)
		}
	}
}

// Idle connections are few, and closed after a while.
func TestIdleConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	c := newClient(time.Minute, 100)
	for i := range 2 * keptAlive {
		a, b := net.Pipe()
		defer b.Close()
		c.keep(&link{addr: fmt.Sprint(i), nc: a})
	}
	if n := len(c.idle); n != keptAlive || c.take("0") != nil {
		t.Errorf("%d are kept, want %d", n, keptAlive)
	}
	for _, l := range c.idle {
		l.since = time.Now().Add(-keptFor)
	}
	c.swept()
	if len(c.idle) != 0 || c.sweep != nil {
		t.Errorf("%d are kept after %v", len(c.idle), keptFor)
	}
}
