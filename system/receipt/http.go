package receipt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"toll/wire/http1"
	"toll/wire/mux"
)

// A Server answers over HTTP, and over the frame protocol on a unix socket:
//
//	POST /v1/receipts          201 and the receipt; with Prefer: respond-async 202, Location and Retry-After
//	POST /v1/receipts:batch    a line of JSON in, a line out, in order: a receipt or {"error":…}
//	GET  /v1/receipts/ID?tenant=T   200, 202 while it is not signed yet, 404
//	GET  /v1/keys              the pinned set (JSON Web Key Set)
//	GET  /checkpoint, /tile/…  C2SP tlog-tiles, as published
//	GET  /healthz, /metrics
type Server struct {
	gw     *Gateway
	tiles  string // folder of the published tiles; empty has none
	canned []byte // what a null server answers to everything; nil in a real one
	http   *http1.Server
	parser sync.Pool

	life context.Context
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool // guarded by mu, as the following
	open   map[net.Conn]struct{}
	on     net.Listener
	conns  sync.WaitGroup
}

// maxBulk bounds the body of a bulk request, bytes.
const maxBulk = 4 << 20

// requestTime bounds one request from arrival to reply.
const requestTime = 20 * time.Second

// NewServer makes a server of a gateway. tiles is the folder where its tiles are published, or empty.
func NewServer(gw *Gateway, tiles string) *Server {
	s := &Server{gw: gw, tiles: tiles, open: make(map[net.Conn]struct{})}
	s.parser.New = func() any { return new(parser) }
	s.life, s.stop = context.WithCancel(context.Background())
	s.http = http1.New(http1.Config{MaxBody: maxBulk, Refused: func(reply *http1.Reply, status int, text string) {
		code := Malformed
		if status == http.StatusRequestEntityTooLarge {
			code = TooLarge
		}
		reply.ContentType = "application/json"
		reply.Body = appendError(reply.Body, refuse(code, "%s", text))
	}}, s.answer)
	return s
}

// NewNull makes a server that answers every request with 201 and the same bytes: what remains is the cost of the protocol.
func NewNull(reply []byte) *Server {
	s := NewServer(nil, "")
	s.canned = reply
	return s
}

// ServeHTTP answers HTTP on a listener until Shutdown.
func (s *Server) ServeHTTP(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops both protocols; what is in hand is answered until ctx ends. The gateway is the caller's to close.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	if s.on != nil {
		s.on.Close()
	}
	for nc := range s.open {
		nc.SetReadDeadline(time.Unix(1, 0)) // mux lets what is being answered be answered
	}
	s.mu.Unlock()
	err := s.http.Shutdown(ctx)
	done := make(chan struct{})
	go func() { s.conns.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		s.stop()
		s.mu.Lock()
		for nc := range s.open {
			nc.Close()
		}
		s.mu.Unlock()
		<-done
		err = errors.Join(err, ctx.Err())
	}
	s.stop()
	return err
}

