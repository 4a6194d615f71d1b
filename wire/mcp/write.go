package mcp

import (
	"encoding/binary"
	"encoding/json"
	"unicode/utf8"
)

// appendText appends t as a JSON string. Invalid UTF-8 becomes U+FFFD, as in encoding/json.
func appendText(dst, t []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(t); {
		for i+8 <= len(t) {
			if x := binary.LittleEndian.Uint64(t[i:]); special(x) || x&0x8080808080808080 != 0 {
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
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, t[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, t[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, t[start:]...), '"')
}

// appendResult begins a response up to its result, which the caller appends.
func appendResult(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	return append(dst, `,"result":`...)
}

// appendError appends a whole error response. Without an id it says null where the revision wants an id in every one.
func appendError(dst, id []byte, e *Error, r revision) []byte {
	dst = append(dst, `{"jsonrpc":"2.0",`...)
	switch {
	case id != nil:
		dst = append(append(append(dst, `"id":`...), id...), ',')
	case r < rev20251125:
		dst = append(dst, `"id":null,`...)
	}
	body, err := json.Marshal(struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}{e.Code, e.Message, e.Data})
	if err != nil {
		body = []byte(`{"code":-32603,"message":"Internal error"}`)
	}
	dst = append(dst, `"error":`...)
	dst = append(dst, body...)
	return append(dst, '}')
}

// What stands around a message that is an event.
const (
	eventLead = "event: message\ndata: "
	eventEnd  = "\n\n"
)

// appendEvent appends a message as one event of an event stream. Messages hold no line ends: JSON has none within a value
// that we write.
func appendEvent(dst, msg []byte) []byte {
	dst = append(dst, eventLead...)
	dst = append(dst, msg...)
	return append(dst, eventEnd...)
}
