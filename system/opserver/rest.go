package opserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"toll/wire/opcall"
	"toll/wire/zap"
)

// A REST serves a registry over net/http: as JSON (POST /v1/NAME calls an operation, GET one that takes no input; GET /v1/ops lists them, GET /healthz
// answers) and as op-call (POST /.well-known/zip/op/NAME, binary bodies). Input is strict: one JSON value, no unknown member, nothing behind it. A refusal is
// {"error":{"code","message"}} under a status that fits.
type REST struct {
	cfg    Config
	server *http.Server
	routes map[string]route
	drain  *drain
	ops    Registry
	errs   *zap.Codec[opcall.Error]

	mu       sync.Mutex
	listener net.Listener // guarded by mu
}

// A route is what a path does.
type route struct {
	method string
	reads  bool // GET does as well as POST
	serve  func(w http.ResponseWriter, r *http.Request) (any, error)
}

// NewREST makes a server of ops. Of cfg it uses the bounds; where to listen is up to the listener that Serve is given.
func NewREST(cfg Config, ops Registry) *REST {
	s := &REST{cfg: cfg.withDefaults(), routes: map[string]route{}, drain: newDrain(), ops: ops, errs: newErrorCodec()}
	s.server = newHTTP(s.cfg, s)
	s.routes["/healthz"] = route{method: "GET", serve: func(http.ResponseWriter, *http.Request) (any, error) {
		return map[string]string{"status": "ok"}, nil
	}}
	s.routes["/v1/"+listName] = route{method: "GET", serve: func(http.ResponseWriter, *http.Request) (any, error) {
		return map[string]any{"operations": describe(ops)}, nil
	}}
	for _, op := range ops.Operations() {
		s.routes["/v1/"+op.Name] = route{method: "POST", reads: op.reads, serve: func(w http.ResponseWriter, r *http.Request) (any, error) {
			return s.invoke(&op, w, r)
		}}
	}
	return s
}

// Serve answers on l until Shutdown, and then returns nil.
func (s *REST) Serve(l net.Listener) error {
	l = &onceListener{Listener: l, close: sync.OnceValue(l.Close)}
	s.mu.Lock()
	s.listener = l
	s.mu.Unlock()
	if s.drain.started() {
		return l.Close()
	}
	if err := s.server.Serve(l); !s.drain.started() {
		return err
	}
	return nil
}

// Shutdown stops accepting, answers what is in flight and refuses with 503 what still comes over open connections, until
// ctx ends; then it breaks off the rest. (Shutdown of net/http alone would close those connections without a word.)
func (s *REST) Shutdown(ctx context.Context) error {
	s.drain.begin()
	err := s.stopListening()
	s.server.SetKeepAlivesEnabled(false)
	late := s.drain.wait(ctx)
	if late == nil {
		late = s.server.Shutdown(ctx)
	}
	if late != nil {
		s.server.Close()
	}
	return errors.Join(err, late)
}

func (s *REST) stopListening() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Close()
}

// A onceListener may be closed by us and by net/http.
type onceListener struct {
	net.Listener
	close func() error
}

// Close closes the listener the first time.
func (l *onceListener) Close() error { return l.close() }

// ServeHTTP answers one request.
func (s *REST) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.drain.leave()
	if !s.drain.enter() {
		w.Header().Set("Connection", "close")
		refuse(w, &Error{Unavailable, "shutting down"})
		return
	}
	if name, err := opcall.Name(r.URL.Path); err == nil {
		s.binary(name, w, r)
		return
	}
	out, err := s.route(w, r)
	if err != nil {
		refuse(w, err)
		return
	}
	body, err := json.Marshal(out)
	if err != nil {
		refuse(w, err)
		return
	}
	write(w, http.StatusOK, "application/json", body)
}

// binary answers an op-call.
func (s *REST) binary(name string, w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		status, body := binaryError(s.errs, nil, &Error{methodNotAllowed, "want POST"})
		write(w, status, opcall.MediaType, body)
		return
	}
	input, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.cfg.MaxBody))
	if err != nil {
		status, body := binaryError(s.errs, nil, inputError(err))
		write(w, status, opcall.MediaType, body)
		return
	}
	status, body := callBinary(r.Context(), s.ops, s.errs, name, input, nil)
	write(w, status, opcall.MediaType, body)
}

