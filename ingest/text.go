package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A text is an output that is being read.
type text struct {
	name  string
	data  []byte
	lines []string
	json  bool           // it begins like JSON
	keys  map[string]any // of its outermost object; of the first one where it is a list
	list  bool           // its outermost value is a list
	bad   error          // why its JSON can't be read
}

func newText(name string, data []byte) *text {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	t := &text{name: name, data: data}
	trimmed := bytes.TrimSpace(data)
	if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		t.json = true
		t.list = trimmed[0] == '['
		t.sniff(trimmed)
		return t
	}
	t.lines = strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	return t
}

// sniff reads the keys by which formats know their JSON; a second value behind the first is one of a list of lines.
func (t *text) sniff(data []byte) {
	d := json.NewDecoder(bytes.NewReader(data))
	if !t.list {
		t.bad = d.Decode(&t.keys)
		return
	}
	var all []json.RawMessage
	if t.bad = d.Decode(&all); t.bad == nil && len(all) > 0 {
		json.Unmarshal(all[0], &t.keys) // a list of something else than objects has no keys
	}
}

// unknown says why no format knows the text.
func (t *text) unknown() error {
	if t.json && t.bad != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, located(t.data, t.bad))
	}
	if len(bytes.TrimSpace(t.data)) == 0 {
		return fmt.Errorf("%w: it is empty", ErrUnknown)
	}
	return ErrUnknown
}

// has reports whether the outermost object has all of the keys.
func (t *text) has(keys ...string) bool {
	for _, k := range keys {
		if _, ok := t.keys[k]; !ok {
			return false
		}
	}
	return t.json
}

// into decodes the JSON.
func (t *text) into(v any) error {
	d := json.NewDecoder(bytes.NewReader(t.data))
	if err := d.Decode(v); err != nil {
		return located(t.data, err)
	}
	if d.More() {
		return fmt.Errorf("line %d: something stands behind the JSON", 1+bytes.Count(t.data[:d.InputOffset()], []byte("\n")))
	}
	return nil
}

// located adds the line to a JSON error that knows its offset.
func located(data []byte, err error) error {
	at := int64(-1)
	if se, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = se.Offset
	}
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = te.Offset
	}
	if at < 0 {
		return err
	}
	at = min(at, int64(len(data)))
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:at], []byte("\n")), err)
}

// begins reports whether one of the first lines begins so.
func (t *text) begins(prefix string) bool {
	for _, l := range t.lines[:min(len(t.lines), 40)] {
		if strings.HasPrefix(strings.TrimSpace(l), prefix) {
			return true
		}
	}
	return false
}

// After returns the text behind a label that begins a line: "Requests/sec:" gives "  123.4", and its line's number.
func (t *text) after(label string) (rest string, line int, ok bool) {
	for i, l := range t.lines {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(l), label); ok {
			return strings.TrimSpace(rest), i + 1, true
		}
	}
	return "", 0, false
}

// number reads the first word behind a label. A label that is not there is no error; a word that is no number is one.
func (t *text) number(label string) (*float64, error) {
	rest, line, ok := t.after(label)
	if !ok {
		return nil, nil
	}
	v, err := parseNumber(firstWord(rest))
	if err != nil {
		return nil, fmt.Errorf("line %d: %s %w", line, label, err)
	}
	return &v, nil
}

// wanted reads numbers behind labels, each of which must be there, into figures.
func (t *text) wanted(f Figures, labels map[string]string) error {
	for _, label := range sortedKeys(labels) {
		v, err := t.number(label)
		if err != nil {
			return err
		}
		if v == nil {
			return fmt.Errorf("no line %q in it", label)
		}
		f[labels[label]] = *v
	}
	return nil
}

func firstWord(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return f[0]
	}
	return ""
}

// parseNumber reads a decimal number, with thousands separated by commas or not.
func parseNumber(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%.40q is no number", s)
	}
	return v, nil
}

// unitsOfTime are the units that harnesses print, in µs; the longer ones first.
func unitsOfTime() []struct {
	word string
	us   float64
} {
	return []struct {
		word string
		us   float64
	}{
		{"secs", 1e6}, {"sec", 1e6}, {"min", 60e6}, {"ns", 1e-3}, {"us", 1}, {"µs", 1}, {"μs", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6},
	}
}

// parseTime reads "1.25ms", "90 us", and Go's "1m2.5s", in µs.
func parseTime(s string) (float64, error) {
	rest := strings.TrimSpace(s)
	total, found := 0.0, false
	for rest != "" {
		end := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
		if end <= 0 {
			return 0, fmt.Errorf("%.40q is no time", s)
		}
		v, err := parseNumber(rest[:end])
		if err != nil {
			return 0, fmt.Errorf("%.40q is no time", s)
		}
		rest = strings.TrimSpace(rest[end:])
		unit := 0.0
		for _, u := range unitsOfTime() {
			if after, ok := strings.CutPrefix(rest, u.word); ok && (after == "" || after[0] == ' ' || after[0] >= '0' && after[0] <= '9') {
				rest, unit = strings.TrimSpace(after), u.us
				break
			}
		}
		if unit == 0 {
			return 0, fmt.Errorf("%.40q is no time", s)
		}
		total, found = total+v*unit, true
	}
	if !found {
		return 0, fmt.Errorf("%.40q is no time", s)
	}
	return total, nil
}

// quantileName is the figure of a percentile such as 99.9.
func quantileName(percent float64) string {
	return "p" + strings.ReplaceAll(strconv.FormatFloat(percent, 'f', -1, 64), ".", "") + "_us"
}
