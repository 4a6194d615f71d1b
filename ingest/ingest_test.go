package ingest_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toll/ingest"
	"toll/lab/result"
)

func read(t *testing.T, file string) *ingest.Report {
	t.Helper()
	r, err := ingest.Read(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each figure was read by eye from the output in testdata, and converted by hand.
func TestFiguresAreThoseOfTheOutput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, format string
		row          string
		want         ingest.Figures
	}{
		{"wrk_frozen.txt", "wrk", "", ingest.Figures{"concurrency": 20, "count": 41083, "ok": 41083, "elapsed_s": 29.6, "rate_per_s": 1387.75,
			"mean_us": 466.24, "sd_us": 1350, "max_us": 37750, "p50_us": 299, "p75_us": 349, "p90_us": 494, "p99_us": 4690}},
		{"wrk_non2xx.txt", "wrk", "", ingest.Figures{"concurrency": 10, "count": 38661, "ok": 34796, "mean_us": 2470}},
		{"ab_length.txt", "ab", "/count", ingest.Figures{"concurrency": 1, "count": 500, "failed": 492, "ok": 8, "elapsed_s": .074, "rate_per_s": 6728.48,
			"mean_us": 149, "p50_us": 0, "p99_us": 0, "max_us": 10000}},
		{"ab_non2xx.txt", "ab", "/flaky", ingest.Figures{"concurrency": 10, "failed": 200, "p90_us": 2000, "p98_us": 5000, "p99_us": 8000, "max_us": 97000}},
		{"hey.txt", "hey", "hey", ingest.Figures{"count": 2000, "ok": 2000, "elapsed_s": .1279, "min_us": 100, "mean_us": 1200, "max_us": 7400,
			"p10_us": 600, "p50_us": 900, "p99_us": 6300, "rate_per_s": 15641.8559}},
		{"hey_errors.txt", "hey", "hey", ingest.Figures{"count": 500, "ok": 450, "failed": 50}},
		{"vegeta.txt", "vegeta", "vegeta", ingest.Figures{"count": 1000, "ok": 1000, "offered_per_s": 500.28, "rate_per_s": 500.23, "elapsed_s": 1.999,
			"min_us": 108.862, "mean_us": 268.859, "p50_us": 192.802, "p99_us": 2482, "max_us": 7762}},
		{"vegeta_errors.txt", "vegeta", "vegeta", ingest.Figures{"count": 200, "ok": 180, "failed": 20, "elapsed_s": .98276}},
		{"vegeta.json", "vegeta-json", "vegeta", ingest.Figures{"count": 1000, "ok": 1000, "p50_us": 192.802, "p95_us": 457.485, "p99_us": 2481.766, "mean_us": 268.859, "max_us": 7761.894}},
		{"vegeta.hgrm", "hgrm", "histogram", ingest.Figures{"min_us": 108.862, "p50_us": 192.802, "p75_us": 236.28, "p90_us": 310.52, "p95_us": 457.485}},
		{"hyperfine.json", "hyperfine", "true", ingest.Figures{"count": 12, "mean_us": 967.9963333, "sd_us": 900.2565, "p50_us": 645.989, "min_us": 618.368, "max_us": 3738.33, "cpu_user_ms": .5805}},
		{"google.json", "google-benchmark", "BM_Fib/20", ingest.Figures{"count": 1908, "mean_us": 109.74553249, "cpu_us_per_op": 36.6929879, "concurrency": 1}},
		{"jmh.json", "jmh", "b.Fib.fib n=10 (thrpt)", ingest.Figures{"concurrency": 1, "rate_per_s": 476435.26361304067, "alloc_bytes_per_op": .10120882666671911}},
		{"jmh.json", "jmh", "b.Fib.fib n=10 (avgt)", ingest.Figures{"mean_us": 1.028467846491009}},
		{"jmh_sample.json", "jmh", "b.Fib.fib n=10 (sample)", ingest.Figures{"count": 7728, "mean_us": 7.287430383022775, "min_us": .14, "p50_us": .15, "p99_us": .261, "max_us": 39911.424}},
		{"k6_summary.json", "k6", "http requests", ingest.Figures{"count": 1744, "failed": 87, "ok": 1657, "rate_per_s": 868.298414337533, "p50_us": 259.6405, "p90_us": 610.4927, "max_us": 5557.772}},
		{"k6_export.json", "k6", "http requests", ingest.Figures{"count": 1712, "failed": 85, "mean_us": 392.33648422897216, "min_us": 37.545}},
		{"k6_export.json", "k6", "iterations", ingest.Figures{"count": 856, "rate_per_s": 425.7723926903493, "concurrency": 5}},
		{"criterion/fib/20/new/estimates.json", "criterion", "fib/20", ingest.Figures{"mean_us": 1622.547262537451, "p50_us": 128.06704303405574, "lo_us": 112.75542635954288}},
		{"oha.txt", "oha", "oha", ingest.Figures{"count": 2000, "ok": 2000, "elapsed_s": .0391, "rate_per_s": 51172.3627, "mean_us": 200, "max_us": 3400, "p99_us": 1600, "p999_us": 3200}},
		{"oha.json", "oha-json", "oha", ingest.Figures{"count": 1000, "elapsed_s": .035393488, "p50_us": 271.333, "p999_us": 1652.333, "min_us": 19.989}},
		{"k6_dropped.json", "k6", "iterations", ingest.Figures{"dropped": 19}},
		{"library.hgrm", "hgrm", "histogram", ingest.Figures{"count": 20000, "min_unit": .2, "p50_unit": .268, "mean_unit": .3, "max_unit": 1.205}},
		{"criterion_lines.json", "criterion", "fib/10", ingest.Figures{"count": 600, "mean_us": .505, "lo_us": .495, "hi_us": .51}},
		{"receipts.json", "receipts", "sync x16", ingest.Figures{"concurrency": 16, "count": 10000, "rate_per_s": 2277.3, "p50_us": 6794, "p99_us": 9524, "cpu_user_ms": 4479.3}},
		{"marmot.json", "marmot", "create_group/8", ingest.Figures{"count": 30, "p50_us": 16240.5, "alloc_bytes_per_op": 9.5e7}},
	} {
		r := read(t, c.file)
		if r.Format != c.format {
			t.Errorf("%s was read as %s", c.file, r.Format)
		}
		at := slices.IndexFunc(r.Rows, func(r ingest.Row) bool { return c.row == "" || r.Label == c.row })
		if at < 0 {
			t.Errorf("%s: no row %q among %d", c.file, c.row, len(r.Rows))
			continue
		}
		for name, want := range c.want {
			if got, ok := r.Rows[at].Figures[name]; !ok || math.Abs(got-want) > 1e-6*math.Abs(want) {
				t.Errorf("%s, %s: %s is %v, the output says %v", c.file, c.row, name, got, want)
			}
		}
	}
}

