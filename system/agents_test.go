package system_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toll/system"
)

// agentsOf starts a topology and returns how to ask its agents.
func agentsOf(t *testing.T, topology string, spans io.Writer) (r *system.Running, ask func(agent, body string) string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "t.yaml")
	if err := os.WriteFile(file, []byte(topology), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := system.Start(t.Context(), "agents", system.Config{Agents: system.Agents{Topology: file, Spans: spans}})
	if err != nil {
		t.Fatal(err)
	}
	return r, func(agent, body string) string {
		resp, err := http.Post(r.Addr+"/agents/"+agent, "application/json", strings.NewReader(body))
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return strings.TrimSpace(string(text))
	}
}

func TestTheClassesOfATopology(t *testing.T) {
	t.Parallel()
	var spans strings.Builder
	r, ask := agentsOf(t, `
schema: toll.topology/v1
root:
  supervisor: root
  children:
    - {agent: echo, class: echo}
    - {agent: fib, class: fib}
    - {agent: counter, class: counter}
    - {agent: front, class: relay, config: {to: counter}}
    - {agent: mirror, class: relay, config: {to: mirror}}
`, &spans)
	for _, x := range [][3]string{
		{"echo", `{"type":"x","payload":{"a":[1,"b"]}}`, `{"a":[1,"b"]}`},
		{"fib", `{"type":"x","payload":{"n":20}}`, `{"result":6765}`},
		{"fib", `{"type":"x","payload":{"n":41}}`, `{"code":"failed","error":"agent fib: failed: n: expected 0 to 40"}`},
		{"fib", `{"type":"x","payload":{"n":1.5}}`, `{"code":"failed","error":"agent fib: failed: n: expected 0 to 40"}`},
		{"counter", `{"type":"x"}`, `{"count":1}`},
		{"front", `{"type":"x"}`, `{"count":2}`},
		{"front", `{"type":"get"}`, `{"count":2}`},
		{"mirror", `{"type":"x"}`, `{"code":"failed","error":"agent mirror: failed: it would wait for itself"}`},
	} {
		if got := ask(x[0], x[1]); got != x[2] {
			t.Errorf("%s %s: %s, want %s", x[0], x[1], got, x[2])
		}
	}
	if err := r.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := r.Wait(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(spans.String(), "\n"); n < 10 {
		t.Errorf("%d spans of 10 messages", n)
	}
}

func TestTheEndOfTheRootIsTheEndOfTheSystem(t *testing.T) {
	t.Parallel()
	r, ask := agentsOf(t, "schema: toll.topology/v1\nroot: {supervisor: root, max_restarts: 1, children: [{agent: c, class: counter}]}", nil)
	for range 100 { // the second crash is one too many; asks between two lives find nobody
		ask("c", `{"type":"crash"}`)
		select {
		case <-r.Done():
			err := r.Wait()
			if want := "supervisor gave up: its children failed too often: 2 within 1m0s; the last was c: told to crash"; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
			if err := r.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
	<-r.Done()
}

func TestATopologyThatCantStartLeavesNothing(t *testing.T) {
	t.Parallel()
	for topology, want := range map[string]string{
		"schema: x": `: schema is "x"; expected toll.topology/v1`,
		"schema: toll.topology/v1\nroot: {supervisor: root, children: [{agent: a, class: relay}]}": `supervisor root: child a: config "to": expected the name of an agent`,
	} {
		file := filepath.Join(t.TempDir(), "t.yaml")
		if err := os.WriteFile(file, []byte(topology), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := system.Start(t.Context(), "agents", system.Config{Agents: system.Agents{Topology: file}})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A gateway before the agents of a topology: each mode of a route, a crash that the supervisor mends, and the end of the root.
func TestRoutesLeadToATopologysAgents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{
		"t.yaml": "schema: toll.topology/v1\nroot: {supervisor: root, max_restarts: 2, children: [{agent: counter, class: counter}, {agent: series, class: series}]}",
		"r.yaml": `schema: toll.gateway/v1
routes:
  - {method: POST, path: "/v1/agents/{name}", agent: "{name}"}
  - {method: POST, path: "/v1/agents/{name}/cast", agent: "{name}", mode: cast}
  - {method: GET, path: "/v1/series/{n}", agent: series, mode: stream}
`,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := system.Start(t.Context(), "gateway", system.Config{Routes: filepath.Join(dir, "r.yaml"), Agents: system.Agents{Topology: filepath.Join(dir, "t.yaml")}})
	if err != nil {
		t.Fatal(err)
	}
	do := func(method, path, kind string) string {
		req, err := http.NewRequestWithContext(t.Context(), method, r.Addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Civitas-Type", kind)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.Status[:3] + " " + string(text)
	}
	for _, x := range [][4]string{
		{"POST", "/v1/agents/counter", "x", `200 {"count":1}`},
		{"POST", "/v1/agents/counter/cast", "x", `202 {"status":"accepted"}`},
		{"POST", "/v1/agents/counter", "x", `200 {"count":3}`},
		{"POST", "/v1/agents/nobody", "x", `404 {"error":"agent nobody: not_found"}`},
		{"GET", "/v1/series/1", "x", "200 id: 0\ndata: {\"i\":0}\n\nevent: end\ndata: {}\n\n"},
		{"POST", "/v1/agents/counter", "crash", `500 {"error":"agent counter: agent_crashed: told to crash"}`},
	} {
		if got := do(x[0], x[1], x[2]); got != x[3] {
			t.Errorf("%s %s: %q, want %q", x[0], x[1], got, x[3])
		}
	}
	for do("POST", "/v1/agents/counter", "get") != `200 {"count":0}` { // between two lives nobody has the name
	}
	for over := false; !over; { // two more crashes are one too many
		do("POST", "/v1/agents/counter", "crash")
		select {
		case <-r.Done():
			over = true
		default:
		}
	}
	if err := r.Wait(); err == nil || !strings.Contains(err.Error(), "supervisor gave up") {
		t.Errorf("the end of the root: %v", err)
	}
	if err := r.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}
