package http1

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Watch returns a context that ends with ctx, and when the client ends the connection before the reply is done. A handler
// that may wait calls it; it costs a goroutine until the handler returns. Once the client has sent the beginning of its
// next request its end can't be seen any more.
func (r *Reply) Watch(ctx context.Context) context.Context {
	c := r.conn
	if c == nil || c.watch != nil || c.in.waiting() {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{cancel: cancel, over: make(chan struct{})}
	c.watch = w
	c.mu.Lock()
	c.idle = false // a drain must wait for the reply and leave the read deadline alone
	c.readUntil = time.Time{}
	c.nc.SetReadDeadline(time.Time{})
	c.mu.Unlock()
	go func() {
		defer close(w.over)
		n, err := c.nc.Read(w.first[:])
		w.read = n
		if n == 0 && err != nil {
			cancel()
		}
	}()
	return ctx
}

// A watch reads from a connection while its request is being answered, to see its end.
type watch struct {
	cancel context.CancelFunc
	over   chan struct{} // closed when the fields below are set
	first  [1]byte       // of the next request
	read   int
}

// unwatch ends the watch, and gives the reader what it read.
func (c *conn) unwatch() {
	w := c.watch
	if w == nil {
		return
	}
	c.watch = nil
	c.nc.SetReadDeadline(time.Unix(1, 0))
	<-w.over
	w.cancel()
	c.nc.SetReadDeadline(time.Time{})
	c.in.keep(w.first[:w.read])
}

// Stream begins a reply whose length is not known, with the status, content type and header lines set so far. What is
// written goes out at once, the head with the first of it. The reply ends when the handler returns; Body is not sent.
func (r *Reply) Stream() (io.Writer, error) {
	switch {
	case r.conn == nil:
		return nil, errors.New("stream: a reply without a connection")
	case r.stream != nil:
		return nil, errors.New("stream: begun twice")
	}
	r.stream = &stream{c: r.conn, head: true, chunked: r.conn.req.minor > 0}
	r.Close = r.Close || !r.stream.chunked // HTTP/1.0 knows the end of such a body by the connection's
	return r.stream, nil
}

// A stream writes a body in chunks (RFC 9112 §7.1).
type stream struct {
	c       *conn
	head    bool // has yet to be sent
	chunked bool
	failed  error
}

// Write sends p at once.
func (s *stream) Write(p []byte) (int, error) {
	if s.failed != nil || len(p) == 0 {
		return 0, s.failed
	}
	if err := s.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// send sends the head, if it has not been, and p as a chunk; the last one is empty.
func (s *stream) send(p []byte) error {
	r, now := &s.c.out, time.Now()
	b := r.wire[:0]
	if s.head {
		s.head = false
		b = r.appendStreamHead(b, now, s.chunked)
	}
	if s.chunked {
		b = append(strconv.AppendInt(b, int64(len(p)), 16), "\r\n"...)
		b = append(append(b, p...), "\r\n"...)
	} else {
		b = append(b, p...)
	}
	r.wire = b
	if s.failed = s.c.writeBy(now); s.failed == nil {
		_, s.failed = s.c.nc.Write(b)
	}
	return s.failed
}

func (r *Reply) appendStreamHead(b []byte, now time.Time, chunked bool) []byte {
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	b = append(strconv.AppendInt(append(b, "HTTP/1.1 "...), int64(status), 10), ' ')
	b = append(append(b, http.StatusText(status)...), "\r\nDate: "...)
	b = r.appendDate(b, now)
	if r.ContentType != "" {
		b = append(append(b, "\r\nContent-Type: "...), r.ContentType...)
	}
	if chunked {
		b = append(b, "\r\nTransfer-Encoding: chunked"...)
	}
	if r.Close || r.conn.req.close {
		b = append(b, "\r\nConnection: close"...)
	}
	b = append(append(b, "\r\n"...), r.Header...)
	return append(b, "\r\n"...)
}
