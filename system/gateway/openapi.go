package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
)

// openAPI describes the routes as an OpenAPI 3.1 document.
func openAPI(c Config, t *table) ([]byte, error) {
	paths := make(map[string]map[string]any)
	for _, r := range t.all {
		if paths[r.Path] == nil {
			paths[r.Path] = make(map[string]any)
		}
		paths[r.Path][strings.ToLower(r.Method)] = r.describe()
	}
	version := c.Version
	if version == "" {
		version = "0"
	}
	b, err := json.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]string{"title": c.Name, "version": version},
		"paths":   paths,
	})
	if err != nil {
		return nil, fmt.Errorf("the OpenAPI document: %w", err)
	}
	return b, nil
}

func (r *route) describe() map[string]any {
	object := map[string]any{"schema": map[string]string{"type": "object"}}
	said := func(text string, content map[string]any) map[string]any {
		out := map[string]any{"description": text}
		if content != nil {
			out["content"] = content
		}
		return out
	}
	refusal := map[string]any{contentJSON: map[string]any{"schema": map[string]any{
		"type": "object", "properties": map[string]any{"error": map[string]string{"type": "string"}}, "required": []string{"error"},
	}}}
	responses := map[string]any{
		"400": said("no JSON object, or the agent refused", refusal),
		"404": said("no such agent", refusal),
		"413": said("the body is too large", refusal),
		"429": said("more requests than this client may make", refusal),
		"503": said("too many requests in flight or waiting, or the agent takes none", refusal),
		"504": said(fmt.Sprintf("no answer within %v", r.Timeout), refusal),
	}
	switch r.Mode {
	case Call:
		responses["200"] = said("the agent's answer", map[string]any{contentJSON: object})
	case Cast:
		responses["202"] = said("the message is in the agent's mailbox", map[string]any{contentJSON: object})
	case Stream:
		responses["200"] = said("the parts of the agent's answer", map[string]any{"text/event-stream": map[string]any{}})
	}
	out := map[string]any{
		"summary":   fmt.Sprintf("%s agent %s", r.Mode, r.Agent),
		"responses": responses,
	}
	var parameters []any
	for _, s := range r.segments {
		if s.param != "" {
			parameters = append(parameters, map[string]any{
				"name": s.param, "in": "path", "required": true, "schema": map[string]string{"type": "string"},
			})
		}
	}
	if parameters != nil {
		out["parameters"] = parameters
	}
	if !r.reads() {
		out["requestBody"] = map[string]any{"content": map[string]any{contentJSON: object}}
	}
	return out
}
