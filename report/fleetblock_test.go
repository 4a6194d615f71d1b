package report_test

import (
	"bytes"
	"strings"
	"testing"

	"toll/lab/result"
	"toll/report"
)

// fleetDocument is that of a load which a fleet of three put on its target; one worker was lost, one was not quick enough.
func fleetDocument(t *testing.T) *result.Document {
	t.Helper()
	d := document(t)
	r := &d.Rows[0]
	latency := func(p50, p99 float64) *result.Latency { return &result.Latency{P50: p50, P99: &p99, Max: 9 * p99} }
	r.Fleet = &result.Fleet{
		Verdict: result.FleetDegraded, Detail: "worker host-c lost at 4.0 s", OnLoss: "invalidate", WorkersExpected: 3, WorkersComplete: 2, SlicesExpected: 30, SlicesGot: 24,
		Duplicates: 2, MergedS: 3, ClockBound: 41, StartSpread: result.Ptr(730.), ControlCPU: result.Ptr(.0071),
		Workers: []result.FleetWorker{
			{Worker: "host-a", Complete: true, SlicesGot: 10, OK: 3000, Throughput: result.Ptr(1000.), Latency: latency(101, 202), Calibrated: result.Ptr(5000.), CPU: result.Ptr(.31), Flags: []string{}},
			{Worker: "host-b", Complete: true, SlicesGot: 10, OK: 2900, Failed: 7, Throughput: result.Ptr(966.7), Latency: latency(103, 808), LateP99: result.Ptr(6100.), CPU: result.Ptr(.87), Flags: []string{"straggler", "client-bound"}},
			{Worker: "host-c", SlicesGot: 4, OK: 2800, Throughput: result.Ptr(933.3), Latency: latency(99, 199), Lost: "no word for 15.0 s", Flags: []string{}},
		},
		Events: []result.FleetEvent{{AtS: 4, Worker: "host-c", What: "lost at 4.0 s: no word for 3.1 s"}, {AtS: 19, What: "<b>given up</b>"}},
	}
	return d
}

func TestThePageShowsTheFleetsMachines(t *testing.T) {
	t.Parallel()
	d := fleetDocument(t)
	var b bytes.Buffer
	if err := report.HTML(&b, d); err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(b.String(), `<div class="fleet">`)
	block, _, _ = strings.Cut(block, "</div>\n<div class=\"charts\">")
	if !found {
		t.Fatal("the page has no block of the fleet")
	}
	wants(t, block,
		`<p class="note broken">degraded: worker host-c lost at 4.0 s</p>`, "<dt>workers complete</dt><dd>2 of 3</dd>", "<dt>slices</dt><dd>24 of 30; 2 came again and were merged once</dd>",
		"<dd>within 41µs</dd>", "<dd>apart by 730µs</dd>", "0.71 % of the workers&#39; CPU time", `<tr class="merged"><th class="l" scope="row">merged</th><td>24/30</td>`,
		`<th class="l" scope="row">host-a</th><td>10/10</td><td>3000</td><td>0</td><td>1000</td><td>101</td><td>202</td>`, "<td>2500</td>",
		`<tr class="flagged"><th class="l" scope="row">host-b</th>`, `<td class="l">straggler, client-bound</td>`,
		`<tr class="lost"><th class="l" scope="row">host-c</th><td>4/10</td>`, `<td class="l">lost: no word for 15.0 s</td>`,
		"<li><b>4.0 s</b> host-c: lost at 4.0 s: no word for 3.1 s</li>", "&lt;b&gt;given up&lt;/b&gt;",
	)
	row := d.Rows[0]
	for i := range 40 {
		w := row.Fleet.Workers[0]
		w.Worker = "more-" + string(rune('a'+i%26))
		row.Fleet.Workers = append(row.Fleet.Workers, w)
	}
	b.Reset()
	if err := report.HTML(&b, d); err != nil {
		t.Fatal(err)
	}
	wants(t, b.String(), "23 more workers are in the document.")
}

func TestAPageOfOneMachineHasNoFleet(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := report.HTML(&b, document(t)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), `class="fleet"`) {
		t.Error("the page has a block of a fleet")
	}
}
