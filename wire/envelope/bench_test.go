package envelope_test

import (
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"toll/wire/envelope"
)

func sample() *envelope.Message {
	return &envelope.Message{
		ID: "0199aa00-7b00-7abc-8def-0123456789ab", Type: "ping", Sender: "client", Recipient: "target", CorrelationID: "7",
		ReplyTo: "_reply.7", Timestamp: 1790000000.25, Payload: map[string]any{"seq": int64(7)},
	}
}

func BenchmarkMsgpack(b *testing.B) {
	m := sample()
	packed, err := m.AppendMsgpack(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			packed, _ = m.AppendMsgpack(packed[:0])
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			envelope.DecodeMsgpack(packed, envelope.Limits{})
		}
	})
	var plain map[string]any
	msgpack.Unmarshal(packed, &plain)
	b.Run("library-append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			msgpack.Marshal(plain)
		}
	})
	b.Run("library-decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var m map[string]any
			msgpack.Unmarshal(packed, &m)
		}
	})
}

func TestAppendingAllocatesNothing(t *testing.T) {
	m, b := sample(), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { b, _ = m.AppendMsgpack(b[:0]) }); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}
