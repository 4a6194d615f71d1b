package report_test

import (
	"bytes"
	"strings"
	"testing"

	"toll/lab/result"
	"toll/published"
	"toll/report"
)

func TestAPublishedMethodStandsBesideOurs(t *testing.T) {
	t.Parallel()
	table, err := published.Load("tmdevlab-v1")
	if err != nil {
		t.Fatal(err)
	}
	row := func(name, role string, cpu float64, ratio *result.Ratio) result.Row {
		return result.Row{
			Case: "tmdevlab/v1", Phase: "tcp", Concurrency: 10, Kind: result.Measured, Role: role, Contender: result.Contender{Name: name},
			Ops: 1000, OK: 1000, ElapsedS: 12.5, Throughput: result.Ptr(80.0), Ceiling: result.Ptr(88.07), CPURatio: ratio, CPURank: "1–2",
			Server: &result.ServerCost{CPU: &cpu, RSSPeakMB: result.Ptr(17.0)}, Client: result.ClientCost{CPU: result.Ptr(1200.0)},
			Parts: map[string]result.Part{
				"http":       {Count: 20_000, Latency: result.Latency{Mean: 800, P50: 200, P95: result.Ptr(9000.0)}},
				"tools":      {Count: 4000, Latency: result.Latency{Mean: 3000}},
				"tools_list": {Count: 1000, Latency: result.Latency{Mean: 250}},
			},
		}
	}
	d := &result.Document{Benchmark: "tools", Rows: []result.Row{
		row("toll", result.Baseline, 1000, nil),
		row("go-sdk-1-2-tools", "", 3000, &result.Ratio{Value: 3, Lo: result.Ptr(2.5), Hi: result.Ptr(3.5)}),
	}}
	var b bytes.Buffer
	if err := report.Iterations(&b, table, map[string]string{"java": "spring-ai", "go": "go-sdk-1-2-tools"}, d); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"what an iteration of tmdevlab/v1 at 10 users costs\n",
		"  toll = 1          80.0      90.8 %       20    1600     0.80  0.20  9.00    –      3.00    –       1.00        –    1.20                 1  1–2\n",
		"3.00 (2.50–3.50)  1–2\n",
		"  mean ms of each request  tools_list\n  toll = 1                 0.25\n",
		"  1 java      0.835   10.19  1624   28.8  226  spring-ai: see gaps  ",
		"  2 go        0.855   10.03  1624   31.8   18     go-sdk-1-2-tools     0.80    9.00    1600   24.0  17.0          1–2  3.00 (2.50–3.50)\n",
		"never divided by ours\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}
