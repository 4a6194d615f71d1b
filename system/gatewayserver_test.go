package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toll/system/agent"
	"toll/system/gateway"
	"toll/wire/envelope"
)

// door puts a gateway before the agents of a runtime and returns how to post to it. Every call that is not answered for an
// hour fails by the test's own time limit: nothing here waits for a timeout.
func door(t *testing.T, rt *agent.Runtime, routes []gateway.Route) (post func(path, body string) (status int, header http.Header, text string)) {
	t.Helper()
	g, err := gateway.New(gateway.Config{Routes: routes, Asker: asker{rt}, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	tr := &http.Transport{MaxIdleConnsPerHost: 1000}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		ctx := context.Background()
		if err := errors.Join(g.Shutdown(ctx), <-served, rt.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: tr}
	return func(path, body string) (int, http.Header, string) {
		resp, err := client.Post("http://"+l.Addr().String()+path, "application/json", strings.NewReader(body))
		if err != nil {
			return 0, nil, err.Error()
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header, string(b)
	}
}

// An agent crashes while one call is handled and others wait: those are answered at once, nobody else's are touched, and the
// supervisor's next life answers.
func TestACrashFailsItsOwnCallsOnly(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func() error{
		"fatal error": func() error { return agent.Fatal(errors.New("told to crash")) },
		"panic":       func() error { panic("told to crash") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const waiting, load = 20, 8
			var lives atomic.Int64
			die := make(chan struct{})
			fragile := func() (agent.Handler, error) {
				life := lives.Add(1)
				return agent.HandlerFunc(func(*agent.Context, *envelope.Message) (any, error) {
					if life == 1 {
						<-die
						return nil, crash()
					}
					return map[string]any{"life": life}, nil
				}), nil
			}
			steady := func() (agent.Handler, error) {
				return agent.HandlerFunc(func(*agent.Context, *envelope.Message) (any, error) { return map[string]any{"ok": true}, nil }), nil
			}
			rt := agent.New(agent.Config{})
			if _, err := rt.Supervise(t.Context(), agent.SupervisorSpec{Name: "root", Children: []agent.Child{
				{Name: "fragile", New: fragile}, {Name: "steady", New: steady},
			}}); err != nil {
				t.Fatal(err)
			}
			post := door(t, rt, []gateway.Route{
				{Method: "POST", Path: "/v1/fragile", Agent: "fragile"}, {Method: "POST", Path: "/v1/steady", Agent: "steady"},
			})

			stop := make(chan struct{})
			var others sync.WaitGroup
			var answered atomic.Int64
			for range load {
				others.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						if status, _, body := post("/v1/steady", "{}"); status != 200 {
							t.Errorf("a call of another agent: %d %s", status, body)
							return
						}
						answered.Add(1)
					}
				})
			}
			type answer struct {
				status int
				body   string
			}
			failed := make(chan answer, waiting)
			for range waiting {
				go func() {
					status, _, body := post("/v1/fragile", "{}")
					failed <- answer{status, body}
				}()
			}
			for ref, _ := rt.Lookup("fragile"); !ref.Busy() || ref.Queued() < waiting-1; {
				runtime.Gosched()
			}
			close(die)
			for range waiting {
				if a := <-failed; a.status != 500 || !strings.Contains(a.body, "agent fragile: agent_crashed") {
					t.Errorf("a call that waited for it: %d %s", a.status, a.body)
				}
			}
			before := answered.Load()
			for answered.Load() < before+100 {
				runtime.Gosched()
			}
			close(stop)
			others.Wait()
			for { // between two lives nobody has the name
				status, _, body := post("/v1/fragile", "{}")
				if status == 200 && body == `{"life":2}` {
					break
				}
				if status != 404 {
					t.Fatalf("after the restart: %d %s", status, body)
				}
			}
		})
	}
}

