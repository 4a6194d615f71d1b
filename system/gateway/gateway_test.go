package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"toll/system/gateway"
	"toll/wire/envelope"
)

// agents are those of a test: functions by name, "echo" first of all.
type agents struct {
	calls map[string]func(ctx context.Context, m *envelope.Message) (any, error)
	told  chan *envelope.Message
}

func (a agents) Call(ctx context.Context, m *envelope.Message) (any, error) {
	f, ok := a.calls[m.Recipient]
	if !ok {
		return nil, &envelope.Failure{Code: envelope.NotFound, Agent: m.Recipient}
	}
	return f(ctx, m)
}

func (a agents) Tell(_ context.Context, m *envelope.Message) error {
	if m.Recipient == "full" {
		return envelope.MailboxFull
	}
	a.told <- m
	return nil
}

// Stream counts to the payload's n, or for ever.
func (a agents) Stream(ctx context.Context, m *envelope.Message, emit func(any) error) error {
	if m.Recipient != "counter" {
		return &envelope.Failure{Code: envelope.NotFound, Agent: m.Recipient}
	}
	n, bounded := m.Payload.(map[string]any)["n"].(string)
	for i := 0; !bounded || fmt.Sprint(i) != n; i++ {
		if err := emit(map[string]int{"i": i}); err != nil {
			return err
		}
		if !bounded {
			select {
			case <-ctx.Done():
				return envelope.FromContext(ctx)
			case <-time.After(time.Millisecond):
			}
		}
	}
	return nil
}

func standard() agents {
	fail := func(err error) func(context.Context, *envelope.Message) (any, error) {
		return func(context.Context, *envelope.Message) (any, error) { return nil, err }
	}
	return agents{told: make(chan *envelope.Message, 16), calls: map[string]func(context.Context, *envelope.Message) (any, error){
		"echo": func(_ context.Context, m *envelope.Message) (any, error) {
			return map[string]any{"payload": m.Payload, "type": m.Type, "trace": m.TraceID}, nil
		},
		"refuses": func(context.Context, *envelope.Message) (any, error) {
			return map[string]any{"error": "not today"}, nil
		},
		"odd":       func(context.Context, *envelope.Message) (any, error) { return func() {}, nil },
		"full":      fail(&envelope.Failure{Code: envelope.MailboxFull, Agent: "full"}),
		"crashed":   fail(&envelope.Failure{Code: envelope.Crashed, Agent: "crashed"}),
		"stopped":   fail(envelope.Stopped),
		"suspended": fail(envelope.Suspended),
		"failed":    fail(errors.New("no such account")),
		"far":       fail(envelope.Unreachable),
		"slow": func(ctx context.Context, _ *envelope.Message) (any, error) {
			<-ctx.Done()
			return nil, envelope.FromContext(ctx)
		},
	}}
}

// routes has one call route per agent that standard knows, and one of each other kind.
func routes(a agents) []gateway.Route {
	out := []gateway.Route{
		{Method: "POST", Path: "/v1/agents/{name}", Agent: "{name}"},
		{Method: "GET", Path: "/v1/items/{id}/parts/{part}", Agent: "echo"},
		{Method: "POST", Path: "/v1/cast/{name}", Agent: "{name}", Mode: gateway.Cast},
		{Method: "GET", Path: "/v1/count/{n}", Agent: "counter", Mode: gateway.Stream},
		{Method: "GET", Path: "/v1/count", Agent: "counter", Mode: gateway.Stream},
		{Method: "GET", Path: "/v1/nobody", Agent: "nobody", Mode: gateway.Stream},
		{Method: "POST", Path: "/v1/brief", Agent: "slow", Timeout: 20 * time.Millisecond},
	}
	for name := range a.calls {
		out = append(out, gateway.Route{Method: "POST", Path: "/v1/" + name, Agent: name})
	}
	return out
}

// serve starts a gateway on loopback and returns its address.
func serve(t *testing.T, c gateway.Config) (*gateway.Gateway, string) {
	t.Helper()
	g, err := gateway.New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- g.Serve(shallow{l}) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return g, l.Addr().String()
}

