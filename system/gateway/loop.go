package gateway

import (
	"bytes"
	"context"
	"net"
	"net/http"

	"toll/wire/http1"
)

// loop answers what our own HTTP/1.1 loop read.
func (g *Gateway) loop(ctx context.Context, req *http1.Request, reply *http1.Reply) {
	p := req.Peer.(*peer)
	if bytes.EqualFold(req.Header("upgrade"), []byte("websocket")) {
		if reply.HandOver(func(nc net.Conn) { g.given.Give(&known{nc, p}) }) == nil {
			return
		}
	}
	rq := request{method: req.Method, path: req.Path(), body: req.Body, peer: p, reply: reply, header: (*fields)(req)}
	if string(rq.method) == http.MethodHead {
		rq.method = []byte(http.MethodGet)
	}
	rs := response{header: reply.Header, body: reply.Body}
	st := g.answer(ctx, &rq, &rs)
	if rs.gone {
		return
	}
	rs.send(g, reply)
	if st == nil {
		return
	}
	reply.ContentType = "text/event-stream"
	reply.Header = append(reply.Header, "Cache-Control: no-store\r\n"...)
	w, err := reply.Stream()
	if err != nil {
		st.leave()
		return
	}
	g.events(reply.Watch(ctx), st, w)
}

// fields are the header lines of a request that our loop read.
type fields http1.Request

// Get returns the value of the first one with a name, empty without one.
func (f *fields) Get(name string) string { return string((*http1.Request)(f).Header(name)) }

// send makes it the reply.
func (r *response) send(g *Gateway, reply *http1.Reply) {
	reply.Status, reply.ContentType, reply.Header, reply.Body = r.status, r.contentType, r.header, r.body
	if g.draining() {
		reply.Close = true
	}
}

// unreadable says in JSON why a request could not be read.
func (g *Gateway) unreadable(reply *http1.Reply, status int, text string) {
	reply.ContentType = contentJSON
	reply.Body = append(reply.Body, (&problem{text: text}).body()...)
}
