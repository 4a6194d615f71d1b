package mcp

import (
	"context"
)

// dispatch answers a request: it appends the whole response to dst. With an *Error the response is that error, and dst is
// as it was.
func (s *Server) dispatch(ctx context.Context, x *exchange, dst []byte) (_ []byte, e *Error) {
	start := len(dst)
	defer func() {
		if r := recover(); r != nil {
			dst, e = dst[:start], &Error{Code: CodeInternalError, Message: "Internal error"}
		}
	}()
	if string(x.m.method) == "tools/call" {
		return s.callTool(ctx, x, dst)
	}
	c := s.catalog.Load()
	switch method := string(x.m.method); {
	case method == "tools/list" && c.hadTools:
		return page(s, x, dst, c.tools)
	case method == "resources/list" && c.hadResources:
		return page(s, x, dst, c.resources)
	case method == "resources/templates/list" && c.hadResources:
		return page(s, x, dst, c.templates)
	case method == "prompts/list" && c.hadPrompts:
		return page(s, x, dst, c.prompts)
	case method == "resources/read" && c.hadResources:
		return s.read(ctx, x, c, dst)
	case method == "prompts/get" && c.hadPrompts:
		return s.prompt(ctx, x, c, dst)
	case method == "completion/complete" && (c.hadPrompts || c.hadResources):
		return s.complete(ctx, x, c, dst)
	case x.rev.modern():
		return s.modernOnly(x, c, dst)
	}
	return s.legacyOnly(x, c, dst)
}

func (s *Server) modernOnly(x *exchange, c *catalog, dst []byte) ([]byte, *Error) {
	if string(x.m.method) != "server/discover" {
		return dst, methodNotFound(x.m.method)
	}
	return s.result(dst, x, true, struct {
		Supported    []string `json:"supportedVersions"`
		Capabilities any      `json:"capabilities"`
		Instructions string   `json:"instructions,omitempty"`
	}{revisions(), c.capabilities(true), s.cfg.Instructions})
}

func (s *Server) legacyOnly(x *exchange, c *catalog, dst []byte) ([]byte, *Error) {
	switch method := string(x.m.method); {
	case method == "initialize":
		dst = append(appendResult(dst, x.m.id), `{"protocolVersion":"`...)
		return append(append(dst, x.rev.String()...), c.welcome[x.tells()]...), nil
	case method == "ping":
		return append(appendResult(dst, x.m.id), "{}}"...), nil
	case x.sess == nil:
	case method == "logging/setLevel":
		level := levelOf(x.m.params.level)
		if level < 0 {
			return dst, refusedParams("no log level " + clip(x.m.params.level))
		}
		x.sess.setLevel(level)
		return append(appendResult(dst, x.m.id), "{}}"...), nil
	case method == "resources/subscribe" && c.hadResources:
		return s.subscribe(x, c, dst)
	case method == "resources/unsubscribe" && c.hadResources:
		if x.m.params.uri == nil {
			return dst, refusedParams("no uri")
		}
		x.sess.unsubscribe(string(x.m.params.uri))
		return append(appendResult(dst, x.m.id), "{}}"...), nil
	}
	return dst, methodNotFound(x.m.method)
}

func (s *Server) subscribe(x *exchange, c *catalog, dst []byte) ([]byte, *Error) {
	if x.m.params.uri == nil {
		return dst, refusedParams("no uri")
	}
	if !c.hasResource(string(x.m.params.uri)) {
		return dst, notFound(x)
	}
	if !x.sess.subscribe(string(x.m.params.uri), s.cfg.MaxResources) {
		return dst, refusedParams("too many subscriptions")
	}
	return append(appendResult(dst, x.m.id), "{}}"...), nil
}

// tells reports whether the client of x can be told of changes: without a session or a stream of changes there is no way to.
func (x *exchange) tells() bool { return x.rev.modern() || x.sess != nil }

// capabilities is what the catalog offers to a client that can, or can't, be told of changes.
func (c *catalog) capabilities(tells bool) map[string]any {
	all := map[string]any{}
	if c.hadTools {
		all["tools"] = map[string]any{"listChanged": tells}
	}
	if c.hadPrompts {
		all["prompts"] = map[string]any{"listChanged": tells}
	}
	if c.hadResources {
		all["resources"] = map[string]any{"listChanged": tells, "subscribe": tells}
	}
	if c.hadPrompts || c.hadResources {
		all["completions"] = struct{}{}
	}
	if tells {
		all["logging"] = struct{}{}
	}
	return all
}

// result appends a response with v, an object, as its result.
func (s *Server) result(dst []byte, x *exchange, keeps bool, v any) ([]byte, *Error) {
	raw, err := encode(v)
	if err != nil || len(raw) < 2 || raw[0] != '{' {
		return dst, &Error{Code: CodeInternalError, Message: "Internal error"}
	}
	dst = append(appendResult(dst, x.m.id), raw[:len(raw)-1]...)
	return s.finish(dst, x, keeps), nil
}

// finish closes a result and its response; one that a client may keep for a while says so.
func (s *Server) finish(dst []byte, x *exchange, keeps bool) []byte {
	if x.rev.modern() {
		dst = append(dst, `,"resultType":"complete"`...)
		if keeps {
			dst = append(dst, s.ttl...)
		}
		dst = append(dst, s.identity...)
	}
	return append(dst, "}}"...)
}

func page[T any](s *Server, x *exchange, dst []byte, list index[T]) ([]byte, *Error) {
	p, ok := list.page(x.m.params.cursor, s.cfg.PageSize)
	if !ok && x.m.params.cursor != nil {
		return dst, refusedParams("no such cursor; begin the list again")
	}
	dst = append(appendResult(dst, x.m.id), '{')
	if p == nil { // nothing was ever added: resources without templates, or the other way round
		p = []byte(`"` + emptyList(x.m.method) + `":[]`)
	}
	return s.finish(append(dst, p...), x, true), nil
}

func emptyList(method []byte) string {
	if string(method) == "resources/templates/list" {
		return "resourceTemplates"
	}
	return "resources"
}
