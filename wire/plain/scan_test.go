package plain

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFindFollowsAPath(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"a":{"b":{"c":7},"b":{"c":8}},"d":null}`)
	for path, want := range map[string]string{"a b c": "8", "d": "null", "a x": "", "a b c d": "", "x": ""} {
		if got := string(Find(raw, strings.Fields(path)...)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// FuzzScan holds the scanner to encoding/json.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,2.5e-3,"\u00e9\n",true,false,null,{}]}`, `[]`, `"` + strings.Repeat("x", 40) + `\"y"`, "0", "-0.0E+1", "01", `{"a":1,}`, "\"\x1f\"",
		`"abcdefg` + "\x7f" + `h"`, `[[[[]]]]`, ` {} `, `{"":""}`, `"\ud800"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := Scanner{B: b}
		err := s.Skip(0)
		if err == nil {
			err = s.End()
		}
		if deep(b) > MaxDepth {
			return // encoding/json goes deeper
		}
		if want := json.Valid(b); (err == nil) != want {
			t.Fatalf("%q: %v, encoding/json says %v", b, err, want)
		}
	})
}

// deep returns the deepest nesting that b could have.
func deep(b []byte) int { return bytes.Count(b, []byte("[")) + bytes.Count(b, []byte("{")) }

// FuzzText: what appendText writes, encoding/json reads as the same text.
func FuzzText(f *testing.F) {
	f.Add([]byte("a\"\\\n\r\t\x01é\xff\u2028"))
	f.Fuzz(func(t *testing.T, b []byte) {
		raw := AppendText(nil, b)
		var got string
		if err := json.Unmarshal(raw, &got); err != nil || got != strings.ToValidUTF8(string(b), "") && !strings.Contains(got, "\ufffd") {
			t.Fatalf("%q: %s: %q, %v", b, raw, got, err)
		}
		if bytes.ContainsAny(raw, "\n\r") || utf8.Valid(b) && got != string(b) {
			t.Fatalf("%q: %s", b, raw)
		}
	})
}
