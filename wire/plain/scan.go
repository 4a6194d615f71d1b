package plain

import (
	"encoding/binary"
	"encoding/json"
	"errors"
)

// MaxDepth bounds how deep arrays and objects may nest.
const MaxDepth = 128

// Errors of a text that is not JSON, or not JSON that we read.
var (
	ErrSyntax = errors.New("not JSON")
	ErrDepth  = errors.New("nested more than 128 deep")
	ErrUTF8   = errors.New("not UTF-8")
	ErrMore   = errors.New("more than one JSON value")
)

// A Scanner reads JSON (RFC 8259) from bytes, as strictly as encoding/json, but that it does not look whether texts are UTF-8.
// It never copies: what it returns is part of B, unless it says so.
type Scanner struct {
	B []byte
	I int // where it stands
}

// Space skips white space and returns the byte that follows it, 0 at the end.
func (s *Scanner) Space() byte {
	for ; s.I < len(s.B); s.I++ {
		switch c := s.B[s.I]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// Open enters an array or an object at its bracket, and reports whether it has a first element.
func (s *Scanner) Open(closing byte) (more bool) {
	s.I++
	if s.Space() == closing {
		s.I++
		return false
	}
	return true
}

// More goes on behind an element: to the next one, or out of the array or object.
func (s *Scanner) More(closing byte) (bool, error) {
	switch s.Space() {
	case ',':
		s.I++
		return true, nil
	case closing:
		if s.I < len(s.B) {
			s.I++
			return false, nil
		}
	}
	return false, ErrSyntax
}

// Key reads a member's name and the colon behind it.
func (s *Scanner) Key() ([]byte, error) {
	if s.Space() != '"' {
		return nil, ErrSyntax
	}
	name, err := s.Text()
	if err != nil {
		return nil, err
	}
	if s.Space() != ':' {
		return nil, ErrSyntax
	}
	s.I++
	s.Space()
	return name, nil
}

// Text reads a string and returns what it says. Only one with escapes is copied.
func (s *Scanner) Text() ([]byte, error) {
	start := s.I
	plain, err := s.quoted()
	if err != nil {
		return nil, err
	}
	if plain {
		return s.B[start+1 : s.I-1], nil
	}
	return unquote(s.B[start:s.I])
}

// unquote decodes a string that has escapes.
func unquote(raw []byte) ([]byte, error) {
	var t string
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, ErrSyntax
	}
	return []byte(t), nil
}

// quoted moves behind a string and reports whether it is free of escapes.
func (s *Scanner) quoted() (plain bool, err error) {
	plain = true
	for i := s.I + 1; i < len(s.B); {
		for i+8 <= len(s.B) && !special(binary.LittleEndian.Uint64(s.B[i:])) {
			i += 8
		}
		if i == len(s.B) {
			break
		}
		switch c := s.B[i]; {
		case c == '"':
			s.I = i + 1
			return plain, nil
		case c == '\\':
			plain = false
			n := escape(s.B[i:])
			if n == 0 {
				return false, ErrSyntax
			}
			i += n
		case c < ' ':
			return false, ErrSyntax
		default:
			i++
		}
	}
	return false, ErrSyntax
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

// Value moves behind the value at hand, which depth-1 arrays and objects are around, and returns its text.
func (s *Scanner) Value(depth int) ([]byte, error) {
	start := s.I
	if err := s.Skip(depth); err != nil {
		return nil, err
	}
	return s.B[start:s.I], nil
}

// Skip moves behind the value at hand.
func (s *Scanner) Skip(depth int) error {
	if depth > MaxDepth {
		return ErrDepth
	}
	switch c := s.Space(); c {
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

func (s *Scanner) skipObject(depth int) error {
	for more := s.Open('}'); more; {
		if s.Space() != '"' {
			return ErrSyntax
		}
		if _, err := s.quoted(); err != nil {
			return err
		}
		if s.Space() != ':' {
			return ErrSyntax
		}
		s.I++
		if err := s.Skip(depth + 1); err != nil {
			return err
		}
		var err error
		if more, err = s.More('}'); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scanner) skipArray(depth int) error {
	for more := s.Open(']'); more; {
		if err := s.Skip(depth + 1); err != nil {
			return err
		}
		var err error
		if more, err = s.More(']'); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scanner) word(w string) error {
	if len(s.B)-s.I < len(w) || string(s.B[s.I:s.I+len(w)]) != w {
		return ErrSyntax
	}
	s.I += len(w)
	return nil
}

func (s *Scanner) number() error {
	if s.I < len(s.B) && s.B[s.I] == '-' {
		s.I++
	}
	switch {
	case s.I < len(s.B) && s.B[s.I] == '0':
		s.I++
	case s.digits() == 0:
		return ErrSyntax
	}
	if s.I < len(s.B) && s.B[s.I] == '.' {
		s.I++
		if s.digits() == 0 {
			return ErrSyntax
		}
	}
	if s.I < len(s.B) && s.B[s.I]|0x20 == 'e' {
		s.I++
		if s.I < len(s.B) && (s.B[s.I] == '+' || s.B[s.I] == '-') {
			s.I++
		}
		if s.digits() == 0 {
			return ErrSyntax
		}
	}
	return nil
}

func (s *Scanner) digits() (n int) {
	for s.I < len(s.B) && s.B[s.I] >= '0' && s.B[s.I] <= '9' {
		s.I++
		n++
	}
	return n
}

// End wants nothing but white space behind the value.
func (s *Scanner) End() error {
	s.Space()
	if s.I < len(s.B) {
		return ErrMore
	}
	return nil
}

// Find returns the value at a path of member names within an object, nil if there is none. raw must be valid JSON.
func Find(raw []byte, path ...string) []byte {
	for _, name := range path {
		s := Scanner{B: raw}
		raw = nil
		if s.Space() != '{' {
			return nil
		}
		for more := s.Open('}'); more; {
			key, err := s.Key()
			if err != nil {
				return nil
			}
			value, err := s.Value(0)
			if err != nil {
				return nil
			}
			if string(key) == name {
				raw = value
			}
			if more, err = s.More('}'); err != nil {
				return nil
			}
		}
		if raw == nil {
			return nil
		}
	}
	return raw
}
