package driver_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A note is what a fake server was asked for.
type note struct {
	ID   int64  `json:"id"`
	Note string `json:"note"`
}

// A behaviour answers one request. It returns whether the connection goes on.
type behaviour func(nc net.Conn, in note) (more bool)

// text writes a whole reply with the given status line, fields and body.
func text(status, fields, body string) behaviour {
	return func(nc net.Conn, _ note) bool {
		_, err := fmt.Fprintf(nc, "HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s", status, fields, len(body), body)
		return err == nil
	}
}

// answer is the behaviour that the drivers want.
func answer(nc net.Conn, in note) bool { return text("200 OK", "", right(in))(nc, in) }

func right(in note) string {
	b, _ := json.Marshal(map[string]any{"id": in.ID, "note": in.Note, "status": "done", "owner": "x"})
	return string(b)
}

// body answers with whatever f makes of the request.
func body(f func(in note) string) behaviour {
	return func(nc net.Conn, in note) bool { return text("200 OK", "", f(in))(nc, in) }
}

// verbatim writes bytes and ends the connection or not.
func verbatim(s string, more bool) behaviour {
	return func(nc net.Conn, _ note) bool {
		_, err := io.WriteString(nc, s)
		return more && err == nil
	}
}

// A fake is a server that behaves as it is told on the first request and well on all others.
type fake struct {
	t        *testing.T
	listener net.Listener
	first    behaviour
	requests atomic.Int64
	wg       sync.WaitGroup

	mu    sync.Mutex
	seen  bytes.Buffer // guarded by mu: every byte received
	conns []net.Conn   // guarded by mu
	mark  int64        // guarded by mu: at this request, do then
	then  func()       // guarded by mu
}

// at has f do something when its nth request arrives.
func (f *fake) at(n int64, do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark, f.then = n, do
}

func (f *fake) reached(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.then != nil && n == f.mark {
		f.then()
	}
}

func serve(t *testing.T, network string, first behaviour) *fake {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, l, first)
}

func serveOn(t *testing.T, l net.Listener, first behaviour) *fake {
	f := &fake{t: t, listener: l, first: first}
	f.wg.Go(f.accept)
	t.Cleanup(f.close)
	return f
}

func (f *fake) addr() string {
	if a := f.listener.Addr(); a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return "http://" + f.listener.Addr().String()
}

func (f *fake) close() {
	f.listener.Close()
	f.mu.Lock()
	for _, nc := range f.conns {
		nc.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
}

func (f *fake) accept() {
	for {
		nc, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns = append(f.conns, nc)
		f.mu.Unlock()
		f.wg.Go(func() { f.serve(nc) })
	}
}

func (f *fake) serve(nc net.Conn) {
	defer nc.Close()
	r := bufio.NewReader(io.TeeReader(nc, f))
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		b, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		var in note
		if err := json.Unmarshal(b, &in); err != nil {
			f.t.Errorf("request %q: %v", b, err)
		}
		behave := f.first
		n := f.requests.Add(1)
		f.reached(n)
		if n > 1 || behave == nil {
			behave = answer
		}
		if !behave(nc, in) {
			return
		}
	}
}

// Write keeps what was received.
func (f *fake) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen.Write(p)
}

func (f *fake) received() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen.String()
}

// chunked writes a reply in chunks, with an extension and a trailer.
func chunked(nc net.Conn, in note) bool {
	s := right(in)
	half := len(s) / 2
	_, err := fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n%x;a=b\r\n%s\r\n%X\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n",
		half, s[:half], len(s)-half, s[half:])
	return err == nil
}

// dribble writes a reply one byte at a time, behind an interim one.
func dribble(nc net.Conn, in note) bool {
	s := right(in)
	whole := fmt.Sprintf("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 \r\nX-Empty:\r\ncontent-LENGTH:%d\r\n\r\n%s", len(s), s)
	for _, c := range []byte(whole) {
		if _, err := nc.Write([]byte{c}); err != nil {
			return false
		}
	}
	return true
}

// until writes a reply that ends with the connection.
func until(nc net.Conn, in note) bool {
	fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\n\r\n%s", right(in))
	return false
}

// silent reads on and never answers.
func silent(nc net.Conn, _ note) bool {
	io.Copy(io.Discard, nc)
	return false
}

func hugeHead(nc net.Conn, in note) bool {
	text("200 OK", "X-Long: "+strings.Repeat("a", 70<<10)+"\r\n", right(in))(nc, in)
	return false
}

// accepting serves each connection of a listener with f, until the test ends.
func accepting(t testing.TB, network string, f func(net.Conn)) (addr string) {
	t.Helper()
	addr = "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer nc.Close()
				f(nc)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	if network == "unix" {
		return "unix:" + addr
	}
	return "tcp://" + l.Addr().String()
}
