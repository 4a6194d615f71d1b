package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"toll/wire/mcp"
)

// A child is a server at the other end of two pipes.
type child struct {
	t   *testing.T
	in  *io.PipeWriter
	out *bufio.Reader
	end chan error
}

func startChild(t *testing.T, s *mcp.Server) *child {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &child{t: t, in: inW, out: bufio.NewReader(outR), end: make(chan error, 1)}
	go func() {
		err := s.ServeStream(context.Background(), inR, outW)
		outW.Close()
		c.end <- err
	}()
	t.Cleanup(func() { inW.Close(); outR.Close() })
	return c
}

func (c *child) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) hear() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

func TestAByteStreamAnswersEachLine(t *testing.T) {
	t.Parallel()
	s := withResources(t, mcp.Config{Name: "it", Version: "1", MaxBody: 2000})
	c := startChild(t, s)
	for _, tt := range []struct{ say, want string }{
		{ping, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{`nonsense`, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: not JSON"}}`},
		{`[` + ping + `]`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: a batch, which this revision does not have"}}`},
		{`{"a":"` + strings.Repeat("x", 5000) + `"}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: a message of more than 2000 bytes"}}`},
		{
			`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: _meta has no io.modelcontextprotocol/protocolVersion"}}`,
		},
		{
			`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1999-01-01"}}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"requested":"1999-01-01","supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]}}}`,
		},
		{
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo",` + modern + `}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{},"content":[{"type":"text","text":"{}"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"it","version":"1"}}}}`,
		},
		{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"sampling":{}}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}},"serverInfo":{"name":"it","version":"1"}}}`,
		},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\r\n" + ping + "\r", `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{`[` + ping + `,{"jsonrpc":"2.0","id":2,"method":"no"}]`, `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found: no"}}]`},
		{`7`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}}`},
		{`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"test://a"}}`, `{"jsonrpc":"2.0","id":3,"result":{}}`},
		{`{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"test://a"}}`, `{"jsonrpc":"2.0","id":4,"result":{"contents":[{"uri":"test://a","text":"it"}]}}`},
	} {
		c.say(tt.say)
		if got := c.hear(); got != tt.want {
			t.Fatalf("%.100s:\ngot  %s\nwant %s", tt.say, got, tt.want)
		}
	}
	s.ResourceUpdated("test://a")
	if got := c.hear(); got != `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a"}}` {
		t.Error(got)
	}
	c.in.Close()
	if err := <-c.end; err != nil {
		t.Error(err)
	}
}

func TestAByteStreamAsksAndCancels(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{MaxCalls: 2})
	if err := asks(s); err != nil {
		t.Fatal(err)
	}
	if err := s.AddTools(mcp.Tool{Name: "hangs", Call: func(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}); err != nil {
		t.Fatal(err)
	}
	c := startChild(t, s)
	c.say(initialize)
	c.hear()
	c.say(`{"jsonrpc":"2.0","id":"h","method":"tools/call","params":{"name":"hangs"}}`)
	c.say(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"asks"}}`)
	if got := c.hear(); got != `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}` {
		t.Fatal(got)
	}
	c.say(`{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"hangs"}}`)
	if got := c.hear(); got != `{"jsonrpc":"2.0","id":10,"error":{"code":-32603,"message":"2 calls are in progress; try again when one has ended"}}` {
		t.Fatal(got)
	}
	c.say(ping) // and it still answers
	c.hear()
	c.say(`{"jsonrpc":"2.0","id":1,"result":{"z":1}}`)
	if got := c.hear(); got != `{"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"{\"z\":1}"}]}}` {
		t.Fatal(got)
	}
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"h"}}`)
	c.in.Close()
	if rest, err := io.ReadAll(c.out); err != nil || len(rest) > 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
	if err := <-c.end; err != nil {
		t.Error(err)
	}
}

func TestAByteStreamListens(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{})
	c := startChild(t, s)
	c.say(`{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modern + `}}`)
	const tag = `"_meta":{"io.modelcontextprotocol/subscriptionId":5}`
	if got := c.hear(); got != `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+tag+`,"notifications":{"toolsListChanged":true}}}` {
		t.Fatal(got)
	}
	if err := s.RemoveTools("echo"); err != nil {
		t.Fatal(err)
	}
	if got := c.hear(); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{`+tag+`}}` {
		t.Fatal(got)
	}
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	c.say(`{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{` + modern + `}}`)
	if got := c.hear(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":6,`) {
		t.Fatal(got)
	}
}

// A failing is a client that does not read.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestAByteStreamEndsWhenItsClientDoesNotRead(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{})
	err := s.ServeStream(t.Context(), strings.NewReader(ping+"\n"+ping), failing{})
	if err == nil || err.Error() != "write to the client: gone" {
		t.Error(err)
	}
}

// A client that ends without reading what it is told does not keep the server.
func TestAByteStreamDoesNotWaitForAReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, mcp.Config{})
		in, feed := io.Pipe()
		out, answers := io.Pipe()
		end := make(chan error, 1)
		go func() { end <- s.ServeStream(context.Background(), in, answers) }()
		io.WriteString(feed, initialize+"\n")
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		if err := s.RemoveTools("echo"); err != nil { // which it is told, and does not read
			t.Fatal(err)
		}
		synctest.Wait()
		feed.Close()
		if err := <-end; err == nil || !strings.Contains(err.Error(), "the client does not read") {
			t.Error(err)
		}
		out.Close()
	})
}

// FuzzStream: each line that comes out is a message, whatever goes in.
func FuzzStream(f *testing.F) {
	f.Add([]byte(initialize + "\n" + ping + "\n" + `[` + ping + `]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1},` + modern + `}}`))
	f.Add([]byte("\r\n\n[\n"))
	s := newServer(f, mcp.Config{MaxBody: 300})
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		if err := s.ServeStream(context.Background(), bytes.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			var m struct{ JSONRPC string }
			if bytes.HasPrefix(line, []byte("[")) && json.Valid(line) {
				continue
			}
			if err := json.Unmarshal(line, &m); err != nil || m.JSONRPC != "2.0" {
				t.Fatalf("%q gave %q: %v", in, line, err)
			}
		}
	})
}
