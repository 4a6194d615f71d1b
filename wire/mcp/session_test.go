package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toll/wire/mcp"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"sampling":{},"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// begin opens a session and returns its header line.
func begin(t testing.TB, s *mcp.Server) string {
	t.Helper()
	status, body, r := post(t, s, initialize)
	for _, l := range r.Header {
		if l.Name == "Mcp-Session-Id" && status == 200 {
			return l.Name + ": " + l.Value
		}
	}
	t.Fatalf("initialize: %d %s", status, body)
	return ""
}

func TestASessionIsWantedAndKnown(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{Sessions: true})
	one, other := begin(t, s), begin(t, s)
	for _, tt := range []struct {
		method, header string
		status         int
		want           string
	}{
		{"POST", one, 200, ""},
		{"POST", "X: y", 400, "-32600 Invalid request: no Mcp-Session-Id; begin with initialize"},
		{"POST", one + "x", 404, "-32600 There is no such session; begin with initialize"},
		{"DELETE", other, 204, ""},
		{"POST", other, 404, "-32600 There is no such session; begin with initialize"},
		{"DELETE", other, 404, "-32600 There is no such session; begin with initialize"},
		{"GET", other, 404, "-32600 There is no such session; begin with initialize"},
		{"POST", one, 200, ""},
	} {
		status, body, _ := request(t, s, tt.method, ping, "Content-Type: application/json", tt.header)
		if got := failure(t, body); status != tt.status || got != tt.want {
			t.Errorf("%s %s: %d %s, want %d %s", tt.method, tt.header, status, got, tt.status, tt.want)
		}
	}
	// A request of 2026-07-28 has no session, whatever it sends.
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + modern + `}}`
	if status, body, r := post(t, s, list, append(modernHeader("tools/list", ""), "Mcp-Session-Id: nonsense")...); status != 200 || len(r.Header) > 0 {
		t.Errorf("%d %s %v", status, body, r.Header)
	}
}

func TestASessionEndsWhenItIsIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, mcp.Config{Sessions: true, SessionIdle: time.Minute})
		used, idle := begin(t, s), begin(t, s)
		for range 6 {
			time.Sleep(20 * time.Second)
			if status, body, _ := post(t, s, ping, used); status != 200 {
				t.Fatalf("a session in use: %d %s", status, body)
			}
		}
		if status, _, _ := post(t, s, ping, idle); status != 404 {
			t.Errorf("a session idle for two minutes: %d", status)
		}
		// A call in progress keeps its session, however long it takes.
		if err := s.AddTools(mcp.Tool{Name: "sleeps", Call: func(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
			time.Sleep(time.Hour)
			return mcp.TextResult("slept"), nil
		}}); err != nil {
			t.Fatal(err)
		}
		w := newWire(t)
		done := make(chan int, 1)
		go func() {
			done <- w.post(s, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"sleeps","arguments":{}}}`, used)
		}()
		if <-done != 200 || !strings.Contains(string(w.reply.Body), "slept") {
			t.Errorf("the call: %s", w.reply.Body)
		}
		if status, _, _ := post(t, s, ping, used); status != 200 {
			t.Errorf("after a call of an hour: %d", status)
		}
	})
}

func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, mcp.Config{Sessions: true, MaxSessions: 3, SessionIdle: time.Minute})
		first := begin(t, s)
		begin(t, s)
		begin(t, s)
		status, body, r := post(t, s, initialize)
		want := "-32603 All 3 sessions are taken; end one by DELETE, or try again: one ends when it is idle for 1m0s"
		if got := failure(t, body); status != 503 || got != want || len(r.Header) != 1 || r.Header[0] != (mcp.Line{Name: "Retry-After", Value: "5"}) {
			t.Errorf("%d %s %v", status, got, r.Header)
		}
		if status, _, _ := request(t, s, "DELETE", "", first); status != 204 {
			t.Errorf("DELETE: %d", status)
		}
		begin(t, s)
		time.Sleep(time.Minute) // the rest is idle now, and makes room at once
		for range 3 {
			begin(t, s)
		}
	})
}

// Ten thousand clients that never come back cost nothing once their sessions have expired.
func TestAbandonedSessionsGiveTheirMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, mcp.Config{Sessions: true})
		live := func() int64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := live()
		for range 10_000 {
			begin(t, s)
		}
		if status, _, _ := post(t, s, initialize); status != 503 {
			t.Errorf("one more than the bound: %d", status)
		}
		held := live() - before
		time.Sleep(8 * time.Minute)
		if left := live() - before; left > 5<<20 {
			t.Errorf("%d bytes are left of %d", left, held)
		}
		begin(t, s)
	})
}

// A wire is a connection as a test sees it: what is streamed comes on events.
type wire struct {
	t      *testing.T
	events chan string
	gone   context.CancelFunc // the client goes away
	ctx    context.Context

	mu    sync.Mutex
	head  []mcp.Line // guarded by mu: of the stream
	reply mcp.Reply
}

func newWire(t *testing.T) *wire {
	w := &wire{t: t, events: make(chan string, 100)}
	w.ctx, w.gone = context.WithCancel(context.Background())
	t.Cleanup(w.gone)
	return w
}

func (w *wire) Watch(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(w.ctx, cancel)
	return ctx
}

func (w *wire) Stream(header []mcp.Line) (io.Writer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.head = append(w.head, header...)
	return w, nil
}

func (w *wire) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, io.ErrClosedPipe
	}
	w.events <- strings.TrimSuffix(strings.TrimPrefix(string(p), "event: message\ndata: "), "\n\n")
	return len(p), nil
}

// post answers one request over the wire and returns the status.
func (w *wire) post(s *mcp.Server, body string, header ...string) int {
	return w.do(s, "POST", body, header...)
}

func (w *wire) do(s *mcp.Server, method, body string, header ...string) int {
	var h mcp.Head
	h.Reset(method)
	for _, line := range append([]string{"Content-Type: application/json", "Accept: application/json, text/event-stream"}, header...) {
		name, value, _ := strings.Cut(line, ":")
		h.Add([]byte(name), []byte(value))
	}
	w.reply.Reset(w)
	s.Answer(context.Background(), &h, []byte(body), &w.reply)
	close(w.events)
	if w.reply.Status == 0 {
		return 200
	}
	return w.reply.Status
}

func TestProgressMakesTheReplyAStream(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{})
	if err := s.AddTools(mcp.Tool{Name: "works", Call: func(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
		for _, p := range []float64{1, 1, 0.5, 2.5} { // what does not grow is not told
			if err := c.Progress(p, 3, "on"); err != nil {
				return nil, err
			}
		}
		if err := c.Log("warning", "me", map[string]int{"a": 1}); err != nil {
			return nil, err
		}
		if err := c.Log("debug", "", "unheard"); err != nil {
			return nil, err
		}
		return mcp.TextResult("done"), nil
	}}); err != nil {
		t.Fatal(err)
	}
	progress := func(p string) string {
		return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":` + p + `,"total":3,"message":"on"}}`
	}
	log := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"me","data":{"a":1}}}`
	done := `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"server","version":"0"}}}}`
	call := func(meta string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"works",` + strings.TrimSuffix(modern, "}") + meta + `}}}`
	}
	for meta, want := range map[string][]string{
		``:                     nil,
		`,"progressToken":"t"`: {progress("1"), progress("2.5"), done},
		`,"io.modelcontextprotocol/logLevel":"info"`:                          {log, done},
		`,"progressToken":"t","io.modelcontextprotocol/logLevel":"emergency"`: {progress("1"), progress("2.5"), done},
	} {
		w := newWire(t)
		status := w.post(s, call(meta), modernHeader("tools/call", "works")...)
		var got []string
		for e := range w.events {
			got = append(got, e)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || status != 200 || want == nil && string(w.reply.Body) != done {
			t.Errorf("%s:\ngot  %q %s\nwant %q", meta, got, w.reply.Body, want)
		}
	}
	// A client that takes no events gets the result alone.
	w := newWire(t)
	w.post(s, call(`,"progressToken":"t"`), append(modernHeader("tools/call", "works"), "Accept: application/json")...)
	if len(w.events) != 3 { // two lines of Accept are one list, which takes events
		t.Errorf("%d events", len(w.events))
	}
}

