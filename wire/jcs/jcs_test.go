package jcs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/wire/jcs"
)

// vectors is the folder of the data that the RFC's author published.
const vectors = "testdata/rfc8785"

func TestThePackIsJudgedByteByByte(t *testing.T) {
	t.Parallel()
	pack, err := jcs.Pack()
	if err != nil {
		t.Fatal(err)
	}
	var c jcs.Canonicalizer
	for _, want := range pack {
		got, err := c.Append([]byte("x"), want.Input)
		var e *jcs.Error
		switch {
		case want.Error == "" && err != nil:
			t.Errorf("%s: %v", want.Name, err)
		case want.Error == "" && string(got) != "x"+want.Output:
			t.Errorf("%s: got %s, want %s", want.Name, got[1:], want.Output)
		case want.Error == "":
		case !errors.As(err, &e) || *e != (jcs.Error{Code: want.Error, Offset: want.Offset}):
			t.Errorf("%s: %.60q: got %v, want %s at byte %d", want.Name, want.Input, err, want.Error, want.Offset)
		case string(got) != "x":
			t.Errorf("%s: refused, but the destination became %q", want.Name, got)
		}
	}
	if len(pack) < 80 {
		t.Errorf("the pack holds %d cases", len(pack))
	}
}

func TestLimitsAreHeldBeforeAnythingIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in     string
		limits jcs.Limits
		want   jcs.Error
	}{
		{`[1,2,3]`, jcs.Limits{Bytes: 6}, jcs.Error{Code: jcs.TooLarge, Offset: 6}},
		{`[[[]]]`, jcs.Limits{Depth: 2}, jcs.Error{Code: jcs.TooDeep, Offset: 2}},
		{`{"a":{"b":{}}}`, jcs.Limits{Depth: 2}, jcs.Error{Code: jcs.TooDeep, Offset: 10}},
	} {
		_, err := jcs.Append(nil, []byte(c.in), c.limits)
		if diff := cmp.Diff(error(&c.want), err); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.in, diff)
		}
	}
	if got, err := jcs.Append(nil, []byte(`[[]]`), jcs.Limits{Depth: 2, Bytes: 4}); err != nil || string(got) != `[[]]` {
		t.Errorf("at both limits: %s, %v", got, err)
	}
}

// The six documents of the RFC's author.
func TestAuthorsDocuments(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(vectors, "input", "*.json"))
	if err != nil || len(files) != 6 {
		t.Fatalf("%d files, %v; want 6", len(files), err)
	}
	for _, f := range files {
		in, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(vectors, "output", filepath.Base(f)))
		if err != nil {
			t.Fatal(err)
		}
		hexed, err := os.ReadFile(filepath.Join(vectors, "outhex", strings.TrimSuffix(filepath.Base(f), ".json")+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		bin, err := hex.DecodeString(strings.Join(strings.Fields(string(hexed)), ""))
		if err != nil {
			t.Fatal(err)
		}
		got, err := jcs.Append(nil, in, jcs.Limits{})
		if err != nil || !bytes.Equal(got, want) || !bytes.Equal(got, bin) {
			t.Errorf("%s: %v\n got %s\nwant %s\n hex %s", filepath.Base(f), err, got, want, bin)
		}
	}
}

