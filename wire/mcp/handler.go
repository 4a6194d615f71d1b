package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// A Handler serves a Server over net/http, at every path it is mounted on.
type Handler struct {
	Server       *Server
	MaxBody      int64         // bytes of a request's body; 1 MiB when 0
	WriteTimeout time.Duration // of each write on a stream, instead of the HTTP server's for the whole reply; 30 s when 0
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var head Head
	reply := Reply{Connection: &netConn{w: w, req: req, timeout: h.WriteTimeout}}
	head.Reset(req.Method)
	head.Add([]byte("host"), []byte(req.Host))
	for name, values := range req.Header {
		for _, v := range values {
			head.Add([]byte(name), []byte(v))
		}
	}
	most := h.MaxBody
	if most <= 0 {
		most = 1 << 20
	}
	body, err := readBody(w, req, most)
	if err != nil {
		status, why := http.StatusBadRequest, "the body could not be read"
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			status, why = http.StatusRequestEntityTooLarge, "a body of more than "+strconv.FormatInt(most, 10)+" bytes"
		}
		reply.Unreadable(status, why)
	} else {
		h.Server.Answer(req.Context(), &head, body, &reply)
	}
	if reply.Streamed {
		return
	}
	to := w.Header()
	for _, l := range reply.Header {
		to.Set(l.Name, l.Value)
	}
	if reply.ContentType != "" {
		to.Set("Content-Type", reply.ContentType)
	}
	if reply.Status != http.StatusNoContent {
		to.Set("Content-Length", strconv.Itoa(len(reply.Body)))
	}
	if reply.Status != 0 {
		w.WriteHeader(reply.Status)
	}
	w.Write(reply.Body) // an error means that the client has gone
}

// readBody reads a body whole, with one allocation where its length is known.
func readBody(w http.ResponseWriter, req *http.Request, most int64) ([]byte, error) {
	if req.ContentLength > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	r := http.MaxBytesReader(w, req.Body, most)
	if req.ContentLength >= 0 {
		body := make([]byte, req.ContentLength)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	return io.ReadAll(r)
}

// netConn is a connection of net/http.
type netConn struct {
	w       http.ResponseWriter
	req     *http.Request
	timeout time.Duration
	control *http.ResponseController
}

// Watch returns ctx: it is the request's, which ends when the client goes away.
func (c *netConn) Watch(ctx context.Context) context.Context { return ctx }

// Stream begins a stream of events.
func (c *netConn) Stream(header []Line) (io.Writer, error) {
	for _, l := range header {
		c.w.Header().Set(l.Name, l.Value)
	}
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.control = http.NewResponseController(c.w)
	if c.timeout <= 0 {
		c.timeout = 30 * time.Second
	}
	// The read deadline was for the request, which has been read. Where there is no such control, the server's stay.
	c.control.SetReadDeadline(time.Time{})
	c.w.WriteHeader(http.StatusOK)
	return c, c.control.Flush()
}

// Write sends p at once.
func (c *netConn) Write(p []byte) (int, error) {
	c.control.SetWriteDeadline(time.Now().Add(c.timeout))
	n, err := c.w.Write(p)
	if err != nil {
		return n, err
	}
	return n, c.control.Flush()
}
