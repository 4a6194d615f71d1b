package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"toll/wire/mcp"
)

// echo is a tool that answers with its arguments; wrong fails, hidden panics.
func tools(t testing.TB) []mcp.Tool {
	t.Helper()
	quick := func(f func(arguments, dst []byte) ([]byte, error)) func(context.Context, []byte, []byte) ([]byte, error) {
		return func(_ context.Context, arguments, dst []byte) ([]byte, error) { return f(arguments, dst) }
	}
	return []mcp.Tool{
		{Name: "echo", Description: "Gives back <its> arguments.", Quick: quick(func(a, dst []byte) ([]byte, error) { return append(dst, a...), nil })},
		{Name: "wrong", Quick: quick(func(_, dst []byte) ([]byte, error) { return append(dst, "half"...), errors.New(`no "good"`) })},
		{Name: "refuses", Quick: quick(func(_, dst []byte) ([]byte, error) {
			return dst, &mcp.Error{Code: 7, Message: "no", Data: json.RawMessage(`{"why":1}`)}
		})},
		{Name: "breaks", Quick: quick(func(_, dst []byte) ([]byte, error) { panic("oh") })},
		{
			Name: "waits", Call: func(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
				return &mcp.Result{Content: []mcp.Content{mcp.Text(c.Version())}, Structured: c.Arguments}, nil
			},
		},
		{
			Name: "mirrors", Quick: quick(func(a, dst []byte) ([]byte, error) { return append(dst, a...), nil }),
			Input: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
				"in":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"on":{"type":"boolean","x-mcp-header":"On"}}}`),
		},
	}
}

func newServer(t testing.TB, cfg mcp.Config) *mcp.Server {
	t.Helper()
	s := mcp.New(cfg)
	t.Cleanup(s.Close)
	if err := s.AddTools(tools(t)...); err != nil {
		t.Fatal(err)
	}
	return s
}

// post sends a body with header lines "Name: value" and returns the status and the reply.
func post(t testing.TB, s *mcp.Server, body string, header ...string) (int, string, *mcp.Reply) {
	t.Helper()
	return request(t, s, "POST", body, append([]string{"Content-Type: application/json", "Host: localhost:1"}, header...)...)
}

func request(t testing.TB, s *mcp.Server, method, body string, header ...string) (int, string, *mcp.Reply) {
	t.Helper()
	var h mcp.Head
	h.Reset(method)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ":")
		h.Add([]byte(name), []byte(value))
	}
	var r mcp.Reply
	s.Answer(t.Context(), &h, []byte(body), &r)
	if r.Status == 0 {
		r.Status = 200
	}
	return r.Status, string(r.Body), &r
}

// modern is what a request of 2026-07-28 carries.
const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// modernHeader are the headers of one.
func modernHeader(method, name string) []string {
	h := []string{"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: " + method}
	if name != "" {
		h = append(h, "Mcp-Name: "+name)
	}
	return h
}

func TestACallIsAnsweredInTheFormOfItsRevision(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{Name: "it", Version: "1"})
	call := func(name, arguments, meta string) string {
		return `{"jsonrpc":"2.0","id":"a\u00e9","method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + meta + `}}`
	}
	for _, tt := range []struct {
		body   string
		header []string
		status int
		want   string
	}{
		{
			call("echo", `{"x":"a\"b"}`, ","+modern), modernHeader("tools/call", "echo"), 200,
			`{"jsonrpc":"2.0","id":"a\u00e9","result":{"structuredContent":{"x":"a\"b"},"content":[{"type":"text","text":"{\"x\":\"a\\\"b\"}"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"it","version":"1"}}}}`,
		},
		{
			call("echo", `{}`, ""), []string{"MCP-Protocol-Version: 2025-11-25"}, 200,
			`{"jsonrpc":"2.0","id":"a\u00e9","result":{"structuredContent":{},"content":[{"type":"text","text":"{}"}]}}`,
		},
		{
			call("echo", `{"x":1}`, ""), nil, 200,
			`{"jsonrpc":"2.0","id":"a\u00e9","result":{"content":[{"type":"text","text":"{\"x\":1}"}]}}`,
		},
		{
			call("wrong", `{}`, ""), []string{"MCP-Protocol-Version: 2025-06-18"}, 200,
			`{"jsonrpc":"2.0","id":"a\u00e9","result":{"content":[{"type":"text","text":"no \"good\""}],"isError":true}}`,
		},
		{call("refuses", `{}`, ""), nil, 200, `{"jsonrpc":"2.0","id":"a\u00e9","error":{"code":7,"message":"no","data":{"why":1}}}`},
		{call("breaks", `{}`, ""), nil, 200, `{"jsonrpc":"2.0","id":"a\u00e9","error":{"code":-32603,"message":"Internal error"}}`},
		{call("none", `{}`, ""), nil, 200, `{"jsonrpc":"2.0","id":"a\u00e9","error":{"code":-32602,"message":"Unknown tool: none"}}`},
		{
			call("waits", `{}`, ""), []string{"MCP-Protocol-Version: 2025-06-18"}, 200,
			`{"jsonrpc":"2.0","id":"a\u00e9","result":{"content":[{"type":"text","text":"2025-06-18"}],"structuredContent":{}}}`,
		},
		{
			call("waits", `{}`, ""), []string{"MCP-Protocol-Version: 2024-11-05"}, 200,
			`{"jsonrpc":"2.0","id":"a\u00e9","result":{"content":[{"type":"text","text":"2024-11-05"}]}}`,
		},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, nil, 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: no name"}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, nil, 200, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{}}}`, nil, 200,
			`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":false}},"serverInfo":{"name":"it","version":"1"}}}`,
		},
		{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}`, nil, 200,
			`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":false}},"serverInfo":{"name":"it","version":"1"}}}`,
		},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, nil, 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: initialize wants a protocolVersion"}}`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, 202, ""},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, nil, 202, ""},
	} {
		status, got, _ := post(t, s, tt.body, tt.header...)
		if status != tt.status || got != tt.want {
			t.Errorf("%s\n%v\ngot  %d %s\nwant %d %s", tt.body, tt.header, status, got, tt.status, tt.want)
		}
	}
}

func TestWhatARevisionDoesNotTakeIsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{})
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modern + `}}`
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",` + modern + `}}`
	for _, tt := range []struct {
		body   string
		header []string
		status int
		want   string // code and message
	}{
		{"{", nil, 400, "-32700 Parse error: not JSON"},
		{"[]", nil, 400, "-32600 Invalid request: an empty batch"},
		{"[" + ping, nil, 400, "-32700 Parse error: not JSON"},
		{"[" + ping + "]", []string{"MCP-Protocol-Version: 2025-06-18"}, 400, "-32600 Invalid request: a batch, which revision 2025-06-18 does not have"},
		{"[" + list + "]", modernHeader("tools/list", ""), 400, "-32600 Invalid request: a batch, which revision 2026-07-28 does not have"},
		{"[" + strings.Repeat(ping+",", 64) + ping + "]", nil, 400, "-32600 Invalid request: a batch of more than 64 messages"},
		{ping, []string{"MCP-Protocol-Version: 1999-01-01"}, 400, "-32022 Unsupported protocol version"},
		{ping, []string{"MCP-Protocol-Version: 2025-11-25", "MCP-Protocol-Version: 2025-11-25"}, 200, ""},
		{list, []string{"MCP-Protocol-Version: 1999-01-01"}, 400, `-32020 Header mismatch: MCP-Protocol-Version is "1999-01-01" and _meta says "2026-07-28"`},
		{list, []string{"MCP-Protocol-Version: 2025-11-25"}, 400, `-32020 Header mismatch: MCP-Protocol-Version is "2025-11-25" and _meta says "2026-07-28"`},
		{list, []string{"Mcp-Method: tools/list"}, 400, "-32020 Header mismatch: no MCP-Protocol-Version"},
		{list, []string{"MCP-Protocol-Version: 2026-07-28"}, 400, "-32020 Header mismatch: no Mcp-Method"},
		{list, modernHeader("tools/call", ""), 400, `-32020 Header mismatch: Mcp-Method is "tools/call" and the body's method "tools/list"`},
		{list, modernHeader("Tools/List", ""), 400, `-32020 Header mismatch: Mcp-Method is "Tools/List" and the body's method "tools/list"`},
		{list, append(modernHeader("tools/list", ""), "mcp-method: tools/call"), 400, "-32020 Header mismatch: mcp-method came twice with different values"},
		{call, modernHeader("tools/call", ""), 400, "-32020 Header mismatch: no Mcp-Name"},
		{call, modernHeader("tools/call", "Echo"), 400, `-32020 Header mismatch: Mcp-Name is "Echo" and the body says "echo"`},
		{call, modernHeader("tools/call", "=?base64?ZWNobw?="), 400, "-32020 Header mismatch: Mcp-Name is no valid header value"},
		{call, modernHeader("tools/call", "=?base64?ZWNobw==?="), 200, ""},
		{call, modernHeader("tools/call", "  echo\t"), 200, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, modernHeader("tools/list", ""), 400, "-32602 Invalid params: _meta has no io.modelcontextprotocol/protocolVersion"},
		{
			`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
			modernHeader("tools/list", ""), 400, "-32602 Invalid params: _meta has no io.modelcontextprotocol/clientCapabilities",
		},
		{strings.Replace(list, "tools/list", "ping", 1), modernHeader("ping", ""), 404, "-32601 Method not found: ping"},
		{strings.Replace(list, "tools/list", "initialize", 1), modernHeader("initialize", ""), 404, "-32601 Method not found: initialize"},
		{strings.Replace(list, "tools/list", "prompts/list", 1), modernHeader("prompts/list", ""), 404, "-32601 Method not found: prompts/list"},
		{`{"jsonrpc":"2.0","id":1,"method":"no/such"}`, nil, 200, "-32601 Method not found: no/such"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`, nil, 200, "-32602 Invalid params: no such cursor; begin the list again"},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, []string{"MCP-Protocol-Version: 2026-07-28"}, 400, "-32600 Invalid request: this revision has no requests of the server that could be answered"},
		{ping, []string{"Content-Type: text/plain"}, 415, "-32600 Invalid request: want Content-Type application/json"},
		{ping, []string{"Accept: text/html"}, 406, "-32600 Invalid request: Accept takes neither application/json nor text/event-stream"},
		{ping, []string{"Accept: application/json;q=0"}, 406, "-32600 Invalid request: Accept takes neither application/json nor text/event-stream"},
		{ping, []string{"Accept: text/html, application/*;q=0.5"}, 200, ""},
		{ping, []string{"Origin: http://evil.example"}, 403, "-32600 Host or Origin is not allowed here"},
		{ping, []string{"Origin: null"}, 403, "-32600 Host or Origin is not allowed here"},
		{ping, []string{"Origin: http://127.0.0.1:9"}, 200, ""},
		{ping, []string{"Origin: http://localhost:1"}, 200, ""},
		{ping, []string{"Host: evil.example"}, 403, "-32600 Host or Origin is not allowed here"},
		{ping, []string{"Host: evil.example:80"}, 403, "-32600 Host or Origin is not allowed here"},
		{ping, []string{"Host: [::1]:80"}, 200, ""},
		{ping, []string{"Host: 192.0.2.1:80", "Origin: http://192.0.2.2:80"}, 403, "-32600 Host or Origin is not allowed here"},
	} {
		header := append([]string{"Content-Type: application/json"}, tt.header...)
		for _, own := range []string{"Content-Type:", "Host:"} { // a case's own header stands instead of the usual one
			if strings.Contains(strings.Join(tt.header, "\n"), own) && own == "Content-Type:" {
				header = tt.header
			}
		}
		status, body, _ := request(t, s, "POST", tt.body, header...)
		if got := failure(t, body); status != tt.status || got != tt.want {
			t.Errorf("%.200s\n%v\ngot  %d %s\nwant %d %s", tt.body, tt.header, status, got, tt.status, tt.want)
		}
	}
}

