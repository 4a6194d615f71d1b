package tools

import (
	"context"
	"encoding/json"
	"errors"

	"toll/wire/mcp"
)

// AsMCP projects a set to tools of the Model Context Protocol: their results are both structured and text.
func AsMCP(set []Tool) []mcp.Tool {
	out := make([]mcp.Tool, len(set))
	for i, t := range set {
		out[i] = mcp.Tool{Name: t.Name, Description: t.About, Input: t.Input, Output: json.RawMessage(`{"type":"object"}`)}
		if !t.Waits {
			out[i].Quick = func(ctx context.Context, arguments, dst []byte) ([]byte, error) {
				text, err := t.callJSON(ctx, arguments)
				return append(dst, text...), err
			}
			continue
		}
		out[i].Call = func(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
			text, err := t.callJSON(ctx, c.Arguments)
			if err != nil {
				return nil, err
			}
			r := mcp.TextResult(string(text))
			r.Structured = text
			return r, nil
		}
	}
	return out
}

func (t *Tool) callJSON(ctx context.Context, arguments []byte) ([]byte, error) {
	var args map[string]any
	if err := json.Unmarshal(arguments, &args); err != nil {
		return nil, errors.New("the arguments are no object")
	}
	v, err := t.Call(ctx, args)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
