package report_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"toll/lab/result"
	"toll/report"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func document(t *testing.T) *result.Document {
	t.Helper()
	d, err := result.ReadFile("testdata/transport.json")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// spoiled is the document after everything went wrong that a reader must be told.
func spoiled(t *testing.T) *result.Document {
	d := document(t)
	r := &d.Rows[2]
	r.OK, r.Failed = r.OK-5, map[string]int64{"wrong_id": 3, "timeout": 2}
	r.Warnings = []string{"5 of 2000 calls failed", "client-bound: the client used 91 % of its cores"}
	r.Latency.P99, r.Ratio.Lo, r.Ratio.Hi, r.Server, r.WireBytes = nil, nil, nil, nil, nil
	d.Rows[1].Latency, d.Rows[1].Ratio = nil, nil
	d.Gaps = []result.Gap{{Row: "call/32B tcp node: server.allocs_per_op", Reason: "it does not say"}}
	d.Anomalies = []result.Anomaly{{Kind: result.Drift, Row: "call/32B tcp rest", Detail: "it drifted"}}
	d.Thresholds = []result.Threshold{{Expr: "rest-raw ratio <= 0.1"}, {Expr: "rest p50 < 1000", Passed: true}}
	d.Verdict = result.Verdict{Reasons: []string{"rule 4: no"}}
	return d
}

func TestGoldens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		render func(io.Writer, *result.Document) error
	}{{"text", report.Text}, {"md", report.Markdown}, {"csv", report.CSV}, {"bench", report.Bench}, {"html", body}} {
		for suffix, d := range map[string]*result.Document{"": document(t), "-spoiled": spoiled(t)} {
			var b bytes.Buffer
			if err := c.render(&b, d); err != nil {
				t.Fatal(err)
			}
			file := "testdata/transport" + suffix + "." + c.name
			if *update {
				if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				os.WriteFile(file+".got", b.Bytes(), 0o644)
				t.Errorf("%s (-want +got; -update rewrites it):\n%s", file, diff)
			}
		}
	}
}

// body is the page without its head, its scripts and what is packed: those are no text.
func body(w io.Writer, d *result.Document) error {
	var b bytes.Buffer
	if err := report.HTML(&b, d); err != nil {
		return err
	}
	_, text, _ := strings.Cut(b.String(), "<body>")
	_, err := io.WriteString(w, regexp.MustCompile(`(?s)<script.*?</script>`).ReplaceAllString(text, ""))
	return err
}

func TestTablesFitAHundredColumns(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := report.Text(&b, document(t)); err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(b.String(), "  a loop of")
	for line := range strings.Lines(table) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestManyGapsOfOneReasonAreOneLine(t *testing.T) {
	t.Parallel()
	var gaps []result.Gap
	for i := range 5 {
		gaps = append(gaps, result.Gap{Row: fmt.Sprintf("row %d: wire_bytes", i), Reason: "why"})
	}
	gaps = append(gaps, result.Gap{Row: "row 1: client", Reason: "why"}, result.Gap{Row: "call/1 x", Reason: "not built"})
	want := []result.Gap{{Row: "wire_bytes of 5 rows", Reason: "why"}, {Row: "row 1: client", Reason: "why"}, {Row: "call/1 x", Reason: "not built"}}
	if got := report.GapsBrief(gaps); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestTheHeadlineSaysWhichProcessorsWereHeld(t *testing.T) {
	t.Parallel()
	for want, on := range map[string][2][]int{
		"· all on 1 processor ·":                {{1}, {1}},
		"· client on 2 processors of its own ·": {{0, 1}, {2, 3}},
		"· loopback, rtt 20 · µs":               {nil, nil},
	} {
		d := document(t)
		d.Method.Hop.MeasuredRTT = result.Ptr(.02)
		for i := range d.Rows {
			d.Rows[i].Processes = []result.Process{{Role: "client", Processors: on[0]}, {Role: "server", Processors: on[1]}}
		}
		var b bytes.Buffer
		if err := report.Text(&b, d); err != nil {
			t.Fatal(err)
		}
		if head, _, _ := strings.Cut(b.String(), "\n"); !strings.Contains(head, want) {
			t.Errorf("held to %v: %q; want %q in it", on, head, want)
		}
	}
}

func TestWhatWasDroppedIsNoReply(t *testing.T) {
	t.Parallel()
	d := document(t)
	d.Rows = []result.Row{{Kind: result.Measured, Ops: 100, OK: 70, Dropped: 20, Verified: 70}, {Kind: result.Measured, Ops: 10, OK: 10, Verified: 4}}
	if got, want := report.Trust(d)[0], "10 failed of 90 replies, 6 not looked into, and 20 arrivals dropped · "; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
}

func TestConnectionTrackingIsTold(t *testing.T) {
	t.Parallel()
	for tracked, want := range map[bool]string{
		true:  "connection tracking</dt><dd>of loopback, too: every packet was looked up, which shows in every round trip<",
		false: "connection tracking</dt><dd>not of loopback<",
	} {
		d := document(t)
		d.Environment.OS.Conntrack = &tracked
		var page bytes.Buffer
		if err := report.HTML(&page, d); err != nil || !strings.Contains(page.String(), want) {
			t.Errorf("tracked %v: no %q on the page, %v", tracked, want, err)
		}
		const line = "connections over loopback were tracked, which shows in every round trip: see toll doctor"
		if got := report.Trust(d); slices.Contains(got, line) != tracked {
			t.Errorf("tracked %v: %q", tracked, got)
		}
	}
}
