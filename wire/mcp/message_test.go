package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"toll/wire/plain"
)

func TestWhatIsNoMessageIsRefusedWithItsReason(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for in, want := range map[string]string{
		"":                                   "-32700 Parse error: not JSON",
		" ":                                  "-32700 Parse error: not JSON",
		"x":                                  "-32700 Parse error: not JSON",
		"{":                                  "-32700 Parse error: not JSON",
		`{"jsonrpc":"2.0"`:                   "-32700 Parse error: not JSON",
		`{"jsonrpc":"2.0",}`:                 "-32700 Parse error: not JSON",
		`{"jsonrpc" "2.0"}`:                  "-32700 Parse error: not JSON",
		`{jsonrpc:"2.0"}`:                    "-32700 Parse error: not JSON",
		"{\"jsonrpc\":\"2.0\",\"m\":\"\n\"}": "-32700 Parse error: not JSON",
		`{"a":"\x"}`:                         "-32700 Parse error: not JSON",
		`{"a":"\u12g4"}`:                     "-32700 Parse error: not JSON",
		`{"a":01}`:                           "-32700 Parse error: not JSON",
		`{"a":1.}`:                           "-32700 Parse error: not JSON",
		`{"a":1e}`:                           "-32700 Parse error: not JSON",
		`{"a":-}`:                            "-32700 Parse error: not JSON",
		`{"a":nul}`:                          "-32700 Parse error: not JSON",
		"{\"a\":\"\xff\"}":                   "-32700 Parse error: not UTF-8",
		"\ufeff{}":                           "-32700 Parse error: not JSON",
		`{"a":` + deep + `}`:                 "-32700 Parse error: nested more than 128 deep",
		deep:                                 "-32700 Parse error: nested more than 128 deep",
		`{} {}`:                              "-32700 Parse error: more than one JSON value",
		`{"jsonrpc":"1.0","id":1} x`:         "-32700 Parse error: more than one JSON value",
		`null`:                               "-32600 Invalid request: a message is an object",
		`"a"`:                                "-32600 Invalid request: a message is an object",
		`[]`:                                 "-32600 Invalid request: a batch, which this revision does not have",
		`{}`:                                 `-32600 Invalid request: jsonrpc is "2.0"`,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                                                       `-32600 Invalid request: jsonrpc is "2.0"`,
		`{"jsonrpc":2.0,"id":1,"method":"ping"}`:                                                         `-32600 Invalid request: jsonrpc is "2.0"`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`:                                                    "-32600 Invalid request: id is a string or an integer",
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`:                                                     "-32600 Invalid request: id is a string or an integer",
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                                      "-32600 Invalid request: id is a string or an integer",
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`:                                                "-32600 Invalid request: member id twice",
		`{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`:                                             "-32600 Invalid request: member method twice",
		`{"jsonrpc":"2.0","id":1,"method":7}`:                                                            "-32600 Invalid request: method is a string",
		`{"jsonrpc":"2.0","id":1}`:                                                                       "-32600 Invalid request: neither a request nor a response",
		`{"jsonrpc":"2.0","result":{}}`:                                                                  "-32600 Invalid request: neither a request nor a response",
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`:                                                "-32600 Invalid request: neither a request nor a response",
		`{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}`:                                             "-32602 Invalid params: params is an object",
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":7}}`:                                      "-32602 Invalid params: name is a string",
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":"x"}}`:                               "-32602 Invalid params: arguments is an object",
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"a","name":"b"}}`:                         "-32602 Invalid params: member name twice",
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"a","na\u006de":"b"}}`:                    "-32602 Invalid params: member name twice",
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":7}}`:                                     "-32602 Invalid params: _meta is an object",
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"progressToken":{}}}}`:                  "-32602 Invalid params: progressToken is a string or an integer",
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"` + metaVersion + `":1}}}`:             "-32602 Invalid params: " + metaVersion + " is a string",
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"` + metaCapabilities + `":1}}}`:        "-32602 Invalid params: " + metaCapabilities + " is an object",
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"progressToken":1,"progressToken":2}}}`: "-32602 Invalid params: member progressToken twice",
	} {
		var m message
		e := m.decode([]byte(in))
		if e == nil {
			t.Errorf("%s: no error, want %s", in, want)
			continue
		}
		if got := strconv.Itoa(e.Code) + " " + e.Message; got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// An error that can name its request does, even when what is wrong stands before the id.
func TestARefusalKeepsTheID(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`{"jsonrpc":"2.0","method":7,"id":"x"}`, `{"method":"a","id":"x"}`, `{"jsonrpc":"2.0","params":[],"method":"a","id":"x"}`,
	} {
		var m message
		if e := m.decode([]byte(in)); e == nil || string(m.id) != `"x"` {
			t.Errorf("%s: error %v, id %q", in, e, m.id)
		}
	}
}

