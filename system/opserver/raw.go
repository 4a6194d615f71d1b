package opserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"

	"toll/wire/http1"
	"toll/wire/opcall"
	"toll/wire/zap"
)

// A Raw serves what REST serves, over our own HTTP/1.1 loop instead of net/http.
type Raw struct {
	server *http1.Server
	ops    Registry
	list   []byte // GET /v1/ops
	errs   *zap.Codec[opcall.Error]
}

// NewRaw makes a server of ops.
func NewRaw(cfg Config, ops Registry) *Raw {
	cfg = cfg.withDefaults()
	list, err := json.Marshal(map[string]any{"operations": describe(ops)})
	if err != nil {
		panic("the operations' schemas as JSON: " + err.Error())
	}
	s := &Raw{ops: ops, list: list, errs: newErrorCodec()}
	s.server = http1.New(http1.Config{
		MaxHead: cfg.MaxHead, MaxBody: int(cfg.MaxBody), HeadTimeout: cfg.HeadTimeout,
		ReadTimeout: cfg.ReadTimeout, WriteTimeout: cfg.WriteTimeout, IdleTimeout: cfg.IdleTimeout, Refused: unreadable,
	}, s.answer)
	return s
}

// Serve answers on l until Shutdown, and then returns nil.
func (s *Raw) Serve(l net.Listener) error {
	if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting, lets what is in flight be answered until ctx ends, then breaks off the rest.
func (s *Raw) Shutdown(ctx context.Context) error { return s.server.Shutdown(ctx) }

// unreadable says in JSON why a request could not be read.
func unreadable(reply *http1.Reply, status int, text string) {
	e := &Error{Malformed, text}
	switch status {
	case http.StatusRequestEntityTooLarge, http.StatusRequestHeaderFieldsTooLarge:
		e.Code = TooLarge
	case http.StatusRequestTimeout:
		e.Code = TimedOut
	}
	reply.ContentType = "application/json"
	reply.Body = append(reply.Body, errorJSON(e)...)
}

func (s *Raw) answer(ctx context.Context, req *http1.Request, reply *http1.Reply) {
	path := req.Path()
	if name, ok := bytes.CutPrefix(path, []byte(opcall.Prefix)); ok {
		s.binary(ctx, name, req, reply)
		return
	}
	reply.ContentType = "application/json"
	if err := s.json(ctx, path, req, reply); err != nil {
		e := visible(err)
		reply.Status = statusFor(e)
		reply.Body = append(reply.Body[:0], errorJSON(e)...)
	}
}

// binary answers an op-call.
func (s *Raw) binary(ctx context.Context, name []byte, req *http1.Request, reply *http1.Reply) {
	reply.ContentType = opcall.MediaType
	if string(req.Method) != http.MethodPost {
		allow(reply, http.MethodPost)
		reply.Status, reply.Body = binaryError(s.errs, reply.Body, &Error{methodNotAllowed, "want POST"})
		return
	}
	op := s.ops.lookup(name)
	if op == nil {
		reply.Status, reply.Body = binaryError(s.errs, reply.Body, &Error{NotFound, "no such operation"})
		return
	}
	body, err := op.CallBinary(ctx, req.Body, reply.Body)
	if err != nil {
		reply.Status, reply.Body = binaryError(s.errs, reply.Body, err)
		return
	}
	reply.Body = body
}

func (s *Raw) json(ctx context.Context, path []byte, req *http1.Request, reply *http1.Reply) error {
	name, ok := bytes.CutPrefix(path, []byte("/v1/"))
	op := s.ops.lookup(name)
	want := "GET, HEAD"
	switch {
	case ok && op != nil:
		want = http.MethodPost
	case string(path) == "/healthz", ok && string(name) == listName:
	default:
		return &Error{NotFound, "nothing at this path"}
	}
	read := op == nil || op.reads
	switch method := string(req.Method); {
	case method == want, read && method == http.MethodGet, op == nil && method == http.MethodHead:
	default:
		allow(reply, want)
		return &Error{methodNotAllowed, "want " + want}
	}
	switch {
	case op != nil:
		return s.invoke(ctx, op, req, reply)
	case string(path) == "/healthz":
		reply.Body = append(reply.Body, `{"status":"ok"}`...)
	default:
		reply.Body = append(reply.Body, s.list...)
	}
	return nil
}

func (s *Raw) invoke(ctx context.Context, op *Operation, req *http1.Request, reply *http1.Reply) (err error) {
	input := req.Body
	switch {
	case string(req.Method) == http.MethodGet:
		input = []byte("{}")
	case !isJSON(string(req.Header("content-type"))):
		return &Error{unsupportedMediaType, "want application/json"}
	}
	reply.Body, err = op.CallJSON(ctx, input, reply.Body)
	return err
}

func allow(reply *http1.Reply, methods string) {
	reply.Header = append(reply.Header, "Allow: "+strings.TrimSpace(methods)+"\r\n"...)
}

// lookup is Lookup for a name that is still bytes.
func (r Registry) lookup(name []byte) *Operation {
	for i := range r.ops {
		if r.ops[i].Name == string(name) {
			return &r.ops[i]
		}
	}
	return nil
}
