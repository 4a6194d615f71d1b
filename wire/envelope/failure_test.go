package envelope_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toll/wire/envelope"
)

func TestFailuresTravel(t *testing.T) {
	t.Parallel()
	ask := &envelope.Message{Type: "t", Sender: "a", Recipient: "b", CorrelationID: "7", TraceID: "t1", SpanID: "s1"}
	for _, c := range envelope.Codes() {
		if back, err := envelope.ParseCode(c.String()); err != nil || back != c {
			t.Errorf("%v: %v, %v", c, back, err)
		}
		sent := &envelope.Failure{Code: c, Agent: "b", Detail: "why"}
		reply := envelope.FailureReply(ask, fmt.Errorf("asking: %w", sent))
		packed, err := reply.AppendMsgpack(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := envelope.DecodeMsgpack(packed, envelope.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(sent, got.Err()); d != "" {
			t.Error(d)
		}
		if !errors.Is(got.Err(), c) || got.Recipient != "a" || got.Sender != "b" || got.CorrelationID != "7" || got.ParentSpanID != "s1" {
			t.Errorf("%+v", got)
		}
	}
	if err := (&envelope.Message{Type: envelope.FailureType, Payload: map[string]any{"error": "odd", "code": "?"}}).Err(); !errors.Is(err, envelope.Failed) || err.Error() != "failed: odd" {
		t.Errorf("got %v", err)
	}
	if _, err := envelope.ParseCode("nope"); err == nil {
		t.Error("an unknown code is read")
	}
	if ask.Err() != nil || ask.Reply(nil).Err() != nil {
		t.Error("no failure reads as one")
	}
}

func TestCodesAreErrors(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		err  error
		want envelope.Failure
	}{
		{errors.New("boom"), envelope.Failure{Code: envelope.Failed, Agent: "b", Detail: "boom"}},
		{envelope.Suspended, envelope.Failure{Code: envelope.Suspended, Agent: "b"}},
		{fmt.Errorf("x: %w", envelope.Stopped), envelope.Failure{Code: envelope.Stopped, Agent: "b", Detail: "x: stopped"}},
		{context.Canceled, envelope.Failure{Code: envelope.Cancelled, Agent: "b", Detail: "context canceled"}},
		{context.DeadlineExceeded, envelope.Failure{Code: envelope.Deadline, Agent: "b", Detail: "context deadline exceeded"}},
	} {
		if d := cmp.Diff(&x.want, envelope.FailureOf(x.err, "b")); d != "" {
			t.Error(d)
		}
	}
	if !errors.Is(&envelope.Failure{Code: envelope.Deadline}, context.DeadlineExceeded) || !errors.Is(envelope.Cancelled, context.Canceled) {
		t.Error("a failure in time is not one of package context")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if envelope.FromContext(ctx) != envelope.Cancelled {
		t.Error("a cancelled context")
	}
	ctx, cancel = context.WithTimeout(context.Background(), -1)
	defer cancel()
	if envelope.FromContext(ctx) != envelope.Deadline {
		t.Error("a context out of time")
	}
}

func TestIDsAreUUIDv7AndSort(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 8, 25, 12, 0, 0, 0, time.UTC)
	shape := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := make(map[string]bool)
	last := ""
	for i := range 1000 {
		id := envelope.NewID(now.Add(time.Duration(i) * time.Millisecond))
		if !shape.MatchString(id) || seen[id] || id <= last {
			t.Fatalf("%s after %s", id, last)
		}
		seen[id], last = true, id
	}
}

func TestStampAndExpiry(t *testing.T) {
	t.Parallel()
	now := time.Unix(1790000000, 0)
	m := envelope.Message{TTL: time.Second}
	if m.Expired(now.Add(time.Hour)) {
		t.Error("expired without a timestamp")
	}
	m.Stamp(now)
	id := m.ID
	m.Stamp(now.Add(time.Second))
	if m.ID != id || m.Timestamp != 1790000000 {
		t.Errorf("%+v", m)
	}
	if m.Expired(now.Add(time.Second)) || !m.Expired(now.Add(1001*time.Millisecond)) {
		t.Error("expiry is not at the time to live")
	}
	for name, want := range map[string]bool{"_agency.register": true, "civitas.stream.chunk": true, "civitas.dynamic.spawn": true, envelope.FailureType: true, "ping": false} {
		if envelope.Reserved(name) != want {
			t.Error(name)
		}
	}
}
