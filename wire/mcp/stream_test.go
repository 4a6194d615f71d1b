package mcp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toll/wire/mcp"
)

// withResources is a server with a resource, a template and a prompt.
func withResources(t testing.TB, cfg mcp.Config) *mcp.Server {
	t.Helper()
	s := newServer(t, cfg)
	text := "it"
	read := func(context.Context, *mcp.Call) ([]mcp.ResourceContent, error) {
		return []mcp.ResourceContent{{URI: "test://a", Text: &text}}, nil
	}
	err := s.AddResources(mcp.Resource{URI: "test://a", Name: "a", Read: read}, mcp.Resource{URI: "test://b", Name: "b", Read: read})
	if err == nil {
		err = s.AddTemplates(mcp.Template{
			URI: "test://t/{id}.{kind}/x", Name: "t",
			Read: func(_ context.Context, _ *mcp.Call, v map[string]string) ([]mcp.ResourceContent, error) {
				if v["id"] == "none" {
					return nil, mcp.ErrNotFound
				}
				text := v["id"] + "," + v["kind"]
				return []mcp.ResourceContent{{URI: "u", Text: &text}}, nil
			},
		})
	}
	if err == nil {
		err = s.AddPrompts(mcp.Prompt{
			Name: "p", Arguments: []mcp.Argument{{Name: "a", Required: true}},
			Get: func(_ context.Context, _ *mcp.Call, a map[string]string) (*mcp.PromptResult, error) {
				return &mcp.PromptResult{Messages: []mcp.Message{{Role: "user", Content: mcp.Text(a["a"])}}}, nil
			},
			Complete: func(_ context.Context, name, value string, others map[string]string) ([]string, error) {
				return strings.Split(strings.Repeat(name+value+others["o"]+" ", 150)+"z", " "), nil
			},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAListenerHearsWhatItAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := withResources(t, mcp.Config{})
		w := newWire(t)
		done := make(chan int, 1)
		go func() {
			done <- w.post(s, `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"promptsListChanged":true,`+
				`"resourceSubscriptions":["test://a","test://none"]},`+modern+`}}`, modernHeader("subscriptions/listen", "")...)
		}()
		const tag = `"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}`
		expect := func(want string) {
			t.Helper()
			if got := <-w.events; got != want {
				t.Fatalf("got  %s\nwant %s", got, want)
			}
		}
		expect(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{` + tag +
			`,"notifications":{"promptsListChanged":true,"resourceSubscriptions":["test://a"]}}}`)
		if err := s.RemoveTools("echo"); err != nil { // not asked for
			t.Fatal(err)
		}
		s.ResourceUpdated("test://b") // not asked for
		for range 3 {                 // heard once
			s.ResourceUpdated("test://a")
		}
		expect(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{` + tag + `,"uri":"test://a"}}`)
		if err := s.RemovePrompts("p"); err != nil {
			t.Fatal(err)
		}
		expect(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{` + tag + `}}`)
		time.Sleep(16 * time.Second)
		synctest.Wait()
		if got := <-w.events; got != ":" {
			t.Errorf("a silent stream sent %q", got)
		}
		s.Close()
		expect(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l",` + tag + `}}`)
		expect(`{"jsonrpc":"2.0","id":"l","result":{"resultType":"complete",` + tag + `}}`)
		<-done
	})
}

func TestListenersAreBoundedAndLeave(t *testing.T) {
	t.Parallel()
	s := withResources(t, mcp.Config{MaxStreams: 1, MaxResources: 1})
	listen := func(filter string) (*wire, chan int) {
		w, done := newWire(t), make(chan int, 1)
		go func() {
			done <- w.post(s, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{`+filter+modern+`}}`, modernHeader("subscriptions/listen", "")...)
		}()
		return w, done
	}
	first, firstDone := listen(`"notifications":{},`)
	<-first.events
	for filter, want := range map[string]string{
		`"notifications":{},`: "-32603 Too many streams are open; try again later",
		``:                    "-32602 Invalid params: want notifications, an object that says of which changes to tell",
		`"notifications":{"resourceSubscriptions":7},`:                       "-32602 Invalid params: want notifications, an object that says of which changes to tell",
		`"notifications":{"resourceSubscriptions":["test://a","test://b"]},`: "-32602 Invalid params: too many subscriptions",
	} {
		w, done := listen(filter)
		<-done
		if got := failure(t, string(w.reply.Body)); got != want {
			t.Errorf("%s: %s, want %s", filter, got, want)
		}
	}
	first.gone()
	<-firstDone
	next, nextDone := listen(`"notifications":{},`)
	<-next.events
	next.gone()
	<-nextDone
}

func TestASessionHearsOfChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := withResources(t, mcp.Config{Sessions: true})
		session := begin(t, s)
		for body, want := range map[string]string{
			`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://a"}}`:       "",
			`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://t/1.y/x"}}`: "",
			`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://none"}}`:    "-32002 Resource not found",
			`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{}}`:                       "-32602 Invalid params: no uri",
			`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`:           "",
			`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}`:            "-32602 Invalid params: no log level loud",
		} {
			if _, got, _ := post(t, s, body, session); failure(t, got) != want {
				t.Errorf("%s: %s, want %s", body, got, want)
			}
		}
		s.ResourceUpdated("test://a") // before the stream is there: it waits
		w := newWire(t)
		done := make(chan int, 1)
		go func() { done <- w.do(s, "GET", "", session) }()
		var got []string
		next := func() { got = append(got, <-w.events) }
		next()
		next()
		post(t, s, `{"jsonrpc":"2.0","id":1,"method":"resources/unsubscribe","params":{"uri":"test://a"}}`, session)
		s.ResourceUpdated("test://a")
		if err := s.RemoveTools("echo"); err != nil {
			t.Fatal(err)
		}
		next()
		time.Sleep(time.Hour) // a session with a stream is not idle
		if status, _, _ := post(t, s, ping, session); status != 200 {
			t.Errorf("after an hour: %d", status)
		}
		for len(w.events) > 0 {
			if e := <-w.events; e != ":" {
				t.Errorf("unexpected %s", e)
			}
		}
		request(t, s, "DELETE", "", session)
		<-done
		want := []string{
			":", `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://a"}}`,
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got %q", got)
		}
	})
}

