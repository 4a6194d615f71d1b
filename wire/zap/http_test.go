package zap_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"toll/wire/mux"
	"toll/wire/zap"
)

func exampleRequest() zap.Request {
	return zap.Request{
		Method: []byte("POST"), Target: []byte("/.well-known/zip/op/note"), Proto: []byte("HTTP/1.1"),
		Headers: []zap.Pair{{Name: []byte("Host"), Value: []byte("a")}, {Name: []byte("Content-Type"), Value: []byte("application/zap")}},
		Body:    []byte("body"),
	}
}

func TestHTTPFramesSurviveTheTrip(t *testing.T) {
	t.Parallel()
	want := exampleRequest()
	frame := want.Append(nil)
	if n := binary.BigEndian.Uint32(frame); int(n) != len(frame)-4 {
		t.Errorf("length %d of %d bytes", n, len(frame))
	}
	var got zap.Request
	if err := got.Parse(frame[4:]); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	resp := zap.Response{Status: 422, Reason: []byte("No"), Proto: []byte("HTTP/1.1"), Headers: want.Headers, Body: []byte("x"), Trailer: pairs("t", "u")}
	var back zap.Response
	if err := back.Parse(resp.Append(nil)[4:]); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(resp, back, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	if err := back.Parse(frame[4:]); !errors.Is(err, zap.ErrType) {
		t.Errorf("a request taken for a response: %v", err)
	}
	if err := got.Parse(append(frame[4:], 0)); !errors.Is(err, zap.ErrSize) {
		t.Errorf("a message shorter than its frame: %v", err)
	}
}

func TestBadHeaders(t *testing.T) {
	t.Parallel()
	at := func(b []byte) int { return bytes.Index(b, []byte("Host")) - 8 } // the number of headers
	for name, c := range map[string]struct {
		spoil func(b []byte)
		want  string
	}{
		"too many":          {func(b []byte) { b[at(b)] = 200 }, "zap: 200 headers in 48 bytes: offset or length outside the message"},
		"too few":           {func(b []byte) { b[at(b)] = 1 }, "zap: 35 bytes behind the headers: offset or length outside the message"},
		"one more":          {func(b []byte) { b[at(b)] = 3 }, "zap: header 2 of 3: truncated"},
		"a value too long":  {func(b []byte) { b[at(b)+12] = 255 }, "zap: header 0 of 2 has 255 bytes of 36: offset or length outside the message"},
		"none at all":       {func(b []byte) { b[at(b)] = 0 }, "zap: 48 bytes behind the headers: offset or length outside the message"},
		"2^32 - 1":          {func(b []byte) { copy(b[at(b):], "\xff\xff\xff\xff") }, "zap: 4294967295 headers in 48 bytes: offset or length outside the message"},
		"a slot of 3 bytes": {func(b []byte) { b[16+24+4] = 3 }, "zap: headers of 3 bytes: truncated"},
		"a name too long":   {func(b []byte) { b[at(b)+4] = 255 }, "zap: header 0 of 2 has 255 bytes of 44: offset or length outside the message"},
	} {
		r := exampleRequest()
		b := r.Append(nil)[4:]
		c.spoil(b)
		if err := new(zap.Request).Parse(b); err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
}

func TestBadResponsesAndPieces(t *testing.T) {
	t.Parallel()
	resp := zap.Response{Status: 200, Body: []byte("x"), Trailer: pairs("a", "b")}
	spoil := func(at int, with byte) []byte {
		b := resp.Append(nil)[4:]
		b[at] = with
		return b
	}
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"empty":         {nil, "zap: header of 0 bytes: truncated"},
		"a request":     {spoil(7, 1), "zap: type 1 instead of 2: unexpected type of message"},
		"a piece":       {zap.AppendData(nil, nil)[4:], "zap: type 4 instead of 2: unexpected type of message"},
		"body outside":  {spoil(16+32+4, 200), "zap: slot at 48 points to 200 bytes at 64 of 79: offset or length outside the message"},
		"null body":     {spoil(16+32, 0), "zap: null slot at 48 with length 1: offset or length outside the message"},
		"trailer":       {spoil(65, 2), "trailer: zap: 2 headers in 10 bytes: offset or length outside the message"},
		"fixed section": {spoil(8, 78), "zap: field of 2 bytes at 78 of 79: offset or length outside the message"},
	} {
		if err := new(zap.Response).Parse(c.in); err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
	for want, in := range map[string][]byte{
		"zap: type 2 instead of 4: unexpected type of message":      resp.Append(nil)[4:],
		"zap: header of 3 bytes: truncated":                         []byte("ZAP"),
		"zap: message of 24 bytes in a frame of 25: bad total size": append(zap.AppendEnd(nil, nil), 0)[4:],
	} {
		if _, _, _, err := zap.ParseChunk(in); err == nil || err.Error() != want {
			t.Errorf("\ngot  %v\nwant %s", err, want)
		}
	}
}

func TestBadHTTPLengths(t *testing.T) {
	t.Parallel()
	for n, want := range map[uint32]string{
		64<<20 + 1: "zap: frame of 67108865 bytes, at most 67108864: too large",
		1<<32 - 1:  "zap: frame of 4294967295 bytes, at most 67108864: too large",
		15:         "zap: frame of 15 bytes is less than a header: truncated",
		0:          "zap: frame of 0 bytes is less than a header: truncated",
	} {
		if _, err := (zap.HTTPFraming{}).Length(binary.BigEndian.AppendUint32(nil, n)); err == nil || err.Error() != want {
			t.Errorf("%d: got %v, want %s", n, err, want)
		}
	}
	if _, err := (zap.HTTPFraming{Max: 100}).Length([]byte{0, 0, 0, 101}); !errors.Is(err, zap.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if n, err := (zap.HTTPFraming{}).Length([]byte{4, 0, 0, 0}); n != 64<<20+4 || err != nil {
		t.Errorf("64 MiB: %d, %v", n, err)
	}
}

// FuzzHTTP reads a stream of frames; what parses must come out the same when it is written again.
func FuzzHTTP(f *testing.F) {
	r := exampleRequest()
	resp := zap.Response{Status: 200, Headers: pairs("a", "b", "", ""), Body: []byte("x"), Trailer: pairs("t", "")}
	f.Add(r.Append(nil))
	f.Add(zap.AppendEnd(zap.AppendData(resp.AppendHead(resp.Append(nil)), []byte("x")), pairs("a", "b")))
	for _, v := range vectors(f) {
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(len(v))), v...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := mux.NewReader(bytes.NewReader(b), zap.HTTPFraming{Max: 1 << 16})
		for {
			frame, err := in.Next()
			if err != nil {
				break
			}
			frameOf(t, frame[4:])
		}
	})
}

func frameOf(t *testing.T, m []byte) {
	var req, req2 zap.Request
	if req.Parse(m) == nil {
		if err := req2.Parse(req.Append(nil)[4:]); err != nil || cmp.Diff(req, req2, cmpopts.EquateEmpty()) != "" {
			t.Fatalf("%v: %s", err, cmp.Diff(req, req2))
		}
	}
	var resp, resp2 zap.Response
	if resp.Parse(m) == nil && !resp.Streamed {
		if err := resp2.Parse(resp.Append(nil)[4:]); err != nil || cmp.Diff(resp, resp2, cmpopts.EquateEmpty()) != "" {
			t.Fatalf("%v: %s", err, cmp.Diff(resp, resp2))
		}
	}
	chunk, end, trailer, err := zap.ParseChunk(m)
	if err != nil {
		return
	}
	again := zap.AppendData(nil, chunk)
	if end {
		again = zap.AppendEnd(nil, trailer)
	}
	chunk2, end2, trailer2, err := zap.ParseChunk(again[4:])
	if err != nil || end2 != end || !end && !bytes.Equal(chunk, chunk2) || len(trailer) != len(trailer2) {
		t.Fatalf("%x, %v, %v; then %x, %v, %v, %v", chunk, end, trailer, chunk2, end2, trailer2, err)
	}
}

// FuzzHeaders puts any bytes into the headers slot of a request.
func FuzzHeaders(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x01\x00\x00\x00a\x01\x00\x00\x00b"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, slot []byte) {
		w := zap.Build(nil, zap.Version1, zap.TypeRequest<<8)
		w.Object(48)
		w.Bytes(24, slot)
		var r zap.Request
		if r.Parse(w.End()) != nil {
			return
		}
		again := r.Append(nil)[4:]
		if want := w.End(); len(r.Headers) > 0 && !bytes.Equal(again, want) {
			t.Fatalf("%x was read as %v and written as %x", want, r.Headers, again)
		}
	})
}
