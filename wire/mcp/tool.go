package mcp

import (
	"context"
	"errors"

	"toll/wire/plain"
)

// callTool answers tools/call.
func (s *Server) callTool(ctx context.Context, x *exchange, dst []byte) ([]byte, *Error) {
	p := &x.m.params
	if p.name == nil {
		return dst, refusedParams("no name")
	}
	tool := s.catalog.Load().tools.byKey[string(p.name)]
	if tool == nil {
		return dst, &Error{Code: CodeInvalidParams, Message: "Unknown tool: " + clip(p.name)}
	}
	if x.head != nil && x.rev.modern() {
		for i := range tool.mirrors {
			if e := tool.mirrors[i].agree(x.head, p.arguments); e != nil {
				return dst, e
			}
		}
	}
	if tool.Quick != nil {
		return s.quick(ctx, x, tool, dst)
	}
	call, e := newCall(x)
	if e != nil {
		return dst, e
	}
	result, err := tool.Call(ctx, call)
	if err != nil {
		return s.toolError(dst, x, err)
	}
	if result.Content == nil {
		result.Content = []Content{}
	}
	if !x.rev.structured() {
		plain := *result
		plain.Structured, result = nil, &plain
	}
	return s.result(dst, x, false, result)
}

// emptyArguments is what a call without arguments has.
const emptyArguments = "{}"

// quick calls a tool that appends its result where it is wanted, and repeats it as text, which every client can show.
func (s *Server) quick(ctx context.Context, x *exchange, tool *Tool, dst []byte) ([]byte, *Error) {
	arguments := x.m.params.arguments
	if arguments == nil {
		arguments = []byte(emptyArguments)
	}
	start := len(dst)
	out := append(appendResult(dst, x.m.id), `{"structuredContent":`...)
	from := len(out)
	out, err := tool.Quick(ctx, arguments, out)
	if err != nil {
		return s.toolError(dst[:start], x, err)
	}
	to := len(out)
	if x.rev.structured() {
		out = append(out, `,"content":[{"type":"text","text":`...)
		out = plain.AppendText(out, out[from:to])
		return s.finish(append(out, "}]"...), x, false), nil
	}
	// Older clients get the text alone, in the result's place.
	text := plain.AppendText(nil, out[from:to])
	out = append(appendResult(dst[:start], x.m.id), `{"content":[{"type":"text","text":`...)
	return append(append(out, text...), "}]}}"...), nil
}

// toolError tells of an error of a tool: as a result that a model can read and act on, unless it refuses the request.
func (s *Server) toolError(dst []byte, x *exchange, err error) ([]byte, *Error) {
	if n, ok := errors.AsType[*needed](err); ok {
		return s.appendNeeded(dst, x, n), nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return dst, e
	}
	dst = append(appendResult(dst, x.m.id), `{"content":[{"type":"text","text":`...)
	dst = plain.AppendText(dst, []byte(err.Error()))
	return s.finish(append(dst, `}],"isError":true`...), x, false), nil
}
