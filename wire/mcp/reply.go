package mcp

import (
	"context"
	"io"
)

// A Reply is what Answer says: either a whole reply, or nothing any more because a stream of events was begun and ended.
type Reply struct {
	Status      int    // 200 when 0
	ContentType string // empty without a body
	Header      []Line // further header lines
	Body        []byte // appended to: its memory may be kept from reply to reply
	Streamed    bool   // the reply went out as a stream

	Connection Connection // nil: whole replies only

	x exchange // here, so that a caller who keeps the reply keeps its memory too
}

// A Line is a header line.
type Line struct{ Name, Value string }

// A Connection is what a reply may need of the HTTP server beyond a whole reply.
type Connection interface {
	// Watch returns a context that ends with ctx and when the client goes away.
	Watch(ctx context.Context) context.Context
	// Stream sends the head of a reply that is a stream of events, with the given header lines. What is written to it
	// goes out at once. It ends when Answer returns.
	Stream(header []Line) (io.Writer, error)
}

// Reset makes the reply fit for another request; Body's memory stays.
func (r *Reply) Reset(c Connection) {
	*r = Reply{Body: r.Body[:0], Header: r.Header[:0], Connection: c}
}

func (r *Reply) refuse(id []byte, e *Error, rev revision) {
	if e.status != 0 {
		r.Status = e.status
	}
	if e.status == 503 {
		r.Header = append(r.Header, Line{"Retry-After", "5"})
	}
	r.ContentType = "application/json"
	r.Body = appendError(r.Body[:0], id, e, rev)
}

// Unreadable fills in the reply to a request whose head or body an HTTP server could not read, under status.
func (r *Reply) Unreadable(status int, why string) {
	e := invalidRequest(why)
	e.status = status
	r.refuse(nil, e, rev20251125)
}

// eventHeader says that a stream of events must not be held back.
func eventHeader(h []Line) []Line {
	return append(h, Line{"Cache-Control", "no-cache"}, Line{"X-Accel-Buffering", "no"})
}
