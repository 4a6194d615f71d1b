package driver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toll/driver"
	"toll/lab/load"
	"toll/lab/record"
	"toll/wire/mux"
	"toll/wire/zap"
)

type binIn struct {
	ID   int64
	Note string
}

type binOut struct {
	ID                  int64
	Note, Status, Owner string
}

// A twist makes a wrong body of the right one.
type twist func(out binOut) []byte

// spoil returns the twists that every binary envelope must notice, by the kind of failure each is.
func spoil(t *testing.T) map[string]twist {
	c := codecOf[binOut](t)
	return map[string]twist{
		record.WrongID:      func(o binOut) []byte { o.ID++; return c.Append(nil, &o) },
		record.WrongContent: func(o binOut) []byte { o.Note += "x"; return c.Append(nil, &o) },
		"status":            nil,
		record.BadReply:     func(o binOut) []byte { b := c.Append(nil, &o); return b[:len(b)-1] },
	}
}

func codecOf[T any](t *testing.T) *zap.Codec[T] {
	t.Helper()
	c, err := zap.NewCodec[T]()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// decide returns the body and whether the call is refused, for the n-th request: only the first is answered wrongly.
func decide(t *testing.T, n int64, kind string, input []byte) (body []byte, refused bool) {
	var in binIn
	if err := codecOf[binIn](t).Decode(input, &in); err != nil {
		t.Errorf("the driver sent what does not decode: %v", err)
	}
	out := binOut{in.ID, in.Note, "done", "x"}
	if n == 1 {
		if f := spoil(t)[kind]; f != nil {
			return f(out), false
		}
		if kind == record.Status {
			return nil, true
		}
	}
	return codecOf[binOut](t).Append(nil, &out), false
}

// opcallServer answers op-calls over net/http.
func opcallServer(t *testing.T, kind string) string {
	var n atomic.Int64
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/zip/op/note" || r.Header.Get("Content-Type") != "application/zap" || r.Method != "POST" {
			t.Errorf("%s %s %s", r.Method, r.URL, r.Header)
		}
		input, _ := io.ReadAll(r.Body)
		body, refused := decide(t, n.Add(1), kind, input)
		if refused {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		w.Write(body)
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return "http://" + l.Addr().String()
}

func zapHTTPServer(t *testing.T, kind string) string {
	var n atomic.Int64
	return accepting(t, "tcp", func(nc net.Conn) {
		zap.ServeHTTPFrames(nc, 0, func(req *zap.Request, resp *zap.Response) {
			if string(req.Target) != "/.well-known/zip/op/note" {
				t.Errorf("target %s", req.Target)
			}
			body, refused := decide(t, n.Add(1), kind, req.Body)
			resp.Status, resp.Body = 200, body
			if refused {
				resp.Status = 503
			}
		}, func() {})
	})
}

func zapRPCServer(t *testing.T, kind string) string {
	var n atomic.Int64
	return accepting(t, "tcp", func(nc net.Conn) {
		s := mux.Server{Framing: zap.RPCFraming{}, Quick: func([]byte) bool { return true }, Handle: func(dst, frame []byte) ([]byte, error) {
			var req zap.RPCRequest
			if err := req.Parse(frame); err != nil {
				return nil, err
			}
			body, refused := decide(t, n.Add(1), kind, req.Payload)
			resp := zap.RPCResponse{Status: zap.StatusOK, Promise: req.Promise, Body: body}
			if refused {
				resp.Status = zap.StatusInternal
			}
			return resp.Append(dst), nil
		}}
		s.Serve(nc)
	})
}

// callOnce makes one call with a deadline.
func callOnce(t *testing.T, c load.Caller) error {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return c.Call(ctx, record.Mark{})
}

func TestBinaryEnvelopesNameEachFailureAndRecover(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]struct {
		serve  func(t *testing.T, kind string) string
		target func(addr string) load.Target
	}{
		"opcall raw":      {opcallServer, func(a string) load.Target { return &driver.OpCall{Addr: a, Note: 32} }},
		"opcall net/http": {opcallServer, func(a string) load.Target { return &driver.OpCall{Addr: a, Note: 32, Client: driver.ClientHTTP} }},
		"zap-http":        {zapHTTPServer, func(a string) load.Target { return &driver.ZAPHTTP{Addr: a, Note: 32} }},
		"zap-rpc":         {zapRPCServer, func(a string) load.Target { return &driver.ZAPRPC{Addr: a, Note: 32} }},
		"zap-rpc shared":  {zapRPCServer, func(a string) load.Target { return &driver.ZAPRPC{Addr: a, Note: 32, Shared: true} }},
	} {
		for kind := range spoil(t) {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				c, err := e.target(e.serve(t, kind)).Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer load.Close(c)
				if err := callOnce(t, c); err == nil || record.KindOf(err) != kind {
					t.Errorf("the wrong reply is %v, of kind %s", err, record.KindOf(err))
				}
				for range 3 {
					if err := callOnce(t, c); err != nil {
						t.Errorf("the next call: %v", err)
					}
				}
			})
		}
	}
}

