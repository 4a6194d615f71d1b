package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toll/driver"
	"toll/lab/load"
	"toll/lab/record"
)

// A message is what a MCP client sent.
type message struct {
	Method string
	ID     *int64
	Params struct {
		Name      string
		Cursor    string
		Arguments struct {
			ID    int64
			Note  string
			Bytes int
		}
	}
	raw  string
	http string // method and header fields of interest
}

// A mcpFake is a server that answers tool calls by the first of its behaviours, then well.
type mcpFake struct {
	t     *testing.T
	first func(w http.ResponseWriter, m message)

	mu       sync.Mutex
	seen     []message // guarded by mu
	calls    int       // guarded by mu
	sessions int       // guarded by mu
}

func serveMCP(t *testing.T, first func(w http.ResponseWriter, m message)) (*mcpFake, string) {
	f := &mcpFake{t: t, first: first}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return f, s.URL
}

// ServeHTTP answers one message.
func (f *mcpFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m := message{raw: string(b), http: r.Method}
	for _, name := range []string{"Content-Type", "Accept", "Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name"} {
		if v := r.Header.Get(name); v != "" {
			m.http += " " + name + "=" + v
		}
	}
	if len(b) > 0 {
		if err := json.Unmarshal(b, &m); err != nil {
			f.t.Errorf("request %q: %v", b, err)
		}
	}
	f.mu.Lock()
	f.seen = append(f.seen, m)
	behave := answerMCP
	if m.Method == "tools/call" || m.Method == "tools/list" {
		if f.calls++; f.calls == 1 && f.first != nil {
			behave = f.first
		}
	}
	if m.Method == "initialize" {
		f.sessions++
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("session-", f.sessions))
	}
	f.mu.Unlock()
	behave(w, m)
}

func (f *mcpFake) requests() []message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}

// rightMCP is the reply that is wanted; its result goes through change.
func rightMCP(m message, change func(result map[string]any)) string {
	a := m.Params.Arguments
	result := map[string]any{
		"content":           []any{map[string]any{"type": "text", "text": `{"id":1}`}},
		"structuredContent": map[string]any{"id": a.ID, "note": a.Note, "status": "done", "owner": "x"},
	}
	if m.Params.Name == "blob" {
		result["structuredContent"] = map[string]any{"text": strings.Repeat("x", a.Bytes)}
	}
	if m.Method == "initialize" {
		result = map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}}
	}
	if change != nil {
		change(result)
	}
	b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	return string(b)
}

func give(w http.ResponseWriter, kind, body string) {
	w.Header().Set("Content-Type", kind)
	io.WriteString(w, body)
}

func answerMCP(w http.ResponseWriter, m message) {
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	give(w, "application/json", rightMCP(m, nil))
}

// json and events answer with what f makes of the message.
func jsonOf(f func(m message) string) func(http.ResponseWriter, message) {
	return func(w http.ResponseWriter, m message) { give(w, "application/json; charset=utf-8", f(m)) }
}

func eventsOf(f func(m message) string) func(http.ResponseWriter, message) {
	return func(w http.ResponseWriter, m message) { give(w, "text/event-stream", f(m)) }
}

func with(key string, value any) func(m message) string {
	return func(m message) string { return rightMCP(m, func(r map[string]any) { r[key] = value }) }
}

func good(m message) string { return rightMCP(m, nil) }

