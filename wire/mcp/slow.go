package mcp

import (
	"context"
	"errors"
)

// wait serves the stream of a session by which it hears of changes.
func (s *Server) wait(ctx context.Context, h *Head, one *session, r *Reply) {
	if !takes(h.accept, "text", "event-stream") || r.Connection == nil {
		e := invalidRequest("a stream of events is all there is, and Accept does not take it")
		e.status = 406
		r.refuse(nil, e, one.rev)
		return
	}
	changes := one.mailbox()
	if changes == nil {
		r.refuse(nil, &Error{Code: CodeInvalidRequest, Message: "The session is over", status: 404}, one.rev)
		return
	}
	if e := s.streams.enter(nil); e != nil {
		r.refuse(nil, e, one.rev)
		return
	}
	defer s.streams.leave(nil)
	ctx = r.Connection.Watch(ctx)
	w, err := r.Connection.Stream(eventHeader(r.Header))
	r.Streamed = true
	if err != nil {
		return
	}
	events := &eventWriter{w: w}
	if events.comment() == nil {
		s.pump(ctx, changes, nil, events.send, events.comment)
	}
}

// slow answers a request that may take a while, may be cancelled and may have more to say than its result.
func (s *Server) slow(ctx context.Context, x *exchange, r *Reply) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if x.rev.modern() {
		ctx = r.Connection.Watch(ctx) // a client that goes away cancels its request; before, it had to say so
	} else if x.sess != nil {
		defer x.sess.started(x.m.id, cancel)()
	}
	out := &lateStream{reply: r}
	if takes(x.head.accept, "text", "event-stream") {
		x.out = out
	}
	body, e := s.dispatch(ctx, x, s.openBody(x, r))
	switch {
	case out.events == nil && ctx.Err() != nil: // cancelled: HTTP wants a reply, the protocol wants none to be sent
		e = &Error{Code: CodeInternalError, Message: "The request was cancelled"}
		r.refuse(x.m.id, e, x.rev)
	case out.events == nil && e != nil:
		s.fail(x, r, e)
	case out.events == nil:
		s.closeBody(x, r, body)
	case ctx.Err() != nil:
	case e != nil:
		out.send(appendError(nil, x.m.id, e, x.rev))
	case s.asEvents(x):
		out.send(body[len(eventLead):])
	default:
		out.send(body)
	}
}

// A lateStream is a reply that becomes a stream of events when there is something to say ahead of its result.
type lateStream struct {
	reply  *Reply
	events *eventWriter
	err    error
}

var errNoStream = errors.New("no stream of events")

func (l *lateStream) begin() {
	if l.events != nil || l.err != nil {
		return
	}
	w, err := l.reply.Connection.Stream(eventHeader(l.reply.Header))
	l.reply.Streamed = true
	l.events, l.err = &eventWriter{w: w}, err
}

func (l *lateStream) send(msg []byte) error {
	l.begin()
	if l.err != nil {
		return errors.Join(errNoStream, l.err)
	}
	return l.events.send(msg)
}

// listens serves a stream of changes that a client of 2026-07-28 asked for.
func (s *Server) listens(ctx context.Context, x *exchange, r *Reply) {
	if !takes(x.head.accept, "text", "event-stream") || r.Connection == nil {
		e := invalidRequest("subscriptions/listen is answered by a stream of events, and Accept does not take it")
		e.status = 406
		r.refuse(x.m.id, e, x.rev)
		return
	}
	l, e := s.listen(x)
	if e != nil {
		r.refuse(x.m.id, e, x.rev)
		return
	}
	defer s.streams.leave(l)
	ctx = r.Connection.Watch(ctx)
	w, err := r.Connection.Stream(eventHeader(r.Header))
	r.Streamed = true
	if err != nil {
		return
	}
	events := &eventWriter{w: w}
	if events.send(l.acknowledged()) != nil || !s.pump(ctx, l.box, l, events.send, events.comment) {
		return
	}
	for _, msg := range s.goodbye(l) {
		events.send(msg)
	}
}
