package mcp

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"time"
)

// A requestState is base64url of: when it ends (8 bytes, Unix seconds), the state, and an HMAC-SHA256 over both and what
// the request is about. A client can neither make nor change one, nor bring it with another request (2026-07-28, Multi
// Round-Trip Requests, Server Requirements).

func (s *Server) sealState(state, method, subject []byte) []byte {
	raw := binary.BigEndian.AppendUint64(nil, uint64(time.Now().Add(s.cfg.StateTTL).Unix()))
	raw = append(raw, state...)
	raw = append(raw, s.stateSum(raw, method, subject)...)
	return base64.RawURLEncoding.AppendEncode(nil, raw)
}

// openState returns the state that was sealed, false if it was not, or for something else, or too long ago.
func (s *Server) openState(sealed, method, subject []byte) ([]byte, bool) {
	raw, err := base64.RawURLEncoding.Strict().AppendDecode(nil, sealed)
	if err != nil || len(raw) < 8+sha256.Size {
		return nil, false
	}
	raw, sum := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	if !hmac.Equal(sum, s.stateSum(raw, method, subject)) {
		return nil, false
	}
	return raw[8:], time.Now().Unix() <= int64(binary.BigEndian.Uint64(raw))
}

func (s *Server) stateSum(raw, method, subject []byte) []byte {
	h := hmac.New(sha256.New, s.cfg.StateKey)
	var size [8]byte
	for _, part := range [][]byte{method, subject, raw} {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write(part)
	}
	return h.Sum(nil)
}

// compact returns JSON without line ends and other white space: a message is one line. Text that is no JSON becomes null.
func compact(raw json.RawMessage) []byte {
	if len(raw) > 0 && bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 && json.Valid(raw) {
		return raw
	}
	var b bytes.Buffer
	if len(raw) == 0 {
		return []byte("{}")
	}
	if json.Compact(&b, raw) != nil {
		return []byte("null")
	}
	return b.Bytes()
}