// Far more calls than the agent can answer: each is answered or refused with a time to come again, none waits outside the
// bounds, and what the server holds on to is bounded by its connections.
func TestAFloodIsRefusedAndForgotten(t *testing.T) { // not beside others: it looks at what the process holds
	const clients, each, most = 200, 10, 16
	block := make(chan struct{})
	release := sync.OnceFunc(func() { close(block) })
	var deepest atomic.Int64
	rt := agent.New(agent.Config{})
	h := agent.HandlerFunc(func(*agent.Context, *envelope.Message) (any, error) {
		<-block
		burn(100 * time.Microsecond)
		return map[string]any{}, nil
	})
	ref, err := rt.Spawn(t.Context(), "work", h, agent.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	post := door(t, rt, []gateway.Route{{Method: "POST", Path: "/v1/work", Agent: "work", InFlight: most, Within: 2 * time.Millisecond}})
	flood := func(body string) (ok, refused int64) {
		var a, b atomic.Int64
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				for range each {
					status, header, text := post("/v1/work", body)
					switch {
					case status == 200 && text == `{}`:
						a.Add(1)
					case status == 503 && header.Get("Retry-After") == "1" && strings.Contains(text, "error"):
						if b.Add(1) == clients-most {
							release() // all the others have been told at once, while those inside wait
						}
					default:
						t.Errorf("%d %s", status, text)
						return
					}
					deepest.Store(max(deepest.Load(), int64(ref.Queued())))
				}
			})
		}
		wg.Wait()
		return a.Load(), b.Load()
	}
	ok, refused := flood("{}")
	if ok+refused != clients*each || ok < most || refused < clients-most {
		t.Errorf("%d answered and %d refused of %d; at least %d and %d", ok, refused, clients*each, most, clients-most)
	}
	if deepest.Load() >= most {
		t.Errorf("%d calls waited for the agent; the route lets %d in", deepest.Load(), most)
	}
	for range 20 {
		if status, _, text := post("/v1/work", "{}"); status != 200 {
			t.Errorf("after the flood: %d %s", status, text)
		}
	}
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := held()
	flood(fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 16<<10)))
	const perClient = 1 << 20 // of a connection: its buffers on both sides, not its requests
	if after := held(); after > before+clients*perClient {
		t.Errorf("%d bytes held after %d requests of 16 KiB, %d before", after, clients*each, before)
	}
}

// An agent that works past its caller's time, or that answers before it has done, has borrowed the connection's goroutine: the
// client is answered at once all the same, and the call's place among those in flight is free.
func TestAnAgentAtWorkHoldsUpNoClient(t *testing.T) {
	t.Parallel()
	late := func(c *agent.Context) (any, error) { return nil, nil }
	for name, x := range map[string]struct {
		begin  func(c *agent.Context) (any, error)
		status int
		body   string
	}{
		"late":       {late, 504, `{"error":"agent a: deadline"}`},
		"reply":      {func(c *agent.Context) (any, error) { return nil, c.Reply(map[string]any{"text": "<early>"}, nil) }, 200, `{"text":"\u003cearly\u003e"}`},
		"refusal":    {func(c *agent.Context) (any, error) { return nil, c.Reply(map[string]any{"error": "no"}, nil) }, 400, `{"error":"no"}`},
		"no JSON":    {func(c *agent.Context) (any, error) { return nil, c.Reply(make(chan int), nil) }, 500, `{"error":"the agent's answer is no JSON: json: unsupported type: chan int"}`},
		"its end":    {func(c *agent.Context) (any, error) { runtime.Goexit(); return nil, nil }, 500, `{"error":"agent a: agent_crashed: the handler called runtime.Goexit"}`},
		"in no time": {nil, 200, `{"expired":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, release, expired := make(chan struct{}, 1), make(chan struct{}), make(chan bool, 1)
			h := agent.HandlerFunc(func(c *agent.Context, _ *envelope.Message) (any, error) {
				if x.begin == nil {
					return map[string]any{"expired": c.Expired()}, nil
				}
				begun <- struct{}{}
				v, err := x.begin(c)
				<-release
				expired <- c.Expired()
				return v, err
			})
			rt := agent.New(agent.Config{})
			if _, err := rt.Spawn(t.Context(), "a", h, agent.Spec{}); err != nil {
				t.Fatal(err)
			}
			if _, err := rt.Spawn(t.Context(), "b", agent.HandlerFunc(func(*agent.Context, *envelope.Message) (any, error) { return nil, nil }), agent.Spec{}); err != nil {
				t.Fatal(err)
			}
			timeout := time.Hour
			if name == "late" {
				timeout = 20 * time.Millisecond
			}
			post := door(t, rt, []gateway.Route{
				{Method: "POST", Path: "/v1/a", Agent: "a", Timeout: timeout, InFlight: 1}, {Method: "POST", Path: "/v1/b", Agent: "b"},
			})
			status, header, body := post("/v1/a", "{}")
			if status != x.status || body != x.body || len(header.Get("X-Request-Id")) != 16 || header.Get("Content-Type") != "application/json" {
				t.Errorf("%d %s %v; want %d %s", status, body, header, x.status, x.body)
			}
			if status, _, body := post("/v1/b", "{}"); status != 200 || body != "null" {
				t.Errorf("the next call of this client: %d %s", status, body)
			}
			if name == "late" { // its place is free, the agent is not
				if status, _, body := post("/v1/a", "{}"); status != 504 {
					t.Errorf("another call: %d %s", status, body)
				}
			}
			close(release)
			if x.begin != nil && name != "its end" {
				if got := <-expired; got != (name == "late") {
					t.Errorf("whether somebody waits: expired %v", got)
				}
			}
		})
	}
}
