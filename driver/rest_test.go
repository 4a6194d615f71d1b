package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"toll/driver"
	"toll/lab/load"
	"toll/lab/record"
)

var clients = []string{driver.ClientRaw, driver.ClientHTTP}

func open(t *testing.T, target load.Target) load.Caller {
	t.Helper()
	c, err := target.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { load.Close(c) })
	return c
}

func call(t *testing.T, c load.Caller) error {
	t.Helper()
	err := c.Call(t.Context(), record.Mark{})
	if _, ok := errors.AsType[*record.Failure](err); err != nil && !ok {
		t.Errorf("error %v is no *record.Failure", err)
	}
	return err
}

// kind names an outcome, "" for success.
func kind(err error) string {
	if err == nil {
		return ""
	}
	return record.KindOf(err)
}

func TestRESTNamesEachFailureAndRecovers(t *testing.T) {
	with := func(key string, value any) behaviour {
		return body(func(in note) string {
			m := map[string]any{"id": in.ID, "note": in.Note, "status": "done"}
			m[key] = value
			b, _ := json.Marshal(m)
			return string(b)
		})
	}
	closing := func(b behaviour) behaviour {
		return func(nc net.Conn, in note) bool { b(nc, in); return false }
	}
	tests := []struct {
		name  string
		first behaviour
		want  string
	}{
		{"right", answer, ""},
		{"right, then closed", closing(func(nc net.Conn, in note) bool {
			return text("200 OK", "Connection: foo, Close\r\n", right(in))(nc, in)
		}), ""},
		{"chunked", chunked, ""},
		{"byte by byte", dribble, ""},
		{"until close", until, ""},
		{"201", body(right), ""},
		{"white space, escapes, unknown members", body(func(in note) string {
			return fmt.Sprintf(" {\"x\":[{},1e3,\"\\\"\"],\r\n\"status\" : \"d\\u006fne\",\t\"note\":%q,\"error\":null, \"\\u0069d\":%d }\n", in.Note, in.ID)
		}), ""},
		{"wrong id", with("id", 7), record.WrongID},
		{"no id", body(func(in note) string { return fmt.Sprintf(`{"note":%q,"status":"done"}`, in.Note) }), record.WrongID},
		{"wrong note", with("note", "x"), record.WrongContent},
		{"wrong status", with("status", "doing"), record.WrongContent},
		{"error in a 200", with("error", map[string]string{"code": "x"}), record.ErrorField},
		{"error text in a 200", with("error", "no"), record.ErrorField},
		{"id as text", body(func(in note) string { return fmt.Sprintf(`{"id":"%d","note":%q,"status":"done"}`, in.ID, in.Note) }), record.BadReply},
		{"fractional id", body(func(in note) string { return fmt.Sprintf(`{"id":%d.0,"note":%q,"status":"done"}`, in.ID, in.Note) }), record.BadReply},
		{"no json", body(func(note) string { return "hello" }), record.BadReply},
		{"cut json", body(func(in note) string { s := right(in); return s[:len(s)-1] }), record.BadReply},
		{"two json values", body(func(in note) string { return right(in) + "{}" }), record.BadReply},
		{"empty body", body(func(note) string { return "" }), record.BadReply},
		{"500", text("500 Oh", "", "broken"), record.Status},
		{"redirect", text("307 Go", "Location: /elsewhere\r\n", ""), record.Status},
		{"404 that looks right", func(nc net.Conn, in note) bool { return text("404 Not Found", "", right(in))(nc, in) }, record.Status},
		{"204", verbatim("HTTP/1.1 204 No Content\r\n\r\n", true), record.BadReply},
		{"short body", closing(verbatim("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", false)), record.ShortBody},
		{"short chunk", verbatim("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{", false), record.ShortBody},
		{"no last chunk", verbatim("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", false), record.ShortBody},
		{"bad chunk size", verbatim("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n{\r\n", true), record.BadReply},
		{"closed before the head", verbatim("", false), record.Closed},
		{"closed in the head", verbatim("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n", false), record.Closed},
		{"garbage", verbatim("garbage\r\n\r\n", true), record.BadReply},
		{"two lengths", verbatim("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", true), record.BadReply},
		{"negative length", verbatim("HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}", true), record.BadReply},
		{"huge head", hugeHead, record.BadReply},
		{"huge body announced", verbatim("HTTP/1.1 200 OK\r\nContent-Length: 4097\r\n\r\n", true), record.BadReply},
		{"huge body in chunks", verbatim("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1001\r\n"+strings.Repeat(" ", 4097)+"\r\n0\r\n\r\n", true), record.BadReply},
		{"huge body until close", verbatim("HTTP/1.1 200 OK\r\n\r\n"+strings.Repeat(" ", 4097), false), record.BadReply},
		{"silent", silent, record.Timeout},
		{"silent in the body", func(nc net.Conn, in note) bool {
			verbatim("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", true)(nc, in)
			return silent(nc, in)
		}, record.Timeout},
	}
	for _, client := range clients {
		for _, tt := range tests {
			t.Run(client+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				timeout := 10 * time.Second
				if tt.want == record.Timeout {
					timeout = 500 * time.Millisecond
				}
				f := serve(t, "tcp", tt.first)
				c := open(t, &driver.REST{Addr: f.addr(), Client: client, Note: 32, MaxBody: 4096, Timeout: timeout})
				err := call(t, c)
				if got := kind(err); got != tt.want {
					t.Errorf("first call: kind %q, want %q: %v", got, tt.want, err)
				}
				for range 2 {
					if err := call(t, c); err != nil {
						t.Errorf("a later call: %v", err)
					}
				}
			})
		}
	}
}

