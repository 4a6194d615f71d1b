package http1

import "testing"

func TestHeaderNamesCompareWithoutCase(t *testing.T) {
	r := Request{fields: []Field{{[]byte("Content-TYPE"), []byte("a")}, {[]byte("x[1]"), []byte("b")}}}
	for name, want := range map[string]string{"content-type": "a", "Content-Type": "a", "CONTENT-type": "a", "content-typ": "", "x[1]": "b", "X[1]": "b", "x{1}": ""} {
		if got := string(r.Header(name)); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { r.Header("Content-Type") }); n != 0 {
		t.Errorf("a look-up allocates %v times", n)
	}
}