// answer is the HTTP handler.
func (s *Server) answer(ctx context.Context, req *http1.Request, reply *http1.Reply) {
	reply.ContentType = "application/json"
	if s.canned != nil {
		reply.Status, reply.Body = http.StatusCreated, append(reply.Body, s.canned...)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	path := string(req.Path())
	var err error
	switch id, one := strings.CutPrefix(path, "/v1/receipts/"); {
	case path == "/v1/receipts":
		err = s.post(ctx, req, reply)
	case path == "/v1/receipts:batch":
		err = s.bulk(ctx, req, reply)
	case one:
		err = s.get(ctx, id, req, reply)
	default:
		err = s.static(path, req, reply)
	}
	if err != nil {
		s.refuse(reply, err)
	}
}

// refuse answers with an error.
func (s *Server) refuse(reply *http1.Reply, err error) {
	var r *Refusal
	if !errors.As(err, &r) {
		r = refuse(Unavailable, "%v", err)
	}
	reply.Status = r.Status()
	if reply.Status == http.StatusTooManyRequests || reply.Status >= 500 {
		reply.Header = append(reply.Header, "Retry-After: 1\r\n"...)
	}
	reply.ContentType = "application/json"
	reply.Body = appendError(reply.Body[:0], r)
}

// appendError appends {"error":{"code":…}}.
func appendError(dst []byte, r *Refusal) []byte {
	e := struct {
		Code    string `json:"code"`
		Offset  *int   `json:"offset,omitempty"`
		Pointer string `json:"pointer,omitempty"`
		Text    string `json:"text"`
	}{Code: r.Code, Pointer: r.Pointer, Text: r.Text}
	if r.Offset >= 0 {
		e.Offset = &r.Offset
	}
	text, err := json.Marshal(map[string]any{"error": e})
	if err != nil {
		panic("an error that does not marshal: " + err.Error())
	}
	return append(dst, text...)
}

func method(req *http1.Request, want string) error {
	if string(req.Method) != want {
		return refuse(NotFound, "%s has no %s here; want %s", req.Path(), req.Method, want)
	}
	return nil
}

// mediaType checks the kind of a body.
func mediaType(req *http1.Request, want string) error {
	got, _, _ := strings.Cut(string(req.Header("content-type")), ";")
	if !strings.EqualFold(strings.TrimSpace(got), want) {
		return refuse(MediaType, "Content-Type is %q; want %s", got, want)
	}
	return nil
}

// post gives one arrival its receipt, or a promise of one.
func (s *Server) post(ctx context.Context, req *http1.Request, reply *http1.Reply) error {
	if err := errors.Join(method(req, "POST"), mediaType(req, "application/json")); err != nil {
		return err
	}
	a, err := s.parse(req.Body)
	if err != nil {
		return err
	}
	if bytes.Contains(req.Header("prefer"), []byte("respond-async")) {
		t, err := s.gw.Accept(ctx, a)
		if err != nil {
			return err
		}
		return accepted(t, &a, reply)
	}
	r, err := s.gw.Sign(ctx, a)
	if err != nil {
		return err
	}
	reply.Status = http.StatusCreated
	reply.Body = append(reply.Body, r...)
	return nil
}

func (s *Server) parse(body []byte) (Arrival, error) {
	p := s.parser.Get().(*parser)
	defer s.parser.Put(p)
	return p.parse(body)
}

// accepted says that a receipt will exist, and where.
func accepted(t Ticket, a *Arrival, reply *http1.Reply) error {
	at := "/v1/receipts/" + url.PathEscape(a.RequestID) + "?tenant=" + url.QueryEscape(a.Tenant)
	reply.Status = http.StatusAccepted
	reply.Header = append(append(append(reply.Header, "Location: "...), at...), "\r\nRetry-After: 1\r\nPreference-Applied: respond-async\r\n"...)
	reply.Body = fmt.Appendf(reply.Body, `{"location":%q,"status":"accepted"}`, at)
	return nil
}

// bulk gives every line of a request its receipt or its error.
func (s *Server) bulk(ctx context.Context, req *http1.Request, reply *http1.Reply) error {
	if err := errors.Join(method(req, "POST"), mediaType(req, "application/x-ndjson")); err != nil {
		return err
	}
	body := bytes.TrimSuffix(req.Body, []byte("\n"))
	n := bytes.Count(body, []byte("\n")) + 1
	if n > MaxBulk {
		return refuse(TooLarge, "%d lines; at most %d", n, MaxBulk)
	}
	all, at := make([]Arrival, 0, n), make([]int, 0, n)
	outs := make([]Outcome, n)
	i := 0
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		a, err := s.parse(line)
		if outs[i].Err = err; err == nil {
			all, at = append(all, a), append(at, i)
		}
		i++
	}
	for j, o := range s.gw.SignBatch(ctx, all) {
		outs[at[j]] = o
	}
	reply.ContentType = "application/x-ndjson"
	for _, o := range outs {
		if o.Err == nil {
			reply.Body = append(reply.Body, o.Receipt...)
		} else {
			var r *Refusal
			if !errors.As(o.Err, &r) {
				r = refuse(Unavailable, "%v", o.Err)
			}
			reply.Body = appendError(reply.Body, r)
		}
		reply.Body = append(reply.Body, '\n')
	}
	return nil
}

// get looks a receipt up. Whose it is must be said: another tenant's is not found.
func (s *Server) get(ctx context.Context, id string, req *http1.Request, reply *http1.Reply) error {
	if err := method(req, "GET"); err != nil {
		return err
	}
	_, query, _ := bytes.Cut(req.Target, []byte("?"))
	values, err := url.ParseQuery(string(query))
	if err != nil {
		return refuse(NotFound, "the query: %v", err)
	}
	if id, err = url.PathUnescape(id); err != nil {
		return refuse(NotFound, "the path: %v", err)
	}
	t, err := s.gw.Find(values.Get("tenant"), id)
	if err != nil {
		return err
	}
	if !t.Ready() {
		return accepted(t, &Arrival{RequestID: id, Tenant: values.Get("tenant")}, reply)
	}
	r, err := t.Wait(ctx)
	if err != nil {
		return err
	}
	reply.Body = append(reply.Body, r...)
	return nil
}

