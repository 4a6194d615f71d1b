package driver_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"toll/driver"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
)

// httpClients are those that call plain HTTP/1.1 on this system.
func httpClients() []string {
	if driver.LoopWorks {
		return []string{driver.ClientLoop, driver.ClientRaw, driver.ClientHTTP}
	}
	return []string{driver.ClientRaw, driver.ClientHTTP}
}

// post calls a fake server with a note.
func post(f *fake, client string) *driver.HTTP {
	return &driver.HTTP{
		Addr: f.addr(), Client: client, RawRequest: driver.RawRequest{Method: "POST", Body: []byte(`{"id":1,"note":"x"}`)},
		Expect: driver.Expect{Body: []byte(right(note{1, "x"}))},
	}
}

// put runs a load on a target and returns all that was measured.
func put(t *testing.T, target load.Target, vus int, l load.Load) (*record.Shard, load.Outcome) {
	t.Helper()
	c, err := load.Gather(t.Context(), target, vus)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out, err := c.Run(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return out.Shard(), out
}

func TestEveryClientNamesEachFailureAndRecovers(t *testing.T) {
	t.Parallel()
	for _, client := range httpClients() {
		for name, tt := range map[string]struct {
			first behaviour
			want  string // the first call's failure
		}{
			"right":         {answer, ""},
			"chunked":       {chunked, ""},
			"dribbled":      {dribble, ""},
			"until close":   {until, ""},
			"other body":    {body(func(note) string { return "{}" }), record.WrongContent},
			"status":        {text("503 Busy", "", right(note{1, "x"})), record.Status},
			"redirect":      {text("302 Found", "Location: /elsewhere\r\n", ""), record.Status},
			"garbage":       {verbatim("garbage\r\n\r\n", false), record.BadReply},
			"short body":    {verbatim("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", false), record.ShortBody},
			"closed":        {verbatim("", false), record.Closed},
			"silent":        {silent, record.Timeout},
			"closing reply": {text("200 OK", "Connection: close\r\n", right(note{1, "x"})), ""},
		} {
			t.Run(client+" "+name, func(t *testing.T) {
				t.Parallel()
				f := serve(t, "tcp", tt.first)
				sum, _ := put(t, post(f, client), 1, load.Load{Stages: plan.Hold(1, time.Minute), Calls: 5, Timeout: 300 * time.Millisecond})
				want := map[string]int64{}
				if tt.want != "" {
					want[tt.want] = 1
				}
				if fmt.Sprint(sum.Failures) != fmt.Sprint(want) && (len(sum.Failures) > 0 || len(want) > 0) || sum.Ops() != 5 {
					t.Errorf("%d calls, failures %v, want %v", sum.Ops(), sum.Failures, want)
				}
			})
		}
	}
}

func TestEveryClientCallsOverAUnixSocket(t *testing.T) {
	t.Parallel()
	for _, client := range httpClients() {
		f := serve(t, "unix", nil)
		h := post(f, client)
		h.Host = "nowhere.invalid" // is never looked up
		sum, _ := put(t, h, 3, load.Load{Stages: plan.Hold(3, time.Minute), Calls: 30})
		if sum.Latency.Count() != 30 || !strings.Contains(f.received(), "Host: nowhere.invalid\r\n") {
			t.Errorf("%s: %d successes, failures %v", client, sum.Latency.Count(), sum.Failures)
		}
	}
}

// The event loop counts and times as goroutines do: exact counts, each VU's active time in its calls, slices that add up.
func TestClientsRunOneLoadAlike(t *testing.T) {
	t.Parallel()
	for _, client := range httpClients() {
		f := serve(t, "tcp", nil)
		l := load.Load{Stages: plan.Hold(7, time.Hour), Calls: 1000, Slices: 5}
		sum, out := put(t, post(f, client), 7, l)
		if sum.Ops() != 1000 || sum.Failed() != 0 || f.requests.Load() != 1000 {
			t.Errorf("%s: %d calls, failures %v, %d arrived", client, sum.Ops(), sum.Failures, f.requests.Load())
		}
		if little := float64(sum.Active) / float64(sum.Latency.Sum()); little < .95 || little > 1.3 {
			t.Errorf("%s: Little ratio %.3f", client, little)
		}
		if len(out.Slices) != 5 || out.Elapsed <= 0 {
			t.Errorf("%s: %d slices, elapsed %v", client, len(out.Slices), out.Elapsed)
		}
	}
}

func TestEveryClientKeepsAnOpenLoadsAccounts(t *testing.T) {
	t.Parallel()
	for _, client := range httpClients() {
		f := serve(t, "tcp", nil)
		sum, out := put(t, post(f, client), 2, load.Load{Open: true, Stages: plan.Hold(500, 400*time.Millisecond)})
		if out.Arrivals != 200 || sum.Ops() != 200 || sum.Failed() != 0 || sum.Service.Count() != 200 || sum.Late.Count() != 200 {
			t.Errorf("%s: %d arrivals, %d calls, failures %v, %d sent", client, out.Arrivals, sum.Ops(), sum.Failures, sum.Late.Count())
		}
		if sum.Latency.Sum() < sum.Service.Sum() {
			t.Errorf("%s: responses took %d ns, the services in them %d", client, sum.Latency.Sum(), sum.Service.Sum())
		}
	}
}

// Nobody answers: each call in flight times out, the others are dropped, and all are accounted for.
func TestEveryClientDropsWhatItMayNotSend(t *testing.T) {
	t.Parallel()
	for _, client := range httpClients() {
		addr := strings.Replace(accepting(t, "tcp", func(nc net.Conn) { io.Copy(io.Discard, nc) }), "tcp:", "http:", 1)
		h := &driver.HTTP{Addr: addr, Client: client}
		sum, out := put(t, h, 1, load.Load{Open: true, Stages: plan.Hold(200, 500*time.Millisecond), InFlight: 3, Timeout: 100 * time.Millisecond})
		if out.Arrivals != 100 || sum.Ops()+sum.Dropped != 100 || sum.Failures[record.Timeout] != sum.Ops() || out.InFlightMost != 3 || sum.Dropped == 0 {
			t.Errorf("%s: %d arrivals: %d sent, %d dropped, %v; %d in flight", client, out.Arrivals, sum.Ops(), sum.Dropped, sum.Failures, out.InFlightMost)
		}
		if sum.Latency.Count() != 0 || sum.Failing.Min() < int64(100*time.Millisecond) {
			t.Errorf("%s: %d successes; the shortest timeout took %v", client, sum.Latency.Count(), time.Duration(sum.Failing.Min()))
		}
	}
}

// A target that goes away in the middle of a load and comes back.
func TestEveryClientSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	for _, client := range httpClients() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		hundred := make(chan struct{})
		f := serveOn(t, l, nil)
		f.at(100, func() { close(hundred) })
		c, err := load.Gather(t.Context(), post(f, client), 2)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan load.Outcome, 1)
		go func() {
			out, _ := c.Run(t.Context(), load.Load{Stages: plan.Hold(2, time.Minute), Calls: 4000, Timeout: time.Second})
			done <- out
		}()
		<-hundred
		f.close()
		back, err := net.Listen("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		again := serveOn(t, back, nil)
		out := <-done
		sum := out.Shard()
		c.Close()
		if sum.Ops() != 4000 || sum.Failed() == 0 && client != driver.ClientHTTP || // net/http sends again by itself
			sum.Failed() > 1000 || again.requests.Load() == 0 {
			t.Errorf("%s: %d calls, failures %v", client, sum.Ops(), sum.Failures)
		}
	}
}