func TestRawClientIsStricter(t *testing.T) {
	tests := []struct{ name, reply string }{
		{"length and coding", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
		{"folded line", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n{}"},
		{"bytes behind the reply", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n"},
		{"upgrade", "HTTP/1.1 101 Switching Protocols\r\n\r\n"},
		{"bare LF", "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}\r\n\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := open(t, &driver.REST{Addr: serve(t, "tcp", verbatim(tt.reply, true)).addr()})
			if err := call(t, c); kind(err) != record.BadReply {
				t.Errorf("got %v, want kind %s", err, record.BadReply)
			}
			if err := call(t, c); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

func TestBothClientsSendTheSameBytes(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for _, size := range []int{0, 32, 4096, 65536} {
			t.Run(fmt.Sprint(network, size), func(t *testing.T) {
				t.Parallel()
				var got []string
				for _, client := range clients {
					f := serve(t, network, nil)
					c := open(t, &driver.REST{Addr: f.addr(), Client: client, Note: size, Seed: 42})
					for range 3 {
						if err := call(t, c); err != nil {
							t.Fatal(err)
						}
					}
					got = append(got, strings.ReplaceAll(f.received(), strings.TrimPrefix(f.addr(), "http://"), "HOST"))
				}
				if got[0] != got[1] {
					t.Errorf("%s sends\n%.400q\n%s sends\n%.400q", clients[0], got[0], clients[1], got[1])
				}
			})
		}
	}
}

func TestWireCountsWhatTheServerSees(t *testing.T) {
	for _, client := range clients {
		f := serve(t, "tcp", nil)
		var wire driver.Wire
		c := open(t, &driver.REST{Addr: f.addr(), Client: client, Note: 100, Wire: &wire})
		for range 3 {
			if err := call(t, c); err != nil {
				t.Fatal(err)
			}
		}
		if out := int64(len(f.received())); wire.Out.Load() != out || wire.In.Load() <= 300 {
			t.Errorf("%s: wire says %d out and %d in, the server read %d", client, wire.Out.Load(), wire.In.Load(), out)
		}
	}
}

func TestIDsAreFreshAndOfOneLength(t *testing.T) {
	f := serve(t, "tcp", nil)
	seen := map[string]bool{}
	for seed := range uint64(3) {
		target := &driver.REST{Addr: f.addr(), Seed: seed}
		for range 4 {
			c := open(t, target)
			for range 3 {
				if err := call(t, c); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	bodies := strings.Split(f.received(), `{"id":`)[1:]
	for _, b := range bodies {
		id, _, _ := strings.Cut(b, ",")
		if len(id) != 16 || id > "9007199254740991" || seen[id] {
			t.Errorf("id %s: not of 16 digits, beyond 2^53 or seen before", id)
		}
		seen[id] = true
	}
	if len(seen) != 36 {
		t.Errorf("%d ids, want 36", len(seen))
	}
}

func TestNoteReplyAnswersTheConstantID(t *testing.T) {
	for _, client := range clients {
		for _, size := range []int{0, 32, 65536} {
			reply := string(driver.NoteReply(1, size))
			f := serve(t, "tcp", verbatim(reply, true))
			c := open(t, &driver.REST{Addr: f.addr(), Client: client, ConstantID: 1, Note: size})
			for range 2 {
				if err := call(t, c); err != nil {
					t.Errorf("%s, note of %d: %v", client, size, err)
				}
			}
			wrong := open(t, &driver.REST{Addr: serve(t, "tcp", verbatim(reply, true)).addr(), Client: client, ConstantID: 2, Note: size})
			if err := call(t, wrong); kind(err) != record.WrongID {
				t.Errorf("%s, another id: %v, want kind %s", client, err, record.WrongID)
			}
		}
	}
}

func TestOpenFailsWhenNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, client := range clients {
		for _, addr := range []string{"tcp://" + l.Addr().String(), "unix:" + t.TempDir() + "/none"} {
			_, err := (&driver.REST{Addr: addr, Client: client}).Open(t.Context())
			if kind(err) != record.Connect {
				t.Errorf("%s, %s: %v, want kind %s", client, addr, err, record.Connect)
			}
		}
	}
}

func TestOpenRefusesNonsense(t *testing.T) {
	for _, target := range []*driver.REST{
		{Addr: "ftp://127.0.0.1:1"}, {Addr: "127.0.0.1:1"}, {Addr: "tcp://127.0.0.1"}, {Addr: "http://:80"}, {Addr: "unix:"},
		{Addr: "http://127.0.0.1:1/path"}, {Addr: "http://u@127.0.0.1:1"}, {Addr: ""},
		{Addr: "http://127.0.0.1:1", Client: "curl"},
		{Addr: "http://127.0.0.1:1", Path: "note"},
		{Addr: "http://127.0.0.1:1", Path: "/a b\r\nX: y"},
		{Addr: "http://127.0.0.1:1", Note: -1},
	} {
		if _, err := target.Open(t.Context()); err == nil || kind(err) == record.Connect {
			t.Errorf("%+v: %v, want a refusal before connecting", target, err)
		}
	}
}

func TestCancellingEndsACall(t *testing.T) {
	for _, client := range clients {
		arrived := make(chan struct{})
		f := serve(t, "tcp", func(nc net.Conn, in note) bool {
			close(arrived)
			return silent(nc, in)
		})
		c := open(t, &driver.REST{Addr: f.addr(), Client: client})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-arrived
			cancel()
		}()
		if err := c.Call(ctx, record.Mark{}); !errors.Is(err, context.Canceled) || kind(err) != record.Other {
			t.Errorf("%s: %v, want kind %s of a cancelled context", client, err, record.Other)
		}
		if err := c.Call(ctx, record.Mark{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a call under an ended context: %v", client, err)
		}
		if err := call(t, c); err != nil {
			t.Errorf("%s: the next call: %v", client, err)
		}
	}
}

// A context that ends between two calls must not break the call that follows under another.
func TestEndedContextLeavesTheConnectionAlone(t *testing.T) {
	f := serve(t, "tcp", nil)
	c := open(t, &driver.REST{Addr: f.addr()})
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		if err := c.Call(ctx, record.Mark{}); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := c.Call(context.Background(), record.Mark{}); err != nil {
			t.Fatal(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.conns) != 1 {
		t.Errorf("%d connections, want 1", len(f.conns))
	}
}

func TestDeadlineOfTheContextIsATimeout(t *testing.T) {
	for _, client := range clients {
		f := serve(t, "tcp", silent)
		c := open(t, &driver.REST{Addr: f.addr(), Client: client})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := c.Call(ctx, record.Mark{}); kind(err) != record.Timeout {
			t.Errorf("%s: %v, want kind %s", client, err, record.Timeout)
		}
		cancel()
		if err := call(t, c); err != nil {
			t.Errorf("%s: the next call, which has no deadline: %v", client, err)
		}
	}
}

func TestColdCallsConnectEachTime(t *testing.T) {
	for _, client := range clients {
		f := serve(t, "tcp", nil)
		c := open(t, &driver.REST{Addr: f.addr(), Client: client, Cold: true})
		for range 3 {
			if err := c.(load.Preparer).Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := call(t, c); err != nil {
				t.Fatal(err)
			}
		}
		f.mu.Lock()
		if len(f.conns) != 4 {
			t.Errorf("%s: %d connections, want one by Open and three by calls", client, len(f.conns))
		}
		f.mu.Unlock()
	}
	warm := open(t, &driver.REST{Addr: serve(t, "tcp", nil).addr()})
	if _, ok := warm.(load.Preparer); ok {
		t.Error("a warm caller prepares something")
	}
}

func TestWarmCallsShareOneConnection(t *testing.T) {
	for _, client := range clients {
		f := serve(t, "unix", nil)
		c := open(t, &driver.REST{Addr: f.addr(), Client: client, Note: 5})
		for range 10 {
			if err := call(t, c); err != nil {
				t.Fatal(err)
			}
		}
		f.mu.Lock()
		if len(f.conns) != 1 {
			t.Errorf("%s: %d connections, want 1", client, len(f.conns))
		}
		f.mu.Unlock()
	}
}

func TestDoLeavesTheStatusToTheCaller(t *testing.T) {
	f := serve(t, "tcp", text("418 Teapot", "", "short"))
	c, err := driver.Dial(t.Context(), driver.ConnConfig{Addr: f.addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	reply, err := c.Do(t.Context(), &driver.RawRequest{Method: http.MethodPut, Path: "/p", Header: "X: y\r\n", Body: []byte("{}")})
	if err != nil || reply.Status != 418 || string(reply.Body) != "short" || reply.Close {
		t.Errorf("got %+v, %v", reply, err)
	}
	want := fmt.Sprintf("PUT /p HTTP/1.1\r\nHost: %s\r\nUser-Agent: toll\r\nContent-Length: 2\r\nX: y\r\n\r\n{}", f.listener.Addr())
	if got := f.received(); got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
}
