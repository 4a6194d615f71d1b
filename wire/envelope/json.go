package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// AppendJSON appends m as a JSON object of the same fields as AppendMsgpack, with two differences: a payload with bytes in it
// is an error, and text that is not UTF-8 is too. On an error b is returned as it was.
func (m *Message) AppendJSON(b []byte) ([]byte, error) {
	payload, err := m.wirePayload()
	if err != nil {
		return b, err
	}
	if err := m.checkNumbers(); err != nil {
		return b, err
	}
	out := append(b, `{"schema_version":1`...)
	for _, name := range fieldNames[1:7] {
		if out, err = m.jsonText(out, name); err != nil {
			return b, err
		}
	}
	if out, err = jsonMap(append(out, `,"payload":`...), payload, 1); err != nil {
		return b, fmt.Errorf("envelope: payload: %w", err)
	}
	out = jsonFloat(append(out, `,"timestamp":`...), m.Timestamp)
	for _, name := range fieldNames[9:12] {
		if out, err = m.jsonText(out, name); err != nil {
			return b, err
		}
	}
	out = strconv.AppendInt(append(out, `,"attempt":`...), int64(m.Attempt), 10)
	out = strconv.AppendInt(append(out, `,"priority":`...), int64(m.Priority), 10)
	out = append(out, `,"ttl":`...)
	if m.TTL > 0 {
		out = jsonFloat(out, m.TTL.Seconds())
	} else {
		out = append(out, "null"...)
	}
	out = append(out, `,"seq":`...)
	if m.Sequenced {
		out = strconv.AppendInt(out, m.Seq, 10)
	} else {
		out = append(out, "null"...)
	}
	if m.Epoch != 0 {
		out = strconv.AppendUint(append(out, `,"epoch":`...), m.Epoch, 10)
	}
	return append(out, '}'), nil
}

// jsonText appends one text field behind a comma; those that are null when empty are so here too.
func (m *Message) jsonText(b []byte, name string) ([]byte, error) {
	s := *m.textField(name)
	b = append(append(append(b, `,"`...), name...), `":`...)
	if s == "" && (name == "correlation_id" || name == "reply_to" || name == "parent_span_id") {
		return append(b, "null"...), nil
	}
	out, err := jsonString(b, s)
	if err != nil {
		return b, fmt.Errorf("envelope: %s: %w", name, err)
	}
	return out, nil
}

func jsonString(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return b, fmt.Errorf("%.40q is not UTF-8", s)
	}
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"'), nil
}

// jsonFloat keeps a float a float: 1 is written 1.0.
func jsonFloat(b []byte, f float64) []byte {
	at := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	if !bytes.ContainsAny(b[at:], ".e") {
		b = append(b, ".0"...)
	}
	return b
}

func jsonMap(b []byte, m map[string]any, depth int) (_ []byte, err error) {
	if depth > DefaultDepth {
		return b, fmt.Errorf("nested deeper than %d", DefaultDepth)
	}
	b = append(b, '{')
	first := true
	for k, v := range m {
		if !first {
			b = append(b, ',')
		}
		first = false
		if b, err = jsonString(b, k); err != nil {
			return b, fmt.Errorf("a key: %w", err)
		}
		if b, err = jsonValue(append(b, ':'), v, depth); err != nil {
			return b, fmt.Errorf("%.40q: %w", k, err)
		}
	}
	return append(b, '}'), nil
}

func jsonList(b []byte, list []any, depth int) (_ []byte, err error) {
	if depth > DefaultDepth {
		return b, fmt.Errorf("nested deeper than %d", DefaultDepth)
	}
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = jsonValue(b, v, depth); err != nil {
			return b, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return append(b, ']'), nil
}

func jsonValue(b []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case string:
		return jsonString(b, v)
	case map[string]any:
		return jsonMap(b, v, depth+1)
	case []any:
		return jsonList(b, v, depth+1)
	}
	n, f, kind := number(v)
	switch {
	case kind == signed:
		return strconv.AppendInt(b, n, 10), nil
	case kind == unsigned:
		return strconv.AppendUint(b, uint64(n), 10), nil
	case kind == none:
		return b, fmt.Errorf("a %T has no JSON form", v)
	case math.IsNaN(f) || math.IsInf(f, 0):
		return b, fmt.Errorf("%v has no JSON form", f)
	}
	return jsonFloat(b, f), nil
}

