package http1

import (
	"bytes"
	"fmt"
)

// A Request is one parsed request. Its bytes are the connection's memory and valid until the handler returns.
type Request struct {
	Method []byte
	Target []byte // as it came: origin-form, absolute-form or *
	Body   []byte // whole; nil without one
	Peer   any    // what ServeConn was given

	minor   int // of HTTP/1.x
	fields  []Field
	length  int64 // -1: none given
	chunked bool
	close   bool // the client wants the connection to end after the reply
	expects bool // Expect: 100-continue
}

// A Field is one header line.
type Field struct{ Name, Value []byte }

// Fields returns the header lines in their order.
func (r *Request) Fields() []Field { return r.fields }

// Header returns the value of the first header line with the given name, nil without one. Names compare without case.
func (r *Request) Header(name string) []byte {
	for _, f := range r.fields {
		if equalFold(f.Name, name) {
			return f.Value
		}
	}
	return nil
}

// Path returns the target without its query; of an absolute-form target also without scheme and authority.
func (r *Request) Path() []byte {
	t := r.Target
	if i := bytes.Index(t, []byte("://")); i > 0 && t[0] != '/' {
		t = t[i+3:]
		slash := bytes.IndexByte(t, '/')
		if slash < 0 {
			return []byte("/")
		}
		t = t[slash:]
	}
	path, _, _ := bytes.Cut(t, []byte("?"))
	return path
}

// A refusal is a request that is answered with a status by the loop itself; the connection then ends, because what
// follows can't be told from a second request.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return fmt.Sprintf("%d %s", e.status, e.text) }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// maxFields bounds the header lines of a request.
const maxFields = 128

// parse reads a head: the request line and the header lines, each ended by CRLF, without the empty line.
func (r *Request) parse(head []byte) error {
	*r = Request{fields: r.fields[:0], length: -1, Peer: r.Peer}
	line, rest, err := cutLine(head)
	if err != nil {
		return err
	}
	if err := r.requestLine(line); err != nil {
		return err
	}
	for len(rest) > 0 {
		if line, rest, err = cutLine(rest); err != nil {
			return err
		}
		if err := r.field(line); err != nil {
			return err
		}
	}
	return r.framing()
}

// cutLine splits at the first CRLF. A CR or an LF alone is refused (RFC 9112 §2.2): others may take it for a line's end.
func cutLine(b []byte) (line, rest []byte, err error) {
	i := bytes.IndexByte(b, '\n')
	if i < 1 || b[i-1] != '\r' {
		return nil, nil, refuse(400, "a line that does not end with CRLF")
	}
	line = b[:i-1]
	if bytes.IndexByte(line, '\r') >= 0 {
		return nil, nil, refuse(400, "a CR within a line")
	}
	return line, b[i+1:], nil
}

func (r *Request) requestLine(line []byte) error {
	sp := bytes.IndexByte(line, ' ')
	last := bytes.LastIndexByte(line, ' ')
	if sp <= 0 || last == sp {
		return refuse(400, "malformed request line")
	}
	r.Method, r.Target = line[:sp], line[sp+1:last]
	for _, c := range r.Method {
		if !isToken(c) {
			return refuse(400, "malformed method")
		}
	}
	if t := r.Target; !bytes.HasPrefix(t, []byte("/")) && !bytes.Contains(t, []byte("://")) && string(t) != "*" {
		return refuse(400, "a target that is neither a path nor an absolute address")
	}
	for _, c := range r.Target {
		if c <= ' ' || c >= 0x7f {
			return refuse(400, "a space, control or non-ASCII character in the target")
		}
	}
	version := line[last+1:]
	if len(version) != 8 || string(version[:7]) != "HTTP/1." || version[7] < '0' || version[7] > '9' {
		if bytes.HasPrefix(version, []byte("HTTP/")) {
			return refuse(505, "this server speaks HTTP/1.1")
		}
		return refuse(400, "malformed request line")
	}
	r.minor = int(version[7] - '0')
	return nil
}

func (r *Request) field(line []byte) error {
	f, err := parseField(line)
	if err != nil {
		return err
	}
	if len(r.fields) == maxFields {
		return refuse(431, "more than %d header lines", maxFields)
	}
	r.fields = append(r.fields, f)
	return nil
}

// parseField reads a line of a head or of a trailer.
func parseField(line []byte) (Field, error) {
	if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
		return Field{}, refuse(400, "a folded header line")
	}
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return Field{}, refuse(400, "a header line without a name")
	}
	name := line[:colon]
	for _, c := range name {
		if !isToken(c) {
			return Field{}, refuse(400, "malformed header name")
		}
	}
	value := bytes.Trim(line[colon+1:], " \t")
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return Field{}, refuse(400, "a control character in a header value")
		}
	}
	return Field{name, value}, nil
}

// framing reads from the header lines where the body ends and whether the connection goes on (RFC 9112 §6.3, §9.3).
func (r *Request) framing() error {
	hosts, keep := 0, false
	for _, f := range r.fields {
		switch {
		case equalFold(f.Name, "host"):
			hosts++
		case equalFold(f.Name, "content-length"):
			n, ok := ParseLength(f.Value)
			if !ok || r.length >= 0 {
				return refuse(400, "bad or repeated Content-Length")
			}
			r.length = n
		case equalFold(f.Name, "transfer-encoding"):
			if r.chunked || !equalFold(f.Value, "chunked") {
				return refuse(501, "a transfer coding other than chunked")
			}
			r.chunked = true
		case equalFold(f.Name, "connection"):
			r.close = r.close || hasToken(f.Value, "close")
			keep = keep || hasToken(f.Value, "keep-alive")
		case equalFold(f.Name, "expect"):
			if !equalFold(f.Value, "100-continue") {
				return refuse(417, "an expectation other than 100-continue")
			}
			r.expects = r.minor > 0
		}
	}
	switch {
	case r.minor > 0 && hosts != 1, hosts > 1:
		return refuse(400, "%d Host header lines; expected one", hosts)
	case r.chunked && r.length >= 0:
		return refuse(400, "both Content-Length and Transfer-Encoding")
	case r.chunked && r.minor == 0:
		return refuse(400, "Transfer-Encoding in HTTP/1.0")
	}
	if r.minor == 0 && !keep {
		r.close = true
	}
	return nil
}

// ParseLength parses a Content-Length: up to 18 digits and nothing else, no sign, no space, no list.
func ParseLength(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// hasToken reports whether a comma-separated list holds a token.
func hasToken(list []byte, token string) bool {
	for len(list) > 0 {
		item := list
		if i := bytes.IndexByte(list, ','); i >= 0 {
			item, list = list[:i], list[i+1:]
		} else {
			list = nil
		}
		if equalFold(bytes.Trim(item, " \t"), token) {
			return true
		}
	}
	return false
}

// equalFold compares without case, of ASCII letters only (RFC 9110 §5.1).
func equalFold(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i := range s {
		if b[i] != s[i] && lower(b[i]) != lower(s[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// isToken reports whether c may stand in a method or a header name (RFC 9110 §5.6.2).
func isToken(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0
}