func TestEveryMemberIsDecoded(t *testing.T) {
	t.Parallel()
	var m message
	e := m.decode([]byte(` { "params" : { "_meta" : {"progressToken":"t", "` + metaVersion + `":"2026-07-28", "` + metaCapabilities +
		`":{"sampling":{}}, "` + metaLevel + `":"info"}, "name":"caf\u00e9", "arguments":{"a":[1,{}]}, "uri":"u", "cursor":"", "level":"l",
		"requestState":"s", "inputResponses":{"k":{}}, "ref":{}, "argument":{"x":1}, "context":{}, "notifications":{}, "requestId":7,
		"protocolVersion":"v", "capabilities":{}, "unknown":null }, "method":"tools/call", "id":12, "jsonrpc":"2.0", "more":[] } `))
	if e != nil {
		t.Fatal(e)
	}
	got := []string{
		string(m.id), string(m.method), string(m.params.name), string(m.params.arguments), string(m.params.uri), string(m.params.level),
		string(m.params.state), string(m.params.inputs), string(m.params.argument), string(m.params.requestID), string(m.params.version),
		string(m.params.meta.progress), string(m.params.meta.version), string(m.params.meta.capabilities), string(m.params.meta.level),
	}
	want := []string{
		"12", "tools/call", "café", `{"a":[1,{}]}`, "u", "l", "s", `{"k":{}}`, `{"x":1}`, "7", "v", `"t"`, "2026-07-28", `{"sampling":{}}`, "info",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if m.params.cursor == nil || !m.request() || m.notification() {
		t.Error("an empty cursor is a cursor, and this is a request")
	}
}

// deep returns the deepest nesting that b could have.
func deep(b []byte) int { return bytes.Count(b, []byte("[")) + bytes.Count(b, []byte("{")) }

// FuzzMessage holds the decoder to encoding/json: what it takes for a message is one there too, with the same members.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"note","arguments":{"id":7,"note":"\u0041"},"_meta":{"progressToken":1,"` + metaVersion + `":"2026-07-28"}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","result":{"x":1}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"7"}}`))
	f.Add([]byte(`{"id":1,"params":{"name":"a","na\u006de":"b"},"method":"m","jsonrpc":"2.0"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m message
		e := m.decode(b)
		if e != nil {
			if e.Code == CodeParseError && json.Valid(b) && utf8.Valid(b) && deep(b) <= plain.MaxDepth {
				t.Fatalf("%q: %v, and encoding/json takes it", b, e)
			}
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatalf("%q: taken, and encoding/json says %v", b, err)
		}
		same(t, b, "id", m.id, want["id"], false)
		same(t, b, "method", m.method, want["method"], true)
		params := map[string]json.RawMessage{}
		if raw := want["params"]; raw != nil {
			if err := json.Unmarshal(raw, &params); err != nil {
				t.Fatalf("%q: params: %v", b, err)
			}
		}
		same(t, b, "name", m.params.name, params["name"], true)
		same(t, b, "uri", m.params.uri, params["uri"], true)
		same(t, b, "cursor", m.params.cursor, params["cursor"], true)
		same(t, b, "arguments", m.params.arguments, params["arguments"], false)
		same(t, b, "inputResponses", m.params.inputs, params["inputResponses"], false)
		same(t, b, "requestId", m.params.requestID, params["requestId"], false)
		meta := map[string]json.RawMessage{}
		if raw := params["_meta"]; raw != nil {
			if err := json.Unmarshal(raw, &meta); err != nil {
				t.Fatalf("%q: _meta: %v", b, err)
			}
		}
		same(t, b, metaVersion, m.params.meta.version, meta[metaVersion], true)
		same(t, b, metaCapabilities, m.params.meta.capabilities, meta[metaCapabilities], false)
		same(t, b, "progressToken", m.params.meta.progress, meta["progressToken"], false)
	})
}

func same(t *testing.T, in []byte, name string, got []byte, want json.RawMessage, text bool) {
	t.Helper()
	if (got == nil) != (want == nil) {
		t.Fatalf("%q: %s is %q, encoding/json has %q", in, name, got, want)
	}
	if text && want != nil {
		var s string
		if err := json.Unmarshal(want, &s); err != nil {
			t.Fatalf("%q: %s: %v", in, name, err)
		}
		want = json.RawMessage(s)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%q: %s is %q, encoding/json has %q", in, name, got, want)
	}
}
