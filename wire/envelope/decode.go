package envelope

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// The defaults of Limits.
const (
	DefaultBytes = 1 << 20
	DefaultDepth = 32
	DefaultItems = 1 << 16
)

// Limits bound what a decoder takes from outside; each zero value means its default. They hold before anything is allocated.
type Limits struct {
	Bytes int // of a whole message
	Depth int // of nested lists and maps in the payload, the payload itself included
	Items int // values in the payload, keys of maps not counted
}

func (l Limits) withDefaults() Limits {
	or := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	or(&l.Bytes, DefaultBytes)
	or(&l.Depth, DefaultDepth)
	or(&l.Items, DefaultItems)
	return l
}

// A DecodeError says what is wrong with a message from outside and where.
type DecodeError struct {
	Offset int
	Reason string
}

// Error returns reason and offset.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("envelope: %s at byte %d", e.Reason, e.Offset)
}

// DecodeMsgpack reads a message that is all of data. Unknown keys are passed over; a key that stands twice, text that is not
// UTF-8, an extension type and bytes behind the map are errors. Integers come as int64, or uint64 above its range. The
// message's strings share one copy of data.
func DecodeMsgpack(data []byte, limits Limits) (*Message, error) {
	l := limits.withDefaults()
	if len(data) > l.Bytes {
		return nil, &DecodeError{l.Bytes, fmt.Sprintf("message of %d bytes, more than %d", len(data), l.Bytes)}
	}
	d := unpacker{in: string(data), depth: l.Depth, items: l.Items}
	m := new(Message)
	d.message(m)
	if d.err == nil && d.at < len(d.in) {
		d.fail("%d bytes behind the message", len(d.in)-d.at)
	}
	if d.err != nil {
		return nil, d.err
	}
	return m, nil
}

// An unpacker reads MessagePack. After its first error it reads nothing more.
type unpacker struct {
	in           string
	at           int
	depth, items int // what is left of the limits
	err          error
}

func (d *unpacker) fail(format string, args ...any) {
	if d.err == nil {
		d.err = &DecodeError{d.at, fmt.Sprintf(format, args...)}
	}
}

// take returns the next n bytes.
func (d *unpacker) take(n int) string {
	if d.err == nil && n > len(d.in)-d.at {
		d.fail("message ends; %d more bytes expected", n-(len(d.in)-d.at))
	}
	if d.err != nil {
		return ""
	}
	s := d.in[d.at : d.at+n]
	d.at += n
	return s
}

func (d *unpacker) byte() byte {
	if s := d.take(1); s != "" {
		return s[0]
	}
	return 0xc1 // never used by the format
}

func (d *unpacker) uint(size int) (n uint64) {
	for _, c := range []byte(d.take(size)) {
		n = n<<8 | uint64(c)
	}
	return n
}

// message reads the map of fields. seen holds a bit per field; next is the field that follows in the usual order.
func (d *unpacker) message(m *Message) {
	n, ok := d.mapLength(d.byte())
	if !ok {
		d.fail("not a map")
	}
	var seen uint32
	next := -1
	for range n {
		if d.err != nil {
			return
		}
		key := d.text("a key")
		if next++; next >= len(fieldNames) || fieldNames[next] != key {
			next = fieldIndex(key)
		}
		i := next
		if i < 0 {
			d.items--
			d.value(d.byte())
			continue
		}
		if seen&(1<<i) != 0 {
			d.fail("key %q stands twice", key)
		}
		seen |= 1 << i
		d.field(m, key)
	}
	if d.err == nil && seen&(1<<typeField) == 0 {
		d.fail("no type")
	}
}

// fieldNames are the keys of a message, as the wire orders them.
var fieldNames = [...]string{
	"schema_version", "id", "type", "sender", "recipient", "correlation_id", "reply_to", "payload", "timestamp", "trace_id",
	"span_id", "parent_span_id", "attempt", "priority", "ttl", "seq", "epoch",
}

// typeField is the place of the one field that must be there.
const typeField = 2

