package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/perf/benchfmt"

	"toll/lab/result"
)

func fixture(t *testing.T) *result.Document {
	t.Helper()
	d, err := result.ReadFile("testdata/transport.json")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// unpack is what page.js does.
func unpack(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	switch {
	case m["m"] != nil:
		out := make(map[string]any)
		for k, x := range m["m"].(map[string]any) {
			out[k] = unpack(x)
		}
		return out
	case m["u"] != nil:
		out := []any{}
		for _, x := range m["u"].([]any) {
			out = append(out, unpack(x))
		}
		return out
	case m["d"] != nil:
		out, sum := []any{}, 0.0
		for _, x := range m["d"].([]any) {
			sum += x.(float64)
			out = append(out, sum)
		}
		return out
	case m["p"] != nil:
		out, left, right := []any{}, unpack(m["p"].([]any)[0]).([]any), unpack(m["p"].([]any)[1]).([]any)
		for i := range left {
			out = append(out, left[i], right[i])
		}
		return out
	case m["l"] != nil:
		out, all := []any{}, unpack(m["v"]).([]any)
		for _, n := range m["l"].([]any) {
			out, all = append(out, append([]any{}, all[:int(n.(float64))]...)), all[int(n.(float64)):]
		}
		return out
	}
	out := make([]any, int(m["n"].(float64)))
	for i := range out {
		out[i] = make(map[string]any)
	}
	for name, c := range m["o"].(map[string]any) {
		gone := make(map[int]bool)
		for _, i := range c.([]any)[0].([]any) {
			gone[int(i.(float64))] = true
		}
		column := unpack(c.([]any)[1]).([]any)
		for i := range out {
			if !gone[i] {
				out[i].(map[string]any)[name], column = column[0], column[1:]
			}
		}
	}
	return out
}

func unzip(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAPackedDocumentComesBackWhole(t *testing.T) {
	t.Parallel()
	d := fixture(t)
	d.Rows[1].Latency, d.Rows[2].Failed = nil, map[string]int64{"timeout": 2}
	text, cut, err := document(d)
	if err != nil || cut {
		t.Fatalf("cut %v, %v", cut, err)
	}
	var v any
	if err := json.Unmarshal(unzip(t, text), &v); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(unpack(v))
	if err != nil {
		t.Fatal(err)
	}
	back, err := result.Decode(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, back); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func FuzzPackedComesBack(f *testing.F) {
	for _, text := range []string{`[]`, `[[],[1,2]]`, `[{"a":1},{"b":null},{"a":[]}]`, `[[1,2],[3,4]]`, `[1,2,3,4,5,6,7,8,9]`, `{"u":{"m":[]}}`, `[[1],[[2]]]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var v any
		if json.Unmarshal([]byte(text), &v) != nil {
			t.Skip("no JSON")
		}
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var numbers any
		if dec.Decode(&numbers) != nil {
			t.Skip("no JSON")
		}
		data, err := json.Marshal(pack(numbers))
		if err != nil {
			t.Fatal(err)
		}
		var back any
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, unpack(back)); diff != "" {
			t.Errorf("%s came back different (-want +got):\n%s", text, diff)
		}
	})
}

func TestThinningKeepsCountsOrderAndTail(t *testing.T) {
	t.Parallel()
	d := fixture(t)
	r := rand.New(rand.NewPCG(1, 1))
	var all [][2]int64
	var count int64
	for i := range int64(2000) {
		n := 1 + r.Int64N(50)
		all, count = append(all, [2]int64{1000 + 10*i, n}), count+n
	}
	d.Rows[0].Histogram = &result.Histogram{Count: count, Buckets: all, Max: all[1999][0]}
	thin, cut := thinned(d, 500)
	got := thin.Rows[0].Histogram.Buckets
	if !cut || len(got) > 100 || len(d.Rows[0].Histogram.Buckets) != 2000 {
		t.Fatalf("cut %v, %d buckets; the document itself has %d", cut, len(got), len(d.Rows[0].Histogram.Buckets))
	}
	var sum int64
	for i, b := range got {
		sum += b[1]
		if i > 0 && b[0] <= got[i-1][0] {
			t.Errorf("bucket %d at %d is not above %d", i, b[0], got[i-1][0])
		}
	}
	if sum != count || got[len(got)-1] != all[1999] || got[len(got)-40] != all[1960] {
		t.Errorf("count %d, want %d; tail %v", sum, count, got[len(got)-2:])
	}
}

func TestBenchFormatIsReadByItsOwnLibrary(t *testing.T) {
	t.Parallel()
	d := fixture(t)
	var b bytes.Buffer
	if err := Bench(&b, d); err != nil {
		t.Fatal(err)
	}
	read := benchfmt.NewReader(&b, "transport.bench")
	lines := make(map[string]int)
	for read.Scan() {
		switch rec := read.Result().(type) {
		case *benchfmt.Result:
			if v, ok := rec.Value("sec/op"); !ok || v <= 0 || v > .01 {
				t.Errorf("%s: %v s/op", rec.Name, v)
			}
			lines[string(rec.Name)]++
		case *benchfmt.SyntaxError:
			t.Error(rec)
		}
	}
	if read.Err() != nil || len(lines) != 5 || lines["Call-32B/phase=tcp/contender=rest/callers=1"] != 20 {
		t.Errorf("%v, %v", lines, read.Err())
	}
}
