package driver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"toll/lab/record"
)

// An Expect says which replies are successes. The zero Expect takes any body under a 2xx status.
type Expect struct {
	Status []int      // in place of 2xx
	Body   []byte     // when not nil, exactly this body
	JSON   []JSONWant // each must hold
}

// Content reports whether the body is looked into.
func (e *Expect) Content() bool { return e.Body != nil || len(e.JSON) > 0 }

// check returns nil for a success, else a *record.Failure. It allocates only when a JSON body is looked into.
func (e *Expect) check(r Reply) error {
	if len(e.Status) == 0 && (r.Status < 200 || r.Status > 299) || len(e.Status) > 0 && !slices.Contains(e.Status, r.Status) {
		return record.Fail(record.Status, fmt.Errorf("status %d: %q", r.Status, excerpt(r.Body)))
	}
	if e.Body != nil && !bytes.Equal(e.Body, r.Body) {
		return record.Fail(record.WrongContent, fmt.Errorf("a body of %d bytes that is not the expected one of %d", len(r.Body), len(e.Body)))
	}
	if len(e.JSON) == 0 {
		return nil
	}
	doc, err := r.document()
	if err != nil {
		return err
	}
	for _, w := range e.JSON {
		if err := w.check(doc); err != nil {
			return record.Fail(record.WrongContent, err)
		}
	}
	return nil
}

// document decodes a JSON body, or the last event of a stream of them. The error is a *record.Failure.
func (r Reply) document() (any, error) {
	text := r.Body
	if r.Media == mediaEvents {
		text = nil
		var events eventScanner
		events.scan(r.Body)
		for {
			data, ok := events.next()
			if !ok {
				break
			}
			text = data
		}
		if text == nil {
			return nil, record.Fail(record.BadReply, errors.New("a stream without an event"))
		}
	}
	doc, err := decodeDocument(text)
	if err != nil {
		return nil, record.Fail(record.BadReply, fmt.Errorf("the body is no JSON: %w", err))
	}
	return doc, nil
}

func decodeDocument(text []byte) (doc any, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&doc)
	return doc, err
}

// withinText is the name that stands, in a place, for the JSON that a string holds.
const withinText = "@json"

// A JSONWant is a place in a JSON document and the value that is wanted there.
type JSONWant struct {
	Path  []string // names of members and numbers of elements; @json is what a string holds as JSON
	Value string   // as JSON text, or the text of a string; "" with Any
	Any   bool     // any value will do
}

// ParseJSONWant reads "a.b[0].c=value" or, for a place where there must be something, "a.b". In "a.text.@json.b", text is a
// string that holds JSON.
func ParseJSONWant(s string) (JSONWant, error) {
	place, value, given := strings.Cut(s, "=")
	w := JSONWant{Value: value, Any: !given}
	path, err := parsePlace(place)
	if err != nil {
		return w, fmt.Errorf("%q: %w", s, err)
	}
	w.Path = path
	return w, nil
}

// parsePlace reads "a.b[0].c"; a leading "$" or "." stands for the document itself.
func parsePlace(place string) ([]string, error) {
	place = strings.TrimPrefix(strings.TrimPrefix(place, "$"), ".")
	var out []string
	for place != "" {
		end := strings.IndexAny(place, ".[")
		if end < 0 {
			end = len(place)
		}
		if end > 0 {
			out = append(out, place[:end])
		}
		rest := place[end:]
		if index, ok := strings.CutPrefix(rest, "["); ok {
			number, after, closed := strings.Cut(index, "]")
			if _, err := strconv.ParseUint(number, 10, 31); err != nil || !closed {
				return nil, fmt.Errorf("%q is not an element's number in brackets", rest)
			}
			out = append(out, number)
			rest = after
		} else if end == 0 {
			return nil, fmt.Errorf("an empty name at %q", place)
		}
		place = strings.TrimPrefix(rest, ".")
		if place == "" && strings.HasSuffix(rest, ".") {
			return nil, fmt.Errorf("it ends with a dot")
		}
	}
	return out, nil
}

// lookUp returns what stands at a place.
func lookUp(doc any, path []string) (any, bool) {
	for _, p := range path {
		switch d := doc.(type) {
		case string:
			inner, err := decodeDocument([]byte(d))
			if p != withinText || err != nil {
				return nil, false
			}
			doc = inner
		case map[string]any:
			v, ok := d[p]
			if !ok {
				return nil, false
			}
			doc = v
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i < 0 || i >= len(d) {
				return nil, false
			}
			doc = d[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

func (w JSONWant) check(doc any) error {
	place := strings.Join(w.Path, ".")
	v, ok := lookUp(doc, w.Path)
	switch {
	case !ok:
		return fmt.Errorf("nothing at %q", place)
	case w.Any:
		return nil
	}
	if got := jsonText(v); got != w.Value {
		return fmt.Errorf("%q is %.64q, want %.64q", place, got, w.Value)
	}
	return nil
}

// jsonText returns a string's own text, and any other value as JSON.
func jsonText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
