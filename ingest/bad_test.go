package ingest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// outputs are the texts of testdata, by the format that reads each.
func outputs(t testing.TB) map[string][]string {
	t.Helper()
	out := make(map[string][]string)
	err := filepath.WalkDir("testdata", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "fuzz") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r, err := Decode(path, text)
		if err != nil {
			return err
		}
		out[r.Format] = append(out[r.Format], string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryFormatHasAnOutput(t *testing.T) {
	t.Parallel()
	have := outputs(t)
	for _, name := range Formats() {
		if len(have[name]) == 0 {
			t.Errorf("no output of %s in testdata", name)
		}
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	have := outputs(t)
	cut := func(name string) string { return have[name][0][:len(have[name][0])/2] }
	swap := func(name, old, new string) string {
		for _, text := range have[name] {
			if strings.Contains(text, old) {
				return strings.Replace(text, old, new, 1)
			}
		}
		t.Fatalf("no output of %s has %q", name, old)
		return ""
	}
	for name, c := range map[string]struct{ in, want string }{
		"empty":                {"", "ingest x: no output that toll reads: it is empty; it reads ab, criterion, go, google-benchmark, hey, hgrm, hyperfine, jmh, k6, marmot, oha, oha-json, receipts, vegeta, vegeta-json, wrk"},
		"not text":             {"\xff\xfe\x00", "ingest x: no output that toll reads: not text in UTF-8"},
		"prose":                {"hello\n", "ingest x: no output that toll reads; it reads ab, criterion"},
		"other JSON":           {`{"a":1}`, "ingest x: no output that toll reads; it reads ab"},
		"broken JSON":          {"{\n\"a\": ]", "ingest x: no output that toll reads: line 2: invalid character ']'"},
		"wrk cut off":          {"Running 1s test @ http://x/\n  2 threads and 10 connections\n  Thread Stats   Avg\n", "ingest x, as wrk: no count in it: it was cut off"},
		"wrk, a time":          {swap("wrk", "466.24us", "fast"), "line 4: \"fast\" is no time"},
		"wrk, a count":         {swap("wrk", "Requests/sec:   1387.75", "Requests/sec: many"), "line 12: Requests/sec: \"many\" is no number"},
		"wrk, errors":          {swap("wrk", "Requests/sec:", "Socket errors: connect x, read 0\nRequests/sec:"), "\"x\" is no number"},
		"ab cut off":           {"This is ApacheBench\nComplete requests: 5\n", "as ab: no line \"Concurrency Level:\" in it"},
		"ab, a number":         {swap("ab", "Complete requests:      500", "Complete requests: most"), "Complete requests: \"most\" is no number"},
		"hey cut off":          {cut("hey"), "as hey: no \"Status code distribution\" in it: it was cut off, or nothing was answered"},
		"hey, a time":          {swap("hey", "Slowest:", "Slowest: soon"), "Slowest: \"soon"},
		"oha, a time":          {swap("oha", "Slowest:", "Slowest: soon"), "as oha: line "},
		"oha-json, nothing":    {`{"summary":{},"latencyPercentiles":{}}`, "as oha-json: neither a status nor an error is counted in it"},
		"oha-json, a type":     {`{"summary":{"total":"x"},"latencyPercentiles":{}}`, "as oha-json: line 1: json: cannot unmarshal string"},
		"vegeta, pairs":        {"Requests      [total, rate, throughput]         1000, 500.28\n", "as vegeta: line 1: Requests: 3 names and 2 values"},
		"vegeta, a code":       {swap("vegeta", "200:1000", "many"), "line 7: \"many\" is no status with its count"},
		"vegeta cut off":       {"Requests      [total, rate, throughput]         1000, 500.28, 500.23\n", "as vegeta: no mean_us in it: it was cut off"},
		"vegeta-json, a type":  {`{"latencies":[],"throughput":1,"status_codes":{},"wait":0}`, "as vegeta-json: line 1: json: cannot unmarshal array"},
		"hgrm, columns":        {"Value Percentile TotalCount 1/(1-Percentile)\n1 0.5\n", "as hgrm: line 2: 2 columns; want Value, Percentile, TotalCount and 1/(1-Percentile)"},
		"hgrm, order":          {"Value Percentile TotalCount\n2 0.5 1\n1 0.9 2\n", "as hgrm: line 3: a percentile or value below the one before it"},
		"hgrm, a share":        {"Value Percentile TotalCount\n2 50 1\n", "as hgrm: line 2: percentile 50 is not within 0 and 1"},
		"hgrm, a unit":         {"Value(furlong) Percentile TotalCount\n2 .5 1\n", "as hgrm: line 1: unit: \"1furlong\" is no time"},
		"hgrm, none":           {"Value Percentile TotalCount\n", "as hgrm: no percentile in it: it was cut off"},
		"go, no count":         {"BenchmarkA 1 2 ns/op\nBenchmarkB x 2 ns/op\n", "as go: line 2: want a name, a count and pairs of value and unit"},
		"go, a number":         {"BenchmarkA 1 2e ns/op\n", "as go: line 1: \"2e\" is no number"},
		"go, no unit":          {"BenchmarkA 1 2 ns/op 7\n", "as go: line 1: a value without a unit: \"2 ns/op 7\""},
		"go, negative":         {"BenchmarkA 1 -2 ns/op\n", "as go: row \"BenchmarkA\": mean_us is -0.002, below zero"},
		"criterion, no mean":   {`{"mean":{},"median":{},"std_dev":{}}`, "as criterion: mean or median without a point_estimate"},
		"criterion, a line":    {"{\"reason\":\"benchmark-complete\",\"id\":\"a\"}\n", "as criterion: line 1: \"a\" has no mean, or 0 values for 0 counts"},
		"jmh, a unit":          {`[{"benchmark":"a","mode":"avgt","primaryMetric":{"score":1,"scoreUnit":"apples/op"}}]`, "as jmh: benchmark 1, a (avgt): unit \"apples/op\": \"1apples\" is no time"},
		"jmh, no score":        {`[{"benchmark":"a","mode":"avgt","primaryMetric":{"score":"NaN","scoreUnit":"us/op"}}]`, "as jmh: benchmark 1, a (avgt): its score is no number"},
		"jmh, behind it":       {`[{"benchmark":"a","mode":"avgt","primaryMetric":{"score":1,"scoreUnit":"us/op"}}] []`, "as jmh: line 1: something stands behind the JSON"},
		"google, a unit":       {`{"context":{},"benchmarks":[{"name":"a","real_time":1,"time_unit":"x"}]}`, "as google-benchmark: benchmark 1, a: unit: \"1x\" is no time"},
		"google, none":         {`{"context":{},"benchmarks":[]}`, "as google-benchmark: no row in it"},
		"hyperfine, no mean":   {`{"results":[{"command":"a"}]}`, "as hyperfine: result 1, \"a\": no mean, or more than 100000 times"},
		"hyperfine, negative":  {`{"results":[{"command":"a","mean":-1}]}`, "as hyperfine: row \"a\": mean_us is -1e+06, below zero"},
		"marmot, no name":      {`[{"name":"","iterations":1,"p50_us":1}]`, "as marmot: row 1: a name of 0 bytes"},
		"k6, nothing":          {`{"metrics":{"vus":{"value":1}}}`, "as k6: neither http_req_duration nor iteration_duration in its metrics"},
		"k6, failures":         {`{"metrics":{"http_reqs":{"count":1,"rate":1},"http_req_duration":{"avg":1,"p(95)":2},"http_req_failed":{"passes":2}}}`, "as k6: 2 failed of 1 requests"},
		"receipts, no latency": {`{"ops_per_run":1,"concurrency_levels":[1],"runs":[{"mode":"sync"}]}`, "as receipts: run 1, sync: no wall_latency_us"},
		"marmot, a type":       {`[{"name":"a","iterations":"1","p50_us":1}]`, "as marmot: line 1: json: cannot unmarshal string"},
		"a long name":          {"Benchmark" + strings.Repeat("a", 400) + " 1 2 ns/op\n", "a name of 409 bytes; at most 300 are read"},
	} {
		_, err := Decode("x", []byte(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
}

// TestACutOutputIsNoPanic cuts and spoils every output at random places.
func TestACutOutputIsNoPanic(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	for name, texts := range outputs(t) {
		for _, text := range texts {
			for range 50 {
				b := []byte(text[:rnd.IntN(len(text)+1)])
				if len(b) > 0 {
					b[rnd.IntN(len(b))] = byte(32 + rnd.IntN(95))
				}
				spoilt(t, name, b)
			}
		}
	}
}

// spoilt reads a text as one format, whatever it is, and wants rows that are sound or an error.
func spoilt(t *testing.T, name string, data []byte) {
	t.Helper()
	if len(data) > MaxBytes {
		return
	}
	all := formats()
	at := slices.IndexFunc(all, func(f format) bool { return f.name == name })
	r := new(Report)
	if err := all[at].decode(newText("x", data), r); err != nil || r.check() != nil {
		return
	}
	for _, row := range r.Foreign() {
		if row.Ops < 0 || row.OK < 0 || row.Concurrency < 0 {
			t.Errorf("%s: %+v of %q", name, row, data)
		}
	}
}

func fuzz(f *testing.F, name string) {
	for _, text := range outputs(f)[name] {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) { spoilt(t, name, data) })
}

func FuzzWrk(f *testing.F)        { fuzz(f, "wrk") }
func FuzzAB(f *testing.F)         { fuzz(f, "ab") }
func FuzzHey(f *testing.F)        { fuzz(f, "hey") }
func FuzzOha(f *testing.F)        { fuzz(f, "oha") }
func FuzzOhaJSON(f *testing.F)    { fuzz(f, "oha-json") }
func FuzzVegeta(f *testing.F)     { fuzz(f, "vegeta") }
func FuzzVegetaJSON(f *testing.F) { fuzz(f, "vegeta-json") }
func FuzzHgrm(f *testing.F)       { fuzz(f, "hgrm") }
func FuzzGoBench(f *testing.F)    { fuzz(f, "go") }
func FuzzCriterion(f *testing.F)  { fuzz(f, "criterion") }
func FuzzJMH(f *testing.F)        { fuzz(f, "jmh") }
func FuzzGoogle(f *testing.F)     { fuzz(f, "google-benchmark") }
func FuzzHyperfine(f *testing.F)  { fuzz(f, "hyperfine") }
func FuzzK6(f *testing.F)         { fuzz(f, "k6") }
func FuzzReceipts(f *testing.F)   { fuzz(f, "receipts") }
func FuzzMarmot(f *testing.F)     { fuzz(f, "marmot") }

// FuzzDecode finds out the format as well.
func FuzzDecode(f *testing.F) {
	for _, texts := range outputs(f) {
		f.Add([]byte(texts[0]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode("x", data)
		if err == nil && len(r.Foreign()) != len(r.Rows) {
			t.Errorf("%d rows of %d", len(r.Foreign()), len(r.Rows))
		}
	})
}
