package envelope

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// fields is how many keys a message always has; the epoch is one more.
const fields = 16

// AppendMsgpack appends m as a MessagePack map. Its payload may hold nil, bool, the integer and float kinds, string,
// []byte, []any and map[string]any, nested no deeper than DefaultDepth; NaN and infinities have no JSON form and are refused.
// On an error b is returned as it was.
func (m *Message) AppendMsgpack(b []byte) ([]byte, error) {
	n := byte(fields)
	if m.Epoch != 0 {
		n++
	}
	out := append(b, 0xde, 0, n) // a map of that many, more than 15
	out = append(out, "\xaeschema_version\x01\xa2id"...)
	out = packString(out, m.ID)
	out = packString(append(out, "\xa4type"...), m.Type)
	out = packString(append(out, "\xa6sender"...), m.Sender)
	out = packString(append(out, "\xa9recipient"...), m.Recipient)
	out = packNullable(append(out, "\xaecorrelation_id"...), m.CorrelationID)
	out = packNullable(append(out, "\xa8reply_to"...), m.ReplyTo)
	out = append(out, "\xa7payload"...)
	payload, err := m.wirePayload()
	if err != nil {
		return b, err
	}
	if out, err = packMap(out, payload, 1); err != nil {
		return b, fmt.Errorf("envelope: payload: %w", err)
	}
	out = packFloat(append(out, "\xa9timestamp"...), m.Timestamp)
	out = packString(append(out, "\xa8trace_id"...), m.TraceID)
	out = packString(append(out, "\xa7span_id"...), m.SpanID)
	out = packNullable(append(out, "\xaeparent_span_id"...), m.ParentSpanID)
	out = packInt(append(out, "\xa7attempt"...), int64(m.Attempt))
	out = packInt(append(out, "\xa8priority"...), int64(m.Priority))
	out = append(out, "\xa3ttl"...)
	if m.TTL > 0 {
		out = packFloat(out, m.TTL.Seconds())
	} else {
		out = append(out, 0xc0)
	}
	out = append(out, "\xa3seq"...)
	if m.Sequenced {
		out = packInt(out, m.Seq)
	} else {
		out = append(out, 0xc0)
	}
	if m.Epoch != 0 {
		out = packUint(append(out, "\xa5epoch"...), m.Epoch)
	}
	return out, m.checkNumbers()
}

// wirePayload returns the payload as the wire has it.
func (m *Message) wirePayload() (map[string]any, error) {
	switch p := m.Payload.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return p, nil
	}
	return nil, fmt.Errorf("envelope: payload is %T; between processes it must be a map[string]any", m.Payload)
}

func (m *Message) checkNumbers() error {
	if math.IsNaN(m.Timestamp) || math.IsInf(m.Timestamp, 0) {
		return fmt.Errorf("envelope: timestamp is %v", m.Timestamp)
	}
	return nil
}

func packNullable(b []byte, s string) []byte {
	if s == "" {
		return append(b, 0xc0)
	}
	return packString(b, s)
}

func packString(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n < 1<<8:
		b = append(b, 0xd9, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

func packFloat(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(f))
}

func packUint(b []byte, n uint64) []byte {
	switch {
	case n < 1<<7:
		return append(b, byte(n))
	case n < 1<<8:
		return append(b, 0xcc, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), n)
}

func packInt(b []byte, n int64) []byte {
	switch {
	case n >= 0:
		return packUint(b, uint64(n))
	case n >= -32:
		return append(b, byte(n))
	case n >= math.MinInt8:
		return append(b, 0xd0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n))
}

func packLength(b []byte, fix, wide byte, n int) []byte {
	switch {
	case n < 16:
		return append(b, fix|byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, wide), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, wide+1), uint32(n))
}

func packMap(b []byte, m map[string]any, depth int) ([]byte, error) {
	if depth > DefaultDepth {
		return b, fmt.Errorf("nested deeper than %d", DefaultDepth)
	}
	b = packLength(b, 0x80, 0xde, len(m))
	for k, v := range m {
		if !utf8.ValidString(k) {
			return b, fmt.Errorf("key %.40q is not UTF-8", k)
		}
		var err error
		if b, err = packValue(packString(b, k), v, depth); err != nil {
			return b, fmt.Errorf("%.40q: %w", k, err)
		}
	}
	return b, nil
}

func packList(b []byte, list []any, depth int) (_ []byte, err error) {
	if depth > DefaultDepth {
		return b, fmt.Errorf("nested deeper than %d", DefaultDepth)
	}
	b = packLength(b, 0x90, 0xdc, len(list))
	for i, v := range list {
		if b, err = packValue(b, v, depth); err != nil {
			return b, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return b, nil
}

// packValue appends one value of a payload.
func packValue(b []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, 0xc0), nil
	case bool:
		if v {
			return append(b, 0xc3), nil
		}
		return append(b, 0xc2), nil
	case string:
		if !utf8.ValidString(v) {
			return b, fmt.Errorf("%.40q is not UTF-8", v)
		}
		return packString(b, v), nil
	case []byte:
		return packBytes(b, v), nil
	case map[string]any:
		return packMap(b, v, depth+1)
	case []any:
		return packList(b, v, depth+1)
	}
	n, f, kind := number(v)
	switch kind {
	case signed:
		return packInt(b, n), nil
	case unsigned:
		return packUint(b, uint64(n)), nil
	case float:
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return b, fmt.Errorf("%v has no JSON form", f)
		}
		return packFloat(b, f), nil
	}
	return b, fmt.Errorf("a %T has no form on the wire", v)
}

func packBytes(b, v []byte) []byte {
	switch n := len(v); {
	case n < 1<<8:
		b = append(b, 0xc4, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0xc5), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xc6), uint32(n))
	}
	return append(b, v...)
}

// A kind of number.
type kind int

const (
	none     kind = iota
	signed        // in n
	unsigned      // in n, as the bits of a uint64
	float         // in f
)

// number sorts Go's numbers into three kinds.
func number(v any) (n int64, f float64, k kind) {
	switch v := v.(type) {
	case int:
		return int64(v), 0, signed
	case int8:
		return int64(v), 0, signed
	case int16:
		return int64(v), 0, signed
	case int32:
		return int64(v), 0, signed
	case int64:
		return v, 0, signed
	case uint:
		return int64(v), 0, unsigned
	case uint8:
		return int64(v), 0, unsigned
	case uint16:
		return int64(v), 0, unsigned
	case uint32:
		return int64(v), 0, unsigned
	case uint64:
		return int64(v), 0, unsigned
	case float32:
		return 0, float64(v), float
	case float64:
		return 0, v, float
	}
	return 0, 0, none
}
