package mcp

import (
	"encoding/json"
)

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