func TestMCPNamesEachFailureAndRecovers(t *testing.T) {
	t.Parallel()
	structured := func(id any, note, status string) func(m message) string {
		return func(m message) string {
			if id == nil {
				id = m.Params.Arguments.ID
			}
			if note == "" {
				note = m.Params.Arguments.Note
			}
			return with("structuredContent", map[string]any{"id": id, "note": note, "status": status})(m)
		}
	}
	replace := func(old, new string) func(m message) string {
		return func(m message) string { return strings.Replace(good(m), old, new, 1) }
	}
	tests := []struct {
		name  string
		first func(http.ResponseWriter, message)
		want  string
	}{
		{"right", jsonOf(good), ""},
		{"complete", jsonOf(with("resultType", "complete")), ""},
		{"null error, isError false", jsonOf(func(m message) string {
			return strings.Replace(with("isError", false)(m), `"jsonrpc"`, `"error":null,"jsonrpc"`, 1)
		}), ""},
		{"event", eventsOf(func(m message) string { return "event: message\nid: 7\ndata: " + good(m) + "\n\n" }), ""},
		{"event behind a comment, an empty one and a notification", eventsOf(func(m message) string {
			return ": hello\r\n\r\nid: 1\r\ndata:\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\r\n\r\nevent: ping\rdata: x\r\rdata:" + good(m) + "\r\n\r\n"
		}), ""},
		{"event in lines", eventsOf(func(m message) string { return "data: " + strings.Replace(good(m), ",", ",\ndata: ", 3) + "\n\n" }), ""},
		{"event that breaks off", eventsOf(func(m message) string { return "data: " + good(m) + "\n" }), record.BadReply},
		{"no event", eventsOf(func(message) string { return ": nothing\n\n" }), record.BadReply},
		{"two replies", eventsOf(func(m message) string { return "data: " + good(m) + "\n\ndata: " + good(m) + "\n\n" }), record.BadReply},
		{"event that is no json", eventsOf(func(message) string { return "data: hello\n\n" }), record.BadReply},
		{"event of another call", eventsOf(func(m message) string { return "data: " + replace(`"id":1`, `"id":2`)(m) + "\n\n" }), record.WrongID},
		{"another kind of body", func(w http.ResponseWriter, m message) { give(w, "text/plain", good(m)) }, record.BadReply},
		{"no kind of body", func(w http.ResponseWriter, m message) { w.Header()["Content-Type"] = nil; io.WriteString(w, good(m)) }, record.BadReply},
		{"a notification", jsonOf(func(message) string { return `{"jsonrpc":"2.0","method":"x"}` }), record.BadReply},
		{"a JSON-RPC error", jsonOf(func(m message) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"no"}}`, *m.ID)
		}), record.ErrorField},
		{"an error without an id", jsonOf(func(message) string { return `{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}` }), record.ErrorField},
		{"a tool's error", jsonOf(with("isError", true)), record.ErrorField},
		{"isError as text", jsonOf(with("isError", "no")), record.BadReply},
		{"input required", jsonOf(with("resultType", "input_required")), record.WrongContent},
		{"JSON-RPC 1.0", jsonOf(replace(`"2.0"`, `"1.0"`)), record.BadReply},
		{"no result", jsonOf(func(m message) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d}`, *m.ID) }), record.BadReply},
		{"result as text", jsonOf(func(m message) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"x"}`, *m.ID) }), record.BadReply},
		{"no content", jsonOf(func(m message) string { return rightMCP(m, func(r map[string]any) { delete(r, "content") }) }), record.WrongContent},
		{"no structured content", jsonOf(func(m message) string { return rightMCP(m, func(r map[string]any) { delete(r, "structuredContent") }) }), record.WrongContent},
		{"structured content as text", jsonOf(with("structuredContent", "x")), record.BadReply},
		{"wrong id of the message", jsonOf(replace(`"id":1`, `"id":2`)), record.WrongID},
		{"wrong id inside", jsonOf(structured(7, "", "done")), record.WrongID},
		{"wrong note", jsonOf(structured(nil, "x", "done")), record.WrongContent},
		{"wrong status", jsonOf(structured(nil, "", "doing")), record.WrongContent},
		{"id as text", jsonOf(structured("7", "", "done")), record.BadReply},
		{"error inside", jsonOf(func(m message) string {
			return with("structuredContent", map[string]any{"id": m.Params.Arguments.ID, "error": "x"})(m)
		}), record.ErrorField},
		{"no json", jsonOf(func(message) string { return "hello" }), record.BadReply},
		{"an array", jsonOf(func(m message) string { return "[" + good(m) + "]" }), record.BadReply},
		{"cut json", jsonOf(func(m message) string { s := good(m); return s[:len(s)-1] }), record.BadReply},
		{"two values", jsonOf(func(m message) string { return good(m) + "{}" }), record.BadReply},
		{"accepted without a reply", func(w http.ResponseWriter, _ message) { w.WriteHeader(202) }, record.BadReply},
		{"400 with a reply", func(w http.ResponseWriter, m message) { w.WriteHeader(400); io.WriteString(w, good(m)) }, record.Status},
	}
	for _, client := range clients {
		for _, tt := range tests {
			t.Run(client+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				_, addr := serveMCP(t, tt.first)
				c := open(t, &driver.MCP{Addr: addr, Client: client, Note: 32})
				if err := call(t, c); kind(err) != tt.want {
					t.Errorf("first call: kind %q, want %q: %v", kind(err), tt.want, err)
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

// A row about one kind of reply must not be made of the other.
func TestMCPInsistsOnTheKindOfReply(t *testing.T) {
	t.Parallel()
	event := eventsOf(func(m message) string { return "data: " + good(m) + "\n\n" })
	for _, client := range clients {
		for want, first := range map[string]func(http.ResponseWriter, message){driver.ReplyJSON: event, driver.ReplyEvents: jsonOf(good)} {
			_, addr := serveMCP(t, first)
			c := open(t, &driver.MCP{Addr: addr, Client: client, Reply: want})
			if err := call(t, c); kind(err) != record.BadReply || !strings.Contains(err.Error(), "is what is measured") {
				t.Errorf("%s, %s: %v", client, want, err)
			}
		}
	}
}

func TestMCPSaysWhatItsRevisionAsks(t *testing.T) {
	t.Parallel()
	const post = "POST Content-Type=application/json Accept=application/json, text/event-stream"
	for _, client := range clients {
		f, addr := serveMCP(t, nil)
		c := open(t, &driver.MCP{Addr: addr, Client: client, Note: 3})
		if err := call(t, c); err != nil {
			t.Fatal(err)
		}
		got := f.requests()
		id := *got[0].ID
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"toll","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},`+
			`"name":"note","arguments":{"id":%d,"note":"the"}}}`, id, id)
		if got[0].raw != want {
			t.Errorf("%s:\ngot  %s\nwant %s", client, got[0].raw, want)
		}
		if h := post + " Mcp-Protocol-Version=2026-07-28 Mcp-Method=tools/call Mcp-Name=note"; got[0].http != h {
			t.Errorf("%s:\ngot  %s\nwant %s", client, got[0].http, h)
		}
		load.Close(c)
		if n := len(f.requests()); n != 1 {
			t.Errorf("%s: %d requests, want 1", client, n)
		}
	}
	for _, client := range clients {
		f, addr := serveMCP(t, nil)
		c := open(t, &driver.MCP{Addr: addr, Client: client, Note: 3, Stateful: true})
		for range 2 {
			if err := call(t, c); err != nil {
				t.Fatal(err)
			}
		}
		load.Close(c)
		const version, session = " Mcp-Protocol-Version=2025-11-25", " Mcp-Session-Id=session-1"
		want := []string{
			"initialize " + post, "notifications/initialized " + post + version + session,
			"tools/call " + post + version + session, "tools/call " + post + version + session, " DELETE" + version + session,
		}
		for i, m := range f.requests() {
			if got := m.Method + " " + m.http; i >= len(want) || got != want[i] {
				t.Errorf("%s, request %d: got %s, want %s", client, i, got, want)
			}
			if strings.Contains(m.raw, "_meta") {
				t.Errorf("%s: %s", client, m.raw)
			}
		}
		if n := len(f.requests()); n != len(want) {
			t.Errorf("%s: %d requests, want %d", client, n, len(want))
		}
	}
}