// failure returns the code and the message of an error response, "" of another reply.
func failure(t testing.TB, body string) string {
	t.Helper()
	var r struct {
		Error *struct {
			Code    int
			Message string
		}
	}
	if body == "" {
		return ""
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if r.Error == nil {
		return ""
	}
	return strconv.Itoa(r.Error.Code) + " " + r.Error.Message
}

func TestOtherMethodsOfHTTP(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		sessions bool
		method   string
		status   int
		allow    string
	}{
		{false, "GET", 405, "POST"}, {false, "DELETE", 405, "POST"}, {false, "PUT", 405, "POST"},
		{true, "PUT", 405, "POST, GET, DELETE"}, {true, "GET", 400, ""}, {true, "DELETE", 400, ""},
	} {
		s := newServer(t, mcp.Config{Sessions: tt.sessions})
		status, body, r := request(t, s, tt.method, "", "Host: localhost")
		allow := ""
		for _, l := range r.Header {
			if l.Name == "Allow" {
				allow = l.Value
			}
		}
		if status != tt.status || allow != tt.allow || failure(t, body) == "" {
			t.Errorf("%v %s: %d, allow %q, %s", tt.sessions, tt.method, status, allow, body)
		}
	}
}

func TestMirroredParametersMustAgree(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{})
	for _, tt := range []struct{ arguments, header, want string }{
		{`{"region":"eu","in":{"n":42},"on":true}`, "Mcp-Param-Region: eu|mcp-param-n: 42.0|MCP-PARAM-ON: true", ""},
		{`{"region":"Hello, 世界"}`, "Mcp-Param-Region: =?base64?SGVsbG8sIOS4lueVjA==?=", ""},
		{`{"region":"=?base64?x"}`, "Mcp-Param-Region: =?base64?x", ""},
		{`{}`, "", ""},
		{`{"region":null}`, "", ""},
		{`{"region":"eu"}`, "", "no Mcp-Param-Region"},
		{`{}`, "Mcp-Param-Region: eu", "Mcp-Param-Region is there and its argument is not"},
		{`{"region":"eu"}`, "Mcp-Param-Region: us", "Mcp-Param-Region does not match its argument"},
		{`{"region":"eu"}`, "Mcp-Param-Region: =?base64?ZXU?=", "Mcp-Param-Region is no valid header value"},
		{`{"region":"eu"}`, "Mcp-Param-Region: eu|Mcp-Param-Region: us", "mcp-param-region came twice with different values"},
		{`{"in":{"n":42}}`, "Mcp-Param-N: 43", "Mcp-Param-N does not match its argument"},
		{`{"on":true}`, "Mcp-Param-On: True", "Mcp-Param-On does not match its argument"},
	} {
		header := append(modernHeader("tools/call", "mirrors"), strings.Split(tt.header, "|")...)
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mirrors","arguments":` + tt.arguments + `,` + modern + `}}`
		status, reply, _ := post(t, s, body, header...)
		got := strings.TrimPrefix(failure(t, reply), "-32020 Header mismatch: ")
		if !strings.EqualFold(got, tt.want) || (status == 400) != (tt.want != "") {
			t.Errorf("%s %s: %d %s, want %q", tt.arguments, tt.header, status, reply, tt.want)
		}
	}
}

