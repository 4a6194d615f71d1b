package driver

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"toll/lab/load"
	"toll/lab/record"
)

// frameServer answers each frame on a unix socket with what reply makes of it, and closes the connection when that is nil.
func frameServer(t *testing.T, reply func(frame []byte) []byte) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "r")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go answerFrames(nc, reply)
		}
	}()
	return "unix:" + path
}

func answerFrames(nc net.Conn, reply func([]byte) []byte) {
	defer nc.Close()
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(nc, head); err != nil {
			return
		}
		frame := make([]byte, int(head[2])<<8|int(head[3]))
		if _, err := io.ReadFull(nc, frame); err != nil {
			return
		}
		out := reply(frame)
		if out == nil {
			return
		}
		if _, err := nc.Write(out); err != nil {
			return
		}
	}
}

// frameOf is a reply frame.
func frameOf(call uint32, status int, body []byte) []byte {
	n := len(body) + frameReplyLen
	out := []byte{0, 0, byte(n >> 8), byte(n), byte(call >> 24), byte(call >> 16), byte(call >> 8), byte(call), byte(status >> 8), byte(status)}
	return append(out, body...)
}

// Every reply that is not the receipt asked for is a failure of its kind.
func TestReceiptRepliesAreJudged(t *testing.T) {
	t.Parallel()
	echo := func(frame []byte) []byte { return frameOf(1, 201, frame[5:]) } // holds the id and the hash
	for name, c := range map[string]struct {
		reply func([]byte) []byte
		want  string
	}{
		"the receipt":        {echo, ""},
		"a refusal":          {func([]byte) []byte { return frameOf(1, 422, []byte(`{"error":{}}`)) }, record.Status},
		"a promise":          {func([]byte) []byte { return frameOf(1, 202, nil) }, record.Status},
		"another call's":     {func(f []byte) []byte { return frameOf(2, 201, f[5:]) }, record.BadReply},
		"too long":           {func([]byte) []byte { return []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 201} }, record.BadReply},
		"too short":          {func([]byte) []byte { return []byte{0, 0, 0, 2, 0, 0, 0, 1, 0, 201} }, record.BadReply},
		"no hash":            {func([]byte) []byte { return frameOf(1, 201, []byte(`{}`)) }, record.WrongContent},
		"another id":         {func(f []byte) []byte { return frameOf(1, 201, bytes.ReplaceAll(f[5:], []byte("req-"), []byte("qer-"))) }, record.WrongID},
		"nothing":            {func([]byte) []byte { return nil }, record.Closed},
		"a head cut short":   {func([]byte) []byte { return []byte{0, 0} }, record.Timeout},
		"a body that is cut": {func(f []byte) []byte { return frameOf(1, 201, f[5:])[:40] }, record.Timeout},
	} {
		kept := 0
		target := &Receipt{Addr: frameServer(t, c.reply), Tenant: "acme", Keep: func([]byte) { kept++ }}
		caller, err := target.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait(c.want))
		err = caller.Call(ctx, record.Mark{})
		cancel()
		if c.want == "" && (err != nil || kept != 1) || c.want != "" && (err == nil || record.KindOf(err) != c.want || kept != 0) {
			t.Errorf("%s: got %v and %d kept, want %q", name, err, kept, c.want)
		}
		if c.want == record.Closed || c.want == record.BadReply {
			if again := caller.Call(t.Context(), record.Mark{}); record.KindOf(again) != record.Closed {
				t.Errorf("%s: the broken connection was used again: %v", name, again)
			}
		}
		load.Close(caller)
	}
}

// wait is short where nothing comes, and long where something does.
func wait(kind string) (d time.Duration) {
	if kind == record.Timeout {
		return 50 * time.Millisecond
	}
	return 20 * time.Second
}

// Each call is a request of its own, and a null target's is always the same.
func TestReceiptRequestsDiffer(t *testing.T) {
	t.Parallel()
	for _, null := range []bool{false, true} {
		seen := make(map[string]bool)
		target := &Receipt{Tenant: "acme", Seed: 7, Null: null}
		for range 3 {
			c := &receiptCall{Receipt: target}
			for range 100 {
				seen[string(c.arrival())] = true
			}
		}
		if want := map[bool]int{false: 300, true: 1}[null]; len(seen) != want {
			t.Errorf("null %v: %d requests differ, want %d", null, len(seen), want)
		}
	}
}
