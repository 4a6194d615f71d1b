package mcp

import (
	"encoding/binary"
	"encoding/json"
	"errors"
)

// maxDepth bounds how deep a message's arrays and objects may nest.
const maxDepth = 128

// Errors of a text that is not JSON, or not JSON that we read. All are parse errors to the client.
var (
	errSyntax = errors.New("not JSON")
	errDepth  = errors.New("nested more than 128 deep")
	errUTF8   = errors.New("not UTF-8")
	errMore   = errors.New("more than one JSON value")
)

// A scanner reads JSON (RFC 8259) from bytes, as strictly as encoding/json. It never copies: what it returns is part of b.
type scanner struct {
	b []byte
	i int
}

// space skips white space and returns the byte that follows it, 0 at the end.
func (s *scanner) space() byte {
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// open enters an array or an object at its bracket, and reports whether it has a first element.
func (s *scanner) open(closing byte) (more bool) {
	s.i++
	if s.space() == closing {
		s.i++
		return false
	}
	return true
}

// more goes on behind an element: to the next one, or out of the array or object.
func (s *scanner) more(closing byte) (bool, error) {
	switch s.space() {
	case ',':
		s.i++
		return true, nil
	case closing:
		if s.i < len(s.b) {
			s.i++
			return false, nil
		}
	}
	return false, errSyntax
}

// key reads a member's name and the colon behind it.
func (s *scanner) key() ([]byte, error) {
	if s.space() != '"' {
		return nil, errSyntax
	}
	name, err := s.text()
	if err != nil {
		return nil, err
	}
	if s.space() != ':' {
		return nil, errSyntax
	}
	s.i++
	s.space()
	return name, nil
}

// text reads a string and returns what it says. Only one with escapes is copied.
func (s *scanner) text() ([]byte, error) {
	start := s.i
	plain, err := s.quoted()
	if err != nil {
		return nil, err
	}
	if plain {
		return s.b[start+1 : s.i-1], nil
	}
	return unquote(s.b[start:s.i])
}

// unquote decodes a string that has escapes.
func unquote(raw []byte) ([]byte, error) {
	var t string
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, errSyntax
	}
	return []byte(t), nil
}

// quoted moves behind a string and reports whether it is free of escapes.
func (s *scanner) quoted() (plain bool, err error) {
	plain = true
	for i := s.i + 1; i < len(s.b); {
		for i+8 <= len(s.b) && !special(binary.LittleEndian.Uint64(s.b[i:])) {
			i += 8
		}
		if i == len(s.b) {
			break
		}
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			return plain, nil
		case c == '\\':
			plain = false
			n := escape(s.b[i:])
			if n == 0 {
				return false, errSyntax
			}
			i += n
		case c < ' ':
			return false, errSyntax
		default:
			i++
		}
	}
	return false, errSyntax
}

// special reports whether one of eight bytes ends a run of ordinary characters: a quote, a backslash or a control.
func special(x uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := x^each*'"', x^each*'\\'
	return ((x-each*' ')&^x|(quote-each)&^quote|(slash-each)&^slash)&high != 0
}

// escape returns the length of the escape at the beginning of b, 0 if it is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// value moves behind the value at hand and returns its text.
func (s *scanner) value(depth int) ([]byte, error) {
	start := s.i
	if err := s.skip(depth); err != nil {
		return nil, err
	}
	return s.b[start:s.i], nil
}

func (s *scanner) skip(depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	switch c := s.space(); c {
	case '{':
		return s.skipObject(depth)
	case '[':
		return s.skipArray(depth)
	case '"':
		_, err := s.quoted()
		return err
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scanner) skipObject(depth int) error {
	for more := s.open('}'); more; {
		if s.space() != '"' {
			return errSyntax
		}
		if _, err := s.quoted(); err != nil {
			return err
		}
		if s.space() != ':' {
			return errSyntax
		}
		s.i++
		if err := s.skip(depth + 1); err != nil {
			return err
		}
		var err error
		if more, err = s.more('}'); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) skipArray(depth int) error {
	for more := s.open(']'); more; {
		if err := s.skip(depth + 1); err != nil {
			return err
		}
		var err error
		if more, err = s.more(']'); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) word(w string) error {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return errSyntax
	}
	s.i += len(w)
	return nil
}

func (s *scanner) number() error {
	if s.i < len(s.b) && s.b[s.i] == '-' {
		s.i++
	}
	switch {
	case s.i < len(s.b) && s.b[s.i] == '0':
		s.i++
	case s.digits() == 0:
		return errSyntax
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if s.digits() == 0 {
			return errSyntax
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if s.digits() == 0 {
			return errSyntax
		}
	}
	return nil
}

func (s *scanner) digits() (n int) {
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
		n++
	}
	return n
}

// end wants nothing but white space behind the value.
func (s *scanner) end() error {
	s.space()
	if s.i < len(s.b) {
		return errMore
	}
	return nil
}

// find returns the value at a path of member names within an object, nil if there is none. raw must be valid JSON.
func find(raw []byte, path ...string) []byte {
	for _, name := range path {
		s := scanner{b: raw}
		raw = nil
		if s.space() != '{' {
			return nil
		}
		for more := s.open('}'); more; {
			key, err := s.key()
			if err != nil {
				return nil
			}
			value, err := s.value(0)
			if err != nil {
				return nil
			}
			if string(key) == name {
				raw = value
			}
			if more, err = s.more('}'); err != nil {
				return nil
			}
		}
		if raw == nil {
			return nil
		}
	}
	return raw
}
