package driver_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"toll/driver"
	"toll/lab/load"
	"toll/lab/record"
)

// serveH2C serves HTTP/2 without TLS, and HTTP/1.1. conns counts connections.
func serveH2C(t *testing.T, h http.HandlerFunc) (addr string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// A protoIn is a NoteIn: its fields as they came.
type protoIn struct {
	id   []byte // a varint
	note string
}

// parseProtoIn reads what the drivers send: an id, then a note of less than 128 bytes.
func parseProtoIn(t *testing.T, b []byte) (in protoIn) {
	if len(b) < 2 || b[0] != 0x08 {
		t.Errorf("request %x", b)
		return in
	}
	end := 1
	for b[end] >= 0x80 {
		end++
	}
	in.id, b = b[1:end+1], b[end+1:]
	if len(b) > 2 && b[0] == 0x12 && int(b[1]) == len(b)-2 {
		in.note = string(b[2:])
	} else if len(b) > 0 {
		t.Errorf("request ends %x", b)
	}
	return in
}

// out is the NoteOut that is wanted.
func (in protoIn) out(note, status string) string {
	text := func(field byte, s string) string { return string([]byte{field<<3 | 2, byte(len(s))}) + s }
	return "\x08" + string(in.id) + text(2, note) + text(3, status) + text(4, "x")
}

func framed(message string) string {
	return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))) + message
}

// An rpcBehaviour answers a call of protobuf.
type rpcBehaviour func(w http.ResponseWriter, in protoIn)

// first answers with behave once, with good from then on.
func first(t *testing.T, unframe bool, behave, good rpcBehaviour) http.HandlerFunc {
	var mu sync.Mutex
	calls := 0
	return func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Method != "POST" || r.URL.Path != "/toll.note.v1.Notes/Note" {
			t.Errorf("%s %s, %v", r.Method, r.URL, err)
		}
		if unframe {
			if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" || r.Header.Get("Content-Type") != "application/grpc" || len(b) < 5 ||
				int(binary.BigEndian.Uint32(b[1:])) != len(b)-5 {
				t.Errorf("%s, %v, %x", r.Proto, r.Header, b)
				return
			}
			b = b[5:]
		} else if r.Header.Get("Content-Type") != "application/proto" || r.Header.Get("Connect-Protocol-Version") != "1" {
			t.Errorf("%v", r.Header)
		}
		mu.Lock()
		calls++
		b1 := calls == 1
		mu.Unlock()
		if b1 {
			behave(w, parseProtoIn(t, b))
		} else {
			good(w, parseProtoIn(t, b))
		}
	}
}

// grpcReply answers with a body and, in the trailers, a status; without a body, in the header.
func grpcReply(kind, body string, status ...string) rpcBehaviour {
	return func(w http.ResponseWriter, in protoIn) {
		w.Header().Set("Content-Type", kind)
		at := http.TrailerPrefix
		if body == "" {
			at = ""
		}
		for _, s := range status {
			w.Header().Add(at+"Grpc-Status", s)
		}
		w.Header().Set(at+"Grpc-Message", "why")
		io.WriteString(w, strings.ReplaceAll(body, "RIGHT", framed(in.out(in.note, "done"))))
	}
}

func TestGRPCNamesEachFailureAndRecovers(t *testing.T) {
	t.Parallel()
	out := func(message func(in protoIn) string) rpcBehaviour {
		return func(w http.ResponseWriter, in protoIn) {
			grpcReply("application/grpc", framed(message(in)), "0")(w, in)
		}
	}
	good := grpcReply("application/grpc", "RIGHT", "0")
	for _, x := range []struct {
		name   string
		behave rpcBehaviour
		want   string
	}{
		{"right", good, ""},
		{"right, of its kind", grpcReply("application/grpc+proto", "RIGHT", "0"), ""},
		{"another kind", grpcReply("application/grpcweb", "RIGHT", "0"), record.BadReply},
		{"html", grpcReply("text/html", "RIGHT", "0"), record.BadReply},
		{"no status", grpcReply("application/grpc", "RIGHT"), record.BadReply},
		{"two statuses", grpcReply("application/grpc", "RIGHT", "0", "0"), record.BadReply},
		{"failed behind the message", grpcReply("application/grpc", "RIGHT", "13"), record.ErrorField},
		{"trailers only", grpcReply("application/grpc", "", "12"), record.ErrorField},
		{"trailers only, success", grpcReply("application/grpc", "", "0"), record.BadReply},
		{"cut prefix", grpcReply("application/grpc", "\x00\x00\x00", "0"), record.BadReply},
		{"compressed", grpcReply("application/grpc", "\x01\x00\x00\x00\x01x", "0"), record.BadReply},
		{"shorter than it says", grpcReply("application/grpc", "\x00\x00\x00\x00\x09x", "0"), record.BadReply},
		{"two messages", grpcReply("application/grpc", "RIGHTRIGHT", "0"), record.BadReply},
		{"no protobuf", out(func(protoIn) string { return "\x08" }), record.BadReply},
		{"another id", out(func(in protoIn) string { return protoIn{[]byte{7}, in.note}.out(in.note, "done") }), record.WrongID},
		{"another note", out(func(in protoIn) string { return in.out("x", "done") }), record.WrongContent},
		{"another status", out(func(in protoIn) string { return in.out(in.note, "doing") }), record.WrongContent},
		{"empty message", out(func(protoIn) string { return "" }), record.WrongID},
		{"503", func(w http.ResponseWriter, _ protoIn) { w.WriteHeader(503) }, record.Status},
		{"broken off", func(w http.ResponseWriter, _ protoIn) { panic(http.ErrAbortHandler) }, record.BadReply},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			addr := serveH2C(t, first(t, true, x.behave, good))
			c := open(t, &driver.GRPC{Addr: addr, Note: 32})
			if err := call(t, c); kind(err) != x.want {
				t.Errorf("first call: kind %q, want %q: %v", kind(err), x.want, err)
			}
			for range 2 {
				if err := call(t, c); err != nil {
					t.Errorf("a later call: %v", err)
				}
			}
		})
	}
}

