package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"toll/wire/envelope"
)

// A problem is a request that is not answered by an agent, or whose agent did not answer.
type problem struct {
	status int
	text   string
	retry  bool     // the same request may succeed in a second
	allow  []string // methods that the path has
}

func (p *problem) Error() string { return p.text }

// problemOf turns what a request came to into what its client is told.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	f := envelope.FailureOf(err, "")
	p = &problem{status: http.StatusInternalServerError, text: f.Error()}
	switch f.Code {
	case envelope.NotFound:
		p.status = http.StatusNotFound
	case envelope.MailboxFull, envelope.Stopped, envelope.Suspended, envelope.Cancelled:
		p.status, p.retry = http.StatusServiceUnavailable, true
	case envelope.Deadline:
		p.status = http.StatusGatewayTimeout
	case envelope.Unreachable:
		p.status, p.retry = http.StatusBadGateway, true
	case envelope.Failed:
		p.status = http.StatusBadRequest
	case envelope.Crashed:
	}
	return p
}

// retryAfter is the value of that header, seconds.
const retryAfter = "1"

// body is the problem as JSON.
func (p *problem) body() []byte {
	b, err := json.Marshal(map[string]string{"error": p.text})
	if err != nil {
		panic("a string as JSON: " + err.Error())
	}
	return b
}

func (p *problem) methods() string { return strings.Join(p.allow, ", ") }
