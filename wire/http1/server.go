package http1

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A Handler answers one request. It may keep nothing of req after it returned. A panic is answered with 500 and ends the
// connection.
type Handler func(ctx context.Context, req *Request, reply *Reply)

// Config bounds a server; each zero value means its default.
type Config struct {
	MaxHead       int           // bytes of a request's head; 64 KiB
	MaxBody       int           // bytes of a request's body; 1 MiB
	HeadTimeout   time.Duration // from a request's first byte to the end of its head; 10 s
	ReadTimeout   time.Duration // from a request's first byte to its last; 30 s
	WriteTimeout, // of one reply; 30 s
	IdleTimeout time.Duration // between requests; 2 min

	// Refused fills in the reply to a request that can't be read; nil answers with text as plain text.
	Refused func(reply *Reply, status int, text string)
}

func (c Config) withDefaults() Config {
	or := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	or(&c.HeadTimeout, 10*time.Second)
	or(&c.ReadTimeout, 30*time.Second)
	or(&c.WriteTimeout, 30*time.Second)
	or(&c.IdleTimeout, 2*time.Minute)
	if c.MaxHead == 0 {
		c.MaxHead = 64 << 10
	}
	if c.MaxBody == 0 {
		c.MaxBody = 1 << 20
	}
	return c
}

// A Server answers requests on listeners until it is shut down.
type Server struct {
	cfg     Config
	handler Handler
	ctx     context.Context // ends when connections are broken off
	cancel  context.CancelFunc

	mu        sync.Mutex
	draining  bool
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	wg        sync.WaitGroup
}

// New makes a server; it listens nowhere yet.
func New(cfg Config, h Handler) *Server {
	s := &Server{cfg: cfg.withDefaults(), handler: h, listeners: make(map[net.Listener]struct{}), conns: make(map[*conn]struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Serve accepts connections until l fails or the server is shut down, then returns http.ErrServerClosed or l's error.
// Connections it accepted live on until they end or Shutdown ends them.
func (s *Server) Serve(l net.Listener) error {
	if !s.add(l) {
		l.Close()
		return http.ErrServerClosed
	}
	defer s.remove(l)
	for {
		nc, err := l.Accept()
		if err != nil {
			return s.acceptError(err)
		}
		if !s.start(nc, nil) {
			return http.ErrServerClosed
		}
	}
}

// ServeConn answers requests on a connection that somebody else accepted, and returns at once. Every request of it carries
// peer. After Shutdown the connection is closed instead.
func (s *Server) ServeConn(nc net.Conn, peer any) { s.start(nc, peer) }

func (s *Server) start(nc net.Conn, peer any) bool {
	c := &conn{s: s, nc: nc}
	c.req.Peer = peer
	if !s.track(c) {
		nc.Close()
		return false
	}
	go c.serve()
	return true
}

func (s *Server) acceptError(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return http.ErrServerClosed
	}
	return err
}

func (s *Server) add(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[l] = struct{}{}
	return !s.draining
}

func (s *Server) remove(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

func (s *Server) track(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	return true
}

func (s *Server) has(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.conns[c]
	return ok
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.wg.Done()
}

// Shutdown stops accepting, ends idle connections, lets requests in flight be answered, and returns when all are gone.
// When ctx ends first, it breaks off what is left, ends the handlers' context and returns ctx's error, without waiting for a
// handler that does not look at its context.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.drain()
	}
	s.mu.Unlock()
	gone := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		s.cancel()
		return nil
	case <-ctx.Done():
	}
	s.cancel()
	s.mu.Lock()
	for c := range s.conns {
		c.nc.Close()
		c.alarm.ring()
	}
	s.mu.Unlock()
	return ctx.Err()
}

// A conn is one connection. Its goroutine owns all but what mu guards.
type conn struct {
	s   *Server
	nc  net.Conn
	in  reader
	req Request
	out Reply

	watch *watch // of the request being answered
	alarm alarm

	abandoned bool // another goroutine goes on with the connection, or will: this one leaves it alone

	mu        sync.Mutex
	idle      bool          // guarded by mu: no request is known to have begun
	draining  bool          // guarded by mu: the reply in progress is the last
	readUntil time.Time     // guarded by mu: the read deadline in force
	started   time.Time     // guarded by mu: of a request that arrives in pieces
	granted   time.Duration // guarded by mu: what it has been given since

	writeUntil time.Time // the write deadline in force
}

