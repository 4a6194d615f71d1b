package report_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"toll/lab/result"
	"toll/published"
	"toll/report"
)

// Worked out by hand from the published figures and stages.
func TestWhatFollowsFromPublishedRows(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		table, label        string
		inFlight, vus       float64
		ceiling, of, unitsS float64
	}{
		{"civitas-fronts", "fib n=30", 48.53, 48.44, math.Inf(1), 0, 11.5},
		{"civitas-fronts", "fib n=20", 43.75, 43.75, math.Inf(1), 0, 936.8},
		{"civitas-fronts", "echo", 43.67, 43.75, math.Inf(1), 0, 4572.3},
		{"tmdevlab-fib", "Java (Spring Boot)", 1.356, 9.6875, 1761.36, .922, 81.2},
		{"tmdevlab-fib", "Node.js (official SDK)", 5.959, 9.6875, 1321.02, .423, 37.27},
	} {
		table, err := published.Load(x.table)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range table.Rows {
			if r.Label != x.label {
				continue
			}
			a := report.Follow(r.Figures)
			for what, v := range map[string][2]float64{
				"in flight": {a.InFlight, x.inFlight}, "VUs": {a.VUs, x.vus}, "ceiling": {a.Ceiling, x.ceiling}, "of it": {a.OfCeiling, x.of}, "units": {a.Units, x.unitsS},
			} {
				if v[0] != v[1] && math.Abs(v[0]-v[1]) > .002*v[1] {
					t.Errorf("%s: %s is %v, want %v", x.label, what, v[0], v[1])
				}
			}
		}
	}
}

func TestAGatewayStandsBesideWhatWasPublished(t *testing.T) {
	t.Parallel()
	var tables []published.Table
	for _, name := range []string{"civitas-fronts", "tmdevlab-fib"} {
		table, err := published.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	row := result.Row{
		Case: "echo", Phase: "plain", Concurrency: 50, Kind: result.Measured, Contender: result.Contender{Name: "toll"},
		Latency: &result.Latency{Mean: 2000, P95: result.Ptr(3000.)}, Throughput: result.Ptr(25000.),
		Server: &result.ServerCost{CPU: result.Ptr(38.5), RSSPeakMB: result.Ptr(30.)},
	}
	var b bytes.Buffer
	if err := report.BesideGateway(&b, tables, &result.Document{Benchmark: "gateway", Rows: []result.Row{row}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"9.55", "12.46", "4572", "toll", "2", "25000", "38.5 µs a call", "30.0 MB, peak", "28.8 % of a core", "226 MB, mean",
		"gap: no fib/30 plain at 50 VUs in this run", "none: their unit of work is another", "none: no think time", "1761", "92 %",
		"never divided", "Java (Spring Boot) at the stated 50 VUs: an iteration would have taken 596.5 ms", "explain 116.7",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