// static answers what is not about one receipt.
func (s *Server) static(path string, req *http1.Request, reply *http1.Reply) error {
	if err := method(req, "GET"); err != nil {
		return err
	}
	switch {
	case path == "/v1/keys":
		reply.ContentType = "application/jwk-set+json"
		reply.Body = append(reply.Body, s.gw.Pins().Encode()...)
	case path == "/checkpoint" && s.tiles == "":
		note, err := s.gw.Checkpoint()
		if err != nil {
			return err
		}
		reply.ContentType = "text/plain; charset=utf-8"
		reply.Body = append(reply.Body, note...)
	case path == "/checkpoint" || strings.HasPrefix(path, "/tile/"):
		return s.tile(path, reply)
	case path == "/healthz":
		if why := s.gw.Health(); why != nil {
			return why
		}
		reply.Body = append(reply.Body, `{"status":"ok"}`...)
	case path == "/metrics":
		reply.ContentType = "text/plain; version=0.0.4"
		reply.Body = s.gw.AppendMetrics(reply.Body)
	default:
		return refuse(NotFound, "no such path")
	}
	return nil
}

// tile serves a published file. The name is one that the publisher gives, so nothing else can be reached.
func (s *Server) tile(path string, reply *http1.Reply) error {
	if s.tiles == "" || path != "/checkpoint" && !isTilePath(path) {
		return refuse(NotFound, "no such tile")
	}
	text, err := os.ReadFile(filepath.Join(s.tiles, filepath.FromSlash(strings.TrimPrefix(path, "/"))))
	if err != nil {
		return refuse(NotFound, "this tile is not published")
	}
	reply.ContentType = "application/octet-stream"
	if path == "/checkpoint" {
		reply.ContentType = "text/plain; charset=utf-8"
	}
	reply.Body = append(reply.Body, text...)
	return nil
}

// ServeFrames answers the frame protocol on a listener until Shutdown.
func (s *Server) ServeFrames(l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return l.Close()
	}
	s.on = l
	s.mu.Unlock()
	for {
		nc, err := l.Accept()
		s.mu.Lock()
		closed := s.closed
		if err == nil && !closed {
			s.open[nc] = struct{}{}
			s.conns.Go(func() { s.frames(nc) })
		}
		s.mu.Unlock()
		switch {
		case closed && err == nil:
			return nc.Close()
		case closed:
			return nil
		case err != nil:
			return err
		}
	}
}

func (s *Server) frames(nc net.Conn) {
	defer func() {
		nc.Close()
		s.mu.Lock()
		delete(s.open, nc)
		s.mu.Unlock()
	}()
	if checkPeer(nc, 0) != nil {
		return
	}
	server := mux.Server{Framing: framing{MaxArrival + frameHead}, InFlight: 1024, Handle: s.handle}
	server.Serve(nc)
}

func (s *Server) handle(dst, frame []byte) ([]byte, error) {
	if s.canned != nil {
		return appendReply(dst, frame, http.StatusCreated, s.canned), nil
	}
	ctx, cancel := context.WithTimeout(s.life, requestTime)
	defer cancel()
	status, body, err := s.frame(ctx, frame[8], frame[frameHead:])
	if err == nil {
		return appendReply(dst, frame, status, body), nil
	}
	var r *Refusal
	if !errors.As(err, &r) {
		r = refuse(Unavailable, "%v", err)
	}
	return appendReply(dst, frame, r.Status(), appendError(nil, r)), nil
}

func (s *Server) frame(ctx context.Context, op byte, body []byte) (int, []byte, error) {
	if op != opSign && op != opAccept {
		return 0, nil, refuse(Malformed, "operation %d; want %d or %d", op, opSign, opAccept)
	}
	a, err := s.parse(body)
	if err != nil {
		return 0, nil, err
	}
	if op == opAccept {
		if _, err := s.gw.Accept(ctx, a); err != nil {
			return 0, nil, err
		}
		return http.StatusAccepted, []byte(`{"status":"accepted"}`), nil
	}
	r, err := s.gw.Sign(ctx, a)
	return http.StatusCreated, r, err
}
