package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"toll/driver"
	"toll/lab/load"
	"toll/lab/record"

	"github.com/google/go-cmp/cmp"
)

// The SHA-256 of the result, made by Python's hashlib.
const digestOfNote32 = "ef22ed728c85b26be554314bd1d543b4afa93bfaad629cb7271efd883389bf3d"

// asker is an engine in a function.
type asker func(ctx context.Context, question []byte) ([]byte, error)

// Ask calls f.
func (f asker) Ask(ctx context.Context, question []byte) ([]byte, error) { return f(ctx, question) }

// reply answers with a text in which ID stands for the id that was asked for.
func reply(text string) asker {
	return func(_ context.Context, question []byte) ([]byte, error) {
		var q struct{ ID int64 }
		if err := json.Unmarshal(question, &q); err != nil {
			return nil, err
		}
		return []byte(strings.ReplaceAll(text, "ID", fmt.Sprint(q.ID))), nil
	}
}

func openStdio(t *testing.T, s *driver.Stdio) load.Caller {
	t.Helper()
	c, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fits is a digest that the fake engines answer.
var fits = strings.Repeat("ab", 32)

func TestStdioAsksOneLine(t *testing.T) {
	t.Parallel()
	var asked []string
	engine := asker(func(ctx context.Context, q []byte) ([]byte, error) {
		asked = append(asked, string(q))
		return reply(`{"id":ID,"ns":5,"digest":"`+fits+`"}`)(ctx, q)
	})
	s := &driver.Stdio{Asker: engine, Case: "x/1", Input: []int{1, 2}, Digest: fits}
	a, b := openStdio(t, s), openStdio(t, s)
	for _, c := range []load.Caller{a, b, a} {
		if err := c.Call(t.Context(), record.Mark{}); err != nil {
			t.Error(err)
		}
	}
	want := []string{
		`{"id":1,"case":"x/1","input":[1,2]}`, `{"id":2,"case":"x/1","input":[1,2]}`, `{"id":3,"case":"x/1","input":[1,2]}`,
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
}

func TestStdioRecordsTheEnginesOwnTimeAndAllocations(t *testing.T) {
	t.Parallel()
	// ns is 1 where we measure far more, so that the shard's sum tells whose time it holds.
	s := &driver.Stdio{Asker: reply(`{"id":ID,"ns":1,"digest":"` + fits + `","allocs":2,"alloc_bytes":96,"else":{}}`), Digest: fits}
	c := openStdio(t, s)
	var shard record.Shard
	for range 10 {
		begin := time.Now()
		err := c.Call(t.Context(), shard.Mark())
		shard.Done(time.Since(begin)+time.Hour, err)
	}
	if shard.Latency.Count() != 10 || shard.Latency.Max() != 1 || shard.Allocs != 20 || shard.AllocBytes != 960 || !shard.AllocsKnown {
		t.Errorf("%d calls, max %d ns, %d allocs, %d bytes", shard.Latency.Count(), shard.Latency.Max(), shard.Allocs, shard.AllocBytes)
	}
}

func TestStdioNamesWhatIsWrongWithAReply(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ reply, kind, text string }{
		{`{"id":9,"ns":1,"digest":"` + fits + `"}`, record.WrongID, "wrong_id: call 1: a reply to 9"},
		{`{"id":ID,"error":"no such case"}`, record.ErrorField, `error_field: call 1: "no such case"`},
		{`{"id":ID,"error":""}`, record.ErrorField, `error_field: call 1: ""`},
		{`{"id":9,"error":"x"}`, record.WrongID, "wrong_id: call 1: a reply to 9"},
		{`{"id":ID,"ns":1,"digest":"00"}`, record.WrongContent, `wrong_content: call 1: the result's digest is "00", want ` + fits},
		{`{"id":ID,"ns":1}`, record.WrongContent, `wrong_content: call 1: the result's digest is "", want ` + fits},
		{`{"ns":1,"digest":"x"}`, record.BadReply, `bad_reply: call 1: no id: "{\"ns\":1,\"digest\":\"x\"}"`},
		{`{"id":ID}`, record.BadReply, `bad_reply: call 1: neither ns nor error: "{\"id\":1}"`},
		{`{"id":ID,"error":null}`, record.BadReply, `bad_reply: call 1: neither ns nor error: "{\"id\":1,\"error\":null}"`},
		{`{"id":ID,"ns":-1}`, record.BadReply, ""},
		{`{"id":ID,"ns":1e18}`, record.BadReply, ""},
		{`{"id":ID,"ns":1,"allocs":-1}`, record.BadReply, `bad_reply: call 1: allocs or alloc_bytes is -1: "{\"id\":1,\"ns\":1,\"allocs\":-1}"`},
		{`{"id":ID,"ns":1,"alloc_bytes":1e300}`, record.BadReply, ""},
		{`{"id":"x"}`, record.BadReply, ""},
		{`{"id":1.5}`, record.BadReply, ""},
		{`{"id":ID,"ns":1`, record.BadReply, ""},
		{``, record.BadReply, `bad_reply: call 1: unexpected end of JSON input: ""`},
	} {
		s := &driver.Stdio{Asker: reply(c.reply), Digest: fits}
		caller := openStdio(t, s)
		err := caller.Call(t.Context(), record.Mark{})
		if got := record.KindOf(err); err == nil || got != c.kind || c.text != "" && err.Error() != c.text {
			t.Errorf("%s: got %v (%s)\nwant %s %s", c.reply, err, got, c.kind, c.text)
		}
		// A wrong reply is that call's affair.
		s.Asker = reply(`{"id":ID,"ns":0,"digest":"` + fits + `"}`)
		if err := caller.Call(t.Context(), record.Mark{}); err != nil {
			t.Errorf("after %s: %v", c.reply, err)
		}
	}
}

func TestStdioIsBrokenOnceAnAnswerIsMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err         error
		kind, later string
		text        string
	}{
		{context.DeadlineExceeded, record.Timeout, record.Closed, "closed: not asked any more since call 1 failed: context deadline exceeded"},
		{context.Canceled, record.Other, record.Closed, "closed: not asked any more since call 1 failed: context canceled"},
		{fmt.Errorf("exit status 1: %w", io.EOF), record.Crashed, record.Crashed, "crashed: not asked any more since call 1 failed: exit status 1: EOF"},
		{errors.New("too long"), record.Closed, record.Closed, "closed: not asked any more since call 1 failed: too long"},
	} {
		asked := 0
		caller := openStdio(t, &driver.Stdio{Digest: fits, Asker: asker(func(context.Context, []byte) ([]byte, error) {
			asked++
			return nil, c.err
		})})
		err := caller.Call(t.Context(), record.Mark{})
		if got := record.KindOf(err); got != c.kind || !errors.Is(err, c.err) {
			t.Errorf("%v: got %v (%s), want %s", c.err, err, got, c.kind)
		}
		err = caller.Call(t.Context(), record.Mark{})
		if got := record.KindOf(err); got != c.later || err.Error() != c.text || asked != 1 {
			t.Errorf("%v: later, got %v (%s), asked %d times\nwant %s", c.err, err, got, asked, c.text)
		}
	}
}

