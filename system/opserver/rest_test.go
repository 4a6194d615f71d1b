package opserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/system/opserver"
)

// A server is what the tests start.
type server interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

func start(t *testing.T, s server, l net.Listener) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Shutdown(ctx)
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

func listen(t *testing.T, cfg opserver.Config) net.Listener {
	t.Helper()
	l, err := opserver.Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func registry(t *testing.T, more ...opserver.Operation) opserver.Registry {
	t.Helper()
	r, err := opserver.NewRegistry(append(more, opserver.Note())...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// client returns a plain HTTP client whose every connection goes to l.
func client(t *testing.T, l net.Listener) *http.Client {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, l.Addr().Network(), l.Addr().String())
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// makers are the two servers that must answer alike: over net/http and over our own loop.
var makers = map[string]func(opserver.Config, opserver.Registry) server{
	"net/http": func(cfg opserver.Config, ops opserver.Registry) server { return opserver.NewREST(cfg, ops) },
	"raw":      func(cfg opserver.Config, ops opserver.Registry) server { return opserver.NewRaw(cfg, ops) },
}

// each runs f for each of them.
func each(t *testing.T, f func(t *testing.T, serverOf func(opserver.Config, opserver.Registry) server)) {
	for name, serverOf := range makers {
		t.Run(name, func(t *testing.T) { f(t, serverOf) })
	}
}

func both(t *testing.T, f func(t *testing.T, cfg opserver.Config)) {
	t.Run("tcp", func(t *testing.T) { t.Parallel(); f(t, opserver.Config{}) })
	t.Run("unix", func(t *testing.T) {
		t.Parallel()
		f(t, opserver.Config{Unix: filepath.Join(t.TempDir(), "private", "s")})
	})
}

func TestRESTAnswers(t *testing.T) {
	long := strings.Repeat("n", 64<<10)
	failing := opserver.Define("fail", "", func(_ context.Context, in struct{ How string }) (struct{}, error) {
		if in.How == "" {
			return struct{}{}, errors.New("secret")
		}
		return struct{}{}, &opserver.Error{Code: in.How, Message: "as asked"}
	})
	tests := []struct {
		method, path, contentType, body string
		status                          int
		want                            string // the body, or the code of its error
	}{
		{"POST", "/v1/note", "application/json", `{"id":7,"note":"n"}`, 200, `{"id":7,"note":"n","status":"done","owner":"toll"}`},
		{"POST", "/v1/note", "", ` {"note":"é\n","id":-9223372036854775808} `, 200, `{"id":-9223372036854775808,"note":"é\n","status":"done","owner":"toll"}`},
		{"POST", "/v1/note", "Application/JSON; Charset=UTF-8", `{}`, 200, `{"id":0,"note":"","status":"done","owner":"toll"}`},
		{"POST", "/v1/note?x=y", "application/json", `{"id":1,"note":"` + long + `"}`, 200, `{"id":1,"note":"` + long + `","status":"done","owner":"toll"}`},
		{"GET", "/healthz", "", "", 200, `{"status":"ok"}`},
		{"HEAD", "/healthz", "", "", 200, ""},

		{"POST", "/v1/note", "", ``, 400, "malformed"},
		{"POST", "/v1/note", "", `{"id":7`, 400, "malformed"},
		{"POST", "/v1/note", "", `{"id":"7"}`, 400, "malformed"},
		{"POST", "/v1/note", "", `{"id":7.5}`, 400, "malformed"},
		{"POST", "/v1/note", "", `{"id":9223372036854775808}`, 400, "malformed"},
		{"POST", "/v1/note", "", `{"id":7,"more":1}`, 400, "malformed"},
		{"POST", "/v1/note", "", `{"id":7} {}`, 400, "malformed"},
		{"POST", "/v1/note", "", `{"id":7}]`, 400, "malformed"},
		{"POST", "/v1/note", "", `[]`, 400, "malformed"},
		{"POST", "/v1/note", "text/plain", `{}`, 415, "unsupported_media_type"},
		{"POST", "/v1/note", "application/json; charset=latin1", `{}`, 415, "unsupported_media_type"},
		{"POST", "/v1/note", "application/json;;", `{}`, 415, "unsupported_media_type"},
		{"POST", "/v1/note", "", `{"note":"` + long + long + `"}`, 413, "too_large"},
		{"POST", "/v1/note", "", `{}` + strings.Repeat(" ", 128<<10), 413, "too_large"},
		{"GET", "/v1/note", "", "", 405, "method_not_allowed"},
		{"DELETE", "/v1/ops", "", "", 405, "method_not_allowed"},
		{"POST", "/v1/nothing", "", "{}", 404, "not_found"},
		{"POST", "/v1/note/", "", "{}", 404, "not_found"},
		{"GET", "/", "", "", 404, "not_found"},
		{"POST", "/v1/fail", "", `{}`, 500, "internal"},
		{"POST", "/v1/fail", "", `{"How":"invalid"}`, 422, "invalid"},
		{"POST", "/v1/fail", "", `{"How":"own_code"}`, 500, "own_code"},
	}
	each(t, func(t *testing.T, serverOf func(opserver.Config, opserver.Registry) server) {
		both(t, func(t *testing.T, cfg opserver.Config) {
			cfg.MaxBody = 100 << 10
			l := listen(t, cfg)
			start(t, serverOf(cfg, registry(t, failing)), l)
			c := client(t, l)
			for _, tt := range tests {
				name := fmt.Sprintf("%s %s %s %.40s", tt.method, tt.path, tt.contentType, tt.body)
				req, err := http.NewRequest(tt.method, "http://x"+tt.path, strings.NewReader(tt.body))
				if err != nil {
					t.Fatal(err)
				}
				if tt.contentType != "" {
					req.Header.Set("Content-Type", tt.contentType)
				}
				resp, err := c.Do(req)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != tt.status || resp.Header.Get("Content-Type") != "application/json" {
					t.Errorf("%s: %v, status %d, content type %q, want %d", name, err, resp.StatusCode, resp.Header.Get("Content-Type"), tt.status)
				}
				if got := bodyOrCode(tt.status, b); got != tt.want {
					t.Errorf("%s: got %.200q, want %.200q", name, got, tt.want)
				}
				if strings.Contains(string(b), "secret") {
					t.Errorf("%s: tells what it must not: %s", name, b)
				}
				if allow := resp.Header.Get("Allow"); (tt.status == 405) != (allow != "") {
					t.Errorf("%s: Allow %q", name, allow)
				}
			}
		})
	})
}

// bodyOrCode returns the body of a success, and the code of a refusal.
func bodyOrCode(status int, body []byte) string {
	if status == 200 {
		return string(body)
	}
	var refusal struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(body, &refusal); err != nil || refusal.Error.Message == "" {
		return fmt.Sprintf("no refusal: %s", body)
	}
	return refusal.Error.Code
}

func TestRESTListsItsOperations(t *testing.T) {
	each(t, func(t *testing.T, serverOf func(opserver.Config, opserver.Registry) server) {
		l := listen(t, opserver.Config{})
		start(t, serverOf(opserver.Config{}, registry(t)), l)
		resp, err := client(t, l).Get("http://x/v1/ops")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var got struct {
			Operations []struct {
				Name, Summary string
				Input, Output json.RawMessage
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		note := opserver.Note()
		if len(got.Operations) != 1 {
			t.Fatalf("got %d operations", len(got.Operations))
		}
		op := got.Operations[0]
		if op.Name != note.Name || op.Summary != note.Summary || string(op.Input) != string(note.Input) || string(op.Output) != string(note.Output) {
			t.Errorf("got %+v", op)
		}
	})
}

// A blocker is an operation that waits until it is released.
type blocker struct{ arrived, release chan struct{} }

func (b blocker) operation() opserver.Operation {
	return opserver.Define("wait", "", func(context.Context, struct{}) (struct{}, error) {
		close(b.arrived)
		<-b.release
		return struct{}{}, nil
	})
}

func newBlocker() blocker { return blocker{make(chan struct{}), make(chan struct{})} }

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	nc, err := net.Dial(l.Addr().Network(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

func post(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// ask writes a request and returns the status and the body of the reply.
func ask(t *testing.T, nc net.Conn, request string) (status int, body string) {
	t.Helper()
	if _, err := io.WriteString(nc, request); err != nil {
		t.Fatal(err)
	}
	return readReply(t, bufio.NewReader(nc))
}

func readReply(t *testing.T, r *bufio.Reader) (status int, body string) {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func closed(nc net.Conn) bool {
	n, err := nc.Read(make([]byte, 1))
	return n == 0 && err != nil
}

func TestDrainFinishesWhatIsInFlightAndRefusesTheRest(t *testing.T) {
	both(t, func(t *testing.T, cfg opserver.Config) {
		b := newBlocker()
		l := listen(t, cfg)
		s := opserver.NewREST(cfg, registry(t, b.operation()))
		start(t, s, l)
		idle, fresh, busy := dial(t, l), dial(t, l), dial(t, l)
		if status, _ := ask(t, idle, get("/healthz")); status != 200 {
			t.Fatalf("status %d", status)
		}
		io.WriteString(busy, post("/v1/wait", "{}"))
		<-b.arrived

		drained := make(chan error, 1)
		go func() { drained <- s.Shutdown(context.Background()) }()
		if !closed(idle) {
			t.Error("an idle connection goes on")
		}
		if status, body := ask(t, fresh, post("/v1/note", "{}")); status != 503 || bodyOrCode(status, []byte(body)) != "unavailable" {
			t.Errorf("a new request got %d %s, want 503", status, body)
		}
		if _, err := net.Dial(l.Addr().Network(), l.Addr().String()); err == nil {
			t.Error("a new connection is accepted")
		}
		select {
		case err := <-drained:
			t.Errorf("drained with a request in flight: %v", err)
		default:
		}
		close(b.release)
		if status, body := readReply(t, bufio.NewReader(busy)); status != 200 || body != "{}" {
			t.Errorf("the request in flight got %d %s", status, body)
		}
		if err := <-drained; err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
}

func TestShutdownBreaksOffWhenItsContextEnds(t *testing.T) {
	each(t, func(t *testing.T, serverOf func(opserver.Config, opserver.Registry) server) {
		b := newBlocker()
		l := listen(t, opserver.Config{})
		s := serverOf(opserver.Config{}, registry(t, b.operation()))
		start(t, s, l)
		busy := dial(t, l)
		io.WriteString(busy, post("/v1/wait", "{}"))
		<-b.arrived
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if !closed(busy) {
			t.Error("the connection goes on")
		}
		close(b.release)
	})
}

// With nothing in flight too: a connection that has not asked anything yet must not outlive the server.
func TestShutdownUnderAnEndedContextStopsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, serverOf func(opserver.Config, opserver.Registry) server) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for range 20 {
			l := listen(t, opserver.Config{})
			s := serverOf(opserver.Config{}, registry(t))
			start(t, s, l)
			used := dial(t, l)
			ask(t, used, get("/healthz"))
			fresh := dial(t, l)
			io.WriteString(fresh, "GET")
			s.Shutdown(ctx)
			fresh.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := fresh.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) || !closed(used) {
				t.Fatal("a connection goes on")
			}
		}
	})
}

// Pipes stand in for sockets, so that timeouts pass in virtual time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	nc, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return nc, nil
}

func (p pipes) Close() error {
	select {
	case <-p:
	default:
		close(p)
	}
	return nil
}

func (pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p pipes) dial(t *testing.T) net.Conn {
	mine, theirs := net.Pipe()
	p <- theirs
	t.Cleanup(func() { mine.Close() })
	return mine
}

// serveInBubble runs f against s in virtual time.
func serveInBubble(t *testing.T, s func() server, f func(t *testing.T, p pipes)) {
	synctest.Test(t, func(t *testing.T) {
		p, s := pipes(make(chan net.Conn)), s()
		start(t, s, p)
		f(t, p)
	})
}

var short = opserver.Config{HeadTimeout: 3 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: 20 * time.Second}

func TestRESTTimeouts(t *testing.T) {
	each(t, func(t *testing.T, serverOf func(opserver.Config, opserver.Registry) server) {
		rest := func() server { return serverOf(short, registry(t)) }
		t.Run("slow head", func(t *testing.T) {
			serveInBubble(t, rest, func(t *testing.T, p pipes) {
				nc, began := p.dial(t), time.Now()
				var dribbler sync.WaitGroup
				dribbler.Go(func() {
					for err := error(nil); err == nil; {
						<-time.After(time.Second)
						_, err = nc.Write([]byte("G"))
					}
				})
				io.Copy(io.Discard, nc)
				if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
					t.Errorf("dribbled for %v, want the head timeout, 3 s from the beginning of the connection or of the head", took)
				}
				dribbler.Wait()
			})
		})
		t.Run("slow body", func(t *testing.T) {
			serveInBubble(t, rest, func(t *testing.T, p pipes) {
				nc, began := p.dial(t), time.Now()
				status, body := ask(t, nc, "POST /v1/note HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
				if status != 408 || bodyOrCode(status, []byte(body)) != "timed_out" {
					t.Errorf("got %d %s, want 408", status, body)
				}
				if took := time.Since(began); took != 10*time.Second {
					t.Errorf("answered after %v, want the read timeout, 10 s", took)
				}
				if !closed(nc) {
					t.Error("the connection goes on")
				}
			})
		})
		t.Run("idle", func(t *testing.T) {
			serveInBubble(t, rest, func(t *testing.T, p pipes) {
				nc := p.dial(t)
				ask(t, nc, get("/healthz"))
				began := time.Now()
				if !closed(nc) || time.Since(began) != 20*time.Second {
					t.Errorf("idle for %v, want 20 s", time.Since(began))
				}
			})
		})
		t.Run("never reads", func(t *testing.T) {
			serveInBubble(t, rest, func(t *testing.T, p pipes) {
				nc, began := p.dial(t), time.Now()
				io.WriteString(nc, get("/healthz"))
				<-time.After(time.Minute)
				if !closed(nc) {
					t.Errorf("the connection goes on after %v", time.Since(began))
				}
			})
		})
	})
}

// What could be read as two different requests is refused.
func TestSmugglingShapes(t *testing.T) {
	each(t, func(t *testing.T, serverOf func(opserver.Config, opserver.Registry) server) {
		l := listen(t, opserver.Config{})
		start(t, serverOf(opserver.Config{}, registry(t)), l)
		const head = "POST /v1/note HTTP/1.1\r\nHost: x\r\n"
		got := map[string]int{}
		want := map[string]int{}
		for name, tt := range map[string]struct {
			request string
			status  int
		}{
			"two lengths":              {head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", 400},
			"a list of lengths":        {head + "Content-Length: 2, 3\r\n\r\n{} ", 400},
			"signed length":            {head + "Content-Length: +2\r\n\r\n{}", 400},
			"negative length":          {head + "Content-Length: -2\r\n\r\n{}", 400},
			"space before the colon":   {head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
			"unknown coding":           {head + "Transfer-Encoding: xchunked\r\n\r\n", 501},
			"two codings":              {head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501},
			"chunked and more":         {head + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501},
			"bare CR in a field":       {head + "X: y\rContent-Length: 5\r\nContent-Length: 2\r\n\r\n{}", 400},
			"NUL in a field":           {head + "X: \x00\r\nContent-Length: 2\r\n\r\n{}", 400},
			"no host":                  {"POST /v1/note HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 400},
			"two hosts":                {head + "Host: y\r\nContent-Length: 2\r\n\r\n{}", 400},
			"bad chunk size":           {head + "Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n", 400},
			"chunk longer than stated": {head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}}\r\n0\r\n\r\n", 400},
			"no version":               {"POST /v1/note\r\n\r\n", 400},
		} {
			want[name] = tt.status
			got[name], _ = ask(t, dial(t, l), tt.request)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// net/http does not refuse a length beside a transfer coding, nor a folded line. It reads them by RFC 9112 (6.3: the coding
// decides; 5.2: a fold is a space), so we have one reading of them; a proxy in front must have the same.
func TestAmbiguousShapesHaveOneReading(t *testing.T) {
	l := listen(t, opserver.Config{})
	start(t, opserver.NewREST(opserver.Config{}, registry(t)), l)
	const head = "POST /v1/note HTTP/1.1\r\nHost: x\r\n"
	for name, request := range map[string]string{
		"length beside coding": head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"id\":7}\r\n0\r\n\r\n",
		"folded coding":        head + "X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 8\r\n\r\n{\"id\":7}",
	} {
		nc := dial(t, l)
		io.WriteString(nc, request+get("/healthz"))
		r := bufio.NewReader(nc)
		if status, body := readReply(t, r); status != 200 || !strings.Contains(body, `"id":7,`) {
			t.Errorf("%s: got %d %s", name, status, body)
		}
		if status, body := readReply(t, r); status != 200 || body != `{"status":"ok"}` {
			t.Errorf("%s: the request behind it got %d %s", name, status, body)
		}
	}
}
