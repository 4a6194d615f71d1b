package driver

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// decoded is what find is held against: the whole document, decoded.
func decoded(text []byte) (doc any, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&doc)
	return doc, err
}

func lookUp(doc any, place []string) (any, bool) {
	for _, p := range place {
		switch d := doc.(type) {
		case string:
			inner, err := decoded([]byte(d))
			if p != withinText || err != nil {
				return nil, false
			}
			doc = inner
		case map[string]any:
			v, ok := d[p]
			if !ok {
				return nil, false
			}
			doc = v
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i < 0 || i >= len(d) {
				return nil, false
			}
			doc = d[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

func reference(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	const text = ` {"a":1,"a":2,"b":[ 10 , {"c":"x\n\u00e9"} , []],"t":"{\"n\":7,\"s\":\"{\\\"deep\\\":true}\"}","\u0065":null,"bad":"{","e":{}} `
	for place, want := range map[string]string{
		"a": "2", "b.0": "10", "b.1.c": "x\né", "b.1": `{"c":"x\né"}`, "b.2": "[]", "t.@json.n": "7", "t.@json.s.@json.deep": "true", "e": "{}", // the last of two, one of them spelled by an escape
		"b.3": "none", "b.-1": "none", "b.x": "none", "b.2.0": "none", "a.x": "none", "z": "none", "bad.@json": "none", "t.n": "none", "e.x": "none",
	} {
		v, ok := find([]byte(text), strings.Split(place, "."))
		got := "none"
		if ok {
			got = jsonText(v)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", place, got, want)
		}
		if ok && (says(v, got) && jsonText(v) != got || says(v, got+"x")) {
			t.Errorf("%s: %s says something else", place, v)
		}
	}
}

func TestTextsThatAreNoJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "text ends inside a value",
		`{"a":1`:                     "text ends inside a value",
		`{"a" 1}`:                    `'1' for a colon`,
		`[1 2]`:                      `'2' between elements`,
		`{"a":01}`:                   `'1' between elements`,
		`nul`:                        `'n' in a literal`,
		`{"a":"\x"}`:                 `'x' in an escape`,
		strings.Repeat("[", 100_000): "nested too deeply",
	} {
		if err := checkJSON([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

// find and checkJSON take what encoding/json takes, and find there what it finds.
func FuzzPlaces(f *testing.F) {
	for _, s := range []string{`{"a":{"b":[1,"x"]}}`, `{"a":"{\"b\":[true]}"}`, `{"a":1,"a":{"b":2}}`, `[[]]`, `{"a":"\ud800"}`, `"x"`, `{"a":{"b":-0.5e3}} x`} {
		f.Add([]byte(s), "a.b.0")
		f.Add([]byte(s), "a.@json.b")
	}
	f.Fuzz(func(t *testing.T, text []byte, place string) {
		doc, err := decoded(text)
		if bad := checkJSON(text); (bad == nil) != (err == nil) {
			t.Fatalf("%q: %v, but encoding/json: %v", text, bad, err)
		}
		if err != nil || !json.Valid([]byte(strconv.Quote(place))) || bytes.ContainsRune(text, '\ufffd') {
			return
		}
		path := strings.Split(place, ".")
		want, there := lookUp(doc, path)
		got, ok := find(text, path)
		if ok != there && bytes.IndexFunc(text, func(r rune) bool { return r == '\ufffd' }) < 0 {
			t.Fatalf("%q at %q: found %v, encoding/json %v", text, path, ok, there)
		}
		if ok && there && jsonText(got) != reference(want) {
			t.Errorf("%q at %q: %q, encoding/json %q", text, path, jsonText(got), reference(want))
		}
		if ok && there && says(got, reference(want)) && jsonText(got) != reference(want) {
			t.Errorf("%q says %q", got, reference(want))
		}
	})
}
