package report_test

import (
	"bytes"
	"strings"
	"testing"

	"toll/lab/result"
	"toll/published"
	"toll/report"
)

func TestAPublishedBusStandsBesideOurs(t *testing.T) {
	t.Parallel()
	table, err := published.Load("civitas-bus")
	if err != nil {
		t.Fatal(err)
	}
	d := &result.Document{Benchmark: "bus", Rows: []result.Row{{
		Case: "rtt/128B", Phase: "brokered", Concurrency: 1, Kind: result.Measured, Contender: result.Contender{Name: "zmtp-proxy"},
		Latency: &result.Latency{Mean: 100, P50: 90, P95: result.Ptr(200.0)}, Throughput: result.Ptr(9999.0),
	}}}
	var b bytes.Buffer
	if err := report.BesideBus(&b, table, d); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"zmtp-proxy, rtt/128B, never divided", "  1           0.750    0.850       1333.9      0.100    0.200       9999.0\n",
		"  50          4.820    5.510      10367.1   gap: this run has no row with so many callers\n", "announces a NATS variant",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := report.BesideBus(&b, table, &result.Document{Benchmark: "bus"}); err != nil || b.Len() > 0 {
		t.Errorf("without the topology: %q, %v", b.String(), err)
	}
}