// drain ends the connection now if it is idle, else after its reply.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	if c.idle {
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// rest waits for a request: the idle timeout is in force until its first byte. It returns false when the connection ends.
func (c *conn) rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining && !c.in.waiting() {
		return false
	}
	c.idle = true
	c.readBy(c.s.cfg.IdleTimeout)
	return true
}

// begin is called when a head did not arrive in one piece, body when a body did not arrive with its head.
func (c *conn) begin() { c.slow(min(c.s.cfg.HeadTimeout, c.s.cfg.ReadTimeout)) }
func (c *conn) body()  { c.slow(c.s.cfg.ReadTimeout) }

// slow gives the request in progress its deadline. More pieces of the same request do not move it.
func (c *conn) slow(limit time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle {
		c.idle, c.started, c.granted = false, time.Now(), 0
	}
	if limit > c.granted {
		c.granted, c.readUntil = limit, c.started.Add(limit)
		c.nc.SetReadDeadline(c.readUntil)
	}
}

// readBy sets the read deadline to d from now, give or take an eighth: moving a deadline a little costs as much as
// setting one, and in the steady state that would be for every request.
func (c *conn) readBy(d time.Duration) {
	if until := time.Now().Add(d); until.Sub(c.readUntil).Abs() > d/8 {
		c.readUntil = until
		c.nc.SetReadDeadline(until)
	}
}

func (c *conn) last() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

func (c *conn) serve() {
	c.in = c.reader()
	c.requests()
}

func (c *conn) reader() reader {
	return reader{
		src: c.nc, maxHead: c.s.cfg.MaxHead, maxBody: c.s.cfg.MaxBody, proceed: c.proceed, begun: c.begin, bodied: c.body,
	}
}

// requests answers one after the other until the connection ends.
func (c *conn) requests() {
	defer c.end()
	for c.rest() {
		if err := c.in.next(&c.req); err != nil {
			c.refuse(err)
			return
		}
		if !c.answer() {
			return
		}
	}
}

// end closes the connection, or gives it to whom it was handed over with the request still to be read.
func (c *conn) end() {
	c.alarm.stop()
	if c.abandoned {
		return
	}
	defer c.s.forget(c)
	to := c.out.handOver
	if to == nil {
		c.nc.Close()
		return
	}
	c.nc.SetDeadline(time.Time{})
	to(&replayed{Conn: c.nc, first: c.in.unread()})
}

// proceed answers Expect: 100-continue.
func (c *conn) proceed() error {
	if err := c.writeBy(time.Now()); err != nil {
		return err
	}
	_, err := io.WriteString(c.nc, "HTTP/1.1 100 Continue\r\n\r\n")
	return err
}

// answer calls the handler and writes its reply. It returns false when the connection ends.
func (c *conn) answer() (more bool) {
	c.out.reset()
	c.out.conn = c
	c.guard(func() { c.s.handler(c.s.ctx, &c.req, &c.out) })
	if c.abandoned {
		return false
	}
	if c.out.alarmed {
		c.alarm.clear()
	}
	c.unwatch()
	if c.out.handOver != nil {
		return false
	}
	return c.send()
}

// send writes the reply. It returns false when the connection ends.
func (c *conn) send() (more bool) {
	closing := c.req.close || c.out.Close || c.last()
	if c.out.stream != nil {
		return c.out.stream.send(nil) == nil && !closing
	}
	return c.write(closing) == nil && !closing
}

// guard calls what makes the reply. A panic makes it 500.
func (c *conn) guard(fill func()) {
	defer func() {
		if r := recover(); r != nil {
			c.abandoned = c.abandoned && !c.s.has(c)
			if s := c.out.stream; s != nil && !s.head { // an end without the last chunk says that it is not whole
				c.out.Close, s.chunked = true, false
				return
			}
			c.out.reset()
			c.out.Status, c.out.Close = http.StatusInternalServerError, true
			c.out.Body = append(c.out.Body, "internal error\n"...)
		}
	}()
	fill()
}

