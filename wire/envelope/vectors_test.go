package envelope_test

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"

	"toll/wire/envelope"
)

// vectors are messages as Python's msgpack 1.1.1 and json write the dictionaries of civitas' messages.
func vectors() map[string]envelope.Message {
	plain := envelope.Message{ID: "0199aa00-7b00-7abc-8def-0123456789ab", Type: "message", Timestamp: 1790000000.25}
	full := plain
	full.Type, full.Sender, full.Recipient, full.CorrelationID, full.ReplyTo = "ping", "client", "target", "c-1", "_reply.7"
	full.TraceID, full.SpanID, full.ParentSpanID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
	full.Attempt, full.Priority, full.TTL, full.Sequenced = 2, 1, 1500*time.Millisecond, true
	full.Payload = map[string]any{
		"seq": int64(7), "neg": int64(-1), "big": uint64(1 << 63), "small": int64(math.MinInt64), "f": 1.0, "e": 1e300,
		"t": true, "n": nil, "s": "héllo 日本 \"q\" \\ \n\x01", "m": map[string]any{}, "long": strings.Repeat("x", 300),
		"l":  []any{int64(1), []any{int64(2), map[string]any{"k": "v"}}, []any{}},
		"u8": int64(200), "u16": int64(60000), "u32": int64(4000000000),
		"i8": int64(-100), "i16": int64(-30000), "i32": int64(-2000000000),
	}
	return map[string]envelope.Message{"plain": plain, "full": full, "june": plain, "future": plain}
}

func TestMessagesOfThePythonRuntime(t *testing.T) {
	t.Parallel()
	for name, want := range vectors() {
		for ext, decode := range decoders() {
			data, err := os.ReadFile("testdata/" + name + "." + ext)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decode(data, envelope.Limits{})
			if err != nil {
				t.Errorf("%s.%s: %v", name, ext, err)
				continue
			}
			if d := cmp.Diff(want, *got); d != "" {
				t.Errorf("%s.%s: %s", name, ext, d)
			}
		}
	}
}

type decoder = func([]byte, envelope.Limits) (*envelope.Message, error)

func decoders() map[string]decoder {
	return map[string]decoder{"msgpack": envelope.DecodeMsgpack, "json": envelope.DecodeJSON}
}

func TestBothCodecsKeepEveryField(t *testing.T) {
	t.Parallel()
	for name, m := range vectors() {
		m.Epoch = 1 << 63
		packed, err := m.AppendMsgpack(nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := m.AppendJSON([]byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		a, errA := envelope.DecodeMsgpack(packed, envelope.Limits{})
		b, errB := envelope.DecodeJSON(text[1:], envelope.Limits{})
		if errA != nil || errB != nil {
			t.Fatalf("%s: %v, %v", name, errA, errB)
		}
		if d := cmp.Diff(&m, a) + cmp.Diff(a, b); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Another implementation reads what we write, and finds the keys that civitas has.
func TestAnotherImplementationReadsOurs(t *testing.T) {
	t.Parallel()
	m := vectors()["full"]
	packed, err := m.AppendMsgpack(nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile("testdata/full.msgpack")
	if err != nil {
		t.Fatal(err)
	}
	var got, want map[string]any
	if err := msgpack.Unmarshal(packed, &got); err != nil {
		t.Fatal(err)
	}
	if err := msgpack.Unmarshal(theirs, &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestEveryGoNumberTravels(t *testing.T) {
	t.Parallel()
	m := envelope.Message{Type: "t", Payload: map[string]any{
		"v": []any{int(1), int8(1), int16(1), int32(1), int64(1), uint(1), uint8(1), uint16(1), uint32(1), uint64(1)},
		"f": []any{float32(0.5), 0.5}, "b": []byte("bytes"),
	}}
	packed, err := m.AppendMsgpack(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := envelope.DecodeMsgpack(packed, envelope.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	one := int64(1)
	want := map[string]any{
		"v": []any{one, one, one, one, one, one, one, one, one, one}, "f": []any{0.5, 0.5}, "b": []byte("bytes"),
	}
	if d := cmp.Diff(want, got.Payload); d != "" {
		t.Error(d)
	}
}