// A request larger than the socket's buffers is sent as there is room.
func TestEveryClientSendsALargeRequest(t *testing.T) {
	t.Parallel()
	for _, client := range httpClients() {
		f := serve(t, "tcp", body(func(note) string { return "{}" }))
		h := post(f, client)
		h.Body = []byte(`{"id":1,"note":"` + strings.Repeat("x", 8<<20) + `"}`)
		h.Expect = driver.Expect{}
		sum, _ := put(t, h, 1, load.Load{Stages: plan.Hold(1, time.Minute), Calls: 1, Timeout: 20 * time.Second})
		if sum.Latency.Count() != 1 || f.requests.Load() != 1 {
			t.Errorf("%s: %d successes, failures %v", client, sum.Latency.Count(), sum.Failures)
		}
	}
}

func TestFreshConnectionsAreTimedApart(t *testing.T) {
	t.Parallel()
	f := serve(t, "tcp", nil)
	h := post(f, driver.ClientRaw)
	h.Fresh = true
	sum, _ := put(t, h, 2, load.Load{Stages: plan.Hold(2, time.Minute), Calls: 20})
	for _, part := range []string{"connect", "first_byte"} {
		p := sum.Parts[part]
		if p == nil || p.Count() != 20 || p.Sum() >= sum.Latency.Sum() {
			t.Errorf("part %s: %+v", part, p != nil)
		}
	}
	if len(f.conns) < 20 {
		t.Errorf("%d connections for 20 calls", len(f.conns))
	}
}

