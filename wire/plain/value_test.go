package plain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"toll/wire/plain"
)

// texts are what a reader of JSON may be given, with and without reason.
func texts() []string {
	return []string{
		`{}`, ` { } `, `{"n":30}`, `{"a":[1,2.5e-3,"\u00e9\n",true,false,null,{},[]],"b":{"c":{"d":"é\u2028<&>"}}}`,
		`{"a":1,"a":2}`, `{"a":{"x":1},"a":{"y":2}}`, `{"":""}`, `{"a":-0,"b":0,"c":-0.0,"d":01}`, `{"a":0}`,
		`{"a":999999999999999,"b":9999999999999999,"c":9007199254740993,"d":-123456789012345678901234567890}`,
		`{"a":1e999}`, `{"a":1e-999}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":1E+2}`, `{"a":5e-324,"b":1.7976931348623157e308}`,
		`{"a":"\ud800"}`, `{"a":"\ud83d\ude00"}`, "{\"a\":\"\xff\"}", "{\"\xc0\":1}", "{\"a\":\"\x01\"}", `{"a":"\x"}`, `{"a":"\u12"}`, `{"\u0061":1,"a":2}`,
		`{"a":1,}`, `{"a" 1}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1}x`, `{"a":1}{}`, `{"a":tru}`, `{"a":nul`, `{"a":12`, `{"a`, `{`, ``, `null`, `[]`, `"a"`, `1`,
		`{"a":` + strings.Repeat("[", 126) + strings.Repeat("]", 126) + `}`, `{"a":` + strings.Repeat("[", 127) + strings.Repeat("]", 127) + `}`,
		`{"a":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}`,
		`{"a":` + strings.Repeat(`{"a":`, 9999) + `1` + strings.Repeat("}", 10000), `{"a":` + strings.Repeat(`{"a":`, 10000) + `1` + strings.Repeat("}", 10001),
		strings.Repeat("\ufeff", 1) + `{}`, "{\"a\":\t1\r\n,\"b\":2}\x00", "{\x0b}",
	}
}

// sameObject holds Object to json.Unmarshal: what it takes, encoding/json takes, and reads the same; of valid objects it leaves
// only those that it says it does.
func sameObject(t *testing.T, text string) bool {
	t.Helper()
	got, ok := plain.Object([]byte(text))
	var want map[string]any
	err := json.Unmarshal([]byte(text), &want)
	if !ok {
		if err == nil && want != nil && utf8.ValidString(text) && strings.Count(text, "{")+strings.Count(text, "[") <= plain.MaxDepth {
			t.Fatalf("%.200q: not taken; encoding/json reads %v", text, want)
		}
		return false
	}
	if err != nil || want == nil {
		t.Fatalf("%.200q: taken as %v; encoding/json says %v, %v", text, got, want, err)
	}
	a, _ := json.Marshal(want) // -0 and 0 are equal, and written differently
	b, _ := json.Marshal(got)
	if !reflect.DeepEqual(want, got) || !bytes.Equal(a, b) {
		t.Fatalf("%.200q: read as %s; encoding/json reads %s", text, b, a)
	}
	return true
}

func TestObjectsReadAsEncodingJSONReadsThem(t *testing.T) {
	t.Parallel()
	for _, s := range texts() {
		sameObject(t, s)
	}
	for _, s := range []string{`{"a":1}`, ` {"a":"é","b":[{"c":"\n"}],"n":-1.5e3} `} {
		if !sameObject(t, s) {
			t.Errorf("%s is not taken", s)
		}
	}
}

func FuzzObject(f *testing.F) {
	for _, s := range texts() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !sameObject(t, string(b)) {
			return
		}
		m, _ := plain.Object(b)
		sameText(t, m)
	})
}

