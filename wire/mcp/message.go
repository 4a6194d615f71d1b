package mcp

import (
	"unicode/utf8"

	"toll/wire/plain"
)

// A message is one decoded JSON-RPC 2.0 message: a request, a notification or a response. Its bytes are part of what was
// decoded.
type message struct {
	id     []byte // as it came, a string or an integer; nil without one
	method []byte // nil in a response
	params params
	result []byte // of a response
	error  []byte // of a response
}

func (m *message) request() bool { return m.method != nil && m.id != nil }

func (m *message) notification() bool { return m.method != nil && m.id == nil }

// decode reads one message. The error says whether it is no JSON (parse error) or no message (invalid request, invalid
// params); m.id is then set if it could be read.
func (m *message) decode(b []byte) *Error {
	*m = message{}
	if !utf8.Valid(b) {
		return parseError(plain.ErrUTF8)
	}
	s := plain.Scanner{B: b}
	switch s.Space() {
	case '{':
	case '[':
		if err := s.Skip(1); err != nil {
			return parseError(err)
		}
		return invalidRequest("a batch, which this revision does not have")
	default:
		if err := s.Skip(1); err != nil {
			return parseError(err)
		}
		return invalidRequest("a message is an object")
	}
	e := m.envelope(&s)
	if e == nil || e.Code != CodeParseError {
		if err := s.End(); err != nil {
			return parseError(err)
		}
	}
	return e
}

// An envelope is a message being read: what was there so far, and the first thing that was wrong.
type envelope struct {
	m                  *message
	had                uint8
	jsonrpc, hasMethod bool
	wrong              *Error
}

// envelope reads the message's members. It reads on behind one that is wrong: an error that has the request's id is worth
// more, and what is not JSON further on is a parse error.
func (m *message) envelope(s *plain.Scanner) *Error {
	e := envelope{m: m}
	for more := s.Open('}'); more; {
		key, err := s.Key()
		if err == nil {
			err = e.member(s, key)
		}
		if err == nil {
			more, err = s.More('}')
		}
		if err != nil {
			return parseError(err)
		}
	}
	switch {
	case !e.jsonrpc:
		e.note(invalidRequest(`jsonrpc is "2.0"`))
	case !e.hasMethod && (m.id == nil || (m.result == nil) == (m.error == nil)):
		e.note(invalidRequest("neither a request nor a response"))
	}
	return e.wrong
}

func (e *envelope) note(wrong *Error) { e.wrong = firstError(e.wrong, wrong) }

// once notes a member that is there for the second time.
func (e *envelope) once(bit uint8, name string) {
	if e.had&bit != 0 {
		e.note(invalidRequest("member " + name + " twice"))
	}
	e.had |= bit
}

// member reads one member's value. The error is one of the scanner.
func (e *envelope) member(s *plain.Scanner, key []byte) (err error) {
	start := s.I
	switch string(key) {
	case "method":
		return e.method(s)
	case "params":
		e.once(8, "params")
		wrong, err := e.m.params.decode(s)
		if wrong != nil {
			e.note(wrong)
		}
		return err
	}
	if err := s.Skip(2); err != nil {
		return err
	}
	switch raw := s.B[start:s.I]; string(key) {
	case "jsonrpc":
		e.once(1, "jsonrpc")
		e.jsonrpc = string(raw) == `"2.0"`
	case "id":
		e.once(2, "id")
		if !isID(raw) {
			e.note(invalidRequest("id is a string or an integer"))
			return nil
		}
		e.m.id = raw
	case "result":
		e.once(16, "result")
		e.m.result = raw
	case "error":
		e.once(32, "error")
		e.m.error = raw
	}
	return nil
}

func (e *envelope) method(s *plain.Scanner) (err error) {
	e.once(4, "method")
	e.hasMethod = true
	if s.I < len(s.B) && s.B[s.I] == '"' {
		e.m.method, err = s.Text()
		return err
	}
	e.note(invalidRequest("method is a string"))
	return s.Skip(2)
}

// isID reports whether raw is a string or an integer.
func isID(raw []byte) bool {
	if len(raw) == 0 || raw[0] == '"' {
		return len(raw) > 0
	}
	for i, c := range raw {
		if (c < '0' || c > '9') && (i > 0 || c != '-') {
			return false
		}
	}
	return true
}

func firstError(a, b *Error) *Error {
	if a != nil {
		return a
	}
	return b
}
