package agent_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"toll/system/agent"
)

func TestTheSpawnServer(t *testing.T) {
	t.Parallel()
	closed := 0
	s, err := agent.NewSpawnServer(agent.Class{New: func(map[string]any) (agent.Handler, error) { return echo(), nil }}, func() error { closed++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(l); err != nil {
			t.Error(err)
		}
	})
	post := func(path, body string) (int, string) {
		resp, err := http.Post("http://"+l.Addr().String()+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	for _, x := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v1/live", `{"id":1,"count":5}`, 200, `{"id":1,"status":"ok","spawned":5,"live":5,"child":"child-0",`},
		{"/v1/spawn", `{"id":2,"count":3}`, 200, `{"id":2,"status":"ok","spawned":3,"live":5,"child":"child-2",`},
		{"/v1/noop", `{"id":3,"count":3}`, 200, `{"id":3,"status":"ok","spawned":0,"live":5,"child":"child-3","ready_ns":0,"gone_ns":0}`},
		{"/v1/live", `{"id":4,"count":2}`, 200, `{"id":4,"status":"ok","spawned":2,"live":2,`},
		{"/v1/spawn", `{"id":5}`, 400, `{"error":"count is 0; expected up to 1024","id":5,"status":"error"}`},
		{"/v1/spawn", `{"id":5,"count":1025}`, 400, `{"error":"count is 1025; expected up to 1024","id":5,"status":"error"}`},
		{"/v1/spawn", `{"id":5,"count":-1}`, 400, `{"error":"count is -1;`},
		{"/v1/spawn", `[]`, 400, `{"error":"body: json: cannot unmarshal`},
		{"/v1/despawn", `{}`, 404, `{"error":"no route \"/v1/despawn\"","id":0,"status":"error"}`},
	} {
		if status, got := post(x.path, x.body); status != x.status || !strings.HasPrefix(got, x.want) {
			t.Errorf("%s %s: %d %s\nwant %d %s", x.path, x.body, status, got, x.status, x.want)
		}
	}
	resp, err := http.Get("http://" + l.Addr().String() + "/v1/spawn")
	if err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %v, %v", resp, err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if closed != 1 {
		t.Errorf("its isolation was closed %d times", closed)
	}
}

func TestTheSpawnServerSaysWhatFailed(t *testing.T) {
	t.Parallel()
	n := 0
	s, err := agent.NewSpawnServer(agent.Class{New: func(map[string]any) (agent.Handler, error) {
		if n++; n == 3 {
			return nil, errors.New("no third")
		}
		return echo(), nil
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Shutdown(context.Background())
	resp, err := http.Post("http://"+l.Addr().String()+"/v1/spawn", "application/json", strings.NewReader(`{"id":2,"count":3}`))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if want := `{"error":"spawn child-2: bad_config: no third","id":2,"status":"error"}`; resp.StatusCode != 503 || string(text) != want {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	http.DefaultClient.CloseIdleConnections()
}
