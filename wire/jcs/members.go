package jcs

import (
	"bytes"
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Members yields the names and values of an object that is canonical, both as they stand: [Text] resolves a string. Bytes
// that are no canonical object yield what stands before the first byte that is wrong.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		if len(object) < 2 || object[0] != '{' {
			return
		}
		for rest := object[1:]; ; {
			n := skip(rest)
			if n == 0 || n >= len(rest) || rest[n] != ':' {
				return
			}
			name := rest[:n]
			rest = rest[n+1:]
			v := skip(rest)
			if v == 0 || v >= len(rest) || !yield(name, rest[:v]) || rest[v] != ',' {
				return
			}
			rest = rest[v+1:]
		}
	}
}

// Elements yields the values of an array that is canonical, as they stand.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(array) < 2 || array[0] != '[' {
			return
		}
		for rest := array[1:]; ; {
			v := skip(rest)
			if v == 0 || v >= len(rest) || !yield(rest[:v]) || rest[v] != ',' {
				return
			}
			rest = rest[v+1:]
		}
	}
}

// skip returns the length of the canonical value that b starts with, 0 if there is none.
func skip(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if i >= len(b) {
				return 0
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			if depth > 0 {
				continue
			}
			end := bytes.IndexAny(b[i:], ",]}:")
			if end < 0 {
				return len(b)
			}
			return i + end
		}
		if depth == 0 {
			return i + 1
		}
	}
	return 0
}

// Text returns the text of a canonical string and whether value is one. It shares value's memory when nothing is escaped.
func Text(value []byte) ([]byte, bool) {
	n := len(value)
	if n < 2 || value[0] != '"' || value[n-1] != '"' {
		return nil, false
	}
	in := value[1 : n-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return in, true
	}
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); i++ {
		if in[i] != '\\' {
			out = append(out, in[i])
			continue
		}
		if i++; i == len(in) {
			return nil, false
		}
		switch in[i] {
		case 'u':
			if i+4 >= len(in) {
				return nil, false
			}
			r, err := strconv.ParseUint(string(in[i+1:i+5]), 16, 16)
			if err != nil || utf16.IsSurrogate(rune(r)) {
				return nil, false
			}
			out = utf8.AppendRune(out, rune(r))
			i += 4
		case 'b':
			out = append(out, '\b')
		case 't':
			out = append(out, '\t')
		case 'n':
			out = append(out, '\n')
		case 'f':
			out = append(out, '\f')
		case 'r':
			out = append(out, '\r')
		default:
			out = append(out, in[i])
		}
	}
	return out, true
}

// Int returns the integer that a canonical number is, and whether it is one between -(2^53-1) and 2^53-1.
func Int(value []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n > MaxInt || n < -MaxInt || value[0] == '+' {
		return 0, false
	}
	return n, true
}
