package mcp

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"

	"toll/wire/plain"
)

// A Head is what the server needs of an HTTP request's head. Add fills it in; its bytes are the caller's.
type Head struct {
	Method string

	host, origin, contentType, accept []byte
	version, method, name, session    []byte
	params                            []Param // Mcp-Param-…
	seen                              uint16
	repeated                          string // a header that must be there once and came again
}

// A Param is a header Mcp-Param-Name.
type Param struct{ Name, Value []byte }

// Reset makes the head fit for another request.
func (h *Head) Reset(method string) { *h = Head{Method: method, params: h.params[:0]} }

// maxParams bounds the Mcp-Param headers of a request.
const maxParams = 64

// Add takes one header line. The value is taken without white space around it (RFC 9110 §5.5).
func (h *Head) Add(name, value []byte) {
	var to *[]byte
	var bit uint16
	switch len(name) {
	case len("host"):
		to, bit = pick(name, "host", &h.host, 1)
	case len("origin"): // and accept
		if to, bit = pick(name, "origin", &h.origin, 2); to == nil {
			to, bit = pick(name, "accept", &h.accept, 0)
		}
	case len("content-type"):
		to, bit = pick(name, "content-type", &h.contentType, 4)
	case len("mcp-protocol-version"):
		to, bit = pick(name, "mcp-protocol-version", &h.version, 8)
	case len("mcp-method"):
		to, bit = pick(name, "mcp-method", &h.method, 16)
	case len("mcp-name"):
		to, bit = pick(name, "mcp-name", &h.name, 32)
	case len("mcp-session-id"):
		to, bit = pick(name, "mcp-session-id", &h.session, 64)
	}
	value = trim(value)
	switch {
	case to == nil:
		h.param(name, value)
	case h.seen&bit != 0 && !bytes.Equal(*to, value):
		h.repeated = string(name)
	case bit == 0 && *to != nil: // a list may come in several lines (RFC 9110 §5.3)
		*to = bytes.Join([][]byte{*to, value}, []byte(", "))
	default:
		*to = value
		h.seen |= bit
	}
}

// trim takes the white space around a header's value away.
func trim(v []byte) []byte {
	for len(v) > 0 && (v[0] == ' ' || v[0] == '\t') {
		v = v[1:]
	}
	for len(v) > 0 && (v[len(v)-1] == ' ' || v[len(v)-1] == '\t') {
		v = v[:len(v)-1]
	}
	return v
}

func pick(name []byte, want string, to *[]byte, bit uint16) (*[]byte, uint16) {
	if foldEqual(name, want) {
		return to, bit
	}
	return nil, 0
}

// foldEqual compares a header's name with one in lower case.
func foldEqual(name []byte, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

const paramPrefix = "mcp-param-"

func (h *Head) param(name, value []byte) {
	if len(name) <= len(paramPrefix) || !foldEqual(name[:len(paramPrefix)], paramPrefix) {
		return
	}
	name = name[len(paramPrefix):]
	for _, p := range h.params {
		if bytes.EqualFold(p.Name, name) && !bytes.Equal(p.Value, value) {
			h.repeated = paramPrefix + string(name)
		}
	}
	if len(h.params) == maxParams {
		h.repeated = paramPrefix + "…"
		return
	}
	h.params = append(h.params, Param{name, value})
}

// agree holds a request of 2026-07-28 against its headers (streamable HTTP, Server Validation).
func (h *Head) agree(m *message) *Error {
	switch {
	case h.repeated != "":
		return headerMismatch("%s came twice with different values", h.repeated)
	case h.version == nil:
		return headerMismatch("no MCP-Protocol-Version")
	case m.params.meta.version != nil && !bytes.Equal(h.version, m.params.meta.version):
		return headerMismatch("MCP-Protocol-Version is %q and _meta says %q", clip(h.version), clip(m.params.meta.version))
	case h.method == nil:
		return headerMismatch("no Mcp-Method")
	case !bytes.Equal(h.method, m.method):
		return headerMismatch("Mcp-Method is %q and the body's method %q", clip(h.method), clip(m.method))
	}
	var want []byte
	switch string(m.method) {
	case "tools/call", "prompts/get":
		want = m.params.name
	case "resources/read":
		want = m.params.uri
	default:
		return nil
	}
	if h.name == nil {
		return headerMismatch("no Mcp-Name")
	}
	name, ok := headerValue(h.name)
	if !ok {
		return headerMismatch("Mcp-Name is no valid header value")
	}
	if want != nil && !bytes.Equal(name, want) {
		return headerMismatch("Mcp-Name is %q and the body says %q", clip(name), clip(want))
	}
	return nil
}

// headerValue returns what a header's value says: itself, or what stands in base64 between =?base64? and ?=.
func headerValue(v []byte) (_ []byte, ok bool) {
	for _, c := range v {
		if (c < ' ' || c > '~') && c != '\t' {
			return nil, false
		}
	}
	inner, wrapped := bytes.CutPrefix(v, []byte("=?base64?"))
	if wrapped {
		inner, wrapped = bytes.CutSuffix(inner, []byte("?="))
	}
	if !wrapped {
		return v, true
	}
	out, err := base64.StdEncoding.Strict().AppendDecode(nil, inner)
	return out, err == nil && !bytes.ContainsAny(inner, "\r\n")
}

// A mirrored parameter of a tool is one whose value a client repeats in a header (x-mcp-header).
type mirrored struct {
	header string
	path   []string
	kind   string // string, integer or boolean
}

// agree holds the arguments of a call against the headers that mirror them.
func (p *mirrored) agree(h *Head, arguments []byte) *Error {
	var header []byte
	for _, have := range h.params {
		if strings.EqualFold(string(have.Name), p.header) {
			header = have.Value
		}
	}
	raw := plain.Find(arguments, p.path...)
	if raw == nil || string(raw) == "null" {
		if header != nil {
			return headerMismatch("Mcp-Param-%s is there and its argument is not", p.header)
		}
		return nil
	}
	if header == nil {
		return headerMismatch("no Mcp-Param-%s", p.header)
	}
	value, ok := headerValue(header)
	if !ok {
		return headerMismatch("Mcp-Param-%s is no valid header value", p.header)
	}
	if !p.same(value, raw) {
		return headerMismatch("Mcp-Param-%s does not match its argument", p.header)
	}
	return nil
}

// same compares a header's value with the argument's JSON; integers by their number.
func (p *mirrored) same(value, raw []byte) bool {
	switch {
	case raw[0] == '"':
		s := plain.Scanner{B: raw}
		t, err := s.Text()
		return err == nil && bytes.Equal(t, value)
	case p.kind == "integer":
		a, errA := strconv.ParseFloat(string(value), 64)
		b, errB := strconv.ParseFloat(string(raw), 64)
		return errA == nil && errB == nil && a == b
	}
	return bytes.Equal(value, raw)
}
