package opserver_test

import (
	"io"
	"testing"
	"time"

	"toll/system/opserver"
	"toll/wire/zap"
)

func TestEverySpeaksBothOnOneListener(t *testing.T) {
	both(t, func(t *testing.T, cfg opserver.Config) {
		l := listen(t, cfg)
		start(t, opserver.NewEvery(cfg, registry(t)), l)
		in, out, _ := codecs(t)
		for range 3 {
			if status, body := ask(t, dial(t, l), post("/v1/note", `{"id":7,"note":"n"}`)); status != 200 || body != `{"id":7,"note":"n","status":"done","owner":"toll"}` {
				t.Errorf("HTTP: %d %s", status, body)
			}
			nc := dial(t, l)
			req := zap.Request{Method: []byte("POST"), Target: []byte("/.well-known/zip/op/note"), Body: in.Append(nil, &opserver.NoteIn{ID: 7})}
			nc.Write(req.Append(nil))
			m, err := zap.NewFrameReader(nc, 0).Next()
			var resp zap.Response
			var got opserver.NoteOut
			if err != nil || resp.Parse(m) != nil || out.Decode(resp.Body, &got) != nil || got.ID != 7 {
				t.Errorf("ZAP: %+v, %v", got, err)
			}
		}
	})
}

// A connection that never says what it speaks is closed, and does not keep the server from stopping.
func TestEveryClosesSilentConnections(t *testing.T) {
	serveInBubble(t, func() server { return opserver.NewEvery(short, registry(t)) }, func(t *testing.T, p pipes) {
		nc, began := p.dial(t), time.Now()
		io.Copy(io.Discard, nc)
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("silent for %v, want the head timeout, 3 s", took)
		}
	})
}
