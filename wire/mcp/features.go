package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A Tool is something that a client may call. It has either Quick or Call.
type Tool struct {
	Name, Title, Description string
	Input                    json.RawMessage // JSON Schema of an object
	Output                   json.RawMessage // JSON Schema of the structured result; nil: none
	Annotations              json.RawMessage // an object; nil: none

	// Quick answers at once, on the goroutine that reads: it appends the structured result, one JSON value without line
	// ends, to dst. arguments are a JSON object and the caller's memory.
	Quick func(ctx context.Context, arguments, dst []byte) ([]byte, error)

	// Call may wait, send progress and log messages, and ask the client. An *[Error] refuses the request; any other error
	// becomes a result that says so to the model.
	Call func(ctx context.Context, c *Call) (*Result, error)

	mirrors []mirrored
}

// A Result is what a tool answers.
type Result struct {
	Content    []Content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

// TextResult is a result of one text.
func TextResult(text string) *Result { return &Result{Content: []Content{Text(text)}} }

// A Content is one block of a result or of a prompt's message.
type Content struct {
	Type     string           `json:"type"` // text, image, audio, resource or resource_link
	Text     *string          `json:"text,omitempty"`
	Data     []byte           `json:"data,omitempty"` // of an image or a sound
	MIMEType string           `json:"mimeType,omitempty"`
	Resource *ResourceContent `json:"resource,omitempty"`
	URI      string           `json:"uri,omitempty"` // of a link
	Name     string           `json:"name,omitempty"`
}

// Text is a block of text.
func Text(text string) Content { return Content{Type: "text", Text: &text} }

// Image is a picture.
func Image(mimeType string, data []byte) Content {
	return Content{Type: "image", MIMEType: mimeType, Data: data}
}

// Audio is a sound.
func Audio(mimeType string, data []byte) Content {
	return Content{Type: "audio", MIMEType: mimeType, Data: data}
}

// Embedded is a resource within a result.
func Embedded(r ResourceContent) Content { return Content{Type: "resource", Resource: &r} }

// A ResourceContent is a resource as it is read: text or, if Text is nil, bytes.
type ResourceContent struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Blob     []byte  `json:"blob,omitempty"`
}

// A Resource is something that a client may read.
type Resource struct {
	URI, Name, Title, Description, MIMEType string

	Read func(ctx context.Context, c *Call) ([]ResourceContent, error)
}

// A Template stands for the resources whose URIs match it. Its braces take one path segment each, as in test://note/{id}.
type Template struct {
	URI, Name, Title, Description, MIMEType string

	// Read is given the values of the braces. [ErrNotFound] says that there is no such resource.
	Read func(ctx context.Context, c *Call, values map[string]string) ([]ResourceContent, error)

	// Complete proposes values for a brace; nil proposes none.
	Complete func(ctx context.Context, name, value string, others map[string]string) ([]string, error)
}

// ErrNotFound says that a resource is not there.
var ErrNotFound = errors.New("resource not found")

// A Prompt is a template of messages that a client may fetch.
type Prompt struct {
	Name, Title, Description string
	Arguments                []Argument

	Get func(ctx context.Context, c *Call, arguments map[string]string) (*PromptResult, error)

	// Complete proposes values for an argument; nil proposes none.
	Complete func(ctx context.Context, name, value string, others map[string]string) ([]string, error)
}

// An Argument is one of a prompt.
type Argument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// A PromptResult is what a prompt answers.
type PromptResult struct {
	Description string    `json:"description,omitempty"`
	Messages    []Message `json:"messages"`
}

// A Message is one of a prompt: of the user or the assistant.
type Message struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
}

// check refuses what a client could not use, and readies the tool.
func (t *Tool) check() (err error) {
	if t.Name == "" || (t.Quick == nil) == (t.Call == nil) {
		return fmt.Errorf("tool %q: want a name and either Quick or Call", t.Name)
	}
	if len(t.Input) == 0 {
		t.Input = json.RawMessage(`{"type":"object","additionalProperties":false}`)
	}
	var schema map[string]json.RawMessage
	if err := json.Unmarshal(t.Input, &schema); err != nil || string(schema["type"]) != `"object"` {
		return fmt.Errorf("tool %s: the input's schema must be of an object", t.Name)
	}
	if t.mirrors, err = mirrorsOf(schema, nil); err != nil {
		return fmt.Errorf("tool %s: %w", t.Name, err)
	}
	for i, m := range t.mirrors {
		for _, before := range t.mirrors[:i] {
			if strings.EqualFold(m.header, before.header) {
				return fmt.Errorf("tool %s: x-mcp-header %s twice", t.Name, m.header)
			}
		}
	}
	return nil
}

// mirrorsOf finds the properties with x-mcp-header, through properties only (streamable HTTP, Schema Extension).
func mirrorsOf(schema map[string]json.RawMessage, path []string) (found []mirrored, err error) {
	if schema["properties"] == nil || len(path) > 16 {
		return nil, nil
	}
	var properties map[string]map[string]json.RawMessage
	if err := json.Unmarshal(schema["properties"], &properties); err != nil {
		return nil, nil // a property whose schema is true or false has nothing to mirror
	}
	for name, property := range properties {
		at := append(path[:len(path):len(path)], name)
		if raw, there := property["x-mcp-header"]; there {
			m := mirrored{path: at}
			if json.Unmarshal(raw, &m.header) != nil || json.Unmarshal(property["type"], &m.kind) != nil || !isToken(m.header) ||
				m.kind != "string" && m.kind != "integer" && m.kind != "boolean" {
				return nil, fmt.Errorf("x-mcp-header of %s: want a header's name, on a string, an integer or a boolean", strings.Join(at, "."))
			}
			found = append(found, m)
		}
		within, err := mirrorsOf(property, at)
		if err != nil {
			return nil, err
		}
		found = append(found, within...)
	}
	return found, nil
}

// isToken reports whether s is a token (RFC 9110 §5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) < 0 {
			return false
		}
	}
	return s != ""
}

func (r *Resource) check() error {
	if r.URI == "" || r.Name == "" || r.Read == nil {
		return fmt.Errorf("resource %q: want a URI, a name and Read", r.URI)
	}
	return nil
}

func (t *Template) check() error {
	if t.URI == "" || t.Name == "" || t.Read == nil || strings.Count(t.URI, "{") != strings.Count(t.URI, "}") {
		return fmt.Errorf("resource template %q: want a URI template, a name and Read", t.URI)
	}
	return nil
}

func (p *Prompt) check() error {
	if p.Name == "" || p.Get == nil {
		return fmt.Errorf("prompt %q: want a name and Get", p.Name)
	}
	return nil
}

// match returns the values of the template's braces in uri. Each takes at least one byte and no slash.
func (t *Template) match(uri string) (map[string]string, bool) {
	values := map[string]string{}
	rest := t.URI
	for {
		fixed, brace, more := strings.Cut(rest, "{")
		if !strings.HasPrefix(uri, fixed) {
			return nil, false
		}
		uri = uri[len(fixed):]
		if !more {
			return values, uri == ""
		}
		var name string
		name, rest, _ = strings.Cut(brace, "}")
		end := strings.IndexByte(uri, '/')
		if end < 0 {
			end = len(uri)
		}
		if next, _, _ := strings.Cut(rest, "{"); next != "" && next[0] != '/' {
			if i := strings.Index(uri[:end], next); i >= 0 {
				end = i
			}
		}
		if end == 0 {
			return nil, false
		}
		values[name], uri = uri[:end], uri[end:]
	}
}