// es6Bits yields the published sequence of float64 values.
func es6Bits(t *testing.T, yield func(uint64) bool) {
	static, err := os.ReadFile(filepath.Join(vectors, "es6-static-u64.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.FieldsSeq(string(static)) {
		u, err := strconv.ParseUint(line, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if !yield(u) {
			return
		}
	}
	for u := range uint64(2000) {
		if !yield(0x0010000000000000 + u) {
			return
		}
	}
	for block := [32]byte{}; ; {
		block = sha256.Sum256(block[:])
		for i := 0; i < 32; i += 8 {
			u := binary.LittleEndian.Uint64(block[i:])
			f := math.Float64frombits(u)
			if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
				continue
			}
			if !yield(u) {
				return
			}
		}
	}
}

// The digests of the published number file after so many lines. The appender and the canonicalizer must both give them.
func TestPublishedNumbers(t *testing.T) {
	t.Parallel()
	want := map[int]string{
		1_000:     "be18b62b6f69cdab33a7e0dae0d9cfa869fda80ddc712221570f9f40a5878687",
		10_000:    "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892",
		100_000:   "22776e6d4b49fa294a0d0f349268e5c28808fe7e0cb2bcbe28f63894e494d4c7",
		1_000_000: "49415fee2c56c77864931bd3624faad425c3c577d6d74e89a83bc725506dad16",
	}
	sum, n := sha256.New(), 0
	var line, again []byte
	var c jcs.Canonicalizer
	es6Bits(t, func(u uint64) bool {
		line = append(strconv.AppendUint(line[:0], u, 16), ',')
		from := len(line)
		var err error
		if line, err = jcs.AppendFloat(line, math.Float64frombits(u)); err != nil {
			t.Fatal(err)
		}
		if n%16 == 0 { // a canonical number is its own canonical form
			if again, err = c.Append(again[:0], line[from:]); err != nil || !bytes.Equal(again, line[from:]) {
				t.Fatalf("%s became %s, %v", line[from:], again, err)
			}
		}
		sum.Write(append(line, '\n'))
		n++
		if d, there := want[n]; there {
			if got := hex.EncodeToString(sum.Sum(nil)); got != d {
				t.Errorf("%d lines: sha256 %s, want %s", n, got, d)
			}
		}
		return n < 1_000_000
	})
}

func TestNumbersWithoutAForm(t *testing.T) {
	t.Parallel()
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got, err := jcs.AppendFloat([]byte("x"), f); err != jcs.ErrNotFinite || string(got) != "x" {
			t.Errorf("%v: got %q, %v", f, got, err)
		}
	}
}

func TestObjectIsWhatTheCanonicalizerWrites(t *testing.T) {
	t.Parallel()
	o := jcs.Begin(nil)
	o.Bytes("a", []byte("é\u0001\""))
	o.Int("b", -jcs.MaxInt)
	o.Open("c")
	o.Open("in")
	o.Close()
	o.String("x", "\u2028/")
	o.Close()
	o.Raw("d", []byte("[1]"))
	o.String("\U0001F600", "")
	o.String("\uFB33", "")
	got, err := o.End()
	if err != nil {
		t.Fatal(err)
	}
	again, err := jcs.Append(nil, got, jcs.Limits{})
	if err != nil || !bytes.Equal(got, again) {
		t.Errorf("got %s, which canonicalizes to %s, %v", got, again, err)
	}
}

