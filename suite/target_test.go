package suite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"toll/contender"
	"toll/lab"
	"toll/lab/check"
	"toll/lab/plan"
	"toll/lab/result"
	"toll/suite"
)

// serveHost is the test binary as a host of a benchmark.
func serveHost(ctx context.Context, benchmark, addr string) error {
	h, err := suite.OpenHost(ctx, benchmark, addr, "test", plan.Quota{}, false)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"ready": h.Addr, "version": "test"}); err != nil {
		return errors.Join(err, h.Close())
	}
	io.Copy(io.Discard, os.Stdin)
	return h.Close()
}

// targetPlan is a short one of a benchmark.
func targetPlan(benchmark, name, phase, baseline string, contenders ...string) plan.Plan {
	return plan.Plan{
		Schema: plan.Schema, Benchmark: benchmark, Cases: []string{name}, Phases: []string{phase}, Contenders: append(contenders, baseline, "floor"), Baseline: baseline,
		Settings: plan.Settings{
			Model: plan.Closed, Order: plan.Shuffled, Concurrency: []int{1}, Rounds: 2, Blocks: 6, Calls: 20, Warmup: 20, Timeout: plan.Duration(5 * time.Second),
		},
	}
}

// runAt measures p's contenders at a target and holds every rule of the document.
func runAt(t *testing.T, p plan.Plan, target string) *result.Document {
	t.Helper()
	b, err := suite.Lookup(p.Benchmark)
	if err != nil {
		t.Fatal(err)
	}
	g, err := suite.GroundOf(p, false)
	if err != nil {
		t.Fatal(err)
	}
	g.Target = target
	open, err := b.OpenOn(t.Context(), g, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	d, err := lab.Run(t.Context(), p, open, lab.Options{Settings: p.Settings, Claimed: p.Settings, Seed: 5, Hop: open.Hop})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range check.Rules(d) {
		if v.Rule != 7 { // there is no null target in these plans
			t.Errorf("%v", v)
		}
	}
	return d
}

// costsKnown wants every row's server's cost and a hop that is named and measured.
func costsKnown(t *testing.T, d *result.Document, rows int) {
	t.Helper()
	if len(d.Rows) != rows || d.Method.Hop.Kind != result.RemoteHost || d.Method.Hop.MeasuredRTT == nil {
		t.Fatalf("%d rows, hop %+v; gaps %v", len(d.Rows), d.Method.Hop, d.Gaps)
	}
	for _, r := range d.Rows {
		if r.Server == nil || r.Server.CPU == nil || r.Server.RSSPeakMB == nil || r.Contender.Version != "test" || len(r.Contender.CommandSHA256) != 64 || r.OK != 120 {
			t.Errorf("%s: %d ok, server %+v, %+v", r.ID(), r.OK, r.Server, r.Contender)
		}
	}
	if len(d.Method.Deviations) != 1 || d.Method.Deviations[0].What != "processes" {
		t.Errorf("a target's processes live through all rounds, the deviations are %v", d.Method.Deviations)
	}
}

// hostport is where a process answers.
func hostport(p *contender.Process) string { return strings.TrimPrefix(p.Ready().Addr, "http://") }

func TestATargetsGatewayIsCalled(t *testing.T) {
	t.Parallel()
	host := process(t, "gateway-host", "--addr", "127.0.0.1:0")
	d := runAt(t, targetPlan("gateway", "echo", "plain", "nethttp", "toll"), hostport(host))
	costsKnown(t, d, 4)
}

func TestATargetsSpawnerIsCalled(t *testing.T) {
	t.Parallel()
	host := process(t, "spawn-host", "--addr", "127.0.0.1:0")
	d := runAt(t, targetPlan("spawn", "spawn/1", "http", "no-op", "toll-goroutine"), hostport(host))
	costsKnown(t, d, 4)
}

// Whatever is wrong with a target is said before any load, port by port.
func TestATargetIsLookedAtFirst(t *testing.T) {
	t.Parallel()
	closed := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	one, two, three := closed(), closed(), closed()
	report := func(schema, benchmark string) string {
		return fmt.Sprintf(`{"schema":%q,"benchmark":%q,"version":"x","limits":{},"processes":[
			{"name":"toll","addr":"http://%s"},{"name":"nethttp","addr":"http://%s"},{"name":"floor","addr":"tcp://%s"},{"name":"other","addr":"tcp://1.2.3.4:5"}]}`,
			schema, benchmark, one, two, three)
	}
	fake := func(status int, text string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, text)
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	port := func(addr string) string { _, p, _ := net.SplitHostPort(addr); return p }
	limited := targetPlan("gateway", "echo", "plain", "nethttp", "toll")
	limited.Limits = plan.Quota{CPUs: 1}
	plain := targetPlan("gateway", "echo", "plain", "nethttp", "toll")
	hopped := plain
	hopped.Hop = "netns"
	silent := closed()
	for _, x := range []struct {
		plan         plan.Plan
		target, want string
	}{
		{plain, silent, fmt.Sprintf("the target is not ready: no answer at %s (connection refused); start there: toll serve gateway-host --addr %[1]s", silent)},
		{plain, fake(200, report("toll.host/v1", "gateway")), fmt.Sprintf("the target is not ready: no answer at %s (connection refused), %s (connection refused), %s (connection refused)", one, two, three)},
		{plain, fake(200, report("toll.host/v1", "spawn")), "serves the benchmark spawn, not gateway"},
		{plain, fake(200, report("toll.host/v9", "gateway")), `answers with schema "toll.host/v9"; want toll.host/v1`},
		{plain, fake(200, `[]`), "its answer is not the host's of a benchmark: json: cannot unmarshal array"},
		{plain, fake(404, "no route"), "/v1/host answers 404 Not Found: no route; start there: toll serve gateway-host"},
		{limited, fake(200, report("toll.host/v1", "gateway")), "the plan limits contenders to 1 CPU, 127.0.0.1:"},
		{plain, "127.0.0.1:x", `--target: port "x": want 1 to 65519, with free ones behind it, or 0 for any`},
		{hopped, "127.0.0.1", "--target 127.0.0.1: the hop netns is to processes of this machine; give one of them"},
		{targetPlan("receipt", "receipt/volatile", "http", "sync"), "127.0.0.1", "benchmark receipt: --target is for the benchmarks bus, gateway, spawn"},
		{targetPlan("bus", "rtt/128B", "direct", "direct"), "127.0.0.1:" + port(silent), "the target is not ready: no answer at 127.0.0.1:"},
	} {
		b, err := suite.Lookup(x.plan.Benchmark)
		if err != nil {
			t.Fatal(err)
		}
		g, err := suite.GroundOf(plan.Plan{}, false)
		if err != nil {
			t.Fatal(err)
		}
		g.Target = x.target
		if _, err := b.OpenOn(t.Context(), g, x.plan, nil); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want %s", x.target, err, x.want)
		}
	}
}
