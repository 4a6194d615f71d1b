package contender

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

func FuzzReadyLine(f *testing.F) {
	f.Add([]byte(`{"ready":"tcp://127.0.0.1:4010","version":"1","extra":[{}]}`))
	f.Add([]byte(`{"ready":"http://[::1]:80/v1/note?x=1"}`))
	f.Add([]byte(`{"ready":"unix:/run/a.sock"}`))
	f.Add([]byte(`{"ready":"stdio:"}`))
	f.Add([]byte(`{"ready":"tcp://a:1/x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseReady(line{text: text})
		if err != nil {
			return
		}
		if again, _, err := splitAddr(r.Addr); err != nil || again != r.Addr {
			t.Errorf("%q: address %q is not one: %q, %v", text, r.Addr, again, err)
		}
		if network, addr := dialArgs(r.Addr); network == "" || addr == "" {
			t.Errorf("%q: can't be dialled", text)
		}
	})
}

func FuzzStats(f *testing.F) {
	f.Add([]byte(`{"allocs":1,"alloc_bytes":2,"heap":3,"gc":4,"gomaxprocs":5}`))
	f.Add([]byte(`{"heap":1e18}`))
	f.Add([]byte(`{"id":1,"allocs":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseStats(text)
		if err != nil && !errors.Is(err, ErrNoStats) {
			t.Error(err)
		}
		if s.Allocs < 0 || s.AllocBytes < 0 || s.Heap < 0 || s.GC < 0 || s.GOMAXPROCS < 0 || err == nil && !bytes.Contains(text, []byte("{")) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

func TestStatsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `x`, `[]`, `{}`, `null`, `{"level":"info"}`, `{"allocs":-1}`, `{"allocs":"1"}`, `{"id":7,"allocs":1,"alloc_bytes":2}`,
		`{"heap":1e19}`, `{"heap":null}`,
	} {
		if s, err := parseStats([]byte(text)); !errors.Is(err, ErrNoStats) || s != (Stats{}) {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
	}
	s, err := parseStats([]byte(`{"heap":5,"allocs":3}`))
	if err != nil || s != (Stats{Allocs: 3, Heap: 5, HeapKnown: true}) {
		t.Errorf("%+v, %v; allocs without alloc_bytes are not known", s, err)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, addr, path string }{
		{"tcp://127.0.0.1:4010", "tcp://127.0.0.1:4010", ""},
		{"http://127.0.0.1:1", "http://127.0.0.1:1", ""},
		{"http://127.0.0.1:1/", "http://127.0.0.1:1", ""},
		{"https://[::1]:1/v1/note?a=b", "https://[::1]:1", "/v1/note?a=b"},
		{"unix:/run/x y.sock", "unix:/run/x y.sock", ""},
		{"stdio:", "stdio:", ""},
	} {
		addr, path, err := splitAddr(c.in)
		if err != nil || addr != c.addr || path != c.path {
			t.Errorf("%s: %q, %q, %v", c.in, addr, path, err)
		}
	}
	for _, in := range []string{
		"", "127.0.0.1:1", "tcp://127.0.0.1", "tcp://:1", "tcp://h:1/x", "http://h", "http://h:0", "http://h:65536", "http://h:1#x",
		"http://u:p@h:1", "ftp://h:1", "unix:", "unix:x", "stdio", "http://h:1\n", "http:h:1",
	} {
		if addr, path, err := splitAddr(in); err == nil {
			t.Errorf("%q is %q, %q", in, addr, path)
		}
	}
}

func TestLinesAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxLine)
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"a\n\nb", []string{"a", "", "b"}},
		{long + "\nb\n", []string{long, "b"}},
		{long + "y\nb\n", []string{long, "b"}},
		{strings.Repeat(long, 3) + "\n", []string{long}},
		{long + long, []string{long}},
		{long + "y", []string{long}},
	} {
		var got []string
		l := newLines(func(text []byte) { got = append(got, string(text)) })
		l.read(strings.NewReader(c.in))
		if !slices.Equal(got, c.want) {
			t.Errorf("%d bytes: got %d lines, want %d", len(c.in), len(got), len(c.want))
		}
	}
}

func TestTheEndOfStderrIsKept(t *testing.T) {
	t.Parallel()
	var kept tail
	for range 1000 {
		kept.add([]byte("a line of some length"))
	}
	kept.add([]byte("the end"))
	if s := kept.String(); len(s) != maxTail || !strings.HasSuffix(s, "length\nthe end\n") {
		t.Errorf("%d bytes: %.40q", len(s), s)
	}
}

func TestLastWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ stderr, want string }{
		{"", ""},
		{"\n \n", ""},
		{"one\ntwo\n\n", `; on stderr: "two"`},
		{"Error: listen EADDRINUSE: address already in use\n    at Server (node:net:1)\nEmitted 'error' event\n\nNode.js v20\n",
			`; on stderr: "Error: listen EADDRINUSE: address already in use"`},
		{"Traceback\n  File \"x\"\nOSError: [Errno 98] Address already in use\n", `; on stderr: "OSError: [Errno 98] Address already in use"`},
		{"panic: no\n\ngoroutine 1 [running]:\nmain.main()\n", `; on stderr: "panic: no"`},
		{"Exception in thread \"main\" java.lang.X\n\tat y\n", `; on stderr: "Exception in thread \"main\" java.lang.X"`},
	} {
		if got := lastWords(c.stderr); got != c.want {
			t.Errorf("%q: got %s, want %s", c.stderr, got, c.want)
		}
	}
}
