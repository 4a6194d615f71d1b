package opserver_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"toll/system/opserver"
	"toll/wire/mux"
	"toll/wire/opcall"
	"toll/wire/zap"
)

func codecs(t *testing.T) (*zap.Codec[opserver.NoteIn], *zap.Codec[opserver.NoteOut], *zap.Codec[opcall.Error]) {
	t.Helper()
	in, err1 := zap.NewCodec[opserver.NoteIn]()
	out, err2 := zap.NewCodec[opserver.NoteOut]()
	errs, err3 := zap.NewCodec[opcall.Error]()
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	return in, out, errs
}

// A binaryCase is an op-call body and what comes of it.
type binaryCase struct {
	name   string
	op     string
	body   []byte
	status int
	code   string // of the error
}

// binaryCases are the same for every envelope.
func binaryCases(good []byte) []binaryCase {
	return []binaryCase{
		{"good", "note", good, 200, ""},
		{"empty body is zero", "note", nil, 200, ""},
		{"unknown operation", "nothing", good, 404, "not_found"},
		{"not a message", "note", []byte("{}"), 400, "malformed"},
		{"truncated", "note", good[:len(good)-1], 400, "malformed"},
		{"too large", "note", bytes.Repeat([]byte("x"), 200<<10), 413, "too_large"},
	}
}

func TestOpCallOverHTTP(t *testing.T) {
	in, out, errs := codecs(t)
	good := in.Append(nil, &opserver.NoteIn{ID: 7, Note: "n"})
	each(t, func(t *testing.T, serverOf func(opserver.Config, opserver.Registry) server) {
		both(t, func(t *testing.T, cfg opserver.Config) {
			cfg.MaxBody = 100 << 10
			l := listen(t, cfg)
			start(t, serverOf(cfg, registry(t)), l)
			c := client(t, l)
			for _, x := range binaryCases(good) {
				resp, err := c.Post("http://x/.well-known/zip/op/"+x.op, opcall.MediaType, bytes.NewReader(x.body))
				if err != nil {
					t.Errorf("%s: %v", x.name, err)
					continue
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != x.status {
					t.Errorf("%s: status %d, want %d", x.name, resp.StatusCode, x.status)
				}
				if x.name == "too large" {
					continue // refused before anybody knows which plane it was meant for
				}
				var e opcall.Error
				var got opserver.NoteOut
				switch {
				case x.status != 200:
					if err := errs.Decode(body, &e); err != nil || e.Code != x.code || int(e.Status) != x.status {
						t.Errorf("%s: %+v, %v", x.name, e, err)
					}
				case out.Decode(body, &got) != nil || got.Status != "done" || x.body != nil && (got.ID != 7 || got.Note != "n"):
					t.Errorf("%s: %+v", x.name, got)
				}
			}
			resp, err := c.Get("http://x/.well-known/zip/op/note")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" {
				t.Errorf("GET: %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
			}
		})
	})
}

func TestReadsAreCalledByGET(t *testing.T) {
	each(t, func(t *testing.T, serverOf func(opserver.Config, opserver.Registry) server) {
		l := listen(t, opserver.Config{})
		start(t, serverOf(opserver.Config{}, registry(t, opserver.Tasks())), l)
		for _, call := range []func() (*http.Response, error){
			func() (*http.Response, error) { return client(t, l).Get("http://x/v1/tasks_list") },
			func() (*http.Response, error) {
				return client(t, l).Post("http://x/v1/tasks_list", "application/json", strings.NewReader("{}"))
			},
		} {
			resp, err := call()
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 || string(body) != `{"tasks":[]}` {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		}
	})
}

func TestZAPHTTP(t *testing.T) {
	in, out, errs := codecs(t)
	good := in.Append(nil, &opserver.NoteIn{ID: 7, Note: "n"})
	both(t, func(t *testing.T, cfg opserver.Config) {
		cfg.MaxBody = 100 << 10
		l := listen(t, cfg)
		start(t, opserver.NewZAP(cfg, registry(t)), l)
		for _, x := range binaryCases(good) {
			nc := dial(t, l)
			req := zap.Request{Method: []byte("POST"), Target: []byte("/.well-known/zip/op/" + x.op), Body: x.body}
			nc.Write(req.Append(nil))
			m, err := zap.NewFrameReader(nc, 0).Next()
			if x.name == "too large" {
				// A frame beyond the bound is not read: the connection ends, and the bound is on the whole frame.
				if err == nil {
					t.Errorf("%s: answered", x.name)
				}
				continue
			}
			var resp zap.Response
			if err != nil || resp.Parse(m) != nil || int(resp.Status) != x.status {
				t.Errorf("%s: %+v, %v", x.name, resp, err)
				continue
			}
			var e opcall.Error
			var got opserver.NoteOut
			if x.status != 200 {
				if errs.Decode(resp.Body, &e) != nil || e.Code != x.code {
					t.Errorf("%s: %+v", x.name, e)
				}
			} else if out.Decode(resp.Body, &got) != nil || got.Status != "done" {
				t.Errorf("%s: %+v", x.name, got)
			}
		}
		nc := dial(t, l)
		nc.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		if !closed(nc) {
			t.Error("text was answered")
		}
	})
}

// An rpc is one call over ZAP-RPC.
type rpc struct {
	req  zap.RPCRequest
	resp zap.RPCResponse
	body []byte
}

func (r *rpc) AppendRequest(dst []byte, id uint32) []byte {
	r.req.Promise = id
	return r.req.Append(dst)
}

func (r *rpc) Reply(frame []byte) error {
	err := r.resp.Parse(frame)
	r.body = append(r.body[:0], r.resp.Body...)
	return err
}

func TestZAPRPC(t *testing.T) {
	in, out, errs := codecs(t)
	good := in.Append(nil, &opserver.NoteIn{ID: 7, Note: "n"})
	both(t, func(t *testing.T, cfg opserver.Config) {
		l := listen(t, cfg)
		// The registry has note alone: method 1.
		start(t, opserver.NewZAPRPC(cfg, registry(t)), l)
		c := mux.New(dial(t, l), zap.RPCFraming{}, mux.Config{})
		defer c.Close()
		for _, x := range []struct {
			req    zap.RPCRequest
			status uint32
			code   string
		}{
			{zap.RPCRequest{Method: 1, Payload: good}, 200, ""},
			{zap.RPCRequest{Method: 1}, 200, ""},
			{zap.RPCRequest{Method: 2, Payload: good}, 404, "not_found"},
			{zap.RPCRequest{Method: 0, Payload: good}, 404, "not_found"},
			{zap.RPCRequest{Method: 1, Payload: []byte("{}")}, 400, "malformed"},
			{zap.RPCRequest{Method: 1, Target: 5, Payload: good}, 400, "malformed"},
		} {
			r := &rpc{req: x.req}
			if err := c.Call(t.Context(), r); err != nil || r.resp.Status != x.status {
				t.Errorf("%+v: status %d, %v", x.req, r.resp.Status, err)
				continue
			}
			var e opcall.Error
			var got opserver.NoteOut
			if x.status != 200 {
				if errs.Decode(r.body, &e) != nil || e.Code != x.code {
					t.Errorf("%+v: %+v", x.req, e)
				}
			} else if out.Decode(r.body, &got) != nil || got.Status != "done" {
				t.Errorf("%+v: %+v", x.req, got)
			}
		}
	})
}