// A server that has forgotten a session answers 404; the next call begins another.
func TestMCPBeginsAnotherSession(t *testing.T) {
	t.Parallel()
	for _, client := range clients {
		f, addr := serveMCP(t, func(w http.ResponseWriter, _ message) { w.WriteHeader(404) })
		c := open(t, &driver.MCP{Addr: addr, Client: client, Stateful: true})
		if err := call(t, c); kind(err) != record.Status {
			t.Errorf("%s: %v", client, err)
		}
		if err := call(t, c); err != nil {
			t.Errorf("%s: %v", client, err)
		}
		last := f.requests()[len(f.requests())-1]
		if !strings.Contains(last.http, "Mcp-Session-Id=session-2") {
			t.Errorf("%s: %s", client, last.http)
		}
	}
}

func TestMCPColdBeginsAnew(t *testing.T) {
	t.Parallel()
	for _, client := range clients {
		for _, forget := range []bool{false, true} {
			f := &mcpFake{t: t}
			var mu sync.Mutex
			conns := 0
			s := httptest.NewUnstartedServer(f)
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					mu.Lock()
					conns++
					mu.Unlock()
				}
			}
			s.Start()
			t.Cleanup(s.Close)
			c := open(t, &driver.MCP{Addr: s.URL, Client: client, Stateful: true, Cold: true, Forget: forget})
			for range 3 {
				if err := c.(load.Preparer).Prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := call(t, c); err != nil {
					t.Fatal(err)
				}
			}
			load.Close(c)
			count := make(map[string]int)
			for _, m := range f.requests() {
				count[m.Method+strings.Fields(m.http)[0]]++
			}
			deletes := 3
			if forget {
				deletes = 0
			}
			if count["initializePOST"] != 3 || count["tools/callPOST"] != 3 || count["DELETE"] != deletes {
				t.Errorf("%s: %v", client, count)
			}
			mu.Lock()
			if conns < 3 {
				t.Errorf("%s: %d connections, want one a call", client, conns)
			}
			mu.Unlock()
		}
	}
}

