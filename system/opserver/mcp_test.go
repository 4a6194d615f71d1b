package opserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"toll/system/opserver"
)

// mcpMakers are the two HTTP servers that MCP is served on.
var mcpMakers = map[string]func(opserver.Config, opserver.Registry, opserver.MCPConfig) (*opserver.MCP, error){
	"our loop": opserver.NewMCP, "net/http": opserver.NewMCPHTTP,
}

// eachMCP runs f against each of them; post sends a body with headers "Name: value".
func eachMCP(t *testing.T, m opserver.MCPConfig, f func(t *testing.T, l net.Listener, c *http.Client)) {
	for name, make := range mcpMakers {
		t.Run(name, func(t *testing.T) {
			l := listen(t, opserver.Config{})
			s, err := make(opserver.Config{MaxBody: 4000}, registry(t, opserver.Tasks(), opserver.Blob()), m)
			if err != nil {
				t.Fatal(err)
			}
			start(t, s, l)
			f(t, l, client(t, l))
		})
	}
}

// say sends a message and returns the reply, its body read.
func say(t *testing.T, c *http.Client, l net.Listener, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+l.Addr().String()+opserver.MCPPath, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(got)
}

func callTool(name, arguments, meta string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":` + arguments + meta + `}}`
}

const newest = "MCP-Protocol-Version: 2025-11-25"