func TestZAPConnectionsThatBreakOff(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		first string // what the server writes instead of a frame
		kind  string
	}{
		"closes":          {"", record.Closed},
		"half a length":   {"\x00\x00", record.ShortBody},
		"half a frame":    {"\x00\x00\x00\x40abc", record.ShortBody},
		"too long":        {"\xff\xff\xff\xff", record.BadReply},
		"text":            {"HTTP/1.1 400 Bad Request\r\n\r\n", record.BadReply},
		"not a message":   {"\x00\x00\x00\x10ZAX\x00\x01\x00\x00\x02\x10\x00\x00\x00\x10\x00\x00\x00", record.BadReply},
		"length of three": {"\x00\x00\x00\x03abc", record.BadReply},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			addr := accepting(t, "tcp", func(nc net.Conn) {
				if n.Add(1) == 1 {
					zap.NewFrameReader(nc, 0).Next()
					io.WriteString(nc, x.first)
					return
				}
				zap.ServeHTTPFrames(nc, 0, func(req *zap.Request, resp *zap.Response) {
					resp.Status = 200
					resp.Body, _ = decide(t, 2, "", req.Body)
				}, func() {})
			})
			c, err := (&driver.ZAPHTTP{Addr: addr, Note: 8}).Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer load.Close(c)
			if err := callOnce(t, c); record.KindOf(err) != x.kind {
				t.Errorf("got %v, of kind %s, want %s", err, record.KindOf(err), x.kind)
			}
			if err := callOnce(t, c); err != nil {
				t.Errorf("it does not connect anew: %v", err)
			}
		})
	}
}

