package report_test

import (
	"bytes"
	"math"
	"regexp"
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
		{"civitas-gateway", "civitas (n=30)", 48.53, 48.44, math.Inf(1), 0, 11.5},
		{"civitas-gateway", "civitas (n=20)", 43.75, 43.75, math.Inf(1), 0, 936.8},
		{"civitas-gateway", "civitas (echo)", 43.67, 43.75, math.Inf(1), 0, 4572.3},
		{"tmdevlab-v1", "java", 1.356, 9.6875, 1761.36, .922, 81.2},
		{"tmdevlab-v1", "nodejs", 5.959, 9.6875, 1321.02, .423, 37.27},
	} {
		table, err := published.Load(x.table)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range table.Rows {
			if r.Label != x.label {
				continue
			}
			a := report.Follow(table, r)
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
	for _, name := range []string{"civitas-gateway", "tmdevlab-v1"} {
		table, err := published.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	row := result.Row{
		Case: "echo", Phase: "plain", Concurrency: 50, Kind: result.Measured, OK: 1000, Contender: result.Contender{Name: "toll"},
		Latency: &result.Latency{Mean: 2000, P95: result.Ptr(3000.)}, Throughput: result.Ptr(25000.),
		Server: &result.ServerCost{CPU: result.Ptr(38.5), RSSPeakMB: result.Ptr(30.)},
	}
	guest := row
	guest.Contender.Name, guest.Throughput = "civitas", result.Ptr(2222.)
	var b bytes.Buffer
	if err := report.BesideGateway(&b, tables, &result.Document{Benchmark: "gateway", Rows: []result.Row{row, guest}}); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`civitas \(echo\) +9.55 +12.46 +4572 +civitas +2 +3 +2222\n +toll +2 +3 +25000\n`).MatchString(b.String()) {
		t.Errorf("the published contender and ours are not beside what was published:\n%s", b.String())
	}
	for _, want := range []string{
		"9.55", "12.46", "4572", "toll", "2", "25000", "38.5 µs a call", "30.0 MB, peak", "28.8 % of a core", "226 MB, mean",
		"gap: no fib/30 plain at 50 VUs in this run", "none: their unit of work is another", "none: no think time", "1761", "92 %",
		"never divided", "java at the stated 50 VUs: an iteration would have taken 596.5 ms", "explain 116.7",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
