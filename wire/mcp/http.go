package mcp

import (
	"bytes"
	"context"
)

// Answer answers one HTTP request of the endpoint. It keeps nothing of h, body and r.
func (s *Server) Answer(ctx context.Context, h *Head, body []byte, r *Reply) {
	if !s.allowed(h) {
		r.refuse(nil, &Error{Code: CodeInvalidRequest, Message: "Host or Origin is not allowed here", status: 403}, rev20251125)
		return
	}
	switch h.Method {
	case "POST":
		s.post(ctx, h, body, r)
	case "GET", "DELETE":
		if !s.cfg.Sessions || revisionOf(h.version).modern() {
			s.notAllowed(r)
			return
		}
		if h.version != nil && revisionOf(h.version) == 0 {
			r.refuse(nil, unsupportedVersion(h.version), rev20251125)
			return
		}
		one, e := s.session(h)
		if e != nil {
			r.refuse(nil, e, rev20251125)
			return
		}
		defer one.done()
		if h.Method == "DELETE" {
			s.sessions.finish(one)
			r.Status = 204
			return
		}
		s.wait(ctx, h, one, r)
	default:
		s.notAllowed(r)
	}
}

func (s *Server) notAllowed(r *Reply) {
	allow := "POST"
	if s.cfg.Sessions {
		allow = "POST, GET, DELETE"
	}
	r.Header = append(r.Header, Line{"Allow", allow})
	r.refuse(nil, &Error{Code: CodeInvalidRequest, Message: "Want " + allow, status: 405}, rev20251125)
}

// session finds the session that a request belongs to.
func (s *Server) session(h *Head) (*session, *Error) {
	if h.session == nil {
		return nil, invalidRequest("no Mcp-Session-Id; begin with initialize")
	}
	one := s.sessions.lookup(h.session)
	if one == nil {
		return nil, &Error{Code: CodeInvalidRequest, Message: "There is no such session; begin with initialize", status: 404}
	}
	return one, nil
}

// post answers a message.
func (s *Server) post(ctx context.Context, h *Head, body []byte, r *Reply) {
	x := &r.x
	x.s, x.head, x.rev, x.sess, x.out = s, h, rev20250326, nil, nil
	if rev := revisionOf(h.version); rev != 0 {
		x.rev = rev
	}
	if !isJSON(h.contentType) {
		e := invalidRequest("want Content-Type application/json")
		e.status = 415
		r.refuse(nil, e, x.rev)
		return
	}
	if !takes(h.accept, "application", "json") && !takes(h.accept, "text", "event-stream") {
		e := invalidRequest("Accept takes neither application/json nor text/event-stream")
		e.status = 406
		r.refuse(nil, e, x.rev)
		return
	}
	if first := bytes.TrimLeft(body, " \t\r\n"); len(first) > 0 && first[0] == '[' {
		s.batch(ctx, x, body, r)
		return
	}
	wrong := x.m.decode(body)
	if e := s.place(x, wrong); e != nil {
		r.refuse(x.m.id, e, x.rev)
		return
	}
	if x.sess != nil {
		defer x.sess.done()
	}
	s.one(ctx, x, r)
}

// place finds out which revision a message is of and which session it belongs to, and holds it against its headers. wrong
// is what is wrong with the message itself: what the headers say comes after it, but for a request of a revision that we
// don't speak, whose form we can't judge.
func (s *Server) place(x *exchange, wrong *Error) *Error {
	h, meta := x.head, &x.m.params.meta
	if h.version != nil && revisionOf(h.version) == 0 {
		if meta.version != nil && !bytes.Equal(meta.version, h.version) {
			return x.head.agree(&x.m)
		}
		return unsupportedVersion(h.version)
	}
	if wrong != nil {
		return wrong
	}
	if !x.rev.modern() && meta.version == nil {
		return s.legacy(x)
	}
	if x.m.notification() { // this revision has none over HTTP, and no rules for its headers
		return nil
	}
	if x.m.method == nil {
		return invalidRequest("this revision has no requests of the server that could be answered")
	}
	if e := h.agree(&x.m); e != nil {
		return e
	}
	return x.modernMeta()
}

