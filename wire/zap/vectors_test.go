package zap_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toll/wire/zap"
)

// vectors reads testdata/vectors.txt.
func vectors(t testing.TB) map[string][]byte {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]byte)
	for line := range strings.Lines(string(b)) {
		name, digits, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name == "#" {
			continue
		}
		if out[name], err = hex.DecodeString(digits); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return out
}

type mixed struct {
	B     bool
	I8    int8
	U16   uint16
	I32   int32
	U64   uint64
	F32   float32
	F64   float64
	S     string
	Bytes []byte
	After uint8
}

type lists struct {
	N     int32
	Texts []string
	Nums  []int32
	Flags []bool
	Blobs [][]byte
	Many  []small
	After string
}

type deep struct{ Deeper struct{ S string } }

type nested struct {
	A    uint16
	In   small
	Deep deep
	Z    uint8
}

// refusal has the shape of an op-call's error.
type refusal struct {
	Status        int32
	Code, Message string
}

type odd struct {
	T []string
	N int64
}

func TestStructVectors(t *testing.T) {
	t.Parallel()
	v := vectors(t)
	structVector(t, v["struct"], small{42, "hi"})
	structVector(t, v["empty"], small{})
	structVector(t, v["mixed"], mixed{true, -2, 3, -4, 5, 1.5, -2.25, "text", []byte{1, 2, 3}, 9})
	structVector(t, v["lists"], lists{7, []string{"a", "", "ccc"}, []int32{1, -2}, []bool{true, false, true},
		[][]byte{{9}, {8, 7}}, []small{{1, "x"}, {2, ""}}, "end"})
	structVector(t, v["lists-none"], lists{N: 7})
	structVector(t, v["nested"], nested{A: 1, In: small{2, "in"}, Z: 3, Deep: deep{struct{ S string }{"d"}}})
	structVector(t, v["error"], refusal{404, "not_found", "no such operation"})
	structVector(t, v["odd-list"], odd{[]string{"abc"}, 1})
}

func structVector[T any](t *testing.T, want []byte, v T) {
	t.Helper()
	c := codec[T](t)
	if got := c.Append(nil, &v); !bytes.Equal(got, want) {
		t.Errorf("%+v:\ngot  %x\nwant %x", v, got, want)
	}
	for _, lenient := range []bool{false, true} {
		c.Lenient = lenient
		var got T
		if err := c.Decode(want, &got); err != nil {
			t.Errorf("%x: %v", want, err)
		}
		if d := cmp.Diff(v, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("lenient %v: %s", lenient, d)
		}
	}
}

// The first vector again, field by field.
func TestABuiltMessageIsTheSame(t *testing.T) {
	t.Parallel()
	want := vectors(t)["struct"]
	w := zap.Build([]byte("before"), zap.Version1, 0)
	w.Object(16)
	w.Uint64(0, 42)
	w.Text(8, "hi")
	if got := w.End(); string(got) != "before"+string(want) {
		t.Errorf("got %x", got)
	}
	m, err := zap.Parse(want)
	if err != nil {
		t.Fatal(err)
	}
	o := m.Root()
	if n, text := o.Uint64(0), o.Text(8); n != 42 || text != "hi" || o.Err() != nil {
		t.Errorf("%d, %q, %v", n, text, o.Err())
	}
}

func pairs(s ...string) []zap.Pair {
	var out []zap.Pair
	for i := 0; i < len(s); i += 2 {
		out = append(out, zap.Pair{Name: []byte(s[i]), Value: []byte(s[i+1])})
	}
	return out
}

