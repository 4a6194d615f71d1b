package report_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"toll/lab/result"
	"toll/report"
)

// wants fails for every line that the text lacks.
func wants(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(text, l) {
			t.Errorf("lacks %q:\n%s", l, text)
		}
	}
}

func TestColourIsWhereItMeansSomething(t *testing.T) {
	t.Parallel()
	var plain, coloured bytes.Buffer
	d := spoiled(t)
	d.Rows[2].Ratio.Lo, d.Rows[2].Ratio.Hi = result.Ptr(.43), result.Ptr(.6)
	d.Rows[1].Ratio = document(t).Rows[1].Ratio
	if report.Text(&plain, d) != nil || report.Coloured(&coloured, d) != nil {
		t.Fatal("not written")
	}
	if strings.Contains(plain.String(), "\x1b") {
		t.Error("the plain text has colours")
	}
	wants(t, coloured.String(), "\x1b[32m0.52 (0.43–0.60)", "\x1b[31mmissed\x1b[0m", "\x1b[33m  ¹ 5 of 2000 calls failed\x1b[0m", "\x1b[31m  not publishable:\x1b[0m")
	bare := coloured.String()
	for _, code := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"} {
		bare = strings.ReplaceAll(bare, code, "")
	}
	if strings.TrimSpace(strings.ReplaceAll(bare, " ", "")) != strings.TrimSpace(strings.ReplaceAll(plain.String(), " ", "")) {
		t.Error("the coloured text says something else")
	}
}

func TestHeadlinesFitOneScreen(t *testing.T) {
	t.Parallel()
	d := document(t)
	rows := d.Rows
	for _, n := range []int{8, 16, 32, 64, 128} {
		for _, r := range rows {
			r.Concurrency = n
			d.Rows = append(d.Rows, r)
		}
	}
	var b bytes.Buffer
	if err := report.Headlines(&b, []*result.Document{d, nil, d, d, d, d, d}); err != nil {
		t.Fatal(err)
	}
	wants(t, b.String(), "transport  call/32B tcp ×1", "rest-raw  0.52 (0.43–0.60)", "± 8.2 %", "and 3 tables above")
	if n := strings.Count(b.String(), "\n"); n > 26 {
		t.Errorf("%d lines for six benchmarks", n)
	}
}

func TestRowsMeasuredElsewhereStandApart(t *testing.T) {
	t.Parallel()
	d := document(t)
	r := d.Rows[0]
	r.Kind, r.Role = result.Published, ""
	r.Source = &result.Source{File: "table.json", SHA256: strings.Repeat("ab", 32), Date: "2025-01-01", Errata: []string{"one caller only"}}
	d.Rows = append(d.Rows, r)
	var b bytes.Buffer
	if err := report.Text(&b, d); err != nil {
		t.Fatal(err)
	}
	wants(t, b.String(), "measured elsewhere, never divided by ours", "published  call/32B tcp rest", "table.json, 2025-01-01, sha256 abababababab…", "known of rest: one caller only")
}

func TestColumnsThatNoRowHasAreLeftOut(t *testing.T) {
	t.Parallel()
	d := document(t)
	for i := range d.Rows {
		r := &d.Rows[i]
		r.Client, r.WireBytes = result.ClientCost{}, nil
		r.Backend = &result.ServerCost{CPU: result.Ptr(12.5)}
		r.Dropped, r.Service = 7, &result.Latency{P50: 33}
		r.Parts = map[string]result.Part{"sign": {Count: 5, Latency: result.Latency{Mean: 4}}, "envelope": {Count: 5, Latency: result.Latency{Mean: 2}}}
	}
	var b bytes.Buffer
	if err := report.Text(&b, d); err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(b.String(), "how far to trust")
	wants(t, table, "service", "dropped", "backend", "parts of rest-raw, mean µs: envelope 2.00, sign 4.00")
	for _, gone := range []string{"client", "out/in", " cli "} {
		if strings.Contains(strings.Split(table, "\n")[2], gone) {
			t.Errorf("the heads still have %q:\n%s", gone, table)
		}
	}
	for line := range strings.Lines(table) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestComparisonsFitAHundredColumns(t *testing.T) {
	t.Parallel()
	c, err := result.Within(document(t))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.Compare(&b, c); err != nil {
		t.Fatal(err)
	}
	wants(t, b.String(), "compared: paired block by block in one run", "call/32B tcp rest-raw  block medians", "call/32B tcp rest-raw  block minima", "better", "± ")
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if head := report.CompareRows(c)[0]; head[len(head)-1] != "verdict" || len(head) != 9 {
		t.Errorf("the whole table's head is %v", head)
	}
}
