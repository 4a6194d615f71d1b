package system

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"net"
	"regexp"
	"testing"
	"text/template"
	"time"

	"toll/system/agent"
	"toll/system/gateway"
	"toll/wire/envelope"
)

// A tape is a connection whose client sends the same request again and again and takes every reply. What a call costs is then the
// gateway's alone, without a socket.
type tape struct {
	net.Conn
	request []byte
	left    int
	over    chan struct{}
}

// Read gives the next request.
func (c *tape) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	c.left--
	return copy(p, c.request), nil
}

// Write takes a reply.
func (c *tape) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(p, []byte("HTTP/1.1 200")) {
		return 0, fmt.Errorf("a reply %.40q", p)
	}
	return len(p), nil
}

// Close says that the connection has ended.
func (c *tape) Close() error {
	close(c.over)
	return c.Conn.Close()
}

// strange is other work, which leaves nothing of the gateway in the caches: it touches much memory and runs much code.
func strange(memory []byte) int {
	n := 0
	for i := 0; i < len(memory); i += 64 {
		memory[i]++
		n += int(memory[i])
	}
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestSpeed)
	w.Write(memory[:4096])
	w.Close()
	e := regexp.MustCompile(`(a|b)*c[0-9]{1,3}(x+|y?)$`)
	f, _ := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f(a int) string { if a > 1 { return \"a\" }; return f(a + 1) }", 0)
	t := template.Must(template.New("t").Parse(`{{range .}}{{printf "%q" .}}{{end}}`))
	t.Execute(&b, []string{"a", "b"})
	return n + b.Len() + e.NumSubexp() + len(f.Decls)
}

// What stands around a handler, which itself is not counted: hot, one call after another, and cold, after other work in the handler.
func BenchmarkGateway(b *testing.B) {
	for _, temperature := range []string{"hot", "cold"} {
		for name, body := range map[string]string{"fibonacci": `{"n":3}`, "echo": `{"text":"hello","session_id":"bench"}`} {
			b.Run(temperature+"/"+name, func(b *testing.B) {
				memory := make([]byte, 16<<20)
				var count tally
				x := handlers()[name]
				rt := agent.New(agent.Config{})
				h := agent.HandlerFunc(func(c *agent.Context, m *envelope.Message) (any, error) {
					return count.time(func(payload map[string]any, w waiting) (any, error) {
						if temperature == "cold" {
							strange(memory)
						}
						return x.answer(payload, w)
					}, m.Payload.(map[string]any), c)
				})
				if _, err := rt.Spawn(b.Context(), name, h, agent.Spec{Inline: !x.long}); err != nil {
					b.Fatal(err)
				}
				g, err := gateway.New(gateway.Config{Asker: asker{rt}, Routes: []gateway.Route{routeOf(name, x)}})
				if err != nil {
					b.Fatal(err)
				}
				l := &oneConn{conns: make(chan net.Conn, 1)}
				go g.Serve(l)
				near, far := net.Pipe()
				defer far.Close()
				c := &tape{near, fmt.Appendf(nil, "POST /v1/%s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", name, len(body), body), b.N, make(chan struct{})}
				b.ReportAllocs()
				b.ResetTimer()
				start := time.Now()
				l.conns <- c
				<-c.over
				total := time.Since(start)
				if n := count.calls.Load(); n != int64(b.N) {
					b.Errorf("%d calls of %d", n, b.N)
				}
				b.ReportMetric(float64(int64(total)-count.ns.Load())/float64(b.N), "around-ns/op")
				l.Close()
				g.Shutdown(context.Background())
				rt.Close(context.Background())
			})
		}
	}
}

// oneConn is a listener of connections that are given to it.
type oneConn struct{ conns chan net.Conn }

// Accept waits for one.
func (l *oneConn) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Close ends Accept.
func (l *oneConn) Close() error {
	defer func() { recover() }() // the gateway closes it too
	close(l.conns)
	return nil
}

// Addr is nowhere.
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