func TestResourcesPromptsAndCompletions(t *testing.T) {
	t.Parallel()
	s := withResources(t, mcp.Config{})
	const old = "MCP-Protocol-Version: 2025-11-25"
	for _, tt := range []struct{ method, params, header, want string }{
		{"resources/read", `"uri":"test://a"`, old, `"result":{"contents":[{"uri":"test://a","text":"it"}]}}`},
		{"resources/read", `"uri":"test://t/a/b.c/x"`, old, `"error":{"code":-32002,"message":"Resource not found","data":{"uri":"test://t/a/b.c/x"}}}`},
		{"resources/read", `"uri":"test://t/a.b/x"`, old, `"result":{"contents":[{"uri":"u","text":"a,b"}]}}`},
		{"resources/read", `"uri":"test://t/none.b/x"`, old, `"error":{"code":-32002,"message":"Resource not found","data":{"uri":"test://t/none.b/x"}}}`},
		{"resources/read", `"uri":"test://t/.b/x"`, old, `"error":{"code":-32002,"message":"Resource not found","data":{"uri":"test://t/.b/x"}}}`},
		{"resources/read", ``, old, `"error":{"code":-32602,"message":"Invalid params: no uri"}}`},
		{"resources/list", ``, old, `"result":{"resources":[{"uri":"test://a","name":"a"},{"uri":"test://b","name":"b"}]}}`},
		{"resources/templates/list", ``, old, `"result":{"resourceTemplates":[{"uriTemplate":"test://t/{id}.{kind}/x","name":"t"}]}}`},
		{"prompts/list", ``, old, `"result":{"prompts":[{"name":"p","arguments":[{"name":"a","required":true}]}]}}`},
		{"prompts/get", `"name":"p","arguments":{"a":"<x>"}`, old, `"result":{"messages":[{"role":"user","content":{"type":"text","text":"<x>"}}]}}`},
		{"prompts/get", `"name":"p"`, old, `"error":{"code":-32602,"message":"Invalid params: argument a is missing"}}`},
		{"prompts/get", `"name":"p","arguments":{"a":7}`, old, `"error":{"code":-32602,"message":"Invalid params: a prompt's arguments are strings"}}`},
		{"prompts/get", `"name":"q"`, old, `"error":{"code":-32602,"message":"Invalid params: no prompt q"}}`},
		{"completion/complete", `"ref":{"type":"ref/resource","uri":"test://t/{id}.{kind}/x"},"argument":{"name":"id","value":""}`, old, `"result":{"completion":{"values":[],"total":0,"hasMore":false}}}`},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"q"},"argument":{"name":"a","value":""}`, old, `"error":{"code":-32602,"message":"Invalid params: no prompt q"}}`},
		{"completion/complete", `"ref":{"type":"ref/other"},"argument":{"name":"a","value":""}`, old, `"error":{"code":-32602,"message":"Invalid params: ref is ref/prompt or ref/resource"}}`},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"p"}`, old, `"error":{"code":-32602,"message":"Invalid params: want ref and argument with name and value"}}`},
	} {
		status, got, _ := post(t, s, `{"jsonrpc":"2.0","id":1,"method":"`+tt.method+`","params":{`+tt.params+`}}`, tt.header)
		if got != `{"jsonrpc":"2.0","id":1,`+tt.want || status != 200 {
			t.Errorf("%s %s: %d\ngot  %s\nwant %s", tt.method, tt.params, status, got, tt.want)
		}
	}
	_, got, _ := post(t, s, `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},`+
		`"argument":{"name":"a","value":"b"},"context":{"arguments":{"o":"c"}}}}`, old)
	if !strings.HasSuffix(got, `"total":151,"hasMore":true}}}`) || strings.Count(got, `"abc"`) != 100 {
		t.Error(got)
	}
	_, got, _ = post(t, s, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"none",`+modern+`}}`, modernHeader("resources/read", "none")...)
	if got != `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Resource not found","data":{"uri":"none"}}}` {
		t.Error(got)
	}
}
