package opserver

import (
	"bytes"
	"encoding/json"
	"testing"
	"unsafe"
)

// A record has a field of each kind that a flat takes.
type record struct {
	N    int64  `json:"n"`
	Text string `json:"text"`
	On   bool   `json:"on"`
}

func TestWhatIsNotFlatIsLeftToEncodingJSON(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*flat{
		"empty": newFlat[struct{}](), "list": newFlat[struct {
			A []string `json:"a"`
		}](), "no name": newFlat[struct{ A string }](), "options": newFlat[struct {
			A string `json:"a,omitempty"`
		}](), "escaped name": newFlat[struct {
			A string `json:"<a>"`
		}](), "number": newFlat[struct {
			A float64 `json:"a"`
		}](), "own type": newFlat[struct {
			A json.Number `json:"a"`
		}](), "no struct": newFlat[int](),
	} {
		if f != nil {
			t.Errorf("%s is flat", name)
		}
	}
	if newFlat[record]() == nil || newFlat[NoteIn]() == nil || newFlat[NoteOut]() == nil {
		t.Error("the operations' own types are not flat")
	}
}

// FuzzFlatDecode: what a flat decodes, encoding/json decodes to the same.
func FuzzFlatDecode(f *testing.F) {
	for _, s := range []string{
		`{"n":7,"text":"abc","on":true}`, ` { "on" : false , "n" : -12 } `, `{}`, `{"n":01}`, `{"n":1,}`, `{"text":"\u0041"}`, `{"text":"é"}`, "{\"text\":\"\xff\"}",
		`{"n":1}{`, `{"n":999999999999999999}`, `{"n":1e3}`, `{"N":1}`, `{"n":1,"n":2}`, `{"n":null}`, `{"n":-0}`, `{"n":-}`, `{,}`, `{"on":tru}`,
	} {
		f.Add([]byte(s))
	}
	plan := newFlat[record]()
	f.Fuzz(func(t *testing.T, b []byte) {
		var got record
		if !plan.decode(b, unsafe.Pointer(&got)) {
			return
		}
		want, err := decodeJSON[record](b)
		if err != nil || got != want {
			t.Fatalf("%q: %+v; encoding/json: %+v, %v", b, got, want, err)
		}
	})
}

// FuzzFlatAppend: what a flat writes is what encoding/json writes.
func FuzzFlatAppend(f *testing.F) {
	f.Add(int64(-5), "plain", true)
	f.Add(int64(0), `<a href="x">&`, false)
	f.Add(int64(1), "\u2028 é \x7f", false)
	plan := newFlat[record]()
	f.Fuzz(func(t *testing.T, n int64, text string, on bool) {
		r := record{n, text, on}
		got, ok := plan.append([]byte("x"), unsafe.Pointer(&r))
		want, err := json.Marshal(r)
		if ok && (err != nil || !bytes.Equal(got[1:], want)) || !ok && len(got) != 1 {
			t.Fatalf("%+v: %s; encoding/json: %s, %v", r, got, want, err)
		}
	})
}