func TestHTTPVectors(t *testing.T) {
	t.Parallel()
	v := vectors(t)
	req := zap.Request{Method: []byte("POST"), Target: []byte("/.well-known/zip/op/tasks_list"), Proto: []byte("HTTP/1.1"),
		Headers: pairs("Host", "local", "Content-Type", "application/zap"), Body: []byte("body")}
	resp := zap.Response{Status: 422, Reason: []byte("Unprocessable Entity"), Proto: []byte("HTTP/1.1"),
		Headers: pairs("Content-Type", "application/zap", "X-A", "1"), Body: []byte("reply")}
	empty := zap.Response{Status: 200, Reason: []byte("OK"), Proto: []byte("HTTP/1.1"),
		Headers: pairs("Content-Type", "text/plain; charset=utf-8")}
	head := zap.Response{Status: 200, Reason: []byte("OK"), Proto: []byte("HTTP/1.1"),
		Headers: pairs("Content-Type", "text/event-stream")}
	for name, got := range map[string][]byte{
		"httpreq": req.Append(nil), "httpresp": resp.Append(nil), "httpresp-empty": empty.Append(nil), "head": head.AppendHead(nil),
		"data": zap.AppendData(nil, []byte("chunk")), "end": zap.AppendEnd(nil, nil), "end-trailer": zap.AppendEnd(nil, pairs("a", "b")),
	} {
		if want := v[name]; !bytes.Equal(got[4:], want) || int(got[2])<<8|int(got[3]) != len(want) {
			t.Errorf("%s:\ngot  %x\nwant %x", name, got, want)
		}
	}
	var gotReq zap.Request
	if err := gotReq.Parse(v["httpreq"]); err != nil || cmp.Diff(req, gotReq, cmpopts.EquateEmpty()) != "" {
		t.Errorf("%v: %s", err, cmp.Diff(req, gotReq))
	}
	var gotResp zap.Response
	if err := gotResp.Parse(v["httpresp"]); err != nil || cmp.Diff(resp, gotResp, cmpopts.EquateEmpty()) != "" {
		t.Errorf("%v: %s", err, cmp.Diff(resp, gotResp))
	}
	head.Streamed = true
	if err := gotResp.Parse(v["head"]); err != nil || cmp.Diff(head, gotResp, cmpopts.EquateEmpty()) != "" {
		t.Errorf("%v: %s", err, cmp.Diff(head, gotResp))
	}
	if chunk, end, _, err := zap.ParseChunk(v["data"]); string(chunk) != "chunk" || end || err != nil {
		t.Errorf("%q, %v, %v", chunk, end, err)
	}
	if chunk, end, trailer, err := zap.ParseChunk(v["end-trailer"]); chunk != nil || !end || err != nil || cmp.Diff(pairs("a", "b"), trailer) != "" {
		t.Errorf("%q, %v, %v, %v", chunk, end, trailer, err)
	}
}

func TestRPCVectors(t *testing.T) {
	t.Parallel()
	v := vectors(t)
	for name, want := range map[string]zap.RPCRequest{
		"rpc-request": {Method: 1, Promise: 7, Payload: []byte("pp")},
		"rpcreq":      {Method: 3, Promise: 9, Target: 8, Capability: []byte("cap"), Payload: []byte("pay")},
	} {
		if got := want.AppendMessage(nil); !bytes.Equal(got, v[name]) {
			t.Errorf("%s:\ngot  %x\nwant %x", name, got, v[name])
		}
		frame := want.Append(nil)
		var got zap.RPCRequest
		if err := got.Parse(frame); err != nil || cmp.Diff(want, got) != "" || int(frame[0]) != len(frame)-4 || frame[4] != 1 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, want := range map[string]zap.RPCResponse{
		"rpc-response": {Status: 200, Promise: 7, Body: []byte("ok")},
		"rpcresp":      {Status: 404, Promise: 9},
	} {
		if got := want.AppendMessage(nil); !bytes.Equal(got, v[name]) {
			t.Errorf("%s:\ngot  %x\nwant %x", name, got, v[name])
		}
		frame := want.Append(nil)
		var got zap.RPCResponse
		if err := got.Parse(frame); err != nil || cmp.Diff(want, got) != "" || int(frame[0]) != len(frame)-4 || frame[4] != 2 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
