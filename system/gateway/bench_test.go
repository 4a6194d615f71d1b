package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"

	"toll/system/gateway"
	"toll/wire/envelope"
)

// One connection after another: what the gateway adds to the same work on bare net/http.
func BenchmarkEcho(b *testing.B) {
	a := agents{calls: map[string]func(context.Context, *envelope.Message) (any, error){
		"echo": func(_ context.Context, m *envelope.Message) (any, error) { return m.Payload, nil },
	}}
	for _, name := range []string{"loop", "nethttp", "bare"} {
		b.Run(name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			if name == "bare" {
				s := &http.Server{Handler: http.HandlerFunc(bare)}
				go s.Serve(l)
				defer s.Close()
			} else {
				g, err := gateway.New(gateway.Config{Asker: a, NetHTTP: name == "nethttp", Routes: []gateway.Route{{Method: "POST", Path: "/v1/echo", Agent: "echo"}}})
				if err != nil {
					b.Fatal(err)
				}
				go g.Serve(l)
				defer g.Shutdown(context.Background())
			}
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer nc.Close()
			in := bufio.NewReader(nc)
			request := []byte("POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 38\r\n\r\n" + `{"text":"hello","session_id":"bench1"}`)
			b.ReportAllocs()
			for b.Loop() {
				nc.Write(request)
				resp, err := http.ReadResponse(in, nil)
				if err != nil || resp.StatusCode != 200 {
					b.Fatal(resp, err)
				}
				io.Copy(io.Discard, resp.Body)
			}
		})
	}
}

func bare(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	var payload map[string]any
	if err == nil {
		err = json.Unmarshal(body, &payload)
	}
	if err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	out, _ := json.Marshal(payload)
	w.Header().Set("Content-Type", "application/json")
	w.Write(out)
}