func TestObjectRefusesWhatHasNoCanonicalForm(t *testing.T) {
	t.Parallel()
	for want, fill := range map[string]func(*jcs.Object){
		`member "a" may not stand behind "b"`:                           func(o *jcs.Object) { o.Int("b", 1); o.Int("a", 1) },
		`member "a" may not stand behind "a"`:                           func(o *jcs.Object) { o.Int("a", 1); o.Int("a", 1) },
		`member "a": "\xff" is not UTF-8`:                               func(o *jcs.Object) { o.String("a", "\xff") },
		`member "a": "\xed\xa0\x80" is not UTF-8`:                       func(o *jcs.Object) { o.Bytes("a", []byte("\xed\xa0\x80")) },
		`member "a": 9007199254740992 is beyond 2^53-1 and would round`: func(o *jcs.Object) { o.Int("a", 1<<53) },
		`member "b": "\xff" is not UTF-8`:                               func(o *jcs.Object) { o.Open("o"); o.String("b", "\xff"); o.Close() },
		`an object is closed that was not opened`:                       func(o *jcs.Object) { o.Close() },
		`the object "o" is not closed`:                                  func(o *jcs.Object) { o.Open("o") },
		`member "n" may not stand behind "o"`:                           func(o *jcs.Object) { o.Open("o"); o.Int("z", 1); o.Close(); o.Int("n", 1) },
		`member "o": more than 8 objects are open`: func(o *jcs.Object) {
			for range 9 {
				o.Open("o")
			}
		},
		"member \"\ufb33\" may not stand behind \"\ufb33\"":              func(o *jcs.Object) { o.Int("\ufb33", 1); o.Int("\ufb33", 1) },
		"member \"\U0001f600\" may not stand behind \"\ufb33\"":          func(o *jcs.Object) { o.Int("\ufb33", 1); o.Int("\U0001F600", 1) },
		`member "a": -9007199254740992 is beyond 2^53-1 and would round`: func(o *jcs.Object) { o.Int("a", -1<<53) },
	} {
		o := jcs.Begin(nil)
		fill(&o)
		if _, err := o.End(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestMembersAndTextUndoTheCanonicalForm(t *testing.T) {
	t.Parallel()
	src := `{"a":"x\n\u001f\"é","b":[1,[2,"]"],{"c":3}],"c":{},"d":-5,"e":null,"f":[]}`
	got := make(map[string]string)
	for name, value := range jcs.Members([]byte(src)) {
		text, ok := jcs.Text(name)
		if !ok {
			t.Fatalf("name %s", name)
		}
		got[string(text)] = string(value)
	}
	want := map[string]string{"a": `"x\n\u001f\"é"`, "b": `[1,[2,"]"],{"c":3}]`, "c": "{}", "d": "-5", "e": "null", "f": "[]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if text, ok := jcs.Text([]byte(want["a"])); !ok || string(text) != "x\n\x1f\"é" {
		t.Errorf("text %q, %v", text, ok)
	}
	var elements []string
	for e := range jcs.Elements([]byte(want["b"])) {
		elements = append(elements, string(e))
	}
	if diff := cmp.Diff([]string{"1", `[2,"]"]`, `{"c":3}`}, elements); diff != "" {
		t.Errorf("elements (-want +got):\n%s", diff)
	}
	for in, ok := range map[string]bool{"9007199254740991": true, "-9007199254740991": true, "9007199254740992": false, "1.5": false, `"1"`: false, "1e+21": false} {
		if _, got := jcs.Int([]byte(in)); got != ok {
			t.Errorf("Int(%s): %v", in, got)
		}
	}
}

// What is inside out must not take time that grows with size times depth.
func TestTimeDoesNotGrowWithTheNesting(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"b":0,"a":`, 900) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("}", 900)
	var c jcs.Canonicalizer
	out, err := c.Append(nil, []byte(deep))
	if err != nil || !bytes.HasPrefix(out, []byte(`{"a":{"a":`)) || len(out) != len(deep) {
		t.Fatalf("%.40s, %d bytes of %d, %v", out, len(out), len(deep), err)
	}
}

func TestNothingIsAllocatedOncePrepared(t *testing.T) {
	src := []byte(`{"tenant":"acme","namespace":"prod","policy":{"version":3,"id":"p-1"},"request_id":"0001","n":[1,2.5,true]}`)
	var c jcs.Canonicalizer
	dst := make([]byte, 0, 1024)
	run := func() {
		var err error
		if dst, err = c.Append(dst[:0], src); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, run); n > 1 { // the one that reads a number beyond plain digits
		t.Errorf("the canonicalizer allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { dst = appendEnvelope(t, dst[:0]) }); n != 0 {
		t.Errorf("the appender allocates %v times", n)
	}
}

func appendEnvelope(t testing.TB, dst []byte) []byte {
	o := jcs.Begin(dst)
	o.String("alg", "Ed25519")
	o.String("arrived_at", "2026-12-01T00:00:00.000Z")
	o.Int("epoch", 1)
	o.String("gateway", "gateway.example")
	o.String("kid", "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
	o.String("namespace", "prod")
	o.Raw("policy", []byte(`{"id":"p-1","version":3}`))
	o.String("request_hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
	o.String("request_id", "0123456789abcdef")
	o.Int("seq", 1234567)
	o.String("tenant", "acme")
	o.String("type", "arrival")
	o.Int("v", 1)
	b, err := o.End()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestErrorsNameTheByte(t *testing.T) {
	t.Parallel()
	_, err := jcs.Append(nil, []byte(`{"a":01}`), jcs.Limits{})
	if want := "json: number-syntax at byte 5"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func BenchmarkEnvelope(b *testing.B) {
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = appendEnvelope(b, dst[:0])
	}
}

func BenchmarkCanonicalizer(b *testing.B) {
	src := appendEnvelope(b, nil)
	var c jcs.Canonicalizer
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = c.Append(dst[:0], src); err != nil {
			b.Fatal(err)
		}
	}
}
