package gateway

import (
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
func newSpan() string {
	v := rand.Uint64() | 1
	var raw [8]byte
	for i := range raw {
		raw[i] = byte(v >> (8 * i))
	}
	return hex.EncodeToString(raw[:])
}

// maxRequestID bounds an id that a client chose.
const maxRequestID = 128

// requestID returns the client's id if it can stand in a header line, else a new one.
func requestID(given string) string {
	if given == "" || len(given) > maxRequestID {
		return newSpan()
	}
	for _, c := range []byte(given) {
		if c <= ' ' || c >= 0x7f {
			return newSpan()
		}
	}
	return given
}
