package plain

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// Append appends v as json.Marshal writes it: names of maps in order, <, > and & escaped. What is none of the types that
// Object makes, an integer or a list of texts is given to json.Marshal, whose errors are the only ones. On an error dst is
// returned as it was.
func Append(dst []byte, v any) ([]byte, error) {
	out, err := appendValue(dst, v, 1)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func appendValue(dst []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return appendString(dst, v), nil
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return appendFloat(dst, v), nil
		}
	case int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case map[string]any:
		if v != nil && depth <= MaxDepth {
			return appendMap(dst, v, depth)
		}
	case []any:
		if v != nil && depth <= MaxDepth {
			return appendList(dst, v, depth)
		}
	case []string:
		if v != nil {
			return appendTexts(dst, v), nil
		}
	}
	b, err := json.Marshal(v) // it also sees a map that holds itself
	return append(dst, b...), err
}

// fewNames is how many names of a map need no memory of their own.
const fewNames = 8

func appendMap(dst []byte, m map[string]any, depth int) (_ []byte, err error) {
	var few [fewNames]string
	names := few[:0]
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
		if dst, err = appendValue(dst, m[name], depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func appendList(dst []byte, l []any, depth int) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, v := range l {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendValue(dst, v, depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendTexts(dst []byte, l []string) []byte {
	dst = append(dst, '[')
	for i, s := range l {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	return append(dst, ']')
}

// appendFloat appends the shortest digits that give f back, with an exponent below 1e-6 and from 1e21 on.
func appendFloat(dst []byte, f float64) []byte {
	abs := math.Abs(f)
	if n := int64(f); abs < 1e15 && float64(n) == f && (n != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(dst, n, 10)
	}
	if abs == 0 || abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' { // e-09 is written e-9
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}
