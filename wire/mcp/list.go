package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
)

// An index holds features in their order, by their key, and rendered as the pages of a list. It never changes.
type index[T any] struct {
	items []*T
	byKey map[string]*T
	pages [][]byte // each: "tools":[…] and, but in the last, "nextCursor"
}

func (x index[T]) add(name string, pageSize int, more []T) (index[T], error) {
	items := slices.Clone(x.items)
	at := make(map[string]int, len(items)+len(more))
	for i, item := range items {
		at[asFeature(item).key()] = i
	}
	for i := range more {
		item := &more[i]
		f := asFeature(item)
		if err := f.check(); err != nil {
			return x, err
		}
		if i, there := at[f.key()]; there {
			items[i] = item
			continue
		}
		at[f.key()] = len(items)
		items = append(items, item)
	}
	return build(name, pageSize, items)
}

func (x index[T]) remove(name string, pageSize int, keys []string) (index[T], error) {
	items := slices.DeleteFunc(slices.Clone(x.items), func(item *T) bool { return slices.Contains(keys, asFeature(item).key()) })
	return build(name, pageSize, items)
}

// build indexes items and renders their pages.
func build[T any](name string, pageSize int, items []*T) (index[T], error) {
	x := index[T]{items: items, byKey: make(map[string]*T, len(items))}
	for start := 0; start == 0 || start < len(items); start += pageSize {
		end := min(start+pageSize, len(items))
		entries := make([]any, 0, end-start)
		for _, item := range items[start:end] {
			f := asFeature(item)
			x.byKey[f.key()] = item
			entries = append(entries, f.entry())
		}
		list, err := encode(entries)
		if err != nil {
			return x, err
		}
		page := append([]byte(`"`+name+`":`), list...)
		if end < len(items) {
			page = append(page, `,"nextCursor":"`+cursor(end)+`"`...)
		}
		x.pages = append(x.pages, page)
	}
	return x, nil
}

// encode is json.Marshal without its escapes for HTML: a schema's text stays what it is.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// cursor names the page that begins at an entry. It is opaque to clients.
func cursor(at int) string {
	return base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, int64(at), 10))
}

// page returns the page that a cursor names, the first without one; false if there is none.
func (x index[T]) page(cur []byte, pageSize int) ([]byte, bool) {
	if cur == nil {
		if len(x.pages) == 0 {
			return nil, false
		}
		return x.pages[0], true
	}
	if len(cur) > 32 {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(cur))
	if err != nil {
		return nil, false
	}
	at, err := strconv.Atoi(string(raw))
	if err != nil || at <= 0 || at%pageSize != 0 || at/pageSize >= len(x.pages) || cursor(at) != string(cur) {
		return nil, false
	}
	return x.pages[at/pageSize], true
}

// A listed is a feature in an index.
type listed interface {
	key() string
	check() error
	entry() any
}

// asFeature makes of a pointer what an index needs of it. All four kinds have it.
func asFeature[T any](item *T) listed { return any(item).(listed) }

func (t *Tool) key() string     { return t.Name }
func (r *Resource) key() string { return r.URI }
func (t *Template) key() string { return t.URI }
func (p *Prompt) key() string   { return p.Name }

func (t *Tool) entry() any {
	return struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema,omitempty"`
		Annotations json.RawMessage `json:"annotations,omitempty"`
	}{t.Name, t.Title, t.Description, t.Input, t.Output, t.Annotations}
}

func (r *Resource) entry() any {
	return struct {
		URI         string `json:"uri"`
		Name        string `json:"name"`
		Title       string `json:"title,omitempty"`
		Description string `json:"description,omitempty"`
		MIMEType    string `json:"mimeType,omitempty"`
	}{r.URI, r.Name, r.Title, r.Description, r.MIMEType}
}

func (t *Template) entry() any {
	return struct {
		URI         string `json:"uriTemplate"`
		Name        string `json:"name"`
		Title       string `json:"title,omitempty"`
		Description string `json:"description,omitempty"`
		MIMEType    string `json:"mimeType,omitempty"`
	}{t.URI, t.Name, t.Title, t.Description, t.MIMEType}
}

func (p *Prompt) entry() any {
	return struct {
		Name        string     `json:"name"`
		Title       string     `json:"title,omitempty"`
		Description string     `json:"description,omitempty"`
		Arguments   []Argument `json:"arguments,omitempty"`
	}{p.Name, p.Title, p.Description, p.Arguments}
}
