package plain

import (
	"encoding/binary"
	"unicode/utf8"
	"unsafe"
)

const hexDigits = "0123456789abcdef"

// AppendText appends t as a JSON string. What is not UTF-8 becomes U+FFFD, as in encoding/json.
func AppendText(dst, t []byte) []byte { return appendText(dst, t, false) }

// appendString is AppendText for a string; html escapes <, > and & as well, as json.Marshal does.
func appendString(dst []byte, s string) []byte {
	return appendText(dst, unsafe.Slice(unsafe.StringData(s), len(s)), true)
}

func appendText(dst, t []byte, html bool) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(t); {
		for i+8 <= len(t) {
			x := binary.LittleEndian.Uint64(t[i:])
			if special(x) || x&0x8080808080808080 != 0 || html && marked(x) {
				break
			}
			i += 8
		}
		if i == len(t) {
			break
		}
		c := t[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(t[i:])
			if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' {
				dst = append(dst, t[start:i]...)
				dst = append(dst, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
				start = i + n
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' && !(html && (c == '<' || c == '>' || c == '&')) {
			i++
			continue
		}
		dst = appendEscape(append(dst, t[start:i]...), c)
		i++
		start = i
	}
	return append(append(dst, t[start:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// marked reports whether one of eight bytes is <, > or &. It may say yes to what is none.
func marked(x uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	less, more, and := x^each*'<', x^each*'>', x^each*'&'
	return ((less-each)&^less|(more-each)&^more|(and-each)&^and)&high != 0
}