// shallow connections have send buffers so small that a client who does not read is felt at once.
type shallow struct{ net.Listener }

func (s shallow) Accept() (net.Conn, error) {
	nc, err := s.Listener.Accept()
	if err == nil {
		err = nc.(*net.TCPConn).SetWriteBuffer(8 << 10)
	}
	return nc, err
}

// both runs a test over our loop and over net/http: they must not differ.
func both(t *testing.T, f func(t *testing.T, c gateway.Config)) {
	t.Parallel()
	for name, std := range map[string]bool{"loop": false, "nethttp": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := standard()
			f(t, gateway.Config{Asker: a, Routes: routes(a), NetHTTP: std})
		})
	}
}

type answer struct {
	Status int
	Type   string
	Body   string
	Retry  string
	Allow  string
}

func do(t *testing.T, method, url, body string, header ...string) (answer, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), string(b), resp.Header.Get("Retry-After"), resp.Header.Get("Allow")}, resp.Header
}

func TestRequestsBecomeMessages(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		_, addr := serve(t, c)
		for _, x := range []struct{ name, method, path, body, want string }{
			{"object", "POST", "/v1/echo", `{"text":"hello","n":2}`, `{"payload":{"n":2,"text":"hello"},"trace":"","type":"http.request"}`},
			{"nothing", "POST", "/v1/echo", "", `{"payload":{},"trace":"","type":"http.request"}`},
			{"path goes before body", "POST", "/v1/agents/echo", `{"name":"other"}`, `{"payload":{"name":"echo"},"trace":"","type":"http.request"}`},
			{"escaped", "GET", "/v1/items/a%2Fb/parts/%C3%BC", "", `{"payload":{"id":"a/b","part":"ü"},"trace":"","type":"http.request"}`},
			{"query", "POST", "/v1/echo?x=1", "{}", `{"payload":{},"trace":"","type":"http.request"}`},
		} {
			got, _ := do(t, x.method, "http://"+addr+x.path, x.body)
			if d := cmp.Diff(answer{Status: 200, Type: "application/json", Body: x.want}, got); d != "" {
				t.Error(x.name, d)
			}
		}
	})
}

func TestHeadersBecomeFields(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		_, addr := serve(t, c)
		const id = "0af7651916cd43dd8448eb211c80319c"
		got, h := do(t, "POST", "http://"+addr+"/v1/echo", "", "X-Civitas-Type", "fibonacci", "traceparent", "00-"+id+"-b7ad6b7169203331-01", "X-Request-Id", "abc-1")
		if got.Body != `{"payload":{},"trace":"`+id+`","type":"fibonacci"}` {
			t.Error(got.Body)
		}
		if tp := h.Get("Traceparent"); !strings.HasPrefix(tp, "00-"+id+"-") || !strings.HasSuffix(tp, "-01") || strings.Contains(tp, "b7ad6b7169203331") {
			t.Errorf("traceparent %q: the trace goes on with a span of ours", tp)
		}
		if h.Get("X-Request-Id") != "abc-1" {
			t.Errorf("request id %q", h.Get("X-Request-Id"))
		}
		for _, bad := range []string{
			"", "00", "00-" + id + "-0000000000000000-01", "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01",
			"ff-" + id + "-b7ad6b7169203331-01", "00-" + strings.ToUpper(id) + "-b7ad6b7169203331-01", "00-" + id + "-b7ad6b7169203331-01-x",
		} {
			got, h := do(t, "POST", "http://"+addr+"/v1/echo", "", "traceparent", bad, "X-Request-Id", "a b\x7f"[:3])
			if !strings.Contains(got.Body, `"trace":""`) || h.Get("Traceparent") != "" || len(h.Get("X-Request-Id")) != 16 {
				t.Errorf("%q: %s, %q, %q", bad, got.Body, h.Get("Traceparent"), h.Get("X-Request-Id"))
			}
		}
		if got, _ := do(t, "POST", "http://"+addr+"/v1/echo", "", "X-Civitas-Type", "_agency.shutdown"); got.Status != 400 {
			t.Errorf("a message of the runtime's own came from outside: %+v", got)
		}
	})
}

