package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
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
	s := scanner{b: body}
	s.space()
	for more := s.open(']'); more; {
		s.space()
		part, err := s.value(1)
		if err != nil {
			return nil, parseError(err)
		}
		if parts = append(parts, part); len(parts) > most {
			return nil, invalidRequest("a batch of more than " + strconv.Itoa(most) + " messages")
		}
		if more, err = s.more(']'); err != nil {
			return nil, parseError(err)
		}
	}
	if err := s.end(); err != nil {
		return nil, parseError(err)
	}
	if len(parts) == 0 {
		return nil, invalidRequest("an empty batch")
	}
	return parts, nil
}