func (s *REST) route(w http.ResponseWriter, r *http.Request) (any, error) {
	to, ok := s.routes[r.URL.Path]
	if !ok {
		return nil, &Error{NotFound, "nothing at this path"}
	}
	if r.Method != to.method && !(to.method == "GET" && r.Method == "HEAD") && !(to.reads && r.Method == "GET") {
		allow := to.method
		if allow == "GET" {
			allow = "GET, HEAD"
		}
		w.Header().Set("Allow", allow)
		return nil, &Error{methodNotAllowed, "want " + allow}
	}
	return to.serve(w, r)
}

// invoke calls op with the request's body.
func (s *REST) invoke(op *Operation, w http.ResponseWriter, r *http.Request) (any, error) {
	if r.Method == http.MethodGet {
		return op.Call(r.Context(), func(any) error { return nil })
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		return nil, &Error{unsupportedMediaType, "want application/json"}
	}
	body := http.MaxBytesReader(w, r.Body, s.cfg.MaxBody)
	return op.Call(r.Context(), func(in any) error { return decodeStrictly(body, in) })
}

// isJSON reports whether a Content-Type, if there is one, says JSON.
func isJSON(contentType string) bool {
	if contentType == "" || contentType == "application/json" {
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	charset, given := params["charset"]
	return err == nil && media == "application/json" && (!given || strings.EqualFold(charset, "utf-8"))
}

func decodeStrictly(body io.Reader, in any) error {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(in); err != nil {
		return inputError(err)
	}
	switch _, err := d.Token(); {
	case err == nil:
		return &Error{Malformed, "more than one JSON value"}
	case !errors.Is(err, io.EOF):
		return inputError(err)
	}
	return nil
}

// inputError finds the code of what went wrong with a body.
func inputError(err error) error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Error{TooLarge, "body of more than " + strconv.FormatInt(large.Limit, 10) + " bytes"}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &Error{TimedOut, "the body did not arrive in time"}
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &Error{Malformed, "member " + strconv.Quote(wrong.Field) + ": " + wrong.Value + " where " + wrong.Type.String() + " is wanted"}
	}
	return &Error{Malformed, err.Error()}
}

// Codes that only HTTP has.
const (
	methodNotAllowed     = "method_not_allowed"
	unsupportedMediaType = "unsupported_media_type"
)

var statusOf = map[string]int{
	Malformed:            http.StatusBadRequest,
	TooLarge:             http.StatusRequestEntityTooLarge,
	NotFound:             http.StatusNotFound,
	Invalid:              http.StatusUnprocessableEntity,
	TimedOut:             http.StatusRequestTimeout,
	Unavailable:          http.StatusServiceUnavailable,
	Internal:             http.StatusInternalServerError,
	methodNotAllowed:     http.StatusMethodNotAllowed,
	unsupportedMediaType: http.StatusUnsupportedMediaType,
}

// refuse answers with an error. One that is not ours keeps its text to itself.
func refuse(w http.ResponseWriter, err error) {
	e := visible(err)
	if e.Code == TimedOut {
		w.Header().Set("Connection", "close")
	}
	write(w, statusFor(e), "application/json", errorJSON(e))
}

// statusFor returns the HTTP status of a code.
func statusFor(e *Error) int {
	if status, known := statusOf[e.Code]; known {
		return status
	}
	return http.StatusInternalServerError
}

func errorJSON(e *Error) []byte {
	body, err := json.Marshal(map[string]any{"error": map[string]string{"code": e.Code, "message": e.Message}})
	if err != nil {
		panic("an error's text as JSON: " + err.Error())
	}
	return body
}

func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) // an error means that the caller has gone
}

type description struct {
	Name    string          `json:"name"`
	Summary string          `json:"summary"`
	Input   json.RawMessage `json:"input"`
	Output  json.RawMessage `json:"output"`
}

func describe(ops Registry) []description {
	all := []description{}
	for _, op := range ops.Operations() {
		all = append(all, description{op.Name, op.Summary, op.Input, op.Output})
	}
	return all
}
