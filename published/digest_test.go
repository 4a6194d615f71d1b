package published

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

func pinOf(name, text string) pin {
	sum := sha256.Sum256([]byte(text))
	return pin{name, hex.EncodeToString(sum[:])}
}

func TestOneChangedDigitIsRefused(t *testing.T) {
	t.Parallel()
	all := pins()
	p := all[slices.IndexFunc(all, func(p pin) bool { return p.name == "transport-seed" })]
	text, err := files.ReadFile(p.name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parse(p, text); err != nil {
		t.Fatal(err)
	}
	_, err = parse(p, bytes.Replace(text, []byte("0.67"), []byte("0.66"), 1))
	if err == nil || !strings.Contains(err.Error(), p.name+" was changed") || !strings.Contains(err.Error(), p.sha256) {
		t.Errorf("got %v, want an error with the name and the pinned digest", err)
	}
}

func TestParseIsStrict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":  {`{"name":"a","speed":1}`, `unknown field "speed"`},
		"another name": {`{"name":"b"}`, `calls itself "b"`},
		"not JSON":     {`name: a`, "invalid character"},
	} {
		_, err := parse(pinOf("a", c.text), []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

func TestOtherColumnsAreCarried(t *testing.T) {
	t.Parallel()
	text := `{"name":"a","rows":[{"label":"go","figures":{"avg_ms":0.855,"rps":1624}}]}`
	table, err := parse(pinOf("a", text), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := table.Rows[0].Figures; got["avg_ms"] != 0.855 || got["rps"] != 1624 {
		t.Errorf("got %v from %s", got, text)
	}
}
