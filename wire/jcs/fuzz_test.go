package jcs_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	gowebpki "github.com/gowebpki/jcs"

	"toll/wire/jcs"
)

// peers are other implementations of RFC 8785, each with the codes of documents that it is known to take although we refuse
// them: the known differences.
var peers = []struct {
	name  string
	takes map[jcs.Code]string
	form  func([]byte) ([]byte, error)
}{
	{"gowebpki/jcs", map[jcs.Code]string{
		jcs.TooDeep: "its bound is 10000",
	}, gowebpki.Transform},
	{"jsontext", map[jcs.Code]string{
		jcs.NumberRange: "it saturates: 1e400 becomes the largest float64, so that two documents share a form",
		jcs.TooDeep:     "its bound is 10000",
	}, func(b []byte) ([]byte, error) {
		v := jsontext.Value(bytes.Clone(b))
		err := v.Canonicalize()
		return v, err
	}},
}

// differ fails when a peer's judgement of a document is another than ours and that difference is not known.
func differ(t *testing.T, src []byte) {
	ours, err := jcs.Append(nil, src, jcs.Limits{})
	var e *jcs.Error
	if err != nil && (!errors.As(err, &e) || e.Offset < 0 || e.Offset > len(src)) {
		t.Fatalf("%q: error %v", src, err)
	}
	for _, p := range peers {
		theirs, theirErr := p.form(src)
		switch {
		case err == nil && theirErr != nil:
			t.Errorf("%q: we give %s, %s refuses: %v", src, ours, p.name, theirErr)
		case err != nil && theirErr == nil && p.takes[e.Code] == "":
			t.Errorf("%q: we refuse (%v), %s gives %s", src, err, p.name, theirs)
		case err == nil && !bytes.Equal(ours, theirs):
			t.Errorf("%q: we give %s, %s gives %s", src, ours, p.name, theirs)
		}
	}
	if err != nil {
		return
	}
	again, err := jcs.Append(nil, ours, jcs.Limits{})
	if err != nil || !bytes.Equal(again, ours) {
		t.Errorf("%q: the form %s canonicalizes to %s, %v", src, ours, again, err)
	}
}

func TestOtherImplementationsJudgeThePackTheSame(t *testing.T) {
	t.Parallel()
	pack, err := jcs.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range pack {
		differ(t, c.Input)
	}
}

// Every difference that the table claims is there.
func TestKnownDifferencesAreReal(t *testing.T) {
	t.Parallel()
	deep := bytes.Repeat([]byte("["), 5000)
	deep = append(deep, bytes.Repeat([]byte("]"), 5000)...)
	example := map[jcs.Code][]byte{jcs.NumberRange: []byte("1e400"), jcs.TooDeep: deep}
	for _, p := range peers {
		for code, why := range p.takes {
			var e *jcs.Error
			if _, err := jcs.Append(nil, example[code], jcs.Limits{}); !errors.As(err, &e) || e.Code != code {
				t.Errorf("%s: we say %v", code, err)
			}
			if _, err := p.form(example[code]); err != nil {
				t.Errorf("%s is said to take %s (%s), but: %v", p.name, code, why, err)
			}
		}
	}
}

func FuzzCanonicalizer(f *testing.F) {
	pack, err := jcs.Pack()
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range pack {
		if len(c.Input) < 1000 {
			f.Add(c.Input)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) { differ(t, src) })
}

// Members, Elements and Text meet bytes from outside only in canonical form, but must hold whatever they meet.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":"x\n","b":[1,{"c":2}],"d":{}}`))
	f.Add([]byte(`[1,"]",[]]`))
	f.Add([]byte(`{"a":"\`))
	f.Fuzz(func(t *testing.T, src []byte) {
		for name, value := range jcs.Members(src) {
			jcs.Text(name)
			jcs.Text(value)
			if len(value) > 0 {
				jcs.Int(value)
			}
		}
		for e := range jcs.Elements(src) {
			if len(e) == 0 {
				t.Errorf("%q yields an empty element", src)
			}
		}
		form, err := jcs.Append(nil, src, jcs.Limits{})
		if err != nil || len(form) == 0 || form[0] != '{' {
			return
		}
		again := []byte("{")
		for name, value := range jcs.Members(form) {
			if len(again) > 1 {
				again = append(again, ',')
			}
			again = append(append(append(again, name...), ':'), value...)
		}
		if again = append(again, '}'); !bytes.Equal(again, form) {
			t.Errorf("%s read member by member is %s", form, again)
		}
	})
}

func BenchmarkPeers(b *testing.B) {
	src := appendEnvelope(b, nil)
	for _, p := range peers {
		b.Run(p.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.form(src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
