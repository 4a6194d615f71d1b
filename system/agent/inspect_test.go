package agent_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"toll/system/agent"
	"toll/wire/envelope"
)

func TestInspection(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	top, err := agent.ParseTopology("shop.yaml", data, kit())
	if err != nil {
		t.Fatal(err)
	}
	rt := agent.New(top.Config(agent.Config{}))
	if _, err := top.Run(t.Context(), rt, kit()); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(agent.Inspect(rt))
	t.Cleanup(s.Close)
	do := func(method, path, body string) (int, string) {
		req, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, strings.TrimSpace(string(text))
	}
	worker, _ := rt.Lookup("worker")
	worker.Tell(t.Context(), &envelope.Message{Type: "crash", Sender: "me", Recipient: "worker"})
	if err := worker.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(rt.DeadLetters()) == 1 })
	for _, x := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/health", "", 200, `{"live":1,"status":"up"}`},
		{"GET", "/agents/echo", "", 200, `{"kind":"agent","name":"echo","state":"running","epoch":1}`},
		{"GET", "/agents/nobody", "", 404, `{"code":"not_found","error":"agent nobody: not_found"}`},
		{"GET", "/tree", "", 200, `[{"kind":"supervisor","name":"root","state":"up","children":[{"kind":"agent","name":"echo",`},
		{"GET", "/dead-letters", "", 200, `[{"type":"crash","sender":"me","recipient":"worker","attempt":0,"error":"agent worker: agent_crashed: panic: boom"}]`},
		{"POST", "/agents/echo", `{"type":"x","payload":{"n":1}}`, 200, `{"greeting":"hello","payload":{"n":1}}`},
		{"POST", "/agents/echo", `{"type":"_agency.shutdown"}`, 400, `{"error":"type \"_agency.shutdown\" is the runtime's own"}`},
		{"POST", "/agents/nobody", `{"type":"x"}`, 404, `{"code":"not_found",`},
		{"POST", "/spawn", `{"supervisor":"sessions","class":"echo","name":"s","spawner":"me"}`, 201, `{"kind":"agent","name":"s","state":"running",`},
		{"POST", "/spawn", `{"supervisor":"sessions","class":"echo","name":"s","spawner":"me"}`, 409, `{"error":"spawn s: duplicate_name: an agent has this name","reason":"duplicate_name"}`},
		{"POST", "/spawn", `{"colour":"red"}`, 400, `{"error":"json: unknown field \"colour\""}`},
		{"POST", "/spawn", `{} {}`, 400, `{"error":"more than one value"}`},
		{"POST", "/spawn", `{"name":"` + strings.Repeat("x", 70_000) + `"}`, 400, `{"error":"http: request body too large"}`},
		{"POST", "/despawn", `{"supervisor":"sessions","name":"s","drain":"soon"}`, 400, `{"error":"drain is one of`},
		{"POST", "/despawn", `{"supervisor":"nobody","name":"s"}`, 404, `{"code":"not_found",`},
		{"POST", "/despawn", `{"supervisor":"sessions","name":"echo"}`, 404, `{"code":"not_found",`},
		{"POST", "/despawn", `{"supervisor":"sessions","name":"s","drain":"all"}`, 200, `{"name":"s","state":"gone"}`},
		{"GET", "/counts", "", 200, `{"Live":1,"Handled":1,"Crashes":1,`},
	} {
		if status, got := do(x.method, x.path, x.body); status != x.status || !strings.HasPrefix(got, x.want) {
			t.Errorf("%s %s %.60s: %d %s\nwant %d %s", x.method, x.path, x.body, status, got, x.status, x.want)
		}
	}
	_, metrics := do("GET", "/metrics", "")
	for _, want := range []string{"toll_agent_live 1", "toll_agent_crashes_total 1", "toll_agent_dead_letters_total 1", "# TYPE toll_agent_handled_total counter"} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("no %q in\n%s", want, metrics)
		}
	}
	if err := rt.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if status, got := do("GET", "/health", ""); status != 503 {
		t.Errorf("closed: %d %s", status, got)
	}
}

// A span stands below the one that its message carried, also across agents, and a crash ends its span with an error.
func TestSpansFollowMessages(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(recorder))
	rt := newRuntime(t, agent.Config{Observer: agent.Spans(provider)})
	spawn(t, rt, "back", newScript(), agent.Spec{})
	front := spawn(t, rt, "front", agent.HandlerFunc(func(c *agent.Context, m *envelope.Message) (any, error) {
		return c.Runtime().Call(c.Context(), c.Derive("back", m.Type, m.Payload))
	}), agent.Spec{})
	m := &envelope.Message{Type: "x", TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331"}
	if _, err := front.Ask(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if m.SpanID != "b7ad6b7169203331" || m.ParentSpanID != "" {
		t.Errorf("the caller's message was left as %+v", m)
	}
	_, err := front.Ask(t.Context(), &envelope.Message{Type: "panic"})
	wantCode(t, err, envelope.Crashed)
	waitFor(t, func() bool { return len(recorder.Ended()) == 4 })
	spans := recorder.Ended()
	back, above := spans[0], spans[1]
	if above.Parent().SpanID().String() != "b7ad6b7169203331" || above.SpanContext().TraceID().String() != m.TraceID ||
		back.Parent().SpanID() != above.SpanContext().SpanID() || back.Name() != "handle x" {
		t.Errorf("front below %v, back below %v", above.Parent().SpanID(), back.Parent().SpanID())
	}
	if got := spans[2].Status().Description; got != "the handler crashed" {
		t.Errorf("the crash ended its span with %q", got)
	}
}
