package driver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A noteReply is what a reply to note said. Its texts lie in the reply's body or in the scanner, until its next scan.
type noteReply struct {
	id           int64
	note, status []byte
	failed       bool // there is an error member, and it is not null
}

// A noteScanner decodes replies to note without allocating. It takes any JSON object (RFC 8259) with its members in any
// order and reads it as encoding/json would, so that both clients judge alike: the last of two equal names wins, null
// leaves a member as it was, a member of the wrong type is an error, unknown members are checked and skipped. Unlike
// encoding/json it takes names by their exact case.
type noteScanner struct {
	b       []byte
	i       int
	scratch []byte // texts that held escapes
}

var (
	errNoteEnd   = errors.New("text ends inside a value")
	errNoteDepth = errors.New("nested too deeply")
	errNoteType  = errors.New("a member has the wrong type")
)

const maxJSONDepth = 10000 // that of encoding/json

func (s *noteScanner) scan(body []byte) (noteReply, error) {
	s.b, s.i, s.scratch = body, 0, s.scratch[:0]
	var n noteReply
	err := s.top(&n)
	if err != nil && !errors.Is(err, errNoteType) {
		err = fmt.Errorf("json at byte %d: %w", s.i, err)
	}
	return n, err
}

func (s *noteScanner) top(n *noteReply) error {
	mismatch := false
	var err error
	switch s.space(); s.peek() {
	case '{':
		mismatch, err = s.object(n)
	case 'n':
		err = s.skip(0)
	default:
		mismatch, err = true, s.skip(0)
	}
	if err != nil {
		return err
	}
	if s.space(); s.i < len(s.b) {
		return s.unexpected("after the value")
	}
	if mismatch {
		return errNoteType
	}
	return nil
}

// object reads the reply's members. A mismatch is reported only behind the whole text, for a syntax error weighs more.
func (s *noteScanner) object(n *noteReply) (mismatch bool, err error) {
	err = s.members(func(name []byte) error {
		fits, err := s.member(n, name)
		mismatch = mismatch || !fits
		return err
	})
	return mismatch, err
}

// member reads the value of the named member.
func (s *noteScanner) member(n *noteReply, name []byte) (fits bool, err error) {
	null := s.peek() == 'n'
	switch string(name) {
	case "error":
		n.failed = !null
	case "id":
		if !null {
			return s.integer(&n.id)
		}
	case "note":
		if !null {
			return s.text(&n.note)
		}
	case "status":
		if !null {
			return s.text(&n.status)
		}
	}
	return true, s.skip(1)
}

// members calls value at each member's value of the object at hand.
func (s *noteScanner) members(value func(name []byte) error) error {
	s.i++
	if s.space(); s.peek() == '}' {
		s.i++
		return nil
	}
	for {
		if s.space(); s.peek() != '"' {
			return s.unexpected("for a member's name")
		}
		name, err := s.string()
		if err != nil {
			return err
		}
		if s.space(); s.peek() != ':' {
			return s.unexpected("for a colon")
		}
		s.i++
		s.space()
		if err := value(name); err != nil {
			return err
		}
		if more, err := s.more('}'); !more {
			return err
		}
	}
}

// more reads past the comma or the end behind an element.
func (s *noteScanner) more(end byte) (bool, error) {
	s.space()
	switch s.peek() {
	case ',':
		s.i++
		return true, nil
	case end:
		s.i++
		return false, nil
	}
	return false, s.unexpected("between elements")
}

// integer reads a number into n. One with a fraction or an exponent, or beyond int64, does not fit.
func (s *noteScanner) integer(n *int64) (fits bool, err error) {
	start := s.i
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		return false, s.skip(1)
	}
	if err := s.number(); err != nil {
		return false, err
	}
	v, ok := parseInt(s.b[start:s.i])
	if ok {
		*n = v
	}
	return ok, nil
}

// text reads a string into t.
func (s *noteScanner) text(t *[]byte) (fits bool, err error) {
	if s.peek() != '"' {
		return false, s.skip(1)
	}
	*t, err = s.string()
	return true, err
}

// skip reads past any value that lies within depth others.
func (s *noteScanner) skip(depth int) error {
	switch c := s.peek(); {
	case (c == '{' || c == '[') && depth >= maxJSONDepth:
		return errNoteDepth
	case c == '{':
		return s.members(func([]byte) error { return s.skip(depth + 1) })
	case c == '[':
		return s.array(depth)
	case c == '"':
		return s.skipString()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	return s.unexpected("for a value")
}

func (s *noteScanner) array(depth int) error {
	s.i++
	if s.space(); s.peek() == ']' {
		s.i++
		return nil
	}
	for {
		s.space()
		if err := s.skip(depth + 1); err != nil {
			return err
		}
		if more, err := s.more(']'); !more {
			return err
		}
	}
}

func (s *noteScanner) literal(word string) error {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return s.unexpected("in a literal")
	}
	s.i += len(word)
	return nil
}

