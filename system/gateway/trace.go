package gateway

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// A trace is what W3C Trace Context's traceparent says.
type trace struct{ id, parent, flags string }

// parseTrace parses a traceparent of version 00 (or of a later one, whose beginning is the same). Anything else is no trace.
func parseTrace(s string) (trace, bool) {
	const whole = len("00-") + 32 + len("-") + 16 + len("-") + 2
	if len(s) < whole || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" {
		return trace{}, false
	}
	if s[:2] == "00" && len(s) != whole || len(s) > whole && s[whole] != '-' {
		return trace{}, false
	}
	t := trace{id: s[3:35], parent: s[36:52], flags: s[53:55]}
	ok := lowerHex(s[:2]) && lowerHex(t.id) && lowerHex(t.parent) && lowerHex(t.flags)
	return t, ok && !zeros(t.id) && !zeros(t.parent)
}

func lowerHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func zeros(s string) bool {
	for _, c := range []byte(s) {
		if c != '0' {
			return false
		}
	}
	return true
}

// newSpan returns an id that is not zero, 16 hex digits.
func newSpan() string { return string(appendSpan(nil)) }

func appendSpan(b []byte) []byte {
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], rand.Uint64()|1)
	return hex.AppendEncode(b, raw[:])
}

// maxRequestID bounds an id that a client chose.
const maxRequestID = 128

// identify gives the response the client's id if it can stand in a header line, else a new one.
func (r *response) identify(given string) {
	r.header = append(r.header, "X-Request-Id: "...)
	if validID(given) {
		r.header = append(r.header, given...)
	} else {
		r.header = appendSpan(r.header)
	}
	r.header = append(r.header, "\r\n"...)
}

func validID(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return s != "" && len(s) <= maxRequestID
}