func TestToolsThatCannotBeOfferedAreRefused(t *testing.T) {
	t.Parallel()
	quick := func(_ context.Context, _, dst []byte) ([]byte, error) { return append(dst, "{}"...), nil }
	for want, tool := range map[string]mcp.Tool{
		`tool "": want a name and either Quick or Call`:                                           {Quick: quick},
		`tool "x": want a name and either Quick or Call`:                                          {Name: "x"},
		`tool x: the input's schema must be of an object`:                                         {Name: "x", Quick: quick, Input: json.RawMessage(`{"type":"string"}`)},
		`tool x: x-mcp-header of n: want a header's name, on a string, an integer or a boolean`:   {Name: "x", Quick: quick, Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number","x-mcp-header":"N"}}}`)},
		`tool x: x-mcp-header of n.m: want a header's name, on a string, an integer or a boolean`: {Name: "x", Quick: quick, Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"object","properties":{"m":{"type":"string","x-mcp-header":"a b"}}}}}`)},
	} {
		s := mcp.New(mcp.Config{})
		if err := s.AddTools(tool); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		s.Close()
	}
}

func TestABatchIsAnsweredByABatch(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{})
	status, body, _ := post(t, s, ` [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},
		{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}},7,
		{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-03-26"}},{"jsonrpc":"2.0","id":4,"method":"no"}] `)
	want := `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"a\":1}"}]}},` +
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}},` +
		`{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Invalid request: initialize within a batch"}},` +
		`{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"Method not found: no"}}]`
	if status != 200 || body != want {
		t.Errorf("got  %d %s\nwant 200 %s", status, body, want)
	}
	if status, body, _ := post(t, s, `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`); status != 202 || body != "" {
		t.Errorf("notifications alone: %d %s", status, body)
	}
}

