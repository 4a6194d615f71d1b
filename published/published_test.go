package published_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/published"
)

func load(t *testing.T, name string) published.Table {
	t.Helper()
	table, err := published.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestEveryTableSaysWhereItIsFrom(t *testing.T) {
	t.Parallel()
	date := regexp.MustCompile(`^\d{4}-\d{2}(-\d{2})?$`)
	for _, name := range published.Names() {
		table := load(t, name)
		for what, got := range map[string]string{"title": table.Title, "source": table.Source, "machine": table.Machine, "unit": table.Unit} {
			if got == "" {
				t.Errorf("%s has no %s", name, what)
			}
		}
		if !date.MatchString(table.Date) || len(table.SHA256) != 64 {
			t.Errorf("%s: date %q, sha256 %q", name, table.Date, table.SHA256)
		}
		if len(table.Rows) == 0 || len(table.Method) == 0 || len(table.Errata) == 0 {
			t.Errorf("%s: %d rows, %d method facts, %d errata", name, len(table.Rows), len(table.Method), len(table.Errata))
		}
	}
}

func TestEveryRangeIsInOrder(t *testing.T) {
	t.Parallel()
	for _, name := range published.Names() {
		for _, r := range load(t, name).Rows {
			if r.Label == "" || r.Min[0] > r.Min[1] || r.P50[0] > r.P50[1] {
				t.Errorf("%s, row %q: min %v, p50 %v", name, r.Label, r.Min, r.P50)
			}
			if r.P50[0] > 0 && r.Min[0] > r.P50[0] {
				t.Errorf("%s, row %q: min %v above p50 %v", name, r.Label, r.Min, r.P50)
			}
			if slices.ContainsFunc(r.Ratios, func(v float64) bool { return v <= 0 }) {
				t.Errorf("%s, row %q: ratios %v", name, r.Label, r.Ratios)
			}
		}
	}
}

// Transcribed a second time, by hand, from the write-up: one wrong digit in either place fails.
func TestTransportSeedIsAsPrinted(t *testing.T) {
	t.Parallel()
	want := []published.Row{
		{Label: "ZAP unix", Contender: "zap-http", Phase: "unix", Min: [2]float64{0.07, 0.09}, P50: [2]float64{0.14, 0.18}, Ratios: []float64{0.67, 0.75, 0.67}},
		{Label: "ZAP tcp", Contender: "zap-http", Phase: "tcp", Min: [2]float64{0.08, 0.12}, P50: [2]float64{0.19, 0.24}, Ratios: []float64{0.86, 0.87, 0.90}},
		{Label: "REST", Contender: "rest", Phase: "tcp", Min: [2]float64{0.10, 0.13}, P50: [2]float64{0.21, 0.28}, Ratios: []float64{1}},
		{Label: "MCP", Contender: "mcp", Phase: "tcp", Min: [2]float64{0.10, 0.14}, P50: [2]float64{0.21, 0.25}, Ratios: []float64{0.96, 1.09, 1.05}},
		{Label: "op-call plane", Contender: "opcall", Phase: "tcp", Min: [2]float64{0.09, 0.12}, P50: [2]float64{0.19, 0.23}, Ratios: []float64{1, 1, 1}},
	}
	if diff := cmp.Diff(want, load(t, "transport-seed").Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// Transcribed a second time, by hand, from the write-up.
func TestSpawnSeedIsAsPrinted(t *testing.T) {
	t.Parallel()
	row := func(label string, c, p50, p95, p99, rps float64) published.Row {
		return published.Row{Label: label, Phase: "http-new", P50: [2]float64{p50, p50}, Figures: map[string]float64{
			"concurrency": c, "p95_ms": p95, "p99_ms": p99, "rps": rps,
		}}
	}
	want := []published.Row{
		row("1", 1, 11, 15, 18, 87.3), row("10", 10, 15, 19, 52, 616.7), row("25", 25, 18, 31, 47, 1230.7), row("50", 50, 32, 54, 70, 1356.3),
	}
	if diff := cmp.Diff(want, load(t, "spawn-seed").Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestLoadGivesEachCallerItsOwnTable(t *testing.T) {
	t.Parallel()
	first := load(t, "transport-seed")
	first.Rows[0].Ratios[0] = 9
	first.Method["n"] = "9"
	second := load(t, "transport-seed")
	if second.Rows[0].Ratios[0] == 9 || second.Method["n"] == "9" {
		t.Error("a caller's change shows in the next Load")
	}
}

func TestUnknownTableNamesThoseThereAre(t *testing.T) {
	t.Parallel()
	_, err := published.Load("nothing")
	if err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Fatalf("got %v", err)
	}
	for _, name := range published.Names() {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

func TestEveryFileIsPinned(t *testing.T) {
	t.Parallel()
	paths, err := fs.Glob(os.DirFS("."), "*.json")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range paths {
		got = append(got, strings.TrimSuffix(p, ".json"))
	}
	slices.Sort(got)
	if diff := cmp.Diff(published.Names(), got); diff != "" {
		t.Errorf("pinned against files (-pinned +files):\n%s", diff)
	}
}

// Transcribed a second time, by hand, from the write-up.
func TestCivitasGatewayIsAsPrinted(t *testing.T) {
	t.Parallel()
	want := map[string][3]float64{
		"civitas (n=30)": {4220, 4450, 11.5}, "civitas (n=20)": {46.7, 55.3, 936.8}, "civitas (echo)": {9.55, 12.46, 4572.3}, "civitas (n=20, mutual TLS)": {48, 57.8, 911.8},
		"Java (Spring Boot)": {.835, 10.19, 1624}, "Go (official SDK)": {.855, 10.03, 1624}, "Node.js (official SDK)": {10.66, 53.24, 559}, "Python (FastMCP)": {26.45, 73.23, 292},
	}
	rows := load(t, "civitas-gateway").Rows
	if len(rows) != len(want) {
		t.Errorf("%d rows, printed were %d", len(rows), len(want))
	}
	for _, r := range rows {
		if got := [3]float64{r.Figures["avg_ms"], r.Figures["p95_ms"], r.Figures["rps"]}; got != want[r.Label] {
			t.Errorf("%s: %v, printed was %v", r.Label, got, want[r.Label])
		}
	}
}

// Transcribed a second time, by hand, from the page and the means of the raw files.
func TestTMDevLabIsAsPrinted(t *testing.T) {
	t.Parallel()
	want := map[string][6]float64{
		"java":   {.835, 10.19, 1624, .3693, 28.8, 226},
		"go":     {.855, 10.03, 1624, .3884, 31.8, 18},
		"nodejs": {10.66, 53.24, 559, 7.1054, 98.7, 110},
		"python": {26.45, 73.23, 292, 30.8277, 93.9, 98},
	}
	rows := load(t, "tmdevlab-v1").Rows
	if len(rows) != len(want) {
		t.Errorf("%d rows, printed were %d", len(rows), len(want))
	}
	for _, r := range rows {
		f := r.Figures
		if got := [6]float64{f["avg_ms"], f["p95_ms"], f["rps"], r.Parts["calculate_fibonacci"]["avg_ms"], f["cpu_percent"], f["memory_mb"]}; got != want[r.Label] {
			t.Errorf("%s: %v, printed was %v", r.Label, got, want[r.Label])
		}
	}
}

// A row stands in one table: what another prints of it is marked as quoted, and is what the first one says.
func TestARowStandsInOneTable(t *testing.T) {
	t.Parallel()
	printed := make(map[[3]float64]string)
	for _, name := range published.Names() {
		for _, r := range load(t, name).Rows {
			f, where := r.Figures, name+", "+r.Label
			if r.Quoted == "" {
				key := [3]float64{f["avg_ms"] + r.P50[0], f["p95_ms"], f["rps"]}
				if other := printed[key]; other != "" && key[0] > 0 && key[2] > 0 {
					t.Errorf("%s and %s have the same figures; one is quoted", other, where)
				}
				printed[key] = where
				continue
			}
			from := load(t, r.Quoted)
			at := slices.IndexFunc(from.Rows, func(x published.Row) bool { return x.Contender == r.Contender })
			if at < 0 {
				t.Errorf("%s is quoted from %s, which has no row of %s", where, r.Quoted, r.Contender)
				continue
			}
			for figure, v := range f {
				if first := from.Rows[at].Figures[figure]; first != v {
					t.Errorf("%s has %s %v, quoted from %s, which has %v", where, figure, v, r.Quoted, first)
				}
			}
		}
	}
}
