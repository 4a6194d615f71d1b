package mcp

import (
	"context"
	"encoding/json"
	"errors"
)

func (s *Server) read(ctx context.Context, x *exchange, c *catalog, dst []byte) ([]byte, *Error) {
	if x.m.params.uri == nil {
		return dst, refusedParams("no uri")
	}
	call, e := newCall(x)
	if e != nil {
		return dst, e
	}
	contents, err := c.read(ctx, call, string(x.m.params.uri))
	if errors.Is(err, ErrNotFound) {
		return dst, notFound(x)
	}
	if err != nil {
		return s.failed(dst, x, err)
	}
	none := ""
	for i := range contents {
		if contents[i].Text == nil && contents[i].Blob == nil {
			contents[i].Text = &none
		}
	}
	raw, err := encode(contents)
	if err != nil || len(contents) == 0 {
		return dst, &Error{Code: CodeInternalError, Message: "Internal error"}
	}
	dst = append(append(appendResult(dst, x.m.id), `{"contents":`...), raw...)
	if x.rev.modern() { // what a resource holds may change at any time and may be for this client alone
		dst = append(dst, `,"resultType":"complete","ttlMs":0,"cacheScope":"private"`...)
		dst = append(dst, s.identity...)
	}
	return append(dst, "}}"...), nil
}

func (c *catalog) read(ctx context.Context, call *Call, uri string) ([]ResourceContent, error) {
	if r := c.resources.byKey[uri]; r != nil {
		return r.Read(ctx, call)
	}
	for _, t := range c.templates.items {
		if values, ok := t.match(uri); ok {
			return t.Read(ctx, call, values)
		}
	}
	return nil, ErrNotFound
}

func (c *catalog) hasResource(uri string) bool {
	if c.resources.byKey[uri] != nil {
		return true
	}
	for _, t := range c.templates.items {
		if _, ok := t.match(uri); ok {
			return true
		}
	}
	return false
}

func notFound(x *exchange) *Error {
	e := refusedParams("resource not found")
	if !x.rev.modern() {
		e.Code = codeResourceNotFound
	}
	e.Message, e.Data = "Resource not found", mustJSON(map[string]string{"uri": clip(x.m.params.uri)})
	return e
}

// failed turns the error of a resource or a prompt into a response.
func (s *Server) failed(dst []byte, x *exchange, err error) ([]byte, *Error) {
	if n, ok := errors.AsType[*needed](err); ok {
		return s.appendNeeded(dst, x, n), nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return dst, e
	}
	return dst, &Error{Code: CodeInternalError, Message: "Internal error: " + err.Error()}
}

func (s *Server) prompt(ctx context.Context, x *exchange, c *catalog, dst []byte) ([]byte, *Error) {
	p := c.prompts.byKey[string(x.m.params.name)]
	if p == nil {
		return dst, refusedParams("no prompt " + clip(x.m.params.name))
	}
	arguments := map[string]string{}
	if raw := x.m.params.arguments; raw != nil && json.Unmarshal(raw, &arguments) != nil {
		return dst, refusedParams("a prompt's arguments are strings")
	}
	for _, a := range p.Arguments {
		if _, there := arguments[a.Name]; a.Required && !there {
			return dst, refusedParams("argument " + a.Name + " is missing")
		}
	}
	call, e := newCall(x)
	if e != nil {
		return dst, e
	}
	result, err := p.Get(ctx, call, arguments)
	if err != nil {
		return s.failed(dst, x, err)
	}
	return s.result(dst, x, false, result)
}

// maxValues bounds a completion (every revision: at most 100 values).
const maxValues = 100

func (s *Server) complete(ctx context.Context, x *exchange, c *catalog, dst []byte) ([]byte, *Error) {
	var ref struct{ Type, Name, URI string }
	var argument struct{ Name, Value *string }
	var others struct{ Arguments map[string]string }
	if json.Unmarshal(x.m.params.ref, &ref) != nil || json.Unmarshal(x.m.params.argument, &argument) != nil ||
		argument.Name == nil || argument.Value == nil {
		return dst, refusedParams("want ref and argument with name and value")
	}
	if raw := x.m.params.context; raw != nil && json.Unmarshal(raw, &others) != nil {
		return dst, refusedParams("context.arguments are strings")
	}
	var propose func(ctx context.Context, name, value string, others map[string]string) ([]string, error)
	switch ref.Type {
	case "ref/prompt":
		p := c.prompts.byKey[ref.Name]
		if p == nil {
			return dst, refusedParams("no prompt " + clip([]byte(ref.Name)))
		}
		propose = p.Complete
	case "ref/resource":
		t := c.templates.byKey[ref.URI]
		if t == nil && c.resources.byKey[ref.URI] == nil {
			return dst, notFound(x)
		}
		if t != nil {
			propose = t.Complete
		}
	default:
		return dst, refusedParams("ref is ref/prompt or ref/resource")
	}
	values := []string{}
	if propose != nil {
		found, err := propose(ctx, *argument.Name, *argument.Value, others.Arguments)
		if err != nil {
			return s.failed(dst, x, err)
		}
		values = append(values, found...)
	}
	total := len(values)
	type completion struct {
		Values  []string `json:"values"`
		Total   int      `json:"total"`
		HasMore bool     `json:"hasMore"`
	}
	return s.result(dst, x, false, map[string]any{"completion": completion{values[:min(total, maxValues)], total, total > maxValues}})
}