// DecodeJSON reads a message that is all of data, as strictly as DecodeMsgpack. A number without fraction and exponent is an
// integer.
func DecodeJSON(data []byte, limits Limits) (*Message, error) {
	l := limits.withDefaults()
	switch {
	case len(data) > l.Bytes:
		return nil, &DecodeError{l.Bytes, fmt.Sprintf("message of %d bytes, more than %d", len(data), l.Bytes)}
	case !utf8.Valid(data):
		return nil, &DecodeError{0, "not UTF-8"}
	case !json.Valid(data):
		return nil, &DecodeError{0, "not JSON"}
	}
	d := jsonReader{in: json.NewDecoder(bytes.NewReader(data)), depth: l.Depth + 1, items: l.Items + 2*fields}
	d.in.UseNumber()
	object, ok := d.value(d.token()).(map[string]any)
	if d.err == nil && !ok {
		d.fail("not an object")
	}
	if d.err != nil {
		return nil, d.err
	}
	m := new(Message)
	for _, name := range fieldNames {
		if v, ok := object[name]; ok && v != nil {
			if err := m.setJSON(name, v); err != nil {
				return nil, &DecodeError{0, err.Error()}
			}
		}
	}
	if _, ok := object["type"].(string); !ok {
		return nil, &DecodeError{0, "no type"}
	}
	return m, nil
}

// setJSON sets a field to a decoded value.
func (m *Message) setJSON(name string, v any) (err error) {
	n, isInt := v.(int64)
	isSmall := isInt && n >= math.MinInt32 && n <= math.MaxInt32
	f, isFloat := v.(float64)
	if isInt {
		f, isFloat = float64(n), true
	}
	ok := true
	switch name {
	case "schema_version":
		if ok = isInt; ok && n != SchemaVersion {
			return fmt.Errorf("schema version %d; this is version %d", n, SchemaVersion)
		}
	case "payload":
		var p map[string]any
		if p, ok = v.(map[string]any); ok && len(p) > 0 {
			m.Payload = p
		}
	case "timestamp":
		m.Timestamp, ok = f, isFloat
	case "ttl":
		if ok = isFloat; ok {
			m.TTL, err = toTTL(f)
		}
	case "attempt":
		m.Attempt, ok = int(n), isSmall
	case "priority":
		m.Priority, ok = int(n), isSmall
	case "seq":
		m.Seq, m.Sequenced, ok = n, true, isInt
	case "epoch":
		if m.Epoch, ok = v.(uint64); !ok && isInt && n >= 0 {
			m.Epoch, ok = uint64(n), true
		}
	default:
		*m.textField(name), ok = v.(string)
	}
	if !ok {
		return fmt.Errorf("%s is of the wrong type", name)
	}
	return err
}

// A jsonReader reads values token by token: that is where a key that stands twice can be seen.
type jsonReader struct {
	in           *json.Decoder
	depth, items int
	err          error
}

func (d *jsonReader) fail(format string, args ...any) {
	if d.err == nil {
		d.err = &DecodeError{int(d.in.InputOffset()), fmt.Sprintf(format, args...)}
	}
}

func (d *jsonReader) token() json.Token {
	t, err := d.in.Token()
	if err != nil {
		d.fail("%v", err)
	}
	return t
}

func (d *jsonReader) value(t json.Token) any {
	if d.items--; d.items < 0 {
		d.fail("more values than the limit")
	}
	if d.err != nil {
		return nil
	}
	switch t := t.(type) {
	case json.Delim:
		if d.depth--; d.depth < 0 {
			d.fail("nested deeper than the limit")
			return nil
		}
		defer func() { d.depth++ }()
		if t == '{' {
			return d.object()
		}
		return d.list()
	case json.Number:
		return d.number(string(t))
	}
	return t
}

func (d *jsonReader) object() any {
	m := make(map[string]any)
	for d.err == nil && d.in.More() {
		key, _ := d.token().(string)
		v := d.value(d.token())
		if _, twice := m[key]; twice {
			d.fail("key %.40q stands twice", key)
		}
		m[key] = v
	}
	d.token()
	return m
}

func (d *jsonReader) list() any {
	list := []any{}
	for d.err == nil && d.in.More() {
		list = append(list, d.value(d.token()))
	}
	d.token()
	return list
}

func (d *jsonReader) number(s string) any {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		d.fail("number %.40s is out of range", s)
	}
	return f
}
