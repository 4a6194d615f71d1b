package driver

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf8"
)

// Made by google.golang.org/protobuf from the same declaration.
func TestProtoNoteVectors(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		id         int64
		note, want string
	}{
		{0, "", ""},
		{1, "the", "0801" + "1203746865"},
		{300, "é", "08ac02" + "1202c3a9"},
		{-1, "", "08ffffffffffffffffff01"},
		{1e15, strings.Repeat("x", 200), "0880809aa6eaafe301" + "12c801" + strings.Repeat("78", 200)},
	} {
		got := appendProtoNote(nil, x.id, []byte(x.note))
		if hex.EncodeToString(got) != x.want {
			t.Errorf("%d, %q: got %x, want %s", x.id, x.note, got, x.want)
		}
		back, err := scanProtoNote(got)
		if err != nil || back.id != x.id || string(back.note) != x.note {
			t.Errorf("%d, %q: read back as %d, %q, %v", x.id, x.note, back.id, back.note, err)
		}
	}
}

var badProto = []struct{ name, hex, want string }{
	{"tag alone", "08", "protobuf at byte 0: message ends inside a field"},
	{"cut varint", "0880", "protobuf at byte 0: message ends inside a field"},
	{"endless varint", "08ffffffffffffffffffff01", "protobuf at byte 0: varint of more than 64 bits"},
	{"varint of 65 bits", "08ffffffffffffffffff02", "protobuf at byte 0: varint of more than 64 bits"},
	{"cut text", "0801120374", "protobuf at byte 2: message ends inside a field"},
	{"huge text", "12ffffffffffffffffff01", "protobuf at byte 0: message ends inside a field"},
	{"field 0", "0001", "protobuf at byte 0: field number 0"},
	{"field beyond the largest", "8080808010" + "01", "protobuf at byte 0: field number 536870912"},
	{"id as text", "0a0131", "protobuf at byte 0: field 1 has wire type 2, not 0"},
	{"note as a number", "1001", "protobuf at byte 0: field 2 has wire type 0, not 2"},
	{"no UTF-8", "1201ff", "protobuf at byte 0: field 2 is no UTF-8"},
	{"no UTF-8 in the owner", "2201ff", "protobuf at byte 0: field 4 is no UTF-8"},
	{"a group", "2b2c", "protobuf at byte 0: field 5 has wire type 3"},
	{"cut fixed64", "2900000000000000", "protobuf at byte 0: message ends inside a field"},
	{"cut fixed32", "2d000000", "protobuf at byte 0: message ends inside a field"},
}

func TestBadProtoNotes(t *testing.T) {
	t.Parallel()
	for _, x := range badProto {
		in, err := hex.DecodeString(x.hex)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scanProtoNote(in); err == nil || err.Error() != x.want {
			t.Errorf("%s: got %v, want %s", x.name, err, x.want)
		}
	}
}

func TestProtoNotesPassOverWhatTheyDoNotKnow(t *testing.T) {
	t.Parallel()
	// Twice an id, of which the last counts; a fixed64, a fixed32, bytes and a varint of unknown fields.
	in, _ := hex.DecodeString("0801" + "0807" + "290000000000000000" + "2d00000000" + "3202fffe" + "3805" + "1a04646f6e65" + "2200")
	got, err := scanProtoNote(in)
	if err != nil || got.id != 7 || string(got.status) != "done" || got.note != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzProtoNote(f *testing.F) {
	for _, x := range badProto {
		in, _ := hex.DecodeString(x.hex)
		f.Add(in)
	}
	f.Add(appendProtoNote(nil, 1e15, []byte("note")))
	f.Fuzz(func(t *testing.T, in []byte) {
		n, err := scanProtoNote(in)
		if err != nil {
			return
		}
		if !utf8.Valid(n.note) || !utf8.Valid(n.status) {
			t.Errorf("%x: took text that is no UTF-8", in)
		}
		// What was understood can be said again, and what is said again behind it changes nothing.
		again := appendProtoNote(bytes.Clone(in), n.id, n.note)
		if m, err := scanProtoNote(again); err != nil || n.id != 0 && m.id != n.id || !bytes.Equal(m.note, n.note) {
			t.Errorf("%x: %+v, then %+v, %v", in, n, m, err)
		}
	})
}