func TestMCPInitializeMustSucceed(t *testing.T) {
	t.Parallel()
	ok := func(m message) string { return rightMCP(m, nil) }
	version := func(v string) func(m message) string {
		return func(m message) string { return rightMCP(m, func(r map[string]any) { r["protocolVersion"] = v }) }
	}
	for _, x := range []struct {
		name, session string
		body          func(m message) string
		status        int
		want          string
	}{
		{"no session", "", ok, 200, "bad_reply: initialize: the server keeps no session: its reply to initialize has no Mcp-Session-Id"},
		{"a session with a space", "a b", ok, 200, `bad_reply: initialize: Mcp-Session-Id "a b": want visible ASCII`},
		{"refused", "s", ok, 403, `initialize: status: status 403: `},
		{"the stateless revision", "s", version("2026-07-28"), 200, `bad_reply: initialize: it chose revision "2026-07-28", which this client does not speak with sessions`},
		{"an older revision", "s", version("2025-03-26"), 200, ""},
		{"an error", "s", func(message) string { return `{"jsonrpc":"2.0","id":0,"error":{"code":1}}` }, 200, "bad_reply: initialize: no successful reply to it: "},
		{"no json", "s", func(message) string { return "x" }, 200, "bad_reply: initialize: invalid character"},
	} {
		for _, client := range clients {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var m message
				if json.NewDecoder(r.Body).Decode(&m) != nil || m.Method != "initialize" {
					w.WriteHeader(202)
					return
				}
				if x.session != "" {
					w.Header().Set("Mcp-Session-Id", x.session)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(x.status)
				io.WriteString(w, x.body(m))
			}))
			c, err := (&driver.MCP{Addr: s.URL, Client: client, Stateful: true}).Open(t.Context())
			if x.want == "" {
				if err != nil {
					t.Errorf("%s, %s: %v", client, x.name, err)
				} else {
					load.Close(c)
				}
			} else if err == nil || !strings.HasPrefix(err.Error(), x.want) {
				t.Errorf("%s, %s:\ngot  %v\nwant %s", client, x.name, err, x.want)
			}
			s.Close()
		}
	}
}

