package gateway

import (
	"bytes"
	"context"
	"log"
	"net"
	"net/http"
	"strings"
	"time"
)

// writeTimeout bounds each write to a client that does not read.
const writeTimeout = 30 * time.Second

// peerKey finds a connection's peer in its requests' contexts.
type peerKey struct{}

// newHTTP makes the net/http server for HTTP/2, WebSocket, and HTTP/1.1 where our loop is not wanted.
func (g *Gateway) newHTTP() *http.Server {
	return &http.Server{
		Handler: http.HandlerFunc(g.serveHTTP), MaxHeaderBytes: g.cfg.MaxHead,
		ReadHeaderTimeout: g.cfg.HeadTimeout, ReadTimeout: g.cfg.ReadTimeout, IdleTimeout: g.cfg.IdleTimeout,
		ErrorLog: log.New(bytes.NewBuffer(nil), "", 0), // what clients do wrong is no news
		ConnContext: func(ctx context.Context, nc net.Conn) context.Context {
			return context.WithValue(ctx, peerKey{}, g.peerOf(nc))
		},
	}
}

// serveHTTP answers what net/http read.
func (g *Gateway) serveHTTP(w http.ResponseWriter, r *http.Request) {
	rs := new(response)
	rq := &request{
		method: []byte(r.Method), path: []byte(r.URL.EscapedPath()), header: r.Header,
		peer: r.Context().Value(peerKey{}).(*peer),
	}
	if r.Method == http.MethodHead {
		rq.method = []byte(http.MethodGet)
	}
	upgrade := strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
	var st *streaming
	body, err := readAll(http.MaxBytesReader(w, r.Body, int64(g.cfg.MaxBody)+1), g.cfg.MaxBody)
	if err != nil {
		rs.identify(rq.header.Get("x-request-id"))
		g.explain(err, rs)
	} else {
		rq.body = body
		st = g.answer(r.Context(), rq, rs)
	}
	h := w.Header()
	for line := range bytes.SplitSeq(rs.header, []byte("\r\n")) {
		if name, value, ok := strings.Cut(string(line), ": "); ok {
			h.Set(name, value)
		}
	}
	switch {
	case st != nil && upgrade:
		g.socket(w, r, st)
	case st != nil:
		g.serveEvents(w, r, st)
	default:
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		h.Set("Content-Type", rs.contentType)
		w.WriteHeader(rs.status)
		w.Write(rs.body)
	}
}

func (g *Gateway) serveEvents(w http.ResponseWriter, r *http.Request, st *streaming) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	g.events(r.Context(), st, flushing{w, http.NewResponseController(w)})
}

// A flushing writer sends each part at once.
type flushing struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// Write writes and flushes.
func (f flushing) Write(p []byte) (int, error) {
	f.c.SetWriteDeadline(time.Now().Add(writeTimeout))
	n, err := f.w.Write(p)
	if err == nil {
		err = f.c.Flush()
	}
	return n, err
}
