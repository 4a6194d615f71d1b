package frame_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toll/wire/frame"
	"toll/wire/mux"
)

var _ mux.Framing = frame.Framing{}

func requests() []frame.Request {
	full := frame.Header{Kind: frame.Ask, Epoch: 3, Deadline: -5, Key: frame.Key{Sender: 1, Number: 2}, Trace: frame.Trace{Span: [8]byte{1}}}
	return []frame.Request{
		{Header: frame.Header{Kind: frame.Tell}},
		{Header: full, To: "target", From: "client", Op: "ping", Body: []byte("body")},
		{Header: frame.Header{Kind: frame.Ask, Deadline: 1 << 60}, To: strings.Repeat("n", frame.MaxName), Body: make([]byte, 70_000)},
		{Header: frame.Header{Kind: frame.Ask, Trace: frame.Trace{Trace: [16]byte{15: 1}}}, Op: "x"},
	}
}

func TestRequestsComeBack(t *testing.T) {
	t.Parallel()
	for i, r := range requests() {
		b := r.Append([]byte("before"), uint32(7+i))[len("before"):]
		if n, err := (frame.Framing{}).Length(b[:4]); n != len(b) || err != nil {
			t.Errorf("length %d of %d, %v", n, len(b), err)
		}
		var got frame.Received
		if err := got.Parse(b); err != nil {
			t.Fatal(err)
		}
		want := frame.Received{ID: uint32(7 + i), Header: r.Header, To: []byte(r.To), From: []byte(r.From), Op: []byte(r.Op), Body: r.Body}
		if want.Body == nil {
			want.Body = []byte{}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	long := frame.Request{Op: strings.Repeat("x", 256)}
	if err := long.Check(); !errors.Is(err, frame.ErrTooLong) {
		t.Error(err)
	}
	if err := (&requests()[1]).Check(); err != nil {
		t.Error(err)
	}
}

func TestRepliesComeBack(t *testing.T) {
	t.Parallel()
	b := frame.AppendReply(nil, 9, []byte("yes"))
	body, _, failed, err := frame.ParseReply(b)
	if id, idErr := (frame.Framing{}).ID(b); id != 9 || idErr != nil || failed || err != nil || string(body) != "yes" {
		t.Errorf("%d, %q, %v, %v, %v", id, body, failed, err, idErr)
	}
	frame.SetID(b, 1<<31)
	if id, err := (frame.Framing{}).ID(b); id != 1<<31 || err != nil {
		t.Errorf("%d, %v", id, err)
	}
	body, code, failed, err := frame.ParseReply(frame.AppendFailure(nil, 9, 4, "no"))
	if string(body) != "no" || code != 4 || !failed || err != nil {
		t.Errorf("%q, %d, %v, %v", body, code, failed, err)
	}
	if n := len(frame.AppendFailure(nil, 9, 4, strings.Repeat("x", 1<<20))); n > 65<<10 {
		t.Errorf("failure of %d bytes", n)
	}
}

func TestBadFrames(t *testing.T) {
	t.Parallel()
	good := (&requests()[1]).Append(nil, 1)
	edit := func(at int, b ...byte) []byte {
		out := bytes.Clone(good)
		copy(out[at:], b)
		return out
	}
	short := func(n int) []byte { return frame.Close(bytes.Clone(good[:n]), 0) }
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{nil, "frame: malformed: 0 bytes, a frame has at least 12"},
		{good[:20], "frame: malformed: length 87 in a frame of 20 bytes"},
		{edit(8, 2), "frame: malformed: version 2, this is version 1"},
		{edit(9, 0), "frame: malformed: kind 0"},
		{edit(9, 5), "frame: malformed: kind 5"},
		{edit(9, 3), "frame: malformed: kind 3 where a request was due"},
		{edit(10, 4), "frame: malformed: flags 0x4"},
		{short(20), "frame: malformed: request of 20 bytes"},
		{short(40), "frame: malformed: request ends within its key"},
		{edit(28, make([]byte, 16)...), "frame: malformed: the key is zero"},
		{short(50), "frame: malformed: request ends within its trace"},
		{edit(44, make([]byte, 24)...), "frame: malformed: the trace is zero"},
		{short(68), "frame: malformed: request ends within its names"},
		{short(80), "frame: malformed: request ends within its names"},
	} {
		var r frame.Received
		if err := r.Parse(c.in); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	reply := frame.AppendReply(nil, 1, nil)
	reply[10] = 1
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{good, "frame: malformed: kind 1 where a reply was due"},
		{reply, "frame: malformed: flags 0x1"},
		{frame.AppendFailure(nil, 1, 0, "x"), "frame: malformed: failure without a code"},
	} {
		if _, _, _, err := frame.ParseReply(c.in); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if _, err := (frame.Framing{}).ID(good); err == nil || err.Error() != "frame: malformed: kind 1 where a reply was due" {
		t.Error(err)
	}
	for in, want := range map[string]string{
		"\x07\x00\x00\x00": "frame: malformed: frame of 11 bytes, its head has 12",
		"\xff\xff\xff\xff": "frame: too long: frame of 4294967299 bytes, at most 1052672 are taken",
		"\xfd\x0f\x10\x00": "frame: too long: frame of 1052673 bytes, at most 1052672 are taken",
	} {
		if _, err := (frame.Framing{}).Length([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%x: got %v, want %s", in, err, want)
		}
	}
	if n, err := (frame.Framing{Max: 20}).Length([]byte("\x10\x00\x00\x00")); n != 20 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestFramesCostNoAllocation(t *testing.T) {
	r, b := requests()[1], make([]byte, 0, 1024)
	var got frame.Received
	if n := testing.AllocsPerRun(100, func() {
		b = r.Append(b[:0], 1)
		got.Parse(b)
		b = frame.AppendReply(b[:0], 1, got.Body)
		frame.ParseReply(b)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzRequest(f *testing.F) {
	for _, r := range requests() {
		f.Add(r.Append(nil, 1))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r frame.Received
		if r.Parse(data) != nil {
			return
		}
		w := frame.Request{Header: r.Header, To: string(r.To), From: string(r.From), Op: string(r.Op), Body: r.Body}
		if again := w.Append(nil, r.ID); !bytes.Equal(again, data) {
			t.Fatalf("%x was written as %x", data, again)
		}
	})
}

func FuzzReply(f *testing.F) {
	f.Add(frame.AppendReply(nil, 1, []byte("x")))
	f.Add(frame.AppendFailure(nil, 1, 2, "x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		body, code, failed, err := frame.ParseReply(data)
		if err != nil {
			return
		}
		id, err := frame.Framing{}.ID(data)
		again := frame.AppendReply(nil, id, body)
		if failed && len(body) > 64<<10 {
			return
		}
		if failed {
			again = frame.AppendFailure(nil, id, code, string(body))
		}
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%x was written as %x, %v", data, again, err)
		}
	})
}
