package mcp

import (
	"context"
	"strconv"

	"toll/wire/plain"
)

// batch answers an array of messages, which revisions up to 2025-03-26 have.
func (s *Server) batch(ctx context.Context, x *exchange, body []byte, r *Reply) {
	if x.head.session != nil && s.cfg.Sessions && !x.rev.modern() {
		one, e := s.session(x.head)
		if e != nil {
			r.refuse(nil, e, x.rev)
			return
		}
		defer one.done()
		x.rev = one.rev
	}
	parts, e := split(body, s.cfg.MaxBatch)
	if e == nil && !x.rev.batches() {
		e = invalidRequest("a batch, which revision " + x.rev.String() + " does not have")
	}
	if e != nil {
		r.refuse(nil, e, x.rev)
		return
	}
	r.Body = append(r.Body[:0], '[')
	for _, part := range parts {
		s.batched(ctx, x, part, r)
	}
	if len(r.Body) == 1 { // notifications and responses only
		r.Body, r.Status = r.Body[:0], 202
		return
	}
	r.Body = append(r.Body, ']')
	r.ContentType = "application/json"
}

// batched answers one message of a batch within it. initialize must not be in one (2025-03-26, Lifecycle).
func (s *Server) batched(ctx context.Context, x *exchange, part []byte, r *Reply) {
	y := exchange{s: s, head: x.head, rev: x.rev}
	e := y.m.decode(part)
	if e == nil && string(y.m.method) == "initialize" {
		e = invalidRequest("initialize within a batch")
	}
	if e == nil {
		e = s.place(&y, nil)
	}
	if y.sess != nil {
		defer y.sess.done()
	}
	if e == nil && !y.m.request() {
		s.one(ctx, &y, &Reply{})
		return
	}
	if len(r.Body) > 1 {
		r.Body = append(r.Body, ',')
	}
	if e == nil {
		r.Body, e = s.dispatch(ctx, &y, r.Body)
	}
	if e != nil {
		r.Body = appendError(r.Body, y.m.id, e, y.rev)
	}
}

// split takes an array apart.
func split(body []byte, most int) (parts [][]byte, _ *Error) {
	s := plain.Scanner{B: body}
	s.Space()
	for more := s.Open(']'); more; {
		s.Space()
		part, err := s.Value(1)
		if err != nil {
			return nil, parseError(err)
		}
		if parts = append(parts, part); len(parts) > most {
			return nil, invalidRequest("a batch of more than " + strconv.Itoa(most) + " messages")
		}
		if more, err = s.More(']'); err != nil {
			return nil, parseError(err)
		}
	}
	if err := s.End(); err != nil {
		return nil, parseError(err)
	}
	if len(parts) == 0 {
		return nil, invalidRequest("an empty batch")
	}
	return parts, nil
}
