package mcp

import (
	"encoding/json"
	"fmt"
)

// Codes of JSON-RPC 2.0 §5.1 and of the protocol (2026-07-28, Error Codes).
const (
	CodeParseError         = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternalError      = -32603
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
	codeResourceNotFound   = -32002 // of the revisions up to 2025-11-25
)

// An Error is a JSON-RPC error. A tool, resource or prompt that returns one refuses the request with it; any other error
// of a tool is told as the tool's result.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage // nil: none

	status int // of the HTTP reply; 0 = 200
}

// Error returns the code and the message.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

func parseError(err error) *Error {
	return &Error{Code: CodeParseError, Message: "Parse error: " + err.Error(), status: 400}
}

func invalidRequest(why string) *Error {
	return &Error{Code: CodeInvalidRequest, Message: "Invalid request: " + why, status: 400}
}

// invalidParams is malformed params, which HTTP says by its status as well. What is well formed and names a thing that
// is not there is refused by its own error.
func invalidParams(why string) *Error {
	return &Error{Code: CodeInvalidParams, Message: "Invalid params: " + why, status: 400}
}

func refusedParams(why string) *Error {
	return &Error{Code: CodeInvalidParams, Message: "Invalid params: " + why}
}

func methodNotFound(method []byte) *Error {
	return &Error{Code: CodeMethodNotFound, Message: "Method not found: " + clip(method)}
}

func headerMismatch(format string, args ...any) *Error {
	return &Error{Code: CodeHeaderMismatch, Message: "Header mismatch: " + fmt.Sprintf(format, args...), status: 400}
}

// clip shortens what a client sent for a message that goes back to it.
func clip(b []byte) string {
	if len(b) > 128 {
		return string(b[:128]) + "…"
	}
	return string(b)
}

// MissingCapability refuses a request that needs a capability which the client did not declare, such as "sampling".
func MissingCapability(name string) *Error {
	data, err := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{name: struct{}{}}})
	if err != nil {
		panic("a capability's name as JSON: " + err.Error())
	}
	return &Error{Code: CodeMissingCapability, Message: "The client has not declared the capability " + name, Data: data, status: 400}
}