// asks is a tool that asks the client's model.
func asks(s *mcp.Server) error {
	return s.AddTools(mcp.Tool{Name: "asks", Call: func(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
		a, err := c.Ask(ctx, []byte("so far"), mcp.Question{Key: "k", Method: "sampling/createMessage", Params: json.RawMessage("{\n}")})
		if err != nil {
			return nil, err
		}
		return mcp.TextResult(string(c.State()) + string(a["k"])), nil
	}})
}

func TestAClientOfASessionIsAskedOnTheStream(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{Sessions: true})
	if err := asks(s); err != nil {
		t.Fatal(err)
	}
	session := begin(t, s)
	call := `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"asks","arguments":{}}}`
	for _, tt := range []struct{ answer, want string }{
		{`"result":{"x":1}`, `{"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"{\"x\":1}"}]}}`},
		{
			`"error":{"code":-1,"message":"no"}`,
			`{"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"sampling/createMessage: the client refused: {\"code\":-1,\"message\":\"no\"}"}],"isError":true}}`,
		},
	} {
		w := newWire(t)
		var wg sync.WaitGroup
		wg.Go(func() { w.post(s, call, session) })
		var question struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal([]byte(<-w.events), &question); err != nil || question.Method != "sampling/createMessage" {
			t.Fatalf("%+v, %v", question, err)
		}
		// An answer in another session is not this one's.
		post(t, s, `{"jsonrpc":"2.0","id":`+string(question.ID)+`,"result":{"evil":1}}`, begin(t, s))
		if status, _, _ := post(t, s, `{"jsonrpc":"2.0","id":`+string(question.ID)+`,`+tt.answer+`}`, session); status != 202 {
			t.Errorf("the answer: %d", status)
		}
		if got := <-w.events; got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
		wg.Wait()
	}
}

func TestAClientThatDoesNotAnswerIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, mcp.Config{Sessions: true})
		if err := asks(s); err != nil {
			t.Fatal(err)
		}
		w := newWire(t)
		start := time.Now()
		w.post(s, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"asks"}}`, begin(t, s))
		<-w.events
		if got := <-w.events; !strings.Contains(got, "no answer from the client") || time.Since(start) != time.Minute {
			t.Errorf("after %v: %s", time.Since(start), got)
		}
	})
}

func TestACallIsCancelled(t *testing.T) {
	t.Parallel()
	cancelled := make(chan error, 1)
	s := newServer(t, mcp.Config{Sessions: true})
	if err := s.AddTools(mcp.Tool{Name: "hangs", Call: func(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
		if err := c.Progress(1, 0, ""); err != nil {
			return nil, err
		}
		<-ctx.Done()
		cancelled <- ctx.Err()
		return mcp.TextResult("late"), nil
	}}); err != nil {
		t.Fatal(err)
	}
	session := begin(t, s)
	for name, tt := range map[string]struct {
		body   string
		header []string
		cancel func(w *wire)
	}{
		"by the client's word": {
			`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"hangs","_meta":{"progressToken":1}}}`, []string{session},
			func(*wire) {
				post(t, s, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`, begin(t, s)) // not its session
				post(t, s, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"y"}}`, session)     // not its id
				post(t, s, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`, session)
			},
		},
		"by its end": {
			`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"hangs",` + strings.TrimSuffix(modern, "}") + `,"progressToken":1}}}`,
			modernHeader("tools/call", "hangs"), func(w *wire) { w.gone() },
		},
	} {
		w := newWire(t)
		var wg sync.WaitGroup
		wg.Go(func() { w.post(s, tt.body, tt.header...) })
		<-w.events
		tt.cancel(w)
		<-cancelled
		wg.Wait()
		if late, open := <-w.events; open {
			t.Errorf("%s: after the end came %s", name, late)
		}
	}
}

func TestARequestStateIsGoodForItsRequestAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, mcp.Config{StateTTL: time.Minute})
		if err := asks(s); err != nil {
			t.Fatal(err)
		}
		call := func(name, more string) string {
			w := newWire(t)
			w.post(s, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`",`+strings.Replace(modern, "Capabilities\":{}", "Capabilities\":{\"sampling\":{}}", 1)+more+`}}`,
				modernHeader("tools/call", name)...)
			return string(w.reply.Body)
		}
		var r struct {
			Result struct{ RequestState, ResultType string }
		}
		if err := json.Unmarshal([]byte(call("asks", "")), &r); err != nil || r.Result.ResultType != "input_required" {
			t.Fatalf("%+v, %v", r, err)
		}
		answer := func(state string) string { return `,"inputResponses":{"k":{"y":2}},"requestState":"` + state + `"` }
		if got := call("asks", answer(r.Result.RequestState)); !strings.Contains(got, `so far{\"y\":2}`) {
			t.Errorf("the state that was given: %s", got)
		}
		const want = "-32602 Invalid params: requestState is not of this server, not for this request or too old"
		for name, got := range map[string]string{
			"longer":  call("asks", answer(r.Result.RequestState+"AA")),
			"shorter": call("asks", answer(r.Result.RequestState[:20])),
			"other":   call("asks", answer(strings.Repeat("A", len(r.Result.RequestState)))),
			"not for": call("waits", answer(r.Result.RequestState)),
		} {
			if failure(t, got) != want {
				t.Errorf("%s: %s", name, got)
			}
		}
		time.Sleep(2 * time.Minute)
		if got := call("asks", answer(r.Result.RequestState)); failure(t, got) != want {
			t.Errorf("an old one: %s", got)
		}
		if got := call("asks", `,"inputResponses":{"k":7}`); !strings.Contains(got, "input_required") {
			t.Errorf("an answer that is no object: %s", got)
		}
	})
}

func TestAnUndeclaredCapabilityIsNotUsed(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{})
	if err := asks(s); err != nil {
		t.Fatal(err)
	}
	w := newWire(t)
	status := w.post(s, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asks",`+modern+`}}`, modernHeader("tools/call", "asks")...)
	want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"The client has not declared the capability sampling","data":{"requiredCapabilities":{"sampling":{}}}}}`
	if got := string(w.reply.Body); status != 400 || got != want {
		t.Errorf("%d %s", status, got)
	}
}

// A tool that goes on talking after it has returned is not heard, and harms nobody.
func TestALateWordIsNotHeard(t *testing.T) {
	t.Parallel()
	s := newServer(t, mcp.Config{})
	var late *mcp.Call
	if err := s.AddTools(mcp.Tool{Name: "leaks", Call: func(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
		late = c
		return mcp.TextResult("done"), nil
	}}); err != nil {
		t.Fatal(err)
	}
	w := newWire(t)
	w.post(s, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"leaks",`+strings.TrimSuffix(modern, "}")+`,"progressToken":1}}}`,
		modernHeader("tools/call", "leaks")...)
	if err := late.Progress(1, 2, ""); err == nil || err.Error() != "the request has been answered" {
		t.Error(err)
	}
	if len(w.events) != 0 || !strings.Contains(string(w.reply.Body), "done") {
		t.Errorf("%d events, reply %s", len(w.events), w.reply.Body)
	}
}
