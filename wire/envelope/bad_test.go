package envelope_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/wire/envelope"
)

func TestBadMsgpack(t *testing.T) {
	t.Parallel()
	head := "\x82\xa4type\xa1t"
	for in, want := range map[string]string{
		"":                                       "message ends; 1 more bytes expected at byte 0",
		"\xc0":                                   "not a map at byte 1",
		"\x81\xa4type":                           "message ends; 1 more bytes expected at byte 6",
		"\x80":                                   "no type at byte 1",
		"\x81\xa4type\xc0\xc0":                   "1 bytes behind the message at byte 7",
		"\x81\xa4type\x01":                       "type is not text at byte 7",
		"\x81\xa4type\xa2\xff\xfe":               "type is not UTF-8 at byte 9",
		"\x81\x01\x01":                           "a key is not text at byte 2",
		head + "\xa4type\xa1t":                   `key "type" stands twice at byte 13`,
		head + "\xaeschema_version\x02":          "schema version 2; this is version 1 at byte 24",
		head + "\xaeschema_version\xa11":         "schema_version is not an integer of 64 bits at byte 25",
		head + "\xa7payload\x90":                 "payload is not a map at byte 17",
		head + "\xa7payload\xdf\xff\xff\xff\xff": "4294967295 members in 0 bytes at byte 21",
		head + "\xa7payload\x81\xa1k\xdd\x00\xff\xff\xff":          "16777215 members in 0 bytes at byte 24",
		head + "\xa7payload\x81\xa1k\xdb\xff\xff\xff\xff":          "message ends; 4294967295 more bytes expected at byte 24",
		head + "\xa7payload\x81\xa1k\xc6\xff\xff\xff\xff":          "message ends; 4294967295 more bytes expected at byte 24",
		head + "\xa7payload\x81\xa1k\xc7\x01\x01x":                 "type 0xc7 is not of this format at byte 20",
		head + "\xa7payload\x81\xa1k\xc1":                          "type 0xc1 is not of this format at byte 20",
		head + "\xa7payload\x82\xa1k\x01\xa1k\x01":                 `key "k" stands twice at byte 23`,
		head + "\xa7payload\x81\xa1k\xa1\xff":                      "text is not UTF-8 at byte 21",
		head + "\xa7payload\x81\xa1k\xca\x7f\xc0\x00\x00":          "NaN has no JSON form at byte 24",
		head + "\xa7payload\x81\xa1k" + strings.Repeat("\x91", 40): "nested deeper than the limit at byte 51",
		head + "\xa9timestamp\xa1x":                                "timestamp is not a number at byte 20",
		head + "\xa3ttl\xcb\x7e\x37\xe4\x3c\x88\x00\x75\x9c":       "ttl is 1e+300 seconds at byte 21",
		head + "\xa7attempt\xcf\xff\xff\xff\xff\xff\xff\xff\xff":   "attempt is not an integer of 64 bits at byte 25",
		head + "\xa7attempt\xce\xff\xff\xff\xff":                   "attempt is 4294967295 at byte 21",
		head + "\xa5epoch\xff":                                     "epoch is not an unsigned integer at byte 15",
	} {
		checkBad(t, envelope.DecodeMsgpack, in, want)
	}
}

func TestBadJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                     "not JSON at byte 0",
		"\xff":                                 "not UTF-8 at byte 0",
		`{"type":"t"} x`:                       "not JSON at byte 0",
		`[]`:                                   "not an object at byte 2",
		`{}`:                                   "no type at byte 0",
		`{"type":null}`:                        "no type at byte 0",
		`{"type":1}`:                           "type is of the wrong type at byte 0",
		`{"type":"t","type":"u"}`:              `key "type" stands twice at byte 22`,
		`{"type":"t","schema_version":2}`:      "schema version 2; this is version 1 at byte 0",
		`{"type":"t","payload":[]}`:            "payload is of the wrong type at byte 0",
		`{"type":"t","payload":{"a":1,"a":1}}`: `key "a" stands twice at byte 34`,
		`{"type":"t","payload":{"a":1e999}}`:   "number 1e999 is out of range at byte 32",
		`{"type":"t","attempt":1.5}`:           "attempt is of the wrong type at byte 0",
		`{"type":"t","ttl":1e300}`:             "ttl is 1e+300 seconds at byte 0",
		`{"type":"t","payload":{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}}`: "nested deeper than the limit at byte 59",
	} {
		checkBad(t, envelope.DecodeJSON, in, want)
	}
}