// All VUs of a shared target are on one connection, and it is closed behind the last of them.
func TestSharedCallersShareOneConnection(t *testing.T) {
	t.Parallel()
	var conns, open atomic.Int64
	addr := accepting(t, "tcp", func(nc net.Conn) {
		conns.Add(1)
		open.Add(1)
		defer open.Add(-1)
		s := mux.Server{Framing: zap.RPCFraming{}, Quick: func([]byte) bool { return true }, Handle: func(dst, frame []byte) ([]byte, error) {
			var req zap.RPCRequest
			err := req.Parse(frame)
			body, _ := decide(t, 2, "", req.Payload)
			return (&zap.RPCResponse{Status: zap.StatusOK, Promise: req.Promise, Body: body}).Append(dst), err
		}}
		s.Serve(nc)
	})
	target := &driver.ZAPRPC{Addr: addr, Note: 32, Shared: true}
	var callers []load.Caller
	for range 8 {
		c, err := target.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		callers = append(callers, c)
	}
	var wg sync.WaitGroup
	for _, c := range callers {
		wg.Go(func() {
			for range 50 {
				if err := callOnce(t, c); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if conns.Load() != 1 {
		t.Errorf("%d connections", conns.Load())
	}
	for _, c := range callers {
		load.Close(c)
	}
}

func TestADeadlineOfZAPIsATimeout(t *testing.T) {
	t.Parallel()
	silent := accepting(t, "tcp", func(nc net.Conn) { io.Copy(io.Discard, nc) })
	for name, target := range map[string]load.Target{
		"zap-http": &driver.ZAPHTTP{Addr: silent}, "zap-rpc": &driver.ZAPRPC{Addr: silent},
	} {
		c, err := target.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err = c.Call(ctx, record.Mark{})
		cancel()
		if record.KindOf(err) != record.Timeout {
			t.Errorf("%s: %v, of kind %s", name, err, record.KindOf(err))
		}
		load.Close(c)
	}
}

func TestPlainLooksAtTheStatusOnly(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got.Store(strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("Content-Type"), string(b)}, " "))
		if r.URL.Path == "/no" {
			w.WriteHeader(500)
		}
		io.WriteString(w, "{\"error\":1}")
	})}
	go s.Serve(l)
	defer s.Close()
	for _, x := range []struct {
		target *driver.Plain
		sent   string
		kind   string
	}{
		{&driver.Plain{Method: "GET", Path: "/v1/tasks_list"}, "GET /v1/tasks_list  ", ""},
		{&driver.Plain{Method: "POST", Path: "/op", ContentType: "application/json"}, "POST /op application/json ", ""},
		{&driver.Plain{Method: "GET", Path: "/no"}, "GET /no  ", record.Status},
	} {
		x.target.Addr = "http://" + l.Addr().String()
		c, err := x.target.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = callOnce(t, c)
		if (err == nil) != (x.kind == "") || err != nil && record.KindOf(err) != x.kind || got.Load() != x.sent {
			t.Errorf("sent %q, want %q; %v", got.Load(), x.sent, err)
		}
		load.Close(c)
	}
}

func TestZAPTasksWantsAnEmptyList(t *testing.T) {
	t.Parallel()
	type out struct{ Tasks []string }
	reply := atomic.Pointer[[]byte]{}
	addr := accepting(t, "tcp", func(nc net.Conn) {
		zap.ServeHTTPFrames(nc, 0, func(req *zap.Request, resp *zap.Response) {
			resp.Status, resp.Body = 200, *reply.Load()
		}, func() {})
	})
	c, err := (&driver.ZAPTasks{Addr: addr}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer load.Close(c)
	codec := codecOf[out](t)
	for kind, body := range map[string][]byte{
		"": codec.Append(nil, &out{}), record.WrongContent: codec.Append(nil, &out{[]string{"one"}}), record.BadReply: []byte("nonsense"),
	} {
		reply.Store(&body)
		err := callOnce(t, c)
		if (err == nil) != (kind == "") || err != nil && record.KindOf(err) != kind {
			t.Errorf("want %q, got %v", kind, err)
		}
	}
}

func TestBinaryTargetsThatNobodyServes(t *testing.T) {
	t.Parallel()
	for _, target := range []load.Target{
		&driver.OpCall{Addr: "http://127.0.0.1:1"}, &driver.OpCall{Addr: "http://127.0.0.1:1", Client: driver.ClientHTTP},
		&driver.ZAPHTTP{Addr: "tcp://127.0.0.1:1"}, &driver.ZAPRPC{Addr: "tcp://127.0.0.1:1"}, &driver.ZAPRPC{Addr: "tcp://127.0.0.1:1", Shared: true},
	} {
		if _, err := target.Open(t.Context()); record.KindOf(err) != record.Connect {
			t.Errorf("%T: %v", target, err)
		}
	}
	if _, err := (&driver.OpCall{Addr: "http://127.0.0.1:1", Client: "carrier pigeon"}).Open(t.Context()); err == nil || errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