func TestRepeatsAreRunsOfOneRow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, row string
		runs      []float64
	}{
		{"go.txt", "BenchmarkDone-2", []float64{1.296, 1.235, 1.022}},
		{"hyperfine.json", "sleep 0.003", []float64{4084.614, 7037.519, 4113.397}},
	} {
		r := read(t, c.file)
		at := slices.IndexFunc(r.Rows, func(r ingest.Row) bool { return r.Label == c.row })
		for i, want := range c.runs {
			if got := r.Rows[at].Runs[i]["mean_us"]; math.Abs(got-want) > 1e-6*want {
				t.Errorf("%s, %s: run %d is %v, want %v", c.file, c.row, i+1, got, want)
			}
		}
	}
	if r := read(t, "google_repetitions.json"); len(r.Rows) != 2 || len(r.Rows[0].Runs) != 5 {
		t.Errorf("google_repetitions.json: %d rows, %d runs", len(r.Rows), len(r.Rows[0].Runs))
	}
}

func TestFailuresKeepTheHarnessKind(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]map[string]int64{
		"ab_length.txt": {"length": 492}, "ab_non2xx.txt": {"length": 200, "status": 200}, "wrk_non2xx.txt": {"status": 3865}, "hey_errors.txt": {"status": 50},
		"vegeta_errors.txt": {"status": 20},
	} {
		got := read(t, file).Rows[0].Failed
		for kind, n := range want {
			if got[kind] != n {
				t.Errorf("%s: %v, want %s %d", file, got, kind, n)
			}
		}
	}
}

func TestForeignRowsKeepWhereTheyAreFrom(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		r := read(t, f.Name())
		rows := r.Foreign()
		if len(rows) != len(r.Rows) || len(rows) == 0 {
			t.Errorf("%s: %d rows of %d", f.Name(), len(rows), len(r.Rows))
		}
		for i, row := range rows {
			if row.Kind != result.Foreign || row.Ratio != nil || row.Rank != "" || row.Source == nil || row.Source.SHA256 != r.SHA256 || row.Source.File != f.Name() {
				t.Errorf("%s: %+v", f.Name(), row)
			}
			if len(row.Stated) != len(r.Rows[i].Figures) {
				t.Errorf("%s, row %d: %d figures stated of %d", f.Name(), i, len(row.Stated), len(r.Rows[i].Figures))
			}
		}
	}
}

func TestABoundOfWhatIsRead(t *testing.T) {
	t.Parallel()
	big := filepath.Join(t.TempDir(), "big.txt")
	if err := os.WriteFile(big, []byte(strings.Repeat("x", ingest.MaxBytes+1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.Read(big); err == nil || !strings.Contains(err.Error(), "more than 16 MiB") {
		t.Errorf("got %v", err)
	}
	var many strings.Builder
	for i := range ingest.MaxRows + 2 {
		many.WriteString("BenchmarkX" + strings.Repeat("y", i%50) + string(rune('a'+i%26)) + strings.Repeat("z", i/50) + " 1 2 ns/op\n")
	}
	if _, err := ingest.Decode("many.txt", []byte(many.String())); err == nil || !strings.Contains(err.Error(), "rows") {
		t.Errorf("got %v", err)
	}
}

// Every harness writes something when nobody answers, some of it no number: that is a row of failures without times.
func TestWhereNobodyAnswered(t *testing.T) {
	t.Parallel()
	for file, calls := range map[string]float64{
		"hey_dead.txt": 20, "oha_dead.txt": 20, "oha_dead.json": 20, "vegeta_dead.txt": 5, "vegeta_dead.json": 5, "k6_dead.json": 20,
	} {
		f := read(t, file).Rows[0].Figures
		if f["count"] != calls || f["failed"] != calls || f["ok"] != 0 {
			t.Errorf("%s: %v calls, %v failed, %v ok; want %v, all failed", file, f["count"], f["failed"], f["ok"], calls)
		}
		if tool, _, _ := strings.Cut(file, "_"); tool == "hey" || tool == "oha" {
			for _, name := range []string{"min_us", "mean_us", "max_us", "p50_us"} {
				if v, there := f[name]; there {
					t.Errorf("%s: %s is %v, of no calls", file, name, v)
				}
			}
		}
	}
}