// modernMeta wants what a request of 2026-07-28 must carry.
func (x *exchange) modernMeta() *Error {
	meta := &x.m.params.meta
	switch {
	case meta.version == nil:
		return invalidParams("_meta has no " + metaVersion)
	case meta.capabilities == nil:
		return invalidParams("_meta has no " + metaCapabilities)
	case !revisionOf(meta.version).modern():
		return unsupportedVersion(meta.version)
	case meta.level != nil && levelOf(meta.level) < 0:
		return invalidParams("no log level " + clip(meta.level))
	}
	x.rev = revisionOf(meta.version)
	return nil
}

// legacy places a message of an earlier revision.
func (s *Server) legacy(x *exchange) *Error {
	if string(x.m.method) == "initialize" && x.m.request() {
		if x.m.params.version == nil {
			return refusedParams("initialize wants a protocolVersion")
		}
		x.rev = negotiate(x.m.params.version)
		return nil
	}
	if !s.cfg.Sessions {
		return nil
	}
	one, e := s.session(x.head)
	if e != nil {
		return e
	}
	x.sess, x.rev = one, one.rev
	return nil
}

// one answers a message that has its place.
func (s *Server) one(ctx context.Context, x *exchange, r *Reply) {
	switch {
	case x.m.method == nil:
		if x.sess != nil {
			x.sess.answered(&x.m)
		}
		r.Status = 202
		return
	case x.m.notification():
		s.notified(x)
		r.Status = 202
		return
	case x.rev.modern() && string(x.m.method) == "subscriptions/listen":
		s.listens(ctx, x, r)
		return
	case string(x.m.method) == "initialize" && !x.rev.modern() && s.cfg.Sessions:
		one, e := s.sessions.begin(x.rev, x.m.params.capabilities)
		if e != nil {
			r.refuse(x.m.id, e, x.rev)
			return
		}
		x.sess = one
		r.Header = append(r.Header, Line{"Mcp-Session-Id", one.id})
	}
	if s.waits(x) && r.Connection != nil {
		s.slow(ctx, x, r)
		return
	}
	body, e := s.dispatch(ctx, x, s.openBody(x, r))
	if e != nil {
		s.fail(x, r, e)
		return
	}
	s.closeBody(x, r, body)
}

// asEvents reports whether a reply is to be a stream of events even if it has only one.
func (s *Server) asEvents(x *exchange) bool {
	return (s.cfg.Events || !takes(x.head.accept, "application", "json")) && takes(x.head.accept, "text", "event-stream")
}

// openBody begins a whole reply. One that is a stream of one event is known in full, so it needs no chunks.
func (s *Server) openBody(x *exchange, r *Reply) []byte {
	if s.asEvents(x) {
		return append(r.Body, eventLead...)
	}
	return r.Body
}

func (s *Server) closeBody(x *exchange, r *Reply, body []byte) {
	r.Body, r.ContentType = body, "application/json"
	if s.asEvents(x) {
		r.Body, r.ContentType, r.Header = append(body, eventEnd...), "text/event-stream", eventHeader(r.Header)
	}
}

// fail answers a request with an error.
func (s *Server) fail(x *exchange, r *Reply, e *Error) {
	if e.Code == CodeMethodNotFound && x.rev.modern() {
		e.status = 404
	}
	r.refuse(x.m.id, e, x.rev)
}

// waits reports whether answering a request may take a while.
func (s *Server) waits(x *exchange) bool {
	c := s.catalog.Load()
	switch string(x.m.method) {
	case "tools/call":
		t := c.tools.byKey[string(x.m.params.name)]
		return t != nil && t.Call != nil
	case "resources/read", "prompts/get", "completion/complete":
		return true
	}
	return false
}

// notified takes a notification.
func (s *Server) notified(x *exchange) {
	if string(x.m.method) == "notifications/cancelled" && x.sess != nil && x.m.params.requestID != nil {
		x.sess.cancel(x.m.params.requestID)
	}
}
