package audit_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toll/audit"
)

// The document is one that toll run wrote: transport, rest against rest-raw, six blocks.
func clean(t *testing.T) string {
	t.Helper()
	return filepath.Join("testdata", "result.json")
}

func TestACleanResultOfOursHasNothingWrong(t *testing.T) {
	t.Parallel()
	r := open(t, clean(t))
	if len(r.Claims) < 20 {
		t.Errorf("only %d claims", len(r.Claims))
	}
	for _, c := range r.Claims {
		if c.Verdict != audit.Holds {
			t.Errorf("%+v", c)
		}
	}
	wants(t, r, finding{"rules", audit.Holds, "", "follow from its blocks"})
}

func TestATamperedResultIsFound(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(clean(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil func(row map[string]any)
		want  string // the id of a claim that fails
	}{
		"a faster mean":       {func(r map[string]any) { set(r, "latency_us", "mean", .5) }, "users: call/32B tcp rest-raw"},
		"a better rate":       {func(r map[string]any) { r["throughput_per_s"] = r["throughput_per_s"].(float64) * 2 }, "count: call/32B tcp rest-raw"},
		"a quantile too many": {func(r map[string]any) { set(r, "latency_us", "p999", 0); lat(r)["p999"] = lat(r)["max"] }, "rule 10: call/32B tcp rest-raw"},
		"a smaller p99":       {func(r map[string]any) { lat(r)["p95"] = lat(r)["p50"].(float64) * .9 }, "shape: call/32B tcp rest-raw"},
		"a better ratio":      {func(r map[string]any) { set(r, "ratio", "value", .9) }, "rule 3: call/32B tcp rest-raw"},
		"a better rank":       {func(r map[string]any) { r["rank"] = "9" }, "rule 4: call/32B tcp rest-raw"},
		"fewer failures":      {func(r map[string]any) { r["ops"] = r["ops"].(float64) + 10 }, "rule 5: call/32B tcp rest-raw"},
		"a block left out":    {func(r map[string]any) { r["rounds"] = r["rounds"].([]any)[1:] }, "rule 11: call/32B tcp rest-raw"},
	} {
		var d map[string]any
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		for _, row := range d["rows"].([]any) {
			if r := row.(map[string]any); r["contender"].(map[string]any)["name"] == "rest-raw" {
				c.spoil(r)
			}
		}
		spoilt, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "result.json")
		if err := os.WriteFile(file, spoilt, 0o644); err != nil {
			t.Fatal(err)
		}
		r := open(t, file)
		if !r.Failed() {
			t.Errorf("%s: nothing fails", name)
		}
		found := false
		for _, claim := range r.Claims {
			found = found || claim.ID == c.want && claim.Verdict == audit.Fails
		}
		if !found {
			t.Errorf("%s: no failing %q among:", name, c.want)
			for _, claim := range r.Claims {
				if claim.Verdict == audit.Fails && !strings.HasPrefix(claim.ID, "verdict") {
					t.Errorf("  %s: %s", claim.ID, claim.Why)
				}
			}
		}
	}
}

func lat(r map[string]any) map[string]any { return r["latency_us"].(map[string]any) }

// set multiplies a figure within a row.
func set(r map[string]any, field, name string, by float64) {
	f := r[field].(map[string]any)
	v, _ := f[name].(float64)
	f[name] = v * by
}

func FuzzOpen(f *testing.F) {
	text, err := os.ReadFile(filepath.Join("testdata", "result.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("BenchmarkA 1 2 ns/op\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := audit.Open(file); err == nil {
			r.Text(new(strings.Builder))
		}
	})
}