func fieldIndex(key string) int {
	for i, name := range fieldNames {
		if name == key {
			return i
		}
	}
	return -1
}

func (d *unpacker) field(m *Message, key string) {
	switch key {
	case "schema_version":
		if v := d.integer(key); d.err == nil && v != SchemaVersion {
			d.fail("schema version %d; this is version %d", v, SchemaVersion)
		}
	case "payload":
		m.Payload = d.payload()
	case "timestamp":
		m.Timestamp, _ = d.float(key)
	case "ttl":
		m.TTL = d.ttl()
	case "attempt":
		m.Attempt = int(d.small(key))
	case "priority":
		m.Priority = int(d.small(key))
	case "seq":
		if d.null() {
			return
		}
		m.Seq, m.Sequenced = d.integer(key), true
	case "epoch":
		m.Epoch = d.unsigned(key)
	default:
		*m.textField(key) = d.nullable(key)
	}
}

func (m *Message) textField(key string) *string {
	switch key {
	case "id":
		return &m.ID
	case "type":
		return &m.Type
	case "sender":
		return &m.Sender
	case "recipient":
		return &m.Recipient
	case "correlation_id":
		return &m.CorrelationID
	case "reply_to":
		return &m.ReplyTo
	case "trace_id":
		return &m.TraceID
	case "span_id":
		return &m.SpanID
	}
	return &m.ParentSpanID
}

func (d *unpacker) null() bool {
	if d.err == nil && d.at < len(d.in) && d.in[d.at] == 0xc0 {
		d.at++
		return true
	}
	return false
}

func (d *unpacker) nullable(key string) string {
	if d.null() {
		return ""
	}
	return d.text(key)
}

func (d *unpacker) text(what string) string {
	n, ok := d.textLength(d.byte())
	if !ok {
		d.fail("%s is not text", what)
	}
	s := d.take(n)
	if !utf8.ValidString(s) {
		d.fail("%s is not UTF-8", what)
	}
	return s
}

func (d *unpacker) integer(key string) int64 {
	v := d.value(d.byte())
	if n, ok := v.(int64); ok {
		return n
	}
	d.fail("%s is not an integer of 64 bits", key)
	return 0
}

func (d *unpacker) unsigned(key string) uint64 {
	switch v := d.value(d.byte()).(type) {
	case uint64:
		return v
	case int64:
		if v >= 0 {
			return uint64(v)
		}
	}
	d.fail("%s is not an unsigned integer", key)
	return 0
}

// small reads an integer that every platform's int holds.
func (d *unpacker) small(key string) int64 {
	n := d.integer(key)
	if n < math.MinInt32 || n > math.MaxInt32 {
		d.fail("%s is %d", key, n)
	}
	return n
}

