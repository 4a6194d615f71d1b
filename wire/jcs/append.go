package jcs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// An Object appends one object member by member, in canonical form. Names must come in canonical order; that, and the first
// value that has no canonical form, is the error of End. It allocates only what the destination lacks.
type Object struct {
	b     []byte
	last  string
	some  bool
	outer [MaxNested]string // the names of the objects that this one is a value in
	depth int
	err   error
}

// MaxNested is how many objects may be open within one.
const MaxNested = 8

// Begin starts an object behind dst.
func Begin(dst []byte) Object { return Object{b: append(dst, '{')} }

func (o *Object) name(name string) {
	if o.some {
		if !Less(o.last, name) && o.err == nil {
			o.err = fmt.Errorf("member %q may not stand behind %q", name, o.last)
		}
		o.b = append(o.b, ',')
	}
	o.some, o.last = true, name
	o.quote(name)
	o.b = append(o.b, ':')
}

func (o *Object) quote(s string) {
	b, ok := AppendString(o.b, s)
	if !ok && o.err == nil {
		o.err = fmt.Errorf("member %q: %q is not UTF-8", o.last, s)
	}
	o.b = b
}

// String appends a member whose value is a string.
func (o *Object) String(name, value string) {
	o.name(name)
	o.quote(value)
}

// Bytes appends a member whose value is a string of which the caller has the bytes.
func (o *Object) Bytes(name string, value []byte) {
	o.name(name)
	o.b = append(o.b, '"')
	b, bad := appendText(o.b, value)
	if bad >= 0 && o.err == nil {
		o.err = fmt.Errorf("member %q: %q is not UTF-8", name, value)
	}
	o.b = append(b, '"')
}

// Int appends a member whose value is an integer. Beyond 2^53-1 it would round: End reports that.
func (o *Object) Int(name string, value int64) {
	o.name(name)
	if (value > MaxInt || value < -MaxInt) && o.err == nil {
		o.err = fmt.Errorf("member %q: %d is beyond 2^53-1 and would round", name, value)
	}
	o.b = strconv.AppendInt(o.b, value, 10)
}

// Raw appends a member whose value is canonical already.
func (o *Object) Raw(name string, canonical []byte) {
	o.name(name)
	o.b = append(o.b, canonical...)
}

// Open appends a member whose value is an object: the next members are its own, until Close.
func (o *Object) Open(name string) {
	o.name(name)
	if o.depth == MaxNested {
		o.err = cmp.Or(o.err, fmt.Errorf("member %q: more than %d objects are open", name, MaxNested))
		o.depth--
	}
	o.outer[o.depth] = name
	o.depth++
	o.b, o.some = append(o.b, '{'), false
}

// Close ends the object of the last Open.
func (o *Object) Close() {
	if o.depth == 0 {
		o.err = cmp.Or(o.err, errors.New("an object is closed that was not opened"))
		return
	}
	o.depth--
	o.b, o.some, o.last = append(o.b, '}'), true, o.outer[o.depth]
}

// End closes the object and returns the destination with it.
func (o *Object) End() ([]byte, error) {
	if o.depth > 0 {
		o.err = cmp.Or(o.err, fmt.Errorf("the object %q is not closed", o.outer[o.depth-1]))
	}
	return append(o.b, '}'), o.err
}

// MaxInt is the largest integer whose neighbours a float64 keeps apart: 2^53-1.
const MaxInt = 1<<53 - 1

// ErrNotFinite is returned for a number that JSON does not have.
var ErrNotFinite = errors.New("json: NaN and the infinities have no form")

// AppendFloat appends f as ECMAScript prints it (RFC 8785 §3.2.2.3): the shortest digits that give f back.
func AppendFloat(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, ErrNotFinite
	}
	if f == 0 {
		return append(dst, '0'), nil // also for -0
	}
	abs := math.Abs(f)
	if abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64), nil
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// ECMAScript writes the exponent without a leading zero: e-7 where Go writes e-07.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst, nil
}

// AppendString appends s as a canonical JSON string. It reports whether s is UTF-8; when not, what is appended is cut short.
func AppendString(dst []byte, s string) ([]byte, bool) {
	dst = append(dst, '"')
	dst, bad := appendText(dst, s)
	return append(dst, '"'), bad < 0
}

const hexDigits = "0123456789abcdef"

// appendText appends s with the escapes of RFC 8785 §3.2.2.2 and returns the offset of the first byte that is not UTF-8, or -1.
func appendText[T string | []byte](dst []byte, s T) ([]byte, int) {
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := decodeRune(s[i:])
			if r == utf8.RuneError && n == 1 {
				return append(dst, s[from:i]...), i
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = appendEscape(append(dst, s[from:i]...), c)
		i++
		from = i
	}
	return append(dst, s[from:]...), -1
}

func decodeRune[T string | []byte](s T) (rune, int) {
	return utf8.DecodeRuneInString(string(s[:min(len(s), utf8.UTFMax)]))
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\t':
		return append(dst, '\\', 't')
	case '\n':
		return append(dst, '\\', 'n')
	case '\f':
		return append(dst, '\\', 'f')
	case '\r':
		return append(dst, '\\', 'r')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// Less reports whether the name a stands before b: by UTF-16 code units (RFC 8785 §3.2.3). In UTF-8 that is the order of
// the bytes, but that a character beyond U+FFFF (first byte F0 or more) stands before U+E000 to U+FFFF (EE or EF).
func Less[T string | []byte](a, b T) bool { return compare(a, b) < 0 }

func compare[T string | []byte](a, b T) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
			x, y = y, x
		}
		return int(x) - int(y)
	}
	return len(a) - len(b)
}
