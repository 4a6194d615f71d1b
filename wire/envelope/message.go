package envelope

import (
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"time"
)

// SchemaVersion is what every encoded message carries. A message without one is taken as of this version.
const SchemaVersion = 1

// A Message is what one agent sends another. Within a process it travels by pointer and Payload may be any value; on the
// wire Payload must be nil or a map[string]any of JSON-like values (see [Message.AppendMsgpack]).
type Message struct {
	ID            string // UUIDv7 by Stamp; any text from others
	Type          string
	Sender        string // name of an agent, or empty
	Recipient     string // name of an agent
	CorrelationID string // of a request that wants a reply, and of its reply; null on the wire when empty
	ReplyTo       string // where the reply goes; null when empty
	Payload       any
	Timestamp     float64 // seconds since 1970 UTC; 0 is not known
	TraceID       string  // 32 hex digits, or empty
	SpanID        string  // 16 hex digits, or empty
	ParentSpanID  string  // null when empty
	Attempt       int     // deliveries before this one
	Priority      int     // above 0: the control lane
	TTL           time.Duration
	Seq           int64  // place in a stream, from 0; null unless Sequenced
	Sequenced     bool   // Seq counts
	Epoch         uint64 // of the recipient that is meant; 0 is any. Absent on the wire when 0
}

// Types of messages that the runtime itself uses. Names below these prefixes are reserved.
const (
	RuntimePrefix = "_agency."
	StreamPrefix  = "civitas.stream."
	SpawnPrefix   = "civitas.dynamic."

	StreamChunk  = StreamPrefix + "chunk"
	StreamEnd    = StreamPrefix + "end"
	StreamError  = StreamPrefix + "error"
	StreamCancel = StreamPrefix + "cancel"
	StreamCredit = StreamPrefix + "credit"

	ReplyType   = "reply"
	FailureType = "toll.failure"
)

// Reserved says whether applications may not send messages of type t.
func Reserved(t string) bool {
	return strings.HasPrefix(t, RuntimePrefix) || strings.HasPrefix(t, StreamPrefix) || strings.HasPrefix(t, SpawnPrefix) ||
		t == FailureType
}

// Stamp gives m an identity and a time if it has none. A message that stays in its process needs neither.
func (m *Message) Stamp(now time.Time) {
	if m.ID == "" {
		m.ID = NewID(now)
	}
	if m.Timestamp == 0 {
		m.Timestamp = float64(now.UnixMicro()) / 1e6
	}
}

// Expired says whether m's time to live is over at now. A message without a TTL or a timestamp never expires.
func (m *Message) Expired(now time.Time) bool {
	if m.TTL <= 0 || m.Timestamp == 0 {
		return false
	}
	return float64(now.UnixMicro())/1e6 > m.Timestamp+m.TTL.Seconds()
}

// Reply returns the answer to m: sender and recipient swapped, the correlation and the trace kept.
func (m *Message) Reply(payload any) *Message {
	to := m.ReplyTo
	if to == "" {
		to = m.Sender
	}
	return &Message{
		Type: ReplyType, Sender: m.Recipient, Recipient: to, CorrelationID: m.CorrelationID, Payload: payload,
		TraceID: m.TraceID, ParentSpanID: m.SpanID,
	}
}

// NewID returns a UUIDv7 (RFC 9562 §5.7): ids made later sort later, to the millisecond. It names, it is no secret.
func NewID(now time.Time) string {
	ms, a, b := uint64(now.UnixMilli()), rand.Uint64(), rand.Uint64()
	var u [16]byte
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6], u[7] = 0x70|byte(a>>8)&0x0f, byte(a)
	for i := range 8 {
		u[8+i] = byte(b >> (56 - 8*i))
	}
	u[8] = u[8]&0x3f | 0x80
	var text [36]byte
	for i, at := 0, 0; i < 16; i++ {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text[at] = '-'
			at++
		}
		hex.Encode(text[at:], u[i:i+1])
		at += 2
	}
	return string(text[:])
}