// float reads a number; ok is false for null.
func (d *unpacker) float(key string) (f float64, ok bool) {
	switch v := d.value(d.byte()).(type) {
	case nil:
		return 0, false
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	d.fail("%s is not a number", key)
	return 0, false
}

func (d *unpacker) ttl() time.Duration {
	s, ok := d.float("ttl")
	if !ok {
		return 0
	}
	ttl, err := toTTL(s)
	if err != nil {
		d.fail("%v", err)
	}
	return ttl
}

// toTTL converts seconds, to the microsecond. A time to live that is over already is the shortest there is, since none means
// for ever.
func toTTL(s float64) (time.Duration, error) {
	switch {
	case math.IsNaN(s) || s > 1e9:
		return 0, fmt.Errorf("ttl is %v seconds", s)
	case s <= 0:
		return time.Microsecond, nil
	}
	return max(time.Duration(math.Round(s*1e6))*time.Microsecond, time.Microsecond), nil
}

func (d *unpacker) payload() any {
	c := d.byte()
	if c == 0xc0 {
		return nil
	}
	n, ok := d.mapLength(c)
	if !ok {
		d.fail("payload is not a map")
	}
	if n == 0 || d.err != nil {
		return nil
	}
	return d.mapOf(n)
}

// value reads one value that begins with c.
func (d *unpacker) value(c byte) any {
	if d.items < 0 {
		d.fail("more values than the limit")
	}
	if d.err != nil {
		return nil
	}
	if n, ok := d.textLength(c); ok {
		s := d.take(n)
		if !utf8.ValidString(s) {
			d.fail("text is not UTF-8")
		}
		return s
	}
	if n, ok := d.mapLength(c); ok {
		return d.mapOf(n)
	}
	if n, ok := d.listLength(c); ok {
		return d.listOf(n)
	}
	switch {
	case c < 0x80:
		return int64(c)
	case c >= 0xe0:
		return int64(int8(c))
	}
	return d.scalar(c)
}

func (d *unpacker) scalar(c byte) any {
	switch c {
	case 0xc0:
		return nil
	case 0xc2, 0xc3:
		return c == 0xc3
	case 0xc4, 0xc5, 0xc6:
		return []byte(d.take(int(d.uint(1 << (c - 0xc4)))))
	case 0xca:
		return d.finite(float64(math.Float32frombits(uint32(d.uint(4)))))
	case 0xcb:
		return d.finite(math.Float64frombits(d.uint(8)))
	case 0xcc, 0xcd, 0xce, 0xcf:
		n := d.uint(1 << (c - 0xcc))
		if n > math.MaxInt64 {
			return n
		}
		return int64(n)
	case 0xd0:
		return int64(int8(d.uint(1)))
	case 0xd1:
		return int64(int16(d.uint(2)))
	case 0xd2:
		return int64(int32(d.uint(4)))
	case 0xd3:
		return int64(d.uint(8))
	}
	d.fail("type 0x%02x is not of this format", c)
	return nil
}

func (d *unpacker) finite(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		d.fail("%v has no JSON form", f)
	}
	return f
}

func (d *unpacker) mapOf(n int) any {
	if d.enter(n, 2) {
		return nil
	}
	m := make(map[string]any, min(n, 32))
	for range n {
		key := d.text("a key")
		v := d.value(d.byte())
		if d.err != nil {
			return nil
		}
		if _, twice := m[key]; twice {
			d.fail("key %.40q stands twice", key)
			return nil
		}
		m[key] = v
	}
	d.depth++
	return m
}

func (d *unpacker) listOf(n int) any {
	if d.enter(n, 1) {
		return nil
	}
	list := make([]any, 0, min(n, 64))
	for range n {
		if list = append(list, d.value(d.byte())); d.err != nil {
			return nil
		}
	}
	d.depth++
	return list
}

// enter checks that a list or map of n members, each at least size bytes, can be there. It returns true when it can't.
func (d *unpacker) enter(n, size int) bool {
	d.depth--
	d.items -= n
	switch {
	case d.err != nil:
	case d.depth < 0:
		d.fail("nested deeper than the limit")
	case n > (len(d.in)-d.at)/size:
		d.fail("%d members in %d bytes", n, len(d.in)-d.at)
	case d.items < 0:
		d.fail("more values than the limit")
	}
	return d.err != nil
}

func (d *unpacker) textLength(c byte) (n int, ok bool) {
	switch {
	case c&0xe0 == 0xa0:
		return int(c & 0x1f), true
	case c >= 0xd9 && c <= 0xdb:
		return int(d.uint(1 << (c - 0xd9))), true
	}
	return 0, false
}

func (d *unpacker) mapLength(c byte) (n int, ok bool) { return d.length(c, 0x80, 0xde) }

func (d *unpacker) listLength(c byte) (n int, ok bool) { return d.length(c, 0x90, 0xdc) }

func (d *unpacker) length(c, fix, wide byte) (n int, ok bool) {
	switch {
	case c&0xf0 == fix:
		return int(c & 0x0f), true
	case c == wide:
		return int(d.uint(2)), true
	case c == wide+1:
		return int(d.uint(4)), true
	}
	return 0, false
}