func TestFailuresHaveTheirStatus(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		_, addr := serve(t, c)
		post := func(path string) (answer, http.Header) { return do(t, "POST", "http://"+addr+path, "{}") }
		for path, want := range map[string]answer{
			"/v1/refuses":         {400, "application/json", `{"error":"not today"}`, "", ""},
			"/v1/failed":          {400, "application/json", `{"error":"failed: no such account"}`, "", ""},
			"/v1/agents/nobody":   {404, "application/json", `{"error":"agent nobody: not_found"}`, "", ""},
			"/v1/nothing/here":    {404, "application/json", `{"error":"nothing at this path"}`, "", ""},
			"/v1/agents/":         {404, "application/json", `{"error":"nothing at this path"}`, "", ""},
			"/v1/items/1/parts/2": {405, "application/json", `{"error":"this path has other methods"}`, "", "GET"},
			"/v1/crashed":         {500, "application/json", `{"error":"agent crashed: agent_crashed"}`, "", ""},
			"/v1/odd":             {500, "application/json", `{"error":"the agent's answer is no JSON: json: unsupported type: func()"}`, "", ""},
			"/v1/far":             {502, "application/json", `{"error":"unreachable"}`, "1", ""},
			"/v1/full":            {503, "application/json", `{"error":"agent full: mailbox_full"}`, "1", ""},
			"/v1/cast/full":       {503, "application/json", `{"error":"mailbox_full"}`, "1", ""},
			"/v1/stopped":         {503, "application/json", `{"error":"stopped"}`, "1", ""},
			"/v1/suspended":       {503, "application/json", `{"error":"suspended"}`, "1", ""},
			"/v1/brief":           {504, "application/json", `{"error":"deadline"}`, "", ""},
		} {
			if got, _ := post(path); got != want {
				t.Errorf("%s:\n got %+v\nwant %+v", path, got, want)
			}
		}
		for body, want := range map[string]string{
			`[1]`:    `{"error":"the body is no JSON object"}`,
			`null`:   `{"error":"the body is no JSON object"}`,
			`{"a":1`: `{"error":"the body is no JSON: unexpected end of JSON input"}`,
			`{} {}`:  `{"error":"the body is no JSON: invalid character '{' after top-level value"}`,
		} {
			if got, _ := do(t, "POST", "http://"+addr+"/v1/echo", body); got.Status != 400 || got.Body != want {
				t.Errorf("%s: %+v", body, got)
			}
		}
		if got, _ := do(t, "POST", "http://"+addr+"/v1/echo", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`); got.Status != 413 {
			t.Errorf("a body over 1 MiB: %+v", got)
		}
	})
}

func TestACastWaitsForTheMailboxOnly(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		_, addr := serve(t, c)
		got, _ := do(t, "POST", "http://"+addr+"/v1/cast/slow", `{"a":1}`)
		if got.Status != 202 || got.Body != `{"status":"accepted"}` {
			t.Errorf("%+v", got)
		}
		if m := <-c.Asker.(agents).told; m.Recipient != "slow" || cmp.Diff(m.Payload, any(map[string]any{"a": 1., "name": "slow"})) != "" {
			t.Errorf("told %+v", m)
		}
	})
}

func TestStreamsAreEvents(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		g, addr := serve(t, c)
		got, _ := do(t, "GET", "http://"+addr+"/v1/count/2", "")
		want := "id: 0\ndata: {\"i\":0}\n\nid: 1\ndata: {\"i\":1}\n\nevent: end\ndata: {}\n\n"
		if got.Status != 200 || got.Type != "text/event-stream" || got.Body != want {
			t.Errorf("%+v", got)
		}
		got, _ = do(t, "GET", "http://"+addr+"/v1/nobody", "")
		if got.Body != "event: error\ndata: {\"error\":\"agent nobody: not_found\"}\n\n" {
			t.Errorf("%+v", got)
		}
		// An endless stream is ended by the drain, and says so.
		resp, err := http.Get("http://" + addr + "/v1/count")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for range 5 {
			lines.Scan()
		}
		if err := g.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		last := ""
		for lines.Scan() {
			if lines.Text() != "" {
				last = lines.Text()
			}
		}
		if last != `data: {"error":"cancelled"}` {
			t.Errorf("the stream ended with %q, %v", last, lines.Err())
		}
	})
}

func TestAStreamEndsWithItsClient(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		over := make(chan error, 1)
		c.Asker = watched{c.Asker.(agents), over}
		_, addr := serve(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://"+addr+"/v1/count", nil)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Read(make([]byte, 10))
		cancel()
		resp.Body.Close()
		if err := <-over; err == nil {
			t.Error("the agent streamed to the end")
		}
	})
}

// watched tells how streams ended.
type watched struct {
	agents
	over chan error
}

func (w watched) Stream(ctx context.Context, m *envelope.Message, emit func(any) error) error {
	err := w.agents.Stream(ctx, m, emit)
	w.over <- err
	return err
}

func TestAWebSocketTellsAndStreams(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		_, addr := serve(t, c)
		ws, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/v1/count", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer ws.CloseNow()
		_, first, err := ws.Read(t.Context())
		if err != nil || string(first) != `{"i":0}` {
			t.Errorf("%s, %v", first, err)
		}
		for i := range 2 {
			if err := ws.Write(t.Context(), websocket.MessageText, []byte(fmt.Sprintf(`{"say":%d}`, i))); err != nil {
				t.Fatal(err)
			}
		}
		a, b := <-c.Asker.(agents).told, <-c.Asker.(agents).told
		if a.CorrelationID == "" || a.CorrelationID != b.CorrelationID || a.Recipient != "counter" {
			t.Errorf("told %+v and %+v", a, b)
		}
		ws.Write(t.Context(), websocket.MessageText, []byte(`no object`))
		for {
			if _, _, err = ws.Read(t.Context()); err != nil {
				break
			}
		}
		if websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
			t.Errorf("closed with %v", err)
		}
		gone, _, err := websocket.Dial(t.Context(), "ws://"+addr+"/v1/nobody", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer gone.CloseNow()
		if _, _, err := gone.Read(t.Context()); websocket.CloseStatus(err) != 4404 {
			t.Errorf("a missing agent closes with %v", err)
		}
	})
}

func TestTooMuchIsRefusedAtOnce(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		block := make(chan struct{})
		var inside atomic.Int64
		c.Asker.(agents).calls["echo"] = func(context.Context, *envelope.Message) (any, error) {
			inside.Add(1)
			<-block
			return map[string]any{}, nil
		}
		c.Routes = []gateway.Route{
			{Method: "POST", Path: "/v1/echo", Agent: "echo", InFlight: 3},
			{Method: "POST", Path: "/v1/other", Agent: "echo"},
		}
		c.InFlight = 5
		_, addr := serve(t, c)
		type result struct {
			path string
			answer
		}
		out := make(chan result, 40)
		for range 20 {
			go func() {
				got, _ := do(t, "POST", "http://"+addr+"/v1/echo", "{}")
				out <- result{"/v1/echo", got}
			}()
		}
		for range 17 {
			r := <-out
			if r.Status != 503 || r.Retry != "1" || r.Body != `{"error":"this route has as many requests in flight as it may"}` {
				t.Errorf("%+v", r)
			}
		}
		for range 20 {
			go func() {
				got, _ := do(t, "POST", "http://"+addr+"/v1/other", "{}")
				out <- result{"/v1/other", got}
			}()
		}
		for range 18 {
			r := <-out
			if r.Status != 503 || r.Body != `{"error":"the gateway has as many requests in flight as it may"}` {
				t.Errorf("%+v", r)
			}
		}
		close(block)
		for range 5 {
			if r := <-out; r.Status != 200 {
				t.Errorf("%+v", r)
			}
		}
		if inside.Load() != 5 {
			t.Errorf("%d requests reached the agent", inside.Load())
		}
	})
}

func TestAClientHasARate(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		c.Rate, c.Burst = .001, 3
		_, addr := serve(t, c)
		for i := range 5 {
			got, _ := do(t, "POST", "http://"+addr+"/v1/echo", "{}")
			if want := 200; i < 3 && got.Status != want || i >= 3 && (got.Status != 429 || got.Retry != "1") {
				t.Errorf("request %d: %+v", i, got)
			}
		}
		if got, _ := do(t, "GET", "http://"+addr+"/health", ""); got.Status != 200 {
			t.Errorf("health is limited too: %+v", got)
		}
	})
}

func TestADrainAnswersWhatIsInFlight(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		entered, block := make(chan struct{}), make(chan struct{})
		c.Asker.(agents).calls["echo"] = func(context.Context, *envelope.Message) (any, error) {
			close(entered)
			<-block
			return map[string]any{"late": true}, nil
		}
		g, addr := serve(t, c)
		if got, _ := do(t, "GET", "http://"+addr+"/ready", ""); got.Body != `{"status":"ready"}` {
			t.Errorf("%+v", got)
		}
		out := make(chan answer)
		go func() {
			got, _ := do(t, "POST", "http://"+addr+"/v1/echo", "{}")
			out <- got
		}()
		<-entered
		down := make(chan error)
		go func() { down <- g.Shutdown(t.Context()) }()
		for {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				break // nobody accepts any more
			}
			nc.Close()
		}
		close(block)
		if got := <-out; got.Status != 200 || got.Body != `{"late":true}` {
			t.Errorf("in flight when the drain began: %+v", got)
		}
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}

func TestTheDocumentDescribesTheRoutes(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		_, addr := serve(t, c)
		got, _ := do(t, "GET", "http://"+addr+"/openapi.json", "")
		var doc struct {
			OpenAPI string
			Paths   map[string]map[string]struct {
				Summary     string
				Parameters  []struct{ Name string }
				RequestBody any
				Responses   map[string]any
			}
		}
		if err := json.Unmarshal([]byte(got.Body), &doc); err != nil || doc.OpenAPI != "3.1.0" {
			t.Fatal(err, got)
		}
		if len(doc.Paths) != len(c.Routes) {
			t.Errorf("%d paths of %d routes", len(doc.Paths), len(c.Routes))
		}
		op := doc.Paths["/v1/items/{id}/parts/{part}"]["get"]
		if op.Summary != "call agent echo" || len(op.Parameters) != 2 || op.RequestBody != nil || op.Responses["504"] == nil {
			t.Errorf("%+v", op)
		}
	})
}

// A thousand clients that never finish their head, a thousand more that never finish their body and a thousand more that never
// read what they asked for: each holds a connection and a goroutine, and nobody else waits for it.
func TestSlowClientsDoNotStopOthers(t *testing.T) { // not beside others: it opens some 6,000 files and looks at memory
	const slow = 1000
	const perClient = 128 << 10 // bytes that a connection may hold, its test's side included
	for name, std := range map[string]bool{"loop": false, "nethttp": true} {
		t.Run(name, func(t *testing.T) {
			a := standard()
			_, addr := serve(t, gateway.Config{Asker: a, Routes: routes(a), NetHTTP: std, HeadTimeout: time.Hour, ReadTimeout: time.Hour})
			before := held()
			var open []net.Conn
			defer func() {
				for _, nc := range open {
					nc.Close()
				}
			}()
			for _, kind := range []struct{ name, sends string }{
				{"heads that do not end", "POST /v1/echo HTTP/1.1\r\nHost: x\r\nX-"},
				{"bodies that do not come", "POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"},
				{"replies that nobody reads", strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", 50)},
			} {
				for range slow {
					nc, err := net.Dial("tcp", addr)
					if err != nil {
						t.Fatalf("%s: connection %d: %v; the test needs about 6,100 open files (ulimit -n)", kind.name, len(open)+1, err)
					}
					open = append(open, nc)
					nc.(*net.TCPConn).SetReadBuffer(8 << 10)
					io.WriteString(nc, kind.sends)
				}
				fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				for i := range 50 {
					client := http.DefaultClient
					if i%2 == 0 {
						client = fresh
					}
					resp, err := client.Post("http://"+addr+"/v1/echo", "application/json", strings.NewReader("{}"))
					if err != nil {
						t.Fatalf("beside %d %s: %v", slow, kind.name, err)
					}
					resp.Body.Close()
					if resp.StatusCode != 200 {
						t.Fatalf("beside %d %s: status %d", slow, kind.name, resp.StatusCode)
					}
				}
			}
			if after := held(); after > before+int64(len(open))*perClient {
				t.Errorf("%d slow clients hold %d bytes", len(open), after-before)
			}
		})
	}
}

// held is how many bytes this process' heap and stacks hold.
func held() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// A client that is slow for too long is told so, and is let go.
func TestASlowHeadIsLetGo(t *testing.T) {
	both(t, func(t *testing.T, c gateway.Config) {
		c.HeadTimeout, c.ReadTimeout = 20*time.Millisecond, 20*time.Millisecond
		_, addr := serve(t, c)
		for _, sends := range []string{"POST /v1/echo HTTP/1.1\r\nHost: x\r\nX-", "POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"} {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			io.WriteString(nc, sends)
			if _, err := io.ReadAll(nc); err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%q: %v; want the end of the connection", sends, err)
			}
		}
	})
}

func TestBadConfigurationsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	a := standard()
	ok := gateway.Route{Method: "GET", Path: "/a", Agent: "echo"}
	with := func(r gateway.Route) gateway.Config { return gateway.Config{Asker: a, Routes: []gateway.Route{ok, r}} }
	for want, c := range map[string]gateway.Config{
		"gateway: no asker":                    {Routes: []gateway.Route{ok}},
		"gateway: no routes":                   {Asker: a},
		"gateway: rate -1; expected 0 or more": {Asker: a, Routes: []gateway.Route{ok}, Rate: -1},
		`gateway: route 2: method "get"; expected GET, POST, PUT, PATCH or DELETE`:       with(gateway.Route{Method: "get", Path: "/b", Agent: "x"}),
		`gateway: route 2: GET /b: mode "ask"; expected call, cast or stream`:            with(gateway.Route{Method: "GET", Path: "/b", Agent: "x", Mode: "ask"}),
		"gateway: route 2: GET /b: no agent":                                             with(gateway.Route{Method: "GET", Path: "/b"}),
		`gateway: route 2: path "b"; expected one that begins with /`:                    with(gateway.Route{Method: "GET", Path: "b", Agent: "x"}),
		`gateway: route 2: path /{b: segment "{b"; expected text or {name}`:              with(gateway.Route{Method: "GET", Path: "/{b", Agent: "x"}),
		"gateway: route 2: path /{b}/{b}: two segments are named b":                      with(gateway.Route{Method: "GET", Path: "/{b}/{b}", Agent: "x"}),
		`gateway: route 2: GET /{b}: agent "{c}" names no segment of the path`:           with(gateway.Route{Method: "GET", Path: "/{b}", Agent: "{c}"}),
		"gateway: route 2: GET /a: route 1 has the same method and path":                 with(ok),
		"tls: cert and key are both needed":                                              {Asker: a, Routes: []gateway.Route{ok}, TLS: &gateway.TLS{Cert: "x"}},
		`tls: clients "some"; expected none, optional or required`:                       {Asker: a, Routes: []gateway.Route{ok}, TLS: &gateway.TLS{Cert: "x", Key: "y", Clients: "some"}},
		"tls: clients are required to have a certificate, and no ca says who signs them": {Asker: a, Routes: []gateway.Route{ok}, TLS: &gateway.TLS{Cert: "x", Key: "y", Clients: "required"}},
	} {
		if _, err := gateway.New(c); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// A panicking lender is one whose asks go wrong in our own code.
type panicking struct{ agents }

// Lend panics.
func (panicking) Lend(context.Context, *envelope.Message, func(any, error)) (any, error, bool) {
	panic("told to")
}

func TestAPanicBehindTheGatewayGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, gateway.Config{Asker: panicking{}, Routes: []gateway.Route{{Method: "POST", Path: "/v1/x", Agent: "x", InFlight: 1}}})
	for range 3 {
		resp, err := http.Post("http://"+addr+"/v1/x", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusInternalServerError || !resp.Close {
			t.Errorf("%d, the connection ends: %v", resp.StatusCode, resp.Close)
		}
	}
}