func TestAListComesInPages(t *testing.T) {
	t.Parallel()
	s := mcp.New(mcp.Config{PageSize: 2})
	defer s.Close()
	quick := func(_ context.Context, _, dst []byte) ([]byte, error) { return append(dst, "{}"...), nil }
	for i := range 5 {
		if err := s.AddTools(mcp.Tool{Name: fmt.Sprint("t", i), Quick: quick}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for cursor, pages := "", 0; pages < 9; pages++ {
		_, body, _ := post(t, s, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+cursor+`}}`)
		var r struct {
			Result struct {
				Tools      []struct{ Name string }
				NextCursor string
			}
		}
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		for _, tool := range r.Result.Tools {
			names = append(names, tool.Name)
		}
		if r.Result.NextCursor == "" {
			break
		}
		cursor = `"cursor":"` + r.Result.NextCursor + `"`
	}
	if got := strings.Join(names, " "); got != "t0 t1 t2 t3 t4" {
		t.Error(got)
	}
}

// A reply by an event stream holds the same message as one by JSON.
func TestEventsHoldTheSameMessage(t *testing.T) {
	t.Parallel()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`
	_, plain, _ := post(t, newServer(t, mcp.Config{}), body)
	for name, got := range map[string]*mcp.Reply{
		"by configuration": third(post(t, newServer(t, mcp.Config{Events: true}), body, "Accept: application/json, text/event-stream")),
		"by Accept":        third(post(t, newServer(t, mcp.Config{}), body, "Accept: text/event-stream")),
	} {
		if got.ContentType != "text/event-stream" || string(got.Body) != "event: message\ndata: "+plain+"\n\n" {
			t.Errorf("%s: %s %q", name, got.ContentType, got.Body)
		}
	}
	_, got, r := post(t, newServer(t, mcp.Config{Events: true}), body, "Accept: application/json")
	if got != plain || r.ContentType != "application/json" {
		t.Errorf("a client that takes JSON alone got %s %s", r.ContentType, got)
	}
}

func third(_ int, _ string, r *mcp.Reply) *mcp.Reply { return r }

// quickCall answers the same call again and again.
func quickCall(t testing.TB, cfg mcp.Config) (call func(), reply *mcp.Reply) {
	s := newServer(t, cfg)
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"id":7,"note":"` +
		strings.Repeat("x", 32) + `"},` + modern + `}}`)
	var names, values [][]byte
	for _, line := range append(modernHeader("tools/call", "echo"), "Host: 127.0.0.1:80", "Content-Type: application/json",
		"Accept: application/json, text/event-stream", "User-Agent: x", "Content-Length: 300") {
		name, value, _ := strings.Cut(line, ":")
		names, values = append(names, []byte(name)), append(values, []byte(value))
	}
	var h mcp.Head
	reply = new(mcp.Reply)
	return func() {
		h.Reset("POST")
		for i := range names {
			h.Add(names[i], values[i])
		}
		reply.Reset(nil)
		s.Answer(context.Background(), &h, body, reply)
	}, reply
}

func TestAQuickCallAllocatesNothing(t *testing.T) {
	call, reply := quickCall(t, mcp.Config{Sessions: true})
	if n := testing.AllocsPerRun(200, call); n != 0 || failure(t, string(reply.Body)) != "" {
		t.Errorf("%v allocations, reply %s", n, reply.Body)
	}
}

func BenchmarkCall(b *testing.B) {
	call, _ := quickCall(b, mcp.Config{})
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

// FuzzAnswer: whatever comes, the reply is one of ours.
func FuzzAnswer(f *testing.F) {
	f.Add("POST", "2026-07-28", "tools/call", "echo", "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"id":7},`+modern+`}}`)
	f.Add("POST", "", "", "", "", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`)
	f.Add("POST", "2025-11-25", "", "", "abc", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"x"}}`)
	f.Add("DELETE", "2025-11-25", "", "", "abc", "")
	f.Add("POST", "2026-07-28", "completion/complete", "", "", `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt"},`+modern+`}}`)
	servers := []*mcp.Server{newServer(f, mcp.Config{MaxSessions: 10}), newServer(f, mcp.Config{Sessions: true, Events: true, MaxSessions: 10})}
	f.Fuzz(func(t *testing.T, method, version, mcpMethod, name, session, body string) {
		for _, s := range servers {
			header := []string{"Content-Type: application/json", "Mcp-Method: " + mcpMethod, "Mcp-Name: " + name}
			if version != "" {
				header = append(header, "MCP-Protocol-Version: "+version)
			}
			if session != "" {
				header = append(header, "Mcp-Session-Id: "+session)
			}
			status, got, r := request(t, s, method, body, header...)
			got = strings.TrimSuffix(strings.TrimPrefix(got, "event: message\ndata: "), "\n\n")
			if got != "" && (!json.Valid([]byte(got)) || strings.ContainsAny(got, "\n\r") && !strings.ContainsAny(body, "\n\r")) {
				t.Fatalf("%d: no JSON on one line: %q", status, got)
			}
			if (got == "") != (r.ContentType == "") || status < 200 || status > 503 {
				t.Fatalf("%d %q: %q", status, r.ContentType, got)
			}
		}
	})
}