func TestASessionCarriesValuesAndTimesItsSteps(t *testing.T) {
	t.Parallel()
	f := serve(t, "tcp", nil)
	steps := []driver.Step{
		{Name: "open", Method: "POST", Path: "/s", Body: `{"id":${iteration},"note":"from ${vu}"}`, Keep: map[string][]string{"text": {"note"}}},
		{Name: "use", Method: "POST", Path: "/u", Body: `{"id":2,"note":"${text}"}`, Expect: driver.Expect{JSON: []driver.JSONWant{{Path: []string{"note"}, Value: "from 1"}}}, Think: time.Millisecond},
		{Name: "never", Needs: "absent", Path: "/n"},
	}
	h := &driver.HTTP{Addr: f.addr(), Steps: steps}
	sum, _ := put(t, h, 1, load.Load{Stages: plan.Hold(1, time.Minute), Calls: 10})
	if sum.Latency.Count() != 10 || sum.Parts["open"].Count() != 10 || sum.Parts["use"].Count() != 10 || sum.Parts["never"] != nil {
		t.Fatalf("%d iterations, failures %v", sum.Latency.Count(), sum.Failures)
	}
	if parts := sum.Parts["open"].Sum() + sum.Parts["use"].Sum(); parts != sum.Latency.Sum() {
		t.Errorf("the steps took %d ns, their iterations %d", parts, sum.Latency.Sum())
	}
	if !strings.Contains(f.received(), `{"id":10,"note":"from 1"}`) {
		t.Error("the tenth iteration's number is not in what was sent")
	}
	steps[1].Expect.JSON[0].Value = "another"
	sum, _ = put(t, h, 1, load.Load{Stages: plan.Hold(1, time.Minute), Calls: 3})
	if sum.Failures[record.WrongContent] != 3 || sum.BadParts["use"] != 3 || sum.BadParts["open"] != 0 {
		t.Errorf("failures %v by step %v", sum.Failures, sum.BadParts)
	}
}

// A step that needs what was not kept is left out: a session's end is sent only where the server gave it an id.
func TestASessionKeepsHeaderFields(t *testing.T) {
	t.Parallel()
	for _, given := range []bool{true, false} {
		field := ""
		if given {
			field = "X-Session-Id: s-17\r\n"
		}
		f := serve(t, "tcp", text("200 OK", field, right(note{1, "x"})))
		h := &driver.HTTP{Addr: f.addr(), Steps: []driver.Step{
			{Name: "open", Method: "POST", Body: `{"id":1,"note":"x"}`, Fields: map[string]string{"sid": "x-session-id"}},
			{Name: "end", Method: "DELETE", Header: []string{"X-Session-Id: ${sid}"}, Body: `{"id":1,"note":"x"}`, Needs: "sid"},
		}}
		sum, _ := put(t, h, 1, load.Load{Stages: plan.Hold(1, time.Minute), Calls: 1})
		if ended := sum.Parts["end"] != nil; sum.Latency.Count() != 1 || ended != given || strings.Contains(f.received(), "X-Session-Id: s-17\r\n") != given {
			t.Errorf("id given %v: %d iterations, failures %v, ended %v", given, sum.Latency.Count(), sum.Failures, ended)
		}
	}
}

