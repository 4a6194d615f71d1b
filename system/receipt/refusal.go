package receipt

import (
	"errors"
	"fmt"
	"net/http"

	"toll/wire/jcs"
)

// A Refusal is an arrival that gets no receipt, or a question without an answer.
type Refusal struct {
	Code    string // one of the codes below
	Pointer string // RFC 6901, of the member that is wrong; empty when none is
	Offset  int    // of the byte that is wrong; -1 when none is
	Text    string

	cause error
}

// Unwrap returns what caused the refusal, nil when the arrival itself did.
func (r *Refusal) Unwrap() error { return r.cause }

// The codes of a [Refusal], each with one HTTP status.
const (
	Malformed   = "malformed"         // 400: not JSON, or JSON that two parsers read differently
	Invalid     = "invalid"           // 422: JSON, but no arrival
	Conflict    = "conflict"          // 409: the request id is taken by another hash
	NotFound    = "not_found"         // 404
	TooLarge    = "too_large"         // 413
	MediaType   = "unsupported_media" // 415
	Overloaded  = "overloaded"        // 429: more is waiting than may wait
	Unavailable = "unavailable"       // 503: the key, the clock or the log can't be used
	DiskFull    = "disk_full"         // 507: the log can't grow
)

// Error returns what is wrong and where.
func (r *Refusal) Error() string {
	switch {
	case r.Pointer != "":
		return fmt.Sprintf("%s: %s: %s", r.Code, r.Pointer, r.Text)
	case r.Offset >= 0:
		return fmt.Sprintf("%s at byte %d: %s", r.Code, r.Offset, r.Text)
	}
	return r.Code + ": " + r.Text
}

// Status is the HTTP status of the refusal.
func (r *Refusal) Status() int {
	switch r.Code {
	case Malformed:
		return http.StatusBadRequest
	case Invalid:
		return http.StatusUnprocessableEntity
	case Conflict:
		return http.StatusConflict
	case NotFound:
		return http.StatusNotFound
	case TooLarge:
		return http.StatusRequestEntityTooLarge
	case MediaType:
		return http.StatusUnsupportedMediaType
	case Overloaded:
		return http.StatusTooManyRequests
	case DiskFull:
		return http.StatusInsufficientStorage
	}
	return http.StatusServiceUnavailable
}

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Offset: -1, Text: fmt.Sprintf(format, args...)}
}

func invalid(pointer, format string, args ...any) *Refusal {
	return &Refusal{Code: Invalid, Pointer: pointer, Offset: -1, Text: fmt.Sprintf(format, args...)}
}

// malformed turns an error of jcs into a refusal with its offset.
func malformed(err error) error {
	var e *jcs.Error
	if !errors.As(err, &e) {
		return refuse(Malformed, "%v", err)
	}
	code := Malformed
	if e.Code == jcs.TooLarge {
		code = TooLarge
	}
	return &Refusal{Code: code, Offset: e.Offset, Text: string(e.Code)}
}
