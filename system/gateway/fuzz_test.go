package gateway

import (
	"strings"
	"testing"
)

func FuzzParseTrace(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more")
	f.Add("ff--")
	f.Fuzz(func(t *testing.T, s string) {
		tr, ok := parseTrace(s)
		if ok && (len(tr.id) != 32 || len(tr.parent) != 16 || len(tr.flags) != 2 || strings.ToLower(tr.id) != tr.id || zeros(tr.id)) {
			t.Errorf("%q is taken for %+v", s, tr)
		}
	})
}

func FuzzParseClientCert(f *testing.F) {
	f.Add(":AAAA:")
	f.Add("::")
	f.Add(":")
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := parseClientCert(s); (c == nil) == (err == nil) {
			t.Errorf("%q: %v, %v", s, c, err)
		}
	})
}

func FuzzParseAllowed(f *testing.F) {
	f.Add("CN=agent,O=Example\n# c\nDNS:agent.example\n")
	f.Add("x\n")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := parseAllowed(s)
		if err != nil {
			return
		}
		for _, n := range a.names {
			if n == "" || n != strings.TrimSpace(n) || !a.has([]string{n}) {
				t.Errorf("%q lists %q", s, n)
			}
		}
	})
}

func FuzzMatch(f *testing.F) {
	f.Add("/v1/a/{b}/c", "/v1/a/x%2Fy/c")
	f.Add("/{a}", "/%")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		r, err := newRoute(Route{Method: "GET", Path: pattern, Agent: "a"}, Config{})
		if err != nil {
			return
		}
		values, ok := r.match([]byte(path))
		if !ok {
			return
		}
		params := 0
		for _, s := range r.segments {
			if s.param != "" {
				params++
			}
		}
		if len(values) != params || strings.Count(path, "/") != len(r.segments) {
			t.Errorf("%s matches %q with %q", pattern, path, values)
		}
		r.fill(make(map[string]any), values)
	})
}
