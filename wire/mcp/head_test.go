package mcp

import (
	"bytes"
	"encoding/base64"
	"mime"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAcceptIsReadAsAList(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"text/event-stream": true, "application/json, text/event-stream": true, "TEXT/Event-Stream;q=0.1": true, "text/*": true, "*/*": true,
		"text/event-stream;q=0": false, "text/event-stream; Q=0.000": false, "application/json": false, "": true, "text": false, ",,": false,
		"text/event-stream;q=x": true, "application/json;text/event-stream": false,
	} {
		if got := takes([]byte(accept), "text", "event-stream"); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
	if !takes(nil, "text", "event-stream") {
		t.Error("no Accept takes everything")
	}
}

func TestHostsThatAPageCannotForge(t *testing.T) {
	t.Parallel()
	s := New(Config{Hosts: []string{"toll.example"}, Origins: []string{"https://page.example"}})
	defer s.Close()
	for _, tt := range []struct {
		host, origin string
		want         bool
	}{
		{"127.0.0.1", "", true}, {"127.0.0.1:80", "", true}, {"LOCALHOST:1", "", true}, {"[::1]:80", "", true}, {"[::1]", "", true}, {"10.1.2.3:80", "", true},
		{"toll.example:80", "", true}, {"toll.example.evil.example", "", false}, {"evil.example:80", "", false}, {"localhost.evil.example", "", false},
		{"127.0.0.1.evil.example", "", false}, {"[", "", false},
		{"localhost", "http://localhost:3000", true}, {"localhost", "https://127.0.0.2", true}, {"localhost", "https://page.example", true},
		{"localhost", "https://page.example:1", false}, {"localhost", "file://", false}, {"localhost", "http://", false}, {"localhost", "null", false},
		{"localhost", "ftp://localhost", false}, {"localhost", "http://localhost.evil.example", false}, {"localhost", "http://10.1.2.3", false},
		{"10.1.2.3:80", "http://10.1.2.3:80", true}, {"10.1.2.3:80", "http://10.1.2.3:81", false}, {"localhost", "http://localhost@evil.example", false},
	} {
		var h Head
		h.Add([]byte("Host"), []byte(tt.host))
		if tt.origin != "" {
			h.Add([]byte("Origin"), []byte(tt.origin))
		}
		if got := s.allowed(&h); got != tt.want {
			t.Errorf("host %q, origin %q: %v", tt.host, tt.origin, got)
		}
	}
}

// FuzzHeaderValue: what a client must send for a text is read as that text, and nothing else is.
func FuzzHeaderValue(f *testing.F) {
	for _, s := range []string{"us-west1", "Hello, 世界", " padded ", "line1\nline2", "=?base64?literal?=", "", "=?base64??=", "=?base64?QQ=?=", "\x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sent := text
		if strings.TrimSpace(text) != text || !plainASCII(text) || strings.HasPrefix(text, "=?base64?") && strings.HasSuffix(text, "?=") {
			sent = "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
		}
		if got, ok := headerValue([]byte(sent)); !ok || string(got) != text {
			t.Fatalf("%q sent as %q is read as %q, %v", text, sent, got, ok)
		}
		// As it is, it is either a literal or the one encoding of something.
		got, ok := headerValue([]byte(text))
		if !ok {
			return
		}
		inner, wrapped := strings.CutPrefix(text, "=?base64?")
		inner, end := strings.CutSuffix(inner, "?=")
		if !wrapped || !end {
			if string(got) != text {
				t.Fatalf("%q is read as %q", text, got)
			}
		} else if base64.StdEncoding.EncodeToString(got) != inner {
			t.Fatalf("%q is read as %q, which is sent otherwise", text, got)
		}
	})
}

func plainASCII(s string) bool {
	for _, c := range []byte(s) {
		if (c < ' ' || c > '~') && c != '\t' {
			return false
		}
	}
	return true
}

// FuzzHead: a head of any lines is taken without harm, and a request agrees with it only if the lines say what it says.
func FuzzHead(f *testing.F) {
	f.Add("Mcp-Method", "tools/call", "mcp-name", "note", "tools/call", "note")
	f.Add("MCP-METHOD", "tools/call", "Mcp-Name", "=?base64?bm90ZQ==?=", "tools/call", "note")
	f.Add("Accept", "text/html;q=0, */*", "Content-Type", "application/json; charset=utf-8", "ping", "")
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2, method, subject string) {
		var h Head
		h.Reset("POST")
		h.Add([]byte("MCP-Protocol-Version"), []byte("2026-07-28"))
		h.Add([]byte(name1), []byte(value1))
		h.Add([]byte(name2), []byte(value2))
		m := message{id: []byte("1"), method: []byte(method)}
		m.params.meta.version = []byte("2026-07-28")
		if subject != "" {
			m.params.name, m.params.uri = []byte(subject), []byte(subject)
		}
		if h.agree(&m) == nil {
			if !bytes.Equal(h.method, m.method) || method == "" && h.method == nil {
				t.Fatalf("%q agrees with %q", h.method, method)
			}
			if method == "tools/call" && subject != "" && !strings.Contains(value1+value2, subject) && !strings.Contains(value1+value2, "=?base64?") {
				t.Fatalf("%q %q agree with %q", value1, value2, subject)
			}
		}
		takes(h.accept, "text", "event-stream")
		if media, _, err := mime.ParseMediaType(value2); err == nil && name2 == "Content-Type" && name1 != name2 && utf8.ValidString(value2) {
			if got := isJSON([]byte(value2)); got != (media == "application/json") {
				t.Fatalf("%q: %v", value2, got)
			}
		}
	})
}