func TestMCPListsEveryPage(t *testing.T) {
	t.Parallel()
	pages := func(tools int, cursor any) func(m message) string {
		return func(m message) string {
			list := make([]any, tools)
			for i := range list {
				list[i] = map[string]any{"name": fmt.Sprint(i), "inputSchema": map[string]any{"type": "object"}}
			}
			result := map[string]any{"tools": list}
			if cursor != nil && m.Params.Cursor == "" {
				result["nextCursor"] = cursor
			}
			b, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
			return string(b)
		}
	}
	for _, client := range clients {
		for _, stateful := range []bool{false, true} {
			for _, x := range []struct {
				page func(message) string
				want int
				kind string
			}{
				{pages(3, nil), 3, ""}, {pages(3, "next \"page\""), 6, ""}, {pages(3, nil), 4, record.WrongContent},
				{pages(3, "more"), 3, record.WrongContent}, {pages(0, "more"), 3, record.WrongContent},
			} {
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					var m message
					if json.NewDecoder(r.Body).Decode(&m) != nil || m.Method != "tools/list" {
						w.Header().Set("Mcp-Session-Id", "s")
						answerMCP(w, m)
						return
					}
					give(w, "application/json", x.page(m))
				}))
				c := open(t, &driver.MCP{Addr: s.URL, Client: client, Tools: x.want, Stateful: stateful})
				for range 2 {
					if err := call(t, c); kind(err) != x.kind {
						t.Errorf("%s, %d of them: %v, want %q", client, x.want, err, x.kind)
					}
				}
				load.Close(c)
				s.Close()
			}
		}
	}
}

func TestMCPBlob(t *testing.T) {
	t.Parallel()
	for _, client := range clients {
		_, addr := serveMCP(t, jsonOf(with("structuredContent", map[string]any{"text": "xxy"})))
		c := open(t, &driver.MCP{Addr: addr, Client: client, Blob: 3})
		if err := call(t, c); kind(err) != record.WrongContent {
			t.Errorf("%s: %v", client, err)
		}
		if err := call(t, c); err != nil {
			t.Errorf("%s: %v", client, err)
		}
	}
}

func TestMCPOpenRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]*driver.MCP{
		`path "mcp": want / and no space, control or non-ASCII character`: {Addr: "http://127.0.0.1:1", Path: "mcp"},
		`client "curl": want "raw" or "net/http"`:                         {Addr: "http://127.0.0.1:1", Client: "curl"},
	} {
		if _, err := m.Open(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// lines answers a line by a line.
type lines func(line string) (string, error)

// Ask answers one line.
func (l lines) Ask(_ context.Context, question []byte) ([]byte, error) {
	s, err := l(string(question))
	return []byte(s), err
}

func TestMCPOverStdio(t *testing.T) {
	t.Parallel()
	parse := func(line string) (m message) {
		if err := json.Unmarshal([]byte(line), &m); err != nil || strings.Contains(line, "\n") || !strings.Contains(line, "2026-07-28") {
			t.Errorf("%q: %v", line, err)
		}
		return m
	}
	for name, x := range map[string]struct {
		answer func(m message) (string, error)
		want   string
	}{
		"right":          {func(m message) (string, error) { return good(m), nil }, ""},
		"a notification": {func(message) (string, error) { return `{"jsonrpc":"2.0","method":"x"}`, nil }, record.BadReply},
		"no json":        {func(message) (string, error) { return `x`, nil }, record.BadReply},
		"an error": {func(m message) (string, error) {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{}}`, *m.ID), nil
		}, record.ErrorField},
		"gone": {func(message) (string, error) { return "", fmt.Errorf("x: %w", io.EOF) }, record.Crashed},
		"late": {func(message) (string, error) { return "", context.DeadlineExceeded }, record.Timeout},
	} {
		wire := new(driver.Wire)
		c := open(t, &driver.MCPStdio{Note: 3, Wire: wire, Asker: lines(func(line string) (string, error) { return x.answer(parse(line)) })})
		if err := call(t, c); kind(err) != x.want {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
		if x.want == "" && (wire.Out.Load() < 200 || wire.In.Load() < 100) {
			t.Errorf("%d bytes out, %d in", wire.Out.Load(), wire.In.Load())
		}
		if err := call(t, c); (x.want == record.Crashed || x.want == record.Timeout) && err == nil {
			t.Errorf("%s: a line that may be late was asked again", name)
		}
	}
}

func TestMCPEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, client := range clients {
		ctx, cancel := context.WithCancel(t.Context())
		_, addr := serveMCP(t, func(w http.ResponseWriter, _ message) {
			cancel()
			w.(http.Flusher).Flush()
			<-t.Context().Done()
		})
		c, err := (&driver.MCP{Addr: addr, Client: client, Timeout: time.Minute}).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Call(ctx, record.Mark{}); kind(err) != record.Other || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", client, err)
		}
		load.Close(c)
	}
}
