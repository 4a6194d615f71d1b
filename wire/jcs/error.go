package jcs

import "fmt"

// A Code names what is wrong with a document.
type Code string

// The codes of an [Error].
const (
	Empty         Code = "empty"          // no value at all
	UnexpectedEnd Code = "unexpected-end" // the document stops inside a value
	Syntax        Code = "syntax"         // a byte that the grammar does not allow there
	Trailing      Code = "trailing-data"  // something behind the value
	BOM           Code = "bom"            // a byte order mark in front
	DuplicateName Code = "duplicate-name" // two members of one object have the same name, escapes resolved
	LoneSurrogate Code = "lone-surrogate" // an escaped half of a surrogate pair
	BadUTF8       Code = "invalid-utf8"   // overlong, truncated, a surrogate or beyond U+10FFFF
	BadEscape     Code = "bad-escape"     // an escape that JSON does not have
	ControlChar   Code = "control-char"   // an unescaped character below U+0020 in a string
	BadNumber     Code = "number-syntax"  // 01, +1, .5, 5., 1_0, 0x1p3
	NumberRange   Code = "number-range"   // beyond the largest float64
	TooDeep       Code = "too-deep"       // more nesting than Limits.Depth
	TooLarge      Code = "too-large"      // more bytes than Limits.Bytes
)

// An Error says what is wrong with a document, and at which byte of it.
type Error struct {
	Code   Code
	Offset int // of the first byte that is wrong; of the second of two equal names
}

// Error returns the sentence.
func (e *Error) Error() string { return fmt.Sprintf("json: %s at byte %d", e.Code, e.Offset) }

func fail(code Code, at int) error { return &Error{code, at} }