func checkBad(t *testing.T, decode decoder, in, want string) {
	t.Helper()
	m, err := decode([]byte(in), envelope.Limits{})
	var de *envelope.DecodeError
	if !errors.As(err, &de) || err.Error() != "envelope: "+want {
		t.Errorf("%q: got %v, %v; want %s", in, m, err, want)
	}
}

func TestLimitsHold(t *testing.T) {
	t.Parallel()
	m := envelope.Message{Type: "t", Payload: map[string]any{"l": []any{1, 2, 3, map[string]any{"a": []any{}}}}}
	for ext, decode := range decoders() {
		data, err := m.AppendMsgpack(nil)
		if ext == "json" {
			data, err = m.AppendJSON(nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(data, envelope.Limits{Bytes: len(data), Depth: 4}); err != nil {
			t.Errorf("%s: at its limits: %v", ext, err)
		}
		for name, l := range map[string]envelope.Limits{"bytes": {Bytes: len(data) - 1}, "depth": {Depth: 3}} {
			if _, err := decode(data, l); err == nil {
				t.Errorf("%s: beyond the limit of %s it is read", ext, name)
			}
		}
	}
	many := envelope.Message{Type: "t", Payload: map[string]any{"l": make([]any, 200)}}
	packed, _ := many.AppendMsgpack(nil)
	text, _ := many.AppendJSON(nil)
	for ext, data := range map[string][]byte{"msgpack": packed, "json": text} {
		if _, err := decoders()[ext](data, envelope.Limits{Items: 100}); err == nil || !strings.Contains(err.Error(), "more values than the limit") {
			t.Errorf("%s: %v", ext, err)
		}
	}
}

func TestWhatHasNoFormOnTheWire(t *testing.T) {
	t.Parallel()
	deep := any(1)
	for range envelope.DefaultDepth {
		deep = []any{deep}
	}
	for _, x := range []struct {
		payload       any
		msgpack, json string
	}{
		{"text", "envelope: payload is string; between processes it must be a map[string]any", ""},
		{map[string]any{"c": make(chan int)}, `envelope: payload: "c": a chan int has no form on the wire`, `envelope: payload: "c": a chan int has no JSON form`},
		{map[string]any{"l": []any{1, math.NaN()}}, `envelope: payload: "l": [1]: NaN has no JSON form`, ""},
		{map[string]any{"s": "\xff"}, `envelope: payload: "s": "\xff" is not UTF-8`, ""},
		{map[string]any{"b": []byte{1}}, "", `envelope: payload: "b": a []uint8 has no JSON form`},
		{map[string]any{"": deep}, "envelope: payload: \"\": " + strings.Repeat("[0]: ", envelope.DefaultDepth-1) + "nested deeper than 32", ""},
	} {
		m := envelope.Message{Type: "t", Payload: x.payload}
		if x.json == "" {
			x.json = x.msgpack
		}
		b, err := m.AppendMsgpack([]byte("kept"))
		if (err != nil || x.msgpack != "") && (err == nil || err.Error() != x.msgpack || string(b) != "kept") {
			t.Errorf("%v: got %q, %v\nwant %s", x.payload, b, err, x.msgpack)
		}
		if _, err := m.AppendJSON(nil); err == nil || err.Error() != x.json {
			t.Errorf("%v: got %v\nwant %s", x.payload, err, x.json)
		}
	}
}

// What one codec reads it writes again, and the other codec agrees.
func fuzz(f *testing.F, ext string, decode decoder) {
	for _, m := range vectors() {
		packed, _ := m.AppendMsgpack(nil)
		text, _ := m.AppendJSON(nil)
		f.Add(map[string][]byte{"msgpack": packed, "json": text}[ext])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data, envelope.Limits{Bytes: 1 << 16})
		if err != nil {
			return
		}
		packed, err := m.AppendMsgpack(nil)
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		back, err := envelope.DecodeMsgpack(packed, envelope.Limits{Bytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, back); d != "" {
			t.Fatal(d)
		}
		text, err := m.AppendJSON(nil)
		if err != nil {
			return // bytes
		}
		if back, err = envelope.DecodeJSON(text, envelope.Limits{Bytes: 1 << 20}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if d := cmp.Diff(m, back); d != "" {
			t.Fatal(d)
		}
	})
}

func FuzzDecodeMsgpack(f *testing.F) { fuzz(f, "msgpack", envelope.DecodeMsgpack) }

func FuzzDecodeJSON(f *testing.F) { fuzz(f, "json", envelope.DecodeJSON) }
