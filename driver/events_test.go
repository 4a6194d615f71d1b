package driver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// eventsByTheBook reads a stream as the standard's algorithm is written, line by line.
func eventsByTheBook(stream string) (messages []string) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	lines := regexp.MustCompile("\r\n|\r|\n").Split(stream, -1)
	data, kind := "", ""
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			if data = strings.TrimSuffix(data, "\n"); data != "" && (kind == "" || kind == "message") {
				messages = append(messages, data)
			}
			data, kind = "", ""
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			data += value + "\n"
		case "event":
			kind = value
		}
	}
	return messages
}

func scanAll(stream string) (messages []string) {
	var e eventScanner
	e.scan([]byte(stream))
	for {
		data, ok := e.next()
		if !ok {
			return messages
		}
		messages = append(messages, string(data))
	}
}

var streams = []string{
	"", "\n", "data", "data: x", "data: x\n", "data: x\n\n", "data:x\r\rdata: y\r\n\r\n", "data:  x\n\n", "\ufeffdata: x\n\n", "\n\n\n",
	": comment\n\n", "data\n\n", "data\ndata\n\n", "data: a\ndata: b\ndata\n\ndata: c\ndata: d\n\n", "event: message\ndata: x\n\n",
	"event: ping\ndata: x\n\ndata: y\n\n", "event\ndata: x\n\n", "id: 7\nretry: 10\ndata: x\nother: y\n\n", "dat: x\n\n", "data : x\n\n",
	"data: a\r\ndata: b\r\n\r\n", "data: x\n\r\n", "data: x\r\n\n", "data: a:b\n\n", "data: {\"id\":1}\n\nid: 2\n\n",
}

func TestEventStreams(t *testing.T) {
	t.Parallel()
	for _, s := range streams {
		if diff := cmp.Diff(eventsByTheBook(s), scanAll(s)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", s, diff)
		}
	}
}

func FuzzEvents(f *testing.F) {
	for _, s := range streams {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if diff := cmp.Diff(eventsByTheBook(s), scanAll(s)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", s, diff)
		}
	})
}

var rpcTexts = []string{
	`{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"id":1,"note":"n","status":"done","text":"t"}}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":[{"type":"text","text":"a\"\\\u00e9"}]}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"},{"name":"b","x":[1]}],"nextCursor":"c\n"}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":null,"resultType":"complete","isError":false}}`,
	`{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}`, `{"jsonrpc":"2.0","id":1,"error":null,"result":{}}`, `{"jsonrpc":"2.0","method":"x","id":7}`,
	`{"jsonrpc":2,"id":1}`, `{"id":"1"}`, `{"result":[]}`, `{"result":null}`, `{"result":{"content":null}}`, `{"result":{"content":"x"}}`,
	`{"result":{"structuredContent":null,"isError":null}}`, `{"result":{"structuredContent":[]}}`, `{"result":{"isError":1}}`, `{"result":{"tools":1}}`,
	`{"result":{"tools":[1,{}]}}`, `{"result":{"structuredContent":{"id":1.5}}}`, `{"result":{"structuredContent":{"text":5}}}`, `{"result":{"nextCursor":5}}`,
	`{"result":{"resultType":5}}`, `[]`, `"x"`, `{`, `{}`, `{} `, `{}x`, `{"result":{`, `{"result":{"content":[`, `{"a":"\`, `{"a":"\x"}`, "{\"a\":\"\n\"}", ``, `null`,
}

// wantRPC decodes a message by encoding/json, by exact names. ok is false where duplicate names make it the wrong judge.
func wantRPC(in []byte) (r rpcReply, fits, ok bool) {
	top, dup, isObject := object(in)
	if !isObject || dup {
		return r, isObject, !dup
	}
	fits = true
	text := func(raw json.RawMessage, to *[]byte) {
		var s *string
		if raw == nil {
			return
		}
		if json.Unmarshal(raw, &s) != nil || s == nil {
			fits = false
			return
		}
		*to = []byte(*s)
	}
	number := func(raw json.RawMessage, to *int64) {
		if raw != nil && json.Unmarshal(raw, to) != nil {
			fits = false
		}
	}
	text(top["jsonrpc"], &r.version)
	number(top["id"], &r.id)
	r.asked = top["method"] != nil
	r.failed = top["error"] != nil && string(top["error"]) != "null"
	if top["result"] == nil {
		return r, fits, true
	}
	result, dup, isObject := object(top["result"])
	if r.result = isObject; !isObject || dup {
		return r, false, !dup
	}
	if raw := result["isError"]; raw != nil && json.Unmarshal(raw, &r.isError) != nil {
		fits = false
	}
	text(result["resultType"], &r.kind)
	if raw := result["nextCursor"]; string(raw) != "null" {
		text(raw, &r.cursor)
	}
	var list []json.RawMessage
	if raw := result["content"]; raw != nil {
		r.content = json.Unmarshal(raw, &list) == nil && list != nil
		fits = fits && r.content
	}
	if raw := result["tools"]; raw != nil {
		list = nil
		if json.Unmarshal(raw, &list) != nil || list == nil {
			fits = false
		}
		for _, x := range list {
			if x[0] == '{' {
				r.tools++
			}
		}
	}
	raw := result["structuredContent"]
	if raw == nil || string(raw) == "null" {
		return r, fits, true
	}
	inner, dup, isObject := object(raw)
	if r.structured = isObject; !isObject || dup {
		return r, false, !dup
	}
	text(inner["text"], &r.text)
	n, _, err := wantNote(raw)
	r.note = n
	return r, fits && err == nil, true
}

// object returns the members of an object.
func object(in []byte) (members map[string]json.RawMessage, dup, ok bool) {
	d := json.NewDecoder(bytes.NewReader(in))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, false, false
	}
	members = make(map[string]json.RawMessage)
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false, false
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, false, false
		}
		key := fmt.Sprint(name)
		dup = dup || members[key] != nil
		members[key] = raw
	}
	return members, dup, true
}

func checkRPC(t *testing.T, in []byte) {
	t.Helper()
	var s noteScanner
	got, err := s.rpc(in)
	if !json.Valid(in) {
		if err == nil {
			t.Fatalf("%q: not JSON, and we say nothing", in)
		}
		return
	}
	want, fits, ok := wantRPC(in)
	if !ok || !utf8.Valid(in) {
		return
	}
	if (err == nil) != fits {
		t.Fatalf("%q: got error %v, encoding/json says it fits: %v", in, err, fits)
	}
	if err != nil {
		return
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rpcReply{}, noteReply{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%q (-want +got):\n%s", in, diff)
	}
}

func TestRPCMessages(t *testing.T) {
	t.Parallel()
	for _, in := range rpcTexts {
		checkRPC(t, []byte(in))
	}
}

func FuzzRPC(f *testing.F) {
	for _, in := range rpcTexts {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		checkRPC(t, in)
		var r rpcReader
		r.read(mediaJSON, in)
		r.read(mediaEvents, in)
	})
}