func (c *conn) write(closing bool) error {
	now := time.Now()
	b := c.out.append(now, closing, string(c.req.Method) == "HEAD", c.req.minor)
	if err := c.writeBy(now); err != nil {
		return err
	}
	_, err := c.nc.Write(b)
	return err
}

// writeBy gives a write its deadline, give or take an eighth.
func (c *conn) writeBy(now time.Time) error {
	d := c.s.cfg.WriteTimeout
	if until := now.Add(d); until.Sub(c.writeUntil) > d/8 {
		c.writeUntil = until
		return c.nc.SetWriteDeadline(until)
	}
	return nil
}

// refuse answers a request that can't be read, if there is something to answer, and ends the connection. What the client
// still sends, such as a body that is a little too large, is read for a moment: closing at once would reset the connection and take
// the answer with it.
func (c *conn) refuse(err error) {
	var r *refusal
	var ne net.Error
	switch {
	case errors.Is(err, errIdle):
		return
	case errors.As(err, &r):
	case errors.As(err, &ne) && ne.Timeout():
		r = &refusal{http.StatusRequestTimeout, "the request did not arrive in time"}
	default:
		return
	}
	c.out.reset()
	c.out.Status = r.status
	if c.s.cfg.Refused != nil {
		c.s.cfg.Refused(&c.out, r.status, r.text)
	} else {
		c.out.Body = append(append(c.out.Body, r.text...), '\n')
		c.out.ContentType = "text/plain; charset=utf-8"
	}
	if c.write(true) != nil {
		return
	}
	if w, ok := c.nc.(interface{ CloseWrite() error }); ok && w.CloseWrite() == nil {
		c.nc.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		io.CopyN(io.Discard, c.nc, int64(c.s.cfg.MaxBody)+256<<10)
	}
}

// A Reply is what a handler answers. The zero value is 200 without a body.
type Reply struct {
	Status      int    // 200 when 0
	ContentType string // no header when empty
	Header      []byte // further header lines, each ended by CRLF
	Body        []byte // append to it: its memory is kept from reply to reply
	Close       bool   // end the connection after this reply

	conn    *conn   // for Watch and Stream
	stream  *stream // begun by Stream
	alarmed bool    // Alarm was called

	handOver func(net.Conn)

	wire   []byte
	second int64
	date   []byte
}

func (r *Reply) reset() {
	r.Status, r.ContentType, r.Header, r.Body, r.Close = 0, "", r.Header[:0], r.Body[:0], false
	r.stream, r.handOver, r.alarmed = nil, nil, false
}

// append builds the whole reply in memory that is kept: one write sends it.
func (r *Reply) append(now time.Time, closing, head bool, minor int) []byte {
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	b := append(r.wire[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	b = append(b, "\r\nDate: "...)
	b = r.appendDate(b, now)
	if r.ContentType != "" {
		b = append(b, "\r\nContent-Type: "...)
		b = append(b, r.ContentType...)
	}
	if status != http.StatusNoContent && status != http.StatusNotModified {
		b = append(b, "\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(r.Body)), 10)
	}
	switch {
	case closing:
		b = append(b, "\r\nConnection: close"...)
	case minor == 0:
		b = append(b, "\r\nConnection: keep-alive"...)
	}
	b = append(b, "\r\n"...)
	b = append(b, r.Header...)
	b = append(b, "\r\n"...)
	if !head && status != http.StatusNoContent && status != http.StatusNotModified {
		b = append(b, r.Body...)
	}
	r.wire = b
	return b
}

// appendDate formats the date once a second.
func (r *Reply) appendDate(b []byte, now time.Time) []byte {
	if s := now.Unix(); s != r.second || r.date == nil {
		r.second = s
		r.date = now.UTC().AppendFormat(r.date[:0], http.TimeFormat)
	}
	return append(b, r.date...)
}
