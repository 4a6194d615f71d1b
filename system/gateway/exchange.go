package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"toll/wire/envelope"
	"toll/wire/http1"
	"toll/wire/plain"
)

// A request is what the gateway looks at, whichever server read it.
type request struct {
	method, path []byte
	header       interface{ Get(name string) string }
	body         []byte
	peer         *peer
	reply        *http1.Reply // of our own loop; nil for net/http
}

// A response is what an exchange came to.
type response struct {
	status      int
	contentType string
	header      []byte // lines, each ended by CRLF
	body        []byte // appended to
	gone        bool   // another goroutine makes it
}

func (r *response) line(name, value string) {
	r.header = append(append(append(append(r.header, name...), ": "...), value...), "\r\n"...)
}

// contentJSON is the media type of all that the gateway says.
const contentJSON = "application/json"

func (r *response) begin() { r.status, r.contentType = http.StatusOK, contentJSON }

// answer answers a request, except that of a stream: then it returns the stream to be run.
func (g *Gateway) answer(ctx context.Context, rq *request, rs *response) *streaming {
	rs.begin()
	rs.identify(rq.header.Get("x-request-id"))
	st, err := g.dispatch(ctx, rq, rs)
	if err != nil {
		g.explain(err, rs)
	}
	return st
}

// explain turns a problem into the response.
func (g *Gateway) explain(err error, rs *response) {
	p := problemOf(err)
	rs.status, rs.contentType = p.status, contentJSON
	rs.body = append(rs.body[:0], p.body()...)
	if p.retry {
		rs.line("Retry-After", retryAfter)
	}
	if len(p.allow) > 0 {
		rs.line("Allow", p.methods())
	}
	if p.status == http.StatusUnauthorized {
		rs.line("WWW-Authenticate", `Mutual`)
	}
}

func (g *Gateway) dispatch(ctx context.Context, rq *request, rs *response) (*streaming, error) {
	if string(rq.method) == http.MethodGet {
		if own, ok := g.own[string(rq.path)]; ok {
			body, err := own()
			rs.body = append(rs.body, body...)
			return nil, err
		}
	}
	if err := g.admit(rq.peer, rq.header.Get("client-cert")); err != nil {
		return nil, err
	}
	if !g.clients.allow(rq.peer) {
		return nil, &problem{status: http.StatusTooManyRequests, text: "more requests than this client may make", retry: true}
	}
	r, values, allow := g.table.find(rq.method, rq.path)
	switch {
	case r != nil:
	case len(allow) > 0:
		return nil, &problem{status: http.StatusMethodNotAllowed, text: "this path has other methods", allow: allow}
	default:
		return nil, &problem{status: http.StatusNotFound, text: "nothing at this path"}
	}
	m, err := r.message(rq, rs, values)
	if err != nil {
		return nil, err
	}
	in, err := g.enter(r)
	if err != nil {
		return nil, err
	}
	if r.Mode == Stream {
		return &streaming{route: r, message: m, leave: in.leave}, nil
	}
	if r.Mode == Call && g.lender != nil && rq.reply != nil {
		return nil, in.lend(ctx, m, rq.reply, rs)
	}
	defer in.leave()
	limit := &limited{Context: ctx, at: time.Now().Add(r.Timeout)}
	defer limit.end()
	if r.Mode == Cast {
		rs.status = http.StatusAccepted
		rs.body = append(rs.body, `{"status":"accepted"}`...)
		return nil, g.cfg.Asker.Tell(limit, m)
	}
	v, err := g.cfg.Asker.Call(limit, m)
	if err != nil {
		return nil, err
	}
	return nil, write(v, rs)
}

// key tells one client from another: by the name in its certificate, else by its address.
func (p *peer) key() string {
	if len(p.names) > 0 {
		return p.names[0]
	}
	return p.addr.String()
}

// An entered request counts among those in flight until it leaves.
type entered struct {
	g    *Gateway
	r    *route
	came time.Duration // by the gateway's clock, of a route with a valve
}