func TestConnectNamesEachFailureAndRecovers(t *testing.T) {
	t.Parallel()
	reply := func(kind, coding string, status int, message func(in protoIn) string) rpcBehaviour {
		return func(w http.ResponseWriter, in protoIn) {
			w.Header().Set("Content-Type", kind)
			if coding != "" {
				w.Header().Set("Content-Encoding", coding)
			}
			w.WriteHeader(status)
			io.WriteString(w, message(in))
		}
	}
	right := func(in protoIn) string { return in.out(in.note, "done") }
	good := reply("application/proto", "", 200, right)
	for _, x := range []struct {
		name   string
		behave rpcBehaviour
		want   string
	}{
		{"right", good, ""},
		{"identity", reply("application/proto", "identity", 200, right), ""},
		{"an error", reply("application/json", "", 404, func(protoIn) string { return `{"code":"unimplemented"}` }), record.Status},
		{"json", reply("application/json", "", 200, func(protoIn) string { return `{}` }), record.BadReply},
		{"compressed", reply("application/proto", "gzip", 200, right), record.BadReply},
		{"framed", reply("application/proto", "", 200, func(in protoIn) string { return framed(right(in)) }), record.BadReply},
		{"another note", reply("application/proto", "", 200, func(in protoIn) string { return in.out("x", "done") }), record.WrongContent},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			addr := serveH2C(t, first(t, false, x.behave, good))
			c := open(t, &driver.Connect{Addr: addr, Note: 32})
			if err := call(t, c); kind(err) != x.want {
				t.Errorf("first call: kind %q, want %q: %v", kind(err), x.want, err)
			}
			if err := call(t, c); err != nil {
				t.Errorf("a later call: %v", err)
			}
		})
	}
}

// VUs that share a connection share one, and the last closes it; one that is cold shares none.
func TestH2CCallersShareAConnection(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	from := make(map[string]bool)
	addr := serveH2C(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		from[r.RemoteAddr] = true
		mu.Unlock()
		if r.ProtoMajor != 2 {
			t.Errorf("called by %s", r.Proto)
		}
		b, _ := io.ReadAll(r.Body)
		w.Write(append(b[:len(b)-1], `,"status":"done"}`...))
	})
	for _, x := range []struct {
		target *driver.REST
		want   int
	}{
		{&driver.REST{Addr: addr, Client: driver.ClientH2C, Note: 8, Shared: true}, 1},
		{&driver.REST{Addr: addr, Client: driver.ClientH2C, Note: 8}, 4},
		{&driver.REST{Addr: addr, Client: driver.ClientH2C, Note: 8, Shared: true, Cold: true}, 12},
	} {
		clear(from)
		for range 2 { // the second time behind the last VU's end
			var callers []load.Caller
			for range 4 {
				callers = append(callers, open(t, x.target))
			}
			var wg sync.WaitGroup
			for _, c := range callers {
				wg.Go(func() {
					for range 3 {
						if p, ok := c.(load.Preparer); ok {
							if err := p.Prepare(t.Context()); err != nil {
								t.Error(err)
							}
						}
						if err := call(t, c); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			for _, c := range callers {
				if err := load.Close(c); err != nil {
					t.Error(err)
				}
			}
		}
		mu.Lock()
		if len(from) != 2*x.want {
			t.Errorf("%d connections, want %d twice (%s)", len(from), x.want, fmt.Sprint(x.target.Shared, x.target.Cold))
		}
		mu.Unlock()
	}
}