// number reads past a number: no leading zero, no plus, digits around a point.
func (s *noteScanner) number() error {
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return s.unexpected("in a number")
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return s.unexpected("in a fraction")
		}
	}
	if s.peek()|0x20 != 'e' {
		return nil
	}
	s.i++
	if c := s.peek(); c == '+' || c == '-' {
		s.i++
	}
	if !s.digits() {
		return s.unexpected("in an exponent")
	}
	return nil
}

// digits reads past digits and reports whether there were any.
func (s *noteScanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

// string returns the string at hand, unescaped. Bytes that are no UTF-8 are left as they are: they can equal nothing that
// was asked for.
func (s *noteScanner) string() ([]byte, error) {
	s.i++
	start := s.i
	s.i = plainEnd(s.b, s.i)
	if s.peek() == '"' {
		s.i++
		return s.b[start : s.i-1], nil
	}
	return s.escaped(start)
}

// skipString reads past the string at hand.
func (s *noteScanner) skipString() error {
	s.i++
	for {
		s.i = plainEnd(s.b, s.i)
		switch c := s.peek(); {
		case s.i == len(s.b):
			return errNoteEnd
		case c == '"':
			s.i++
			return nil
		case c != '\\':
			return s.unexpected("in a string")
		}
		mark := len(s.scratch)
		err := s.escape()
		if s.scratch = s.scratch[:mark]; err != nil {
			return err
		}
	}
}

// escaped reads on in a string that began at start and has something other than plain text at hand.
func (s *noteScanner) escaped(start int) ([]byte, error) {
	from := len(s.scratch)
	for {
		s.scratch = append(s.scratch, s.b[start:s.i]...)
		switch c := s.peek(); {
		case s.i == len(s.b):
			return nil, errNoteEnd
		case c == '"':
			s.i++
			return s.scratch[from:len(s.scratch):len(s.scratch)], nil
		case c != '\\':
			return nil, s.unexpected("in a string")
		}
		if err := s.escape(); err != nil {
			return nil, err
		}
		start = s.i
		s.i = plainEnd(s.b, s.i)
	}
}

// escape appends what the escape at hand stands for.
func (s *noteScanner) escape() error {
	s.i++
	c := s.peek()
	if c == 'u' {
		return s.unicode()
	}
	for i := range len(escapes) / 2 {
		if escapes[2*i] == c {
			s.scratch = append(s.scratch, escapes[2*i+1])
			s.i++
			return nil
		}
	}
	return s.unexpected("in an escape")
}

const escapes = "\"\"\\\\//b\bf\fn\nr\rt\t"

// unicode reads \uXXXX, or two of them for a surrogate pair. Half a pair stands for U+FFFD.
func (s *noteScanner) unicode() error {
	r, ok := s.hex4(s.i - 1)
	if !ok {
		return s.unexpected("in an escape")
	}
	s.i += 5
	if utf16.IsSurrogate(r) {
		low, ok := s.hex4(s.i)
		pair := utf8.RuneError
		if ok {
			pair = utf16.DecodeRune(r, low)
		}
		if r = pair; r != utf8.RuneError {
			s.i += 6
		}
	}
	s.scratch = utf8.AppendRune(s.scratch, r)
	return nil
}

// hex4 returns the value of the \uXXXX at i.
func (s *noteScanner) hex4(i int) (r rune, ok bool) {
	if len(s.b)-i < 6 || s.b[i] != '\\' || s.b[i+1] != 'u' {
		return 0, false
	}
	for _, c := range s.b[i+2 : i+6] {
		d := unhex(c)
		if d < 0 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func (s *noteScanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// peek returns the byte at hand, 0 at the end.
func (s *noteScanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *noteScanner) unexpected(where string) error {
	if s.i >= len(s.b) {
		return errNoteEnd
	}
	return fmt.Errorf("%q %s", s.b[s.i], where)
}

// plainEnd returns the index of the first byte of b from i on that is a quote, a backslash or a control character, looking
// at eight bytes at a time.
func plainEnd(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i:])
		quote, slash := v^'"'*ones, v^'\\'*ones
		if ((quote-ones)&^quote|(slash-ones)&^slash|(v-' '*ones)&^v)&highs != 0 {
			break
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// parseInt reads an integer of JSON's grammar.
func parseInt(b []byte) (int64, bool) {
	digits, negative := bytes.CutPrefix(b, []byte("-"))
	var n uint64
	for _, c := range digits {
		if c < '0' || c > '9' || n > (1<<63)/10 {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	if negative {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n < 1<<63
}

// appendNote appends the input of note: the given id and note.
func appendNote(b []byte, id int64, note []byte) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"note":`...)
	b = appendString(b, note)
	return append(b, '}')
}

// appendString appends s as a JSON string.
func appendString(b, s []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for {
		plain := plainEnd(s, 0)
		b = append(b, s[:plain]...)
		if plain == len(s) {
			return append(b, '"')
		}
		if c := s[plain]; c < ' ' {
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		} else {
			b = append(b, '\\', c)
		}
		s = s[plain+1:]
	}
}
