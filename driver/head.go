package driver

import (
	"bytes"

	"toll/wire/http1"
)

// A head is what the reader needs from a reply's status line and fields.
type head struct {
	status  int
	length  int64 // -1: not given
	chunked bool
	close   bool
	media   string // application/json, text/event-stream, or "" for any other
	session []byte // Mcp-Session-Id, in the head's memory
}

// parseHead reads the lines of a head, given without the empty line that ends it.
func parseHead(b []byte) (head, error) {
	line, fields, more := bytes.Cut(b, crlf)
	h := head{length: -1}
	old, err := h.statusLine(line)
	if err != nil {
		return h, err
	}
	h.close = old
	closing := false
	for more {
		line, fields, more = bytes.Cut(fields, crlf)
		name, value, err := parseField(line)
		if err != nil {
			return h, err
		}
		switch {
		case is(name, "content-length"):
			err = h.contentLength(value)
		case is(name, "transfer-encoding"):
			err = h.transferEncoding(value, old)
		case is(name, "content-type"):
			h.media = knownMedia(value)
		case is(name, "mcp-session-id"):
			h.session = value
		case is(name, "connection"):
			closing = closing || hasToken(value, "close")
			h.close = h.close && !hasToken(value, "keep-alive")
		}
		if err != nil {
			return h, err
		}
	}
	h.close = h.close || closing
	if h.chunked && h.length >= 0 {
		return h, bad("both Content-Length and Transfer-Encoding")
	}
	return h, nil
}

var crlf = []byte("\r\n")

// statusLine reads "HTTP/1.1 200 OK", whose reason may be empty or missing. It reports whether the version is 1.0.
func (h *head) statusLine(b []byte) (old bool, err error) {
	const shape = "HTTP/1.1 200"
	if len(b) < len(shape) || !startsReply(b) || b[7]&^1 != '0' || b[8] != ' ' {
		return false, bad("status line %q", excerpt(b))
	}
	for _, c := range b[9:12] {
		if c < '0' || c > '9' {
			return false, bad("status line %q", excerpt(b))
		}
		h.status = 10*h.status + int(c-'0')
	}
	if h.status < 100 || len(b) > 12 && b[12] != ' ' || !printable(b[12:]) {
		return false, bad("status line %q", excerpt(b))
	}
	return b[7] == '0', nil
}

func (h *head) contentLength(v []byte) error {
	n, ok := http1.ParseLength(v)
	if !ok {
		return bad("Content-Length %q", excerpt(v))
	}
	if h.length >= 0 && h.length != n {
		return bad("two lengths, %d and %d", h.length, n)
	}
	h.length = n
	return nil
}

func (h *head) transferEncoding(v []byte, old bool) error {
	if h.chunked || old || !is(v, "chunked") {
		return bad("Transfer-Encoding %q", excerpt(v))
	}
	h.chunked = true
	return nil
}

// The media types that a driver tells apart.
const (
	mediaJSON   = "application/json"
	mediaEvents = "text/event-stream"
)

// knownMedia returns the media type in a Content-Type if it is one of those, parameters aside.
func knownMedia(value []byte) string {
	kind, _, _ := bytes.Cut(value, []byte(";"))
	kind = bytes.TrimRight(kind, " \t")
	for _, known := range [...]string{mediaJSON, mediaEvents} {
		if is(kind, known) {
			return known
		}
	}
	return ""
}

// parseField splits "Name: value". White space before the colon or at the start of the line is refused (RFC 9112, 5.1, 5.2).
func parseField(line []byte) (name, value []byte, err error) {
	i := bytes.IndexByte(line, ':')
	if i <= 0 {
		return nil, nil, bad("header line %q", excerpt(line))
	}
	name, value = line[:i], bytes.Trim(line[i+1:], " \t")
	for _, c := range name {
		if !tokenByte[c] {
			return nil, nil, bad("header line %q", excerpt(line))
		}
	}
	if !printable(value) {
		return nil, nil, bad("header line %q", excerpt(line))
	}
	return name, value, nil
}

// tokenByte tells the bytes of a token (RFC 9110, 5.6.2).
var tokenByte = func() (t [256]bool) {
	for c := '0'; c <= '9'; c++ {
		t[c] = true
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = true, true
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()

// printable reports whether b holds no control character but the tab.
func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// is reports whether b is the given lower-case ASCII text, in any case.
func is(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// hasToken reports whether the comma-separated list holds the token.
func hasToken(list []byte, token string) bool {
	for more := true; more; {
		var one []byte
		one, list, more = bytes.Cut(list, []byte(","))
		if is(bytes.Trim(one, " \t"), token) {
			return true
		}
	}
	return false
}

// chunkSize reads the size in "1f;extension".
func chunkSize(line []byte) (n int64, err error) {
	k := chunkDigits(line)
	if k == 0 || k > 15 {
		return 0, bad("chunk size %q", excerpt(line))
	}
	for _, c := range line[:k] {
		n = n<<4 | int64(unhex(c))
	}
	rest := bytes.TrimLeft(line[k:], " \t")
	if len(rest) > 0 && rest[0] != ';' {
		return 0, bad("chunk size %q", excerpt(line))
	}
	return n, nil
}

// chunkDigits returns how many hexadecimal digits line begins with.
func chunkDigits(line []byte) int {
	for i, c := range line {
		if unhex(c) < 0 {
			return i
		}
	}
	return len(line)
}

// unhex returns the value of a hexadecimal digit, -1 for any other byte.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