func TestStdioNeedsADigestToCompareWith(t *testing.T) {
	t.Parallel()
	_, err := (&driver.Stdio{Case: "x", Digest: "abc"}).Open(t.Context())
	if want := `case "x": digest "abc": want 64 hex digits`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = (&driver.Stdio{Case: "x", Digest: fits, Input: func() {}}).Open(t.Context())
	if want := `case "x": its input: json: unsupported type: func()`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDigestAsksForTheDigestOfANote(t *testing.T) {
	t.Parallel()
	s := driver.Digest(nil, "digest/32B", 32)
	in, err := json.Marshal(s.Input)
	if want := `{"note":"the quick brown fox jumps over t"}`; err != nil || string(in) != want {
		t.Errorf("got %s, %v; want %s", in, err, want)
	}
	if s.Digest != digestOfNote32 {
		t.Errorf("digest %s", s.Digest)
	}
}

func FuzzStdioReply(f *testing.F) {
	f.Add([]byte(`{"id":1,"ns":5,"digest":"` + fits + `","allocs":1,"alloc_bytes":2}`))
	f.Add([]byte(`{"id":1,"error":"x"}`))
	f.Add([]byte(`{"id":1,"ns":1e400}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		engine := asker(func(context.Context, []byte) ([]byte, error) { return line, nil })
		c := openStdio(t, &driver.Stdio{Asker: engine, Digest: fits})
		var shard record.Shard
		err := c.Call(t.Context(), shard.Mark())
		if err == nil && !strings.Contains(string(line), fits) {
			t.Errorf("accepted %q", line)
		}
		if err != nil && record.KindOf(err) == record.Other || shard.Allocs < 0 || shard.AllocBytes < 0 {
			t.Errorf("%q: %v, %d allocs, %d bytes", line, err, shard.Allocs, shard.AllocBytes)
		}
	})
}
