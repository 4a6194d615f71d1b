package plain

import (
	"strconv"
	"unicode/utf8"
)

// Object reads a text that is one JSON object into what json.Unmarshal makes of it: maps, lists, texts, float64, booleans and
// nil. Its texts share one copy of b. ok is false for everything that is no such object, and for what is not plain: text that
// is not UTF-8, a number beyond a float64, a nesting of more than MaxDepth. json.Unmarshal says then what is wrong, or reads
// it.
func Object(b []byte) (m map[string]any, ok bool) {
	if !utf8.Valid(b) {
		return nil, false
	}
	r := reader{Scanner: Scanner{B: b}}
	if r.Space() != '{' {
		return nil, false
	}
	r.in = string(b)
	m, err := r.object(1)
	if err != nil || r.End() != nil {
		return nil, false
	}
	return m, true
}

// A reader makes values of what its scanner finds.
type reader struct {
	Scanner
	in string // what the scanner scans
}

func (r *reader) value(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, ErrDepth
	}
	switch r.Space() {
	case '{':
		return r.object(depth)
	case '[':
		return r.list(depth)
	case '"':
		return r.text()
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	case 'n':
		return nil, r.word("null")
	}
	return r.float()
}

func (r *reader) object(depth int) (map[string]any, error) {
	m := make(map[string]any)
	for more := r.Open('}'); more; {
		if r.Space() != '"' {
			return nil, ErrSyntax
		}
		name, err := r.text()
		if err != nil {
			return nil, err
		}
		if r.Space() != ':' {
			return nil, ErrSyntax
		}
		r.I++
		if m[name], err = r.value(depth + 1); err != nil {
			return nil, err
		}
		if more, err = r.More('}'); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (r *reader) list(depth int) ([]any, error) {
	l := []any{}
	for more := r.Open(']'); more; {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
		if more, err = r.More(']'); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (r *reader) text() (string, error) {
	start := r.I
	plain, err := r.quoted()
	if err != nil {
		return "", err
	}
	if plain {
		return r.in[start+1 : r.I-1], nil
	}
	t, err := unquote(r.B[start:r.I])
	return string(t), err
}

// exactDigits is how many digits every float64 keeps.
const exactDigits = 15

func (r *reader) float() (any, error) {
	start, n := r.I, int64(0)
	for i := start; i < len(r.in) && i-start <= exactDigits; i++ {
		c := r.in[i]
		if c >= '0' && c <= '9' {
			n = 10*n + int64(c-'0')
			continue
		}
		if i == start || i > start+1 && r.in[start] == '0' || c == '.' || c|0x20 == 'e' {
			break
		}
		r.I = i
		return float64(n), nil
	}
	if err := r.number(); err != nil {
		return nil, err
	}
	f, err := strconv.ParseFloat(r.in[start:r.I], 64)
	if err != nil { // beyond what a float64 holds
		return nil, err
	}
	return f, nil
}