// sameText holds Append to json.Marshal.
func sameText(t *testing.T, v any) {
	t.Helper()
	want, wantErr := json.Marshal(v)
	got, err := plain.Append([]byte("kept"), v)
	switch {
	case (err == nil) != (wantErr == nil), err != nil && err.Error() != wantErr.Error():
		t.Fatalf("%v: %v; encoding/json says %v", v, err, wantErr)
	case string(got) != "kept"+string(want):
		t.Fatalf("%v: %s; encoding/json says %s", v, got, want)
	}
}

// A speaker writes its own JSON.
type speaker struct{ err error }

// MarshalJSON is what encoding/json asks.
func (s speaker) MarshalJSON() ([]byte, error) { return []byte(`{"b" : "<"}`), s.err }

func TestValuesAreWrittenAsEncodingJSONWritesThem(t *testing.T) {
	t.Parallel()
	deep := any(1.5)
	for range plain.MaxDepth + 5 {
		deep = []any{map[string]any{"d": deep}}
	}
	round := map[string]any{}
	round["again"] = []any{round}
	many := map[string]any{}
	for _, s := range strings.Split("z,y,x,w,v,u,t,s,r,q,é,B,a,A,<&>,\xff,\u2028,", ",") {
		many[s] = []any{s}
	}
	for _, v := range []any{
		nil, true, false, "", "plain", `"\/` + "\b\f\n\r\t\x00\x1f\x7f", "<script>&amp;", "12345678<", "1234567&12345678>", "é€😀", "\u2028\u2029", "a\xffb\xc3", "\xed\xa0\x80",
		0.0, math.Copysign(0, -1), 1.0, -1.0, 0.1, 1e6, 123456789012345.0, 1e15, 1e20, 1e21, 1e-6, 9.9e-7, 1e-9, 1e-10, 5e-324, math.MaxFloat64, 1 << 53, 1.5e300, 123456789.125,
		math.NaN(), math.Inf(-1), []any{1.0, math.NaN()}, 7, -7, int64(math.MinInt64), uint64(math.MaxUint64), float32(0.1), int8(3),
		map[string]any(nil), map[string]any{}, []any(nil), []any{}, []string(nil), []string{}, []string{"a", "<"}, many, deep, round,
		map[string]any{"f": func() {}}, make(chan int), speaker{}, []any{speaker{errors.New("no")}}, &speaker{}, (*speaker)(nil),
		json.Number("12"), json.Number("x"), json.RawMessage(`{ "a": "<" }`), []byte("bytes"), map[string]string{"b": "2", "a": "1"}, map[int]any{2: 1, 1: 2},
		struct {
			A string `json:"a,omitempty"`
			B any    `json:"b"`
		}{B: map[string]any{"x": 1.0}},
	} {
		sameText(t, v)
	}
}

func FuzzAppend(f *testing.F) {
	f.Add("é<\"\\\n\u2028\xff12345678", 1e21, int64(-5))
	f.Add("plain", 1e-7, int64(7))
	f.Fuzz(func(t *testing.T, s string, x float64, n int64) {
		sameText(t, map[string]any{s: x, "s": s, "l": []any{s, n, x, []string{s}}, s + "a": nil})
	})
}

func TestAppendingAllocatesNothing(t *testing.T) {
	v := any(map[string]any{"payload": map[string]any{"text": "hello", "n": 30.0, "l": []any{true, nil}}, "keys": []string{"text"}})
	b := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { b, _ = plain.Append(b[:0], v) }); n != 0 {
		t.Errorf("%v allocations a value", n)
	}
}

func BenchmarkObject(b *testing.B) {
	for name, text := range map[string]string{"fib": `{"n":30}`, "echo": `{"text":"hello","session_id":"bench"}`} {
		b.Run(name+"/plain", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plain.Object([]byte(text))
			}
		})
		b.Run(name+"/encoding-json", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var m map[string]any
				json.Unmarshal([]byte(text), &m)
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	v := any(map[string]any{"payload": map[string]any{"text": "hello", "session_id": "bench"}, "server": "toll", "keys": []string{"session_id", "text"}})
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		var out []byte
		for b.Loop() {
			out, _ = plain.Append(out[:0], v)
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			json.Marshal(v)
		}
	})
}