// enter counts a request in, unless there are too many.
func (g *Gateway) enter(r *route) (in entered, err error) {
	if g.inFlight.Add(1) > int64(g.cfg.InFlight) {
		g.inFlight.Add(-1)
		return in, &problem{status: http.StatusServiceUnavailable, text: "the gateway has as many requests in flight as it may", retry: true}
	}
	if r.inFlight.Add(1) > int64(r.InFlight) {
		g.count(r, -1)
		return in, &problem{status: http.StatusServiceUnavailable, text: "this route has as many requests in flight as it may", retry: true}
	}
	in = entered{g: g, r: r}
	if r.valve == nil {
		return in, nil
	}
	in.came = time.Since(g.made)
	if !r.valve.enter(in.came) {
		g.count(r, -1)
		return in, &problem{status: http.StatusServiceUnavailable, text: "more requests wait for this route than it answers in time", retry: true}
	}
	return in, nil
}

// leave counts the request out.
func (in entered) leave() {
	if in.r.valve != nil {
		now := time.Since(in.g.made)
		in.r.valve.leave(now, now-in.came)
	}
	in.g.count(in.r, -1)
}

// count changes how many requests are in flight.
func (g *Gateway) count(r *route, by int64) {
	r.inFlight.Add(by)
	g.inFlight.Add(by)
}

// message makes the agent's message of a request: the body's object, over which the path's values go.
func (r *route) message(rq *request, rs *response, values []string) (*envelope.Message, error) {
	payload, err := object(rq.body)
	if err != nil {
		return nil, &problem{status: http.StatusBadRequest, text: err.Error()}
	}
	r.fill(payload, values)
	m := &envelope.Message{Type: r.Type, Recipient: r.agent(values), Payload: payload}
	if t := rq.header.Get("x-civitas-type"); t != "" {
		if envelope.Reserved(t) {
			return nil, &problem{status: http.StatusBadRequest, text: "X-Civitas-Type: the runtime's own types are not to be sent from outside"}
		}
		m.Type = t
	}
	if t, ok := parseTrace(rq.header.Get("traceparent")); ok {
		m.TraceID, m.ParentSpanID, m.SpanID = t.id, t.parent, newSpan()
		rs.line("Traceparent", "00-"+t.id+"-"+m.SpanID+"-"+t.flags)
	}
	return m, nil
}

// object decodes a body: one JSON object, or nothing.
func object(body []byte) (map[string]any, error) {
	if payload, ok := plain.Object(body); ok {
		return payload, nil
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return make(map[string]any), nil
	}
	var payload map[string]any
	if err := json.Unmarshal(body, &payload); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, errors.New("the body is no JSON object")
		}
		return nil, errors.New("the body is no JSON: " + err.Error())
	}
	if payload == nil {
		return nil, errors.New("the body is no JSON object")
	}
	return payload, nil
}

// write makes the response of an agent's answer. An object with the key "error" is a refusal.
func write(v any, rs *response) error {
	if m, ok := v.(map[string]any); ok {
		if _, refused := m["error"]; refused {
			rs.status = http.StatusBadRequest
		}
	}
	b, err := plain.Append(rs.body, v)
	if err != nil {
		return &problem{status: http.StatusInternalServerError, text: "the agent's answer is no JSON: " + err.Error()}
	}
	rs.body = b
	return nil
}

// readAll reads a body of at most limit bytes.
func readAll(r io.Reader, limit int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	switch {
	case len(b) > limit:
		return nil, &problem{status: http.StatusRequestEntityTooLarge, text: "the body is larger than this gateway takes"}
	case err != nil:
		return nil, &problem{status: http.StatusBadRequest, text: "reading the body: " + err.Error()}
	}
	return b, nil
}

// until bounds a stream: by its whole time, and by the time between two parts, which idle starts anew.
func until(ctx context.Context, c Config) (_ context.Context, idle func(), stop func()) {
	ctx, cancel := context.WithTimeout(ctx, c.StreamMost)
	ctx, silent := context.WithCancelCause(ctx)
	t := time.AfterFunc(c.StreamIdle, func() { silent(envelope.Deadline) })
	return ctx, func() { t.Reset(c.StreamIdle) }, func() {
		t.Stop()
		silent(nil)
		cancel()
	}
}
