package driver

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

var noteTexts = []string{
	`{"id":1,"note":"x","status":"done","owner":"toll"}`,
	" {\t\"owner\" : { \"a\":[1,-0,0.5,1E+2,null,true,false,\"\"] } ,\r\n\"status\":\"done\",\"note\":\"\",\"id\":-9223372036854775808}\n",
	`{"id":9223372036854775807}`, `{"id":9223372036854775808}`, `{"id":-9223372036854775809}`, `{"id":99999999999999999999}`,
	`{"id":1.0}`, `{"id":1e2}`, `{"id":"1"}`, `{"id":null}`, `{"id":1,"id":null}`, `{"id":1,"id":2}`, `{"id":true}`, `{"id":-0}`,
	`{"id":01}`, `{"id":+1}`, `{"id":1.}`, `{"id":.1}`, `{"id":1e}`, `{"id":-}`, `{"id":0x1}`,
	`{"note":"\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\ude00"}`, `{"note":"\ud83d"}`, `{"note":"\ude00\ud83dx"}`, `{"note":"\ud83d\u0041"}`,
	`{"note":"\ud83d\n"}`, `{"note":"\x"}`, `{"note":"\u12"}`, `{"note":"\u12g4"}`, `{"note":"` + "\n" + `"}`, `{"note":"` + "\x00" + `"}`, `{"note":"\`,
	`{"note":"é€😀"}`, `{"note":7}`, `{"note":["x"]}`, `{"note":null,"status":null}`, `{"note":"eight by\te"}`, `{"note":"0123456\"89abcdef\\"}`,
	`{"\u0069d":5}`, `{"ID":5}`, `{"error":null}`, `{"error":{}}`, `{"error":{},"error":null}`, `{"error":null,"error":0}`, `{"error":}`,
	``, ` `, `null`, `nul`, `true`, `[]`, `[{"id":1}]`, `"x"`, `1`, `{}`, `{}{}`, `{} x`, `{`, `{"id"`, `{"id":`, `{"id":1`, `{"id":1,`, `{"id":1,}`, `{,}`,
	`{"id":1 "note":""}`, `{id:1}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":[}`, `{"a":tru}`, `{"a":nulll}`, "{\"a\":1}\x00", "\ufeff{}",
	`{"a":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}`,
}

// wantNote decodes a reply with encoding/json, by exact names.
func wantNote(in []byte) (n noteReply, valid bool, err error) {
	if !json.Valid(in) {
		return n, false, errors.New("invalid")
	}
	if string(bytes.TrimSpace(in)) == "null" {
		return n, true, nil
	}
	d := json.NewDecoder(bytes.NewReader(in))
	if start, _ := d.Token(); start != json.Delim('{') {
		return n, true, errNoteType
	}
	for d.More() {
		name, _ := d.Token()
		var raw json.RawMessage
		if e := d.Decode(&raw); e != nil {
			return n, true, e
		}
		switch name {
		case "id":
			err = errors.Join(err, json.Unmarshal(raw, &n.id))
		case "note":
			err = errors.Join(err, unmarshalText(raw, &n.note))
		case "status":
			err = errors.Join(err, unmarshalText(raw, &n.status))
		case "error":
			n.failed = string(raw) != "null"
		}
	}
	return n, true, err
}

func unmarshalText(raw []byte, t *[]byte) error {
	s := string(*t)
	err := json.Unmarshal(raw, &s)
	*t = []byte(s)
	return err
}

func checkNote(t *testing.T, in []byte) {
	t.Helper()
	var s noteScanner
	got, err := s.scan(in)
	want, valid, wantErr := wantNote(in)
	if (err != nil) != (wantErr != nil) || errors.Is(err, errNoteType) && !valid {
		t.Fatalf("%q: got error %v, encoding/json says %v", in, err, wantErr)
	}
	if err != nil || !utf8.Valid(in) {
		return
	}
	if got.id != want.id || string(got.note) != string(want.note) || string(got.status) != string(want.status) || got.failed != want.failed {
		t.Errorf("%q:\ngot  %d %q %q %v\nwant %d %q %q %v", in,
			got.id, got.note, got.status, got.failed, want.id, want.note, want.status, want.failed)
	}
}

func TestNoteScannerAgreesWithEncodingJSON(t *testing.T) {
	for _, in := range noteTexts {
		checkNote(t, []byte(in))
	}
	for _, depth := range []int{9998, 9999, 10000, 10001} {
		checkNote(t, []byte(`{"a":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}`))
		checkNote(t, []byte(strings.Repeat("[", depth)+strings.Repeat("]", depth)))
	}
}

// A scanner's errors name the place.
func TestNoteScannerErrors(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":1,}`:      `json at byte 8: '}' for a member's name`,
		`{"id":1`:        `json at byte 7: text ends inside a value`,
		`{} x`:           `json at byte 3: 'x' after the value`,
		`{"note":7}`:     `a member has the wrong type`,
		"{\"note\":\"\n": `json at byte 9: '\n' in a string`,
	} {
		var s noteScanner
		if _, err := s.scan([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}

func TestAppendNoteIsWhatEncodingJSONWrites(t *testing.T) {
	for _, note := range []string{"", noteText(32), noteText(65536), "\"\\ \x00\x1f é😀"} {
		got := appendNote(nil, -12, []byte(note))
		var in noteIn
		if err := json.Unmarshal(got, &in); err != nil || in != (noteIn{-12, note}) {
			t.Errorf("note %.40q: %.80q reads back as %.80q, %v", note, got, in.Note, err)
		}
	}
	want, _ := json.Marshal(noteIn{firstID, noteText(4096)})
	if got := appendNote(nil, firstID, []byte(noteText(4096))); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzNoteScanner(f *testing.F) {
	for _, in := range noteTexts {
		f.Add([]byte(in))
	}
	f.Fuzz(checkNote)
}

func FuzzPlainEnd(f *testing.F) {
	f.Add([]byte("01234567\"9"), 3)
	f.Add([]byte("\x80\x1f\xff\\"), 0)
	f.Fuzz(func(t *testing.T, b []byte, from int) {
		if from < 0 || from > len(b) {
			return
		}
		want := bytes.IndexFunc(b[from:], func(r rune) bool { return r < ' ' || r == '"' || r == '\\' })
		if want < 0 {
			want = len(b) - from
		}
		if got := plainEnd(b, from); got != from+want {
			t.Errorf("%q from %d: got %d, want %d", b, from, got, from+want)
		}
	})
}