func TestBadSessions(t *testing.T) {
	t.Parallel()
	for want, steps := range map[string][]driver.Step{
		"step 1 has no name":                                                           {{}},
		"step a uses ${x}, which no earlier step keeps":                                {{Name: "a", Body: "${x}"}},
		`step a needs "x", which no earlier step keeps`:                                {{Name: "a", Needs: "x"}},
		`step a: path "no slash": want / and no space, control or non-ASCII character`: {{Name: "a", Path: "no slash"}},
	} {
		if err := driver.Check(steps); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestJSONWants(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"status=done": true, "id=1": true, "id=2": false, "note": true, "missing": false, "$.status=done": true, "owner=x": true, "owner.x": false,
	} {
		w, err := driver.ParseJSONWant(text)
		if err != nil {
			t.Fatal(err)
		}
		f := serve(t, "tcp", nil)
		h := post(f, driver.ClientRaw)
		h.Expect = driver.Expect{JSON: []driver.JSONWant{w}}
		if _, err := h.Once(t.Context()); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, bad := range []string{"a[x]=1", "a[1", "a..b", "a."} {
		if w, err := driver.ParseJSONWant(bad); err == nil {
			t.Errorf("%q is %+v, want an error", bad, w)
		}
	}
}

func FuzzParseJSONWant(f *testing.F) {
	for _, s := range []string{"a.b[0].c=5", "$", "a", "=", "a[=1", "[0][1]=x", "a..b", ".=", "a]b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, err := driver.ParseJSONWant(s)
		if err == nil && w.Any == strings.Contains(s, "=") {
			t.Errorf("%q: any value %v", s, w.Any)
		}
		for _, p := range w.Path {
			if p == "" {
				t.Errorf("%q: an empty name in %q", s, w.Path)
			}
		}
	})
}

// A tool's result is JSON within a text, at times in an event: what it must hold is looked for within it. Where that is not
// there the iteration fails, or, eased, is counted and doubted.
func TestASessionLooksIntoTextsAndEvents(t *testing.T) {
	t.Parallel()
	const inner = `{"text":"{\"n\":7}"}`
	for _, c := range []struct {
		value  string
		eased  bool
		ok     int64
		failed int64
	}{{"7", false, 1, 0}, {"8", false, 0, 1}, {"8", true, 1, 1}} {
		f := serve(t, "tcp", text("200 OK", "Content-Type: text/event-stream\r\n", "id: 1\ndata:\n\nevent: message\ndata:"+inner+"\n\n"))
		h := &driver.HTTP{Addr: f.addr(), Steps: []driver.Step{{
			Name: "call", Method: "POST", Body: "{}", Also: []string{"all"}, Eased: c.eased,
			Header: []string{"X-Session-Id: ${sid}", "X-VU: u-${vu:5}"},
			Expect: driver.Expect{JSON: []driver.JSONWant{{Path: []string{"text", "@json", "n"}, Value: c.value}}},
		}}}
		sum, _ := put(t, h, 1, load.Load{Stages: plan.Hold(1, time.Minute), Calls: 1})
		if sum.Latency.Count() != c.ok || sum.BadParts["call"] != c.failed || (sum.Doubted > 0) != c.eased {
			t.Errorf("%+v: %d iterations, failures %v, failed parts %v, %d doubted", c, sum.Latency.Count(), sum.Failures, sum.BadParts, sum.Doubted)
		}
		if c.ok > 0 && sum.Parts["all"].Count() != 1 {
			t.Errorf("%+v: the set holds %d requests", c, sum.Parts["all"].Count())
		}
		if got := f.received(); strings.Contains(got, "X-Session-Id") || !strings.Contains(got, "X-VU: u-00001\r\n") {
			t.Errorf("sent: %.300q", got)
		}
	}
}

// A session whose connection was idle for longer than servers keep one begins on a new one.
func TestASessionDoesNotTrustAnIdleConnection(t *testing.T) {
	t.Parallel()
	f := serve(t, "tcp", nil)
	h := &driver.HTTP{Addr: f.addr(), Steps: []driver.Step{{Name: "call", Method: "POST", Body: `{"id":1,"note":"x"}`}}}
	c, err := h.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer load.Close(c)
	for i, want := range []int{1, 1, 2} {
		if i == 2 {
			driver.Age(c)
		}
		if err := c.Call(t.Context(), driver.NoMark()); err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		if len(f.conns) != want {
			t.Errorf("call %d: %d connections, want %d", i+1, len(f.conns), want)
		}
		f.mu.Unlock()
	}
}
