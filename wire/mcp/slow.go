package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	begun, whole := out.close()
	switch {
	case !begun && ctx.Err() != nil: // cancelled: HTTP wants a reply, the protocol wants none to be sent
		r.refuse(x.m.id, &Error{Code: CodeInternalError, Message: "The request was cancelled"}, x.rev)
	case !begun && e != nil:
		s.fail(x, r, e)
	case !begun:
		s.closeBody(x, r, body)
	case ctx.Err() != nil, !whole:
	case e != nil:
		out.events.send(appendError(nil, x.m.id, e, x.rev))
	case s.asEvents(x):
		out.events.send(body[len(eventLead):])
	default:
		out.events.send(body)
	}
}

// A lateStream is a reply that becomes a stream of events when there is something to say ahead of its result.
type lateStream struct {
	mu     sync.Mutex
	reply  *Reply       // guarded by mu: nil once the request is answered, so that a tool can't talk into the next reply
	events *eventWriter // guarded by mu until then
	err    error        // guarded by mu until then
}

func (l *lateStream) send(msg []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reply == nil {
		return errors.New("the request has been answered")
	}
	if l.events == nil {
		w, err := l.reply.Connection.Stream(eventHeader(l.reply.Header))
		l.reply.Streamed = true
		l.events, l.err = &eventWriter{w: w}, err
	}
	if l.err != nil {
		return fmt.Errorf("no stream of events: %w", l.err)
	}
	return l.events.send(msg)
}

// close lets nothing more through, and reports whether a stream was begun that can take the result.
func (l *lateStream) close() (begun, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reply = nil
	return l.events != nil, l.err == nil
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