// Both servers answer alike, and an operation gives over MCP what it gives over REST.
func TestOperationsAreTools(t *testing.T) {
	t.Parallel()
	result := func(structured string) string {
		text, err := json.Marshal(structured)
		if err != nil {
			t.Fatal(err)
		}
		return `{"jsonrpc":"2.0","id":1,"result":{"structuredContent":` + structured + `,"content":[{"type":"text","text":` + string(text) + `}]}}`
	}
	failed := func(text string) string {
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":` + string(raw) + `}],"isError":true}}`
	}
	eachMCP(t, opserver.MCPConfig{}, func(t *testing.T, l net.Listener, c *http.Client) {
		for _, tt := range []struct {
			body   string
			status int
			want   string
		}{
			{callTool("note", `{"id":7,"note":"a"}`, ""), 200, result(`{"id":7,"note":"a","status":"done","owner":"toll"}`)},
			{callTool("note", ` { "note" : "\u00e9 \"b\"", "id" : -7 } `, ""), 200, result(`{"id":-7,"note":"é \"b\"","status":"done","owner":"toll"}`)},
			{callTool("note", `{"id":9223372036854775807}`, ""), 200, result(`{"id":9223372036854775807,"note":"","status":"done","owner":"toll"}`)},
			{callTool("note", `{"id":"7"}`, ""), 200, failed(`malformed: member "id": string where int64 is wanted`)},
			{callTool("note", `{"idd":7}`, ""), 200, failed(`malformed: json: unknown field "idd"`)},
			{callTool("tasks_list", `{}`, ""), 200, result(`{"tasks":[]}`)},
			{callTool("blob", `{"bytes":3}`, ""), 200, result(`{"text":"xxx"}`)},
			{callTool("blob", `{"bytes":0}`, ""), 200, failed("invalid: bytes is 0; want 1 to 1048576")},
			{callTool("blob", `{"bytes":1048577}`, ""), 200, failed("invalid: bytes is 1048577; want 1 to 1048576")},
			{callTool("none", `{}`, ""), 200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: none"}}`},
			{"{", 400, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: not JSON"}}`},
			{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202, ""},
			{strings.Repeat(" ", 5000), 413, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: body of more than 4000 bytes"}}`},
		} {
			resp, got := say(t, c, l, tt.body, newest)
			got = strings.Replace(got, "a body of", "body of", 1)
			if resp.StatusCode != tt.status || got != tt.want || tt.want != "" && resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%.100s\ngot  %d %s %s\nwant %d %s", tt.body, resp.StatusCode, resp.Header.Get("Content-Type"), got, tt.status, tt.want)
			}
		}
		if resp, err := c.Get("http://" + l.Addr().String() + "/elsewhere"); err != nil || resp.StatusCode != 404 {
			t.Errorf("elsewhere: %v, %v", resp, err)
		} else {
			resp.Body.Close()
		}
		if resp, _ := say(t, c, l, "{}", "Origin: http://evil.example"); resp.StatusCode != 403 {
			t.Errorf("a foreign page: %d", resp.StatusCode)
		}
	})
}

func TestTheListIsPadded(t *testing.T) {
	t.Parallel()
	for want, m := range map[int]opserver.MCPConfig{4: {}, 50: {Tools: 50}, 1000: {Tools: 1000}} {
		eachMCP(t, m, func(t *testing.T, l net.Listener, c *http.Client) {
			_, got := say(t, c, l, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, newest)
			var r struct {
				Result struct{ Tools []struct{ Name string } }
			}
			if err := json.Unmarshal([]byte(got), &r); err != nil || len(r.Result.Tools) != min(max(want, 3), 1000) && want != 4 {
				t.Errorf("%d tools, %v, want %d", len(r.Result.Tools), err, want)
			}
		})
	}
}

func TestSessionsOverHTTP(t *testing.T) {
	t.Parallel()
	eachMCP(t, opserver.MCPConfig{Sessions: true, MaxSessions: 1}, func(t *testing.T, l net.Listener, c *http.Client) {
		hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`
		resp, got := say(t, c, l, hello)
		session := "Mcp-Session-Id: " + resp.Header.Get("Mcp-Session-Id")
		if resp.StatusCode != 200 || len(session) < 30 {
			t.Fatalf("%d %s", resp.StatusCode, got)
		}
		if resp, got := say(t, c, l, hello); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "5" {
			t.Errorf("one too many: %d %s", resp.StatusCode, got)
		}
		if resp, got := say(t, c, l, callTool("note", `{"id":1}`, ""), session); resp.StatusCode != 200 {
			t.Errorf("a call: %d %s", resp.StatusCode, got)
		}
		req, err := http.NewRequestWithContext(t.Context(), "DELETE", "http://"+l.Addr().String()+opserver.MCPPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id"))
		if resp, err := c.Do(req); err != nil || resp.StatusCode != 204 {
			t.Errorf("DELETE: %v, %v", resp, err)
		}
		if resp, _ := say(t, c, l, callTool("note", `{"id":1}`, ""), session); resp.StatusCode != 404 {
			t.Errorf("after DELETE: %d", resp.StatusCode)
		}
	})
}

func TestAToolTellsOfItsProgressOverHTTP(t *testing.T) {
	t.Parallel()
	eachMCP(t, opserver.MCPConfig{Conformance: true}, func(t *testing.T, l net.Listener, c *http.Client) {
		resp, got := say(t, c, l, callTool("test_tool_with_progress", `{}`, `,"_meta":{"progressToken":"p"}`), newest)
		want := ""
		for _, done := range []int{0, 50, 100} {
			want += fmt.Sprintf("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"p\","+
				"\"progress\":%d,\"total\":100,\"message\":\"Completed step %d of 100\"}}\n\n", done, done)
		}
		want += "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\\\"p\\\"\"}]}}\n\n"
		if got != want || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%v\n%s", resp.Header, got)
		}
	})
}

// Shutdown ends a stream that would go on for ever, and says so to its client.
func TestShutdownEndsStreams(t *testing.T) {
	t.Parallel()
	for name, make := range mcpMakers {
		l := listen(t, opserver.Config{})
		s, err := make(opserver.Config{}, registry(t), opserver.MCPConfig{})
		if err != nil {
			t.Fatal(err)
		}
		start(t, s, l)
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+l.Addr().String()+opserver.MCPPath,
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{
			"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen",
		} {
			req.Header.Set(k, v)
		}
		resp, err := client(t, l).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(resp.Body)
		for range 3 { // the acknowledgement's event
			if _, err := in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("%s: shutdown: %v", name, err)
		}
		rest, err := io.ReadAll(in)
		if err != nil || !strings.Contains(string(rest), `"result":{"resultType":"complete"`) {
			t.Errorf("%s: %q, %v", name, rest, err)
		}
		resp.Body.Close()
	}
}

// A call of an operation allocates nothing on the server.
func TestACallOfAnOperationAllocatesNothing(t *testing.T) {
	l := listen(t, opserver.Config{})
	s, err := opserver.NewMCP(opserver.Config{}, registry(t), opserver.MCPConfig{})
	if err != nil {
		t.Fatal(err)
	}
	start(t, s, l)
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	body := callTool("note", `{"id":7,"note":"0123456789abcdef0123456789abcdef"}`, "")
	raw := fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2025-11-25\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	buf := make([]byte, 4096)
	call := func() {
		if _, err := nc.Write(raw); err != nil {
			t.Fatal(err)
		}
		if n, err := nc.Read(buf); err != nil || !bytes.Contains(buf[:n], []byte(`"id":7`)) {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	call()
	if n := testing.AllocsPerRun(500, call); n > 0 {
		t.Errorf("%v allocations a call", n)
	}
}

// Every fixture that does not wait for the client answers over a byte stream, and the list names it.
func TestFixturesAnswerOnAByteStream(t *testing.T) {
	t.Parallel()
	in, feed := io.Pipe()
	out, answers := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- opserver.ServeMCPStream(t.Context(), opserver.Config{}, registry(t), opserver.MCPConfig{Conformance: true}, in, answers)
		answers.Close()
	}()
	lines := bufio.NewReader(out)
	ask := func(body string) string {
		if _, err := io.WriteString(feed, body+"\n"); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(line, `"method":`) {
				return line
			}
		}
	}
	ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	list := ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	for tool, want := range map[string]string{
		"test_simple_text": "for testing", "test_image_content": `"mimeType":"image/png"`, "test_audio_content": `"mimeType":"audio/wav"`,
		"test_embedded_resource": `"type":"resource"`, "test_error_handling": `"isError":true`, "json_schema_2020_12_tool": "called with",
		"test_tool_with_logging": "done", "test_trigger_tool_change": "changed", "test_trigger_prompt_change": "changed",
		"test_missing_capability": "-32021", "test_input_required_result_capabilities": "0 of 0 answered",
	} {
		if got := ask(callTool(tool, `{}`, "")); !strings.Contains(got, want) || !strings.Contains(list, `"name":"`+tool+`"`) {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
	}
	feed.Close()
	go io.Copy(io.Discard, lines) // the fixtures that change lists have it told
	if err := <-done; err != nil {
		t.Error(err)
	}
}
