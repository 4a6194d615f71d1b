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
	text, err := r.json()
	if err != nil {
		return err
	}
	for _, w := range e.JSON {
		if err := w.check(text); err != nil {
			return record.Fail(record.WrongContent, err)
		}
	}
	return nil
}

// json returns a JSON body, or the last event of a stream of them, checked. The error is a *record.Failure.
func (r Reply) json() ([]byte, error) {
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
	if err := checkJSON(text); err != nil {
		return nil, record.Fail(record.BadReply, fmt.Errorf("the body is no JSON: %w", err))
	}
	return text, nil
}

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

func (w JSONWant) check(text []byte) error {
	v, ok := find(text, w.Path)
	switch {
	case !ok:
		return fmt.Errorf("nothing at %q", strings.Join(w.Path, "."))
	case w.Any || says(v, w.Value):
		return nil
	}
	if got := jsonText(v); got != w.Value {
		return fmt.Errorf("%q is %.64q, want %.64q", strings.Join(w.Path, "."), got, w.Value)
	}
	return nil
}

// jsonText returns a string's own text, and any other value as JSON without white space and with its members by name.
func jsonText(value []byte) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return ""
	}
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
