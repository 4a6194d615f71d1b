package system

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"toll/system/opserver"
	"toll/system/tools"
)

// Config says how a system is to be served. Zero values are those of [opserver.Config].
type Config struct {
	Addr      string        // host:port; an empty host is 127.0.0.1
	Unix      string        // path of a socket to listen on instead
	Envelope  string        // how ops is served: one of Envelopes, rest when empty
	MaxBody   int64         // largest request body
	Reply     []byte        // what null answers: a whole HTTP reply
	Delay     time.Duration // how long null keeps a core busy before it answers
	TLS       *tls.Config   // encrypts every connection; nil does not
	Agents    Agents        // what agents are served
	Isolation string        // where the children of spawn run: one of Isolations, goroutine when empty

	Carrier string // of a bus process: one of Carriers
	At      string // where a bus worker connects to: a router, a broker, a proxy; of gateway and gateway-agents, the NATS server between them
	Token   string // of the bus: shown by who connects and wanted by who listens; empty for none
	Store   string // of a NATS broker: folder of its streams; empty for none

	// PostQuantum refuses peers without the hybrid key exchange X25519MLKEM768.
	PostQuantum bool

	MCP MCP // how ops is served over the mcp envelopes

	Routes string // of gateway: file of the routes to the agents of Agents.Topology, in place of the benchmark's
	Tools  Tools  // of a published benchmark, that ops over MCP and gateway serve in place of their own

	Threads int         // of gateway: how many Go has at work at a time; 0 for as many as it finds, and at least 2 where a route has Within
	Front   string      // of gateway: one of Fronts, loop when empty
	Call    string      // of the front socket: the operation that each message calls, a space, and its payload in JSON
	Gateway *GatewayTLS // of gateway: its certificates and who may make requests; nil serves in the clear
}

// MCP says how ops is served over MCP.
type MCP = opserver.MCPConfig

// MaxTools is the most tools that [MCP] may ask for.
const MaxTools = 100_000

// Names returns the names that Start knows beside those of the bus: bus-worker and bus-broker, which need a carrier.
func Names() []string {
	return []string{"ops", "echo", "null", "spawn", "gateway", "agents", "api", "catalogue"}
}

// A server answers on a listener until it is shut down.
type server interface {
	Serve(l net.Listener) error
	Shutdown(ctx context.Context) error
}

// A Running system answers until Shutdown or Close.
type Running struct {
	Addr string // http(s)://host:port, tcp or tls://host:port, or unix:/path, as a driver takes it

	server server
	done   chan struct{} // closed when Serve has returned
	err    error         // of Serve; to be read after done
}

// Start starts the named system: ops (the operations over cfg.Envelope), echo (bytes back as they come), null (one reply to
// every HTTP request), spawn (children on request), gateway (agents behind HTTP), agents (those of a topology file), api or
// catalogue (what stands behind the tools of published benchmarks). It answers when Start returns. A ctx that ends afterwards changes nothing.
func Start(ctx context.Context, name string, cfg Config) (*Running, error) {
	if name == "gateway-agents" {
		return startGatewayAgents(ctx, cfg)
	}
	if name == "bus-worker" || name == "bus-broker" {
		return startBus(ctx, name, cfg)
	}
	oc := opserver.Config{Addr: cfg.Addr, Unix: cfg.Unix, MaxBody: cfg.MaxBody, Reply: cfg.Reply, Delay: cfg.Delay}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, scheme, err := build(ctx, name, cfg, oc)
	if err != nil {
		return nil, err
	}
	l, err := opserver.Listen(oc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, errors.Join(err, s.Shutdown(ctx)))
	}
	if cfg.TLS != nil && cfg.PostQuantum {
		cfg.TLS = opserver.PostQuantum(cfg.TLS)
	}
	if cfg.TLS != nil {
		scheme = map[string]string{"http": "https", "tcp": "tls"}[scheme]
		l = tls.NewListener(l, cfg.TLS)
	}
	r := &Running{Addr: address(scheme, l.Addr()), server: s, done: make(chan struct{})}
	go func() {
		r.err = s.Serve(l)
		close(r.done)
	}()
	return r, nil
}

func build(ctx context.Context, name string, cfg Config, oc opserver.Config) (s server, scheme string, err error) {
	if cfg.Envelope != "" && name != "ops" {
		return nil, "", fmt.Errorf("%s has no envelope %q", name, cfg.Envelope)
	}
	if cfg.Isolation != "" && name != "spawn" {
		return nil, "", fmt.Errorf("%s has no isolation %q", name, cfg.Isolation)
	}
	switch name {
	case "agents":
		if err := onLoopback(cfg.Addr); err != nil {
			return nil, "", err
		}
		s, err := buildAgents(ctx, cfg.Agents)
		return s, "http", err
	case "spawn":
		s, err := buildSpawn(ctx, cfg.Isolation)
		return s, "http", err
	case "api":
		return tools.NewAPI(), "http", nil
	case "catalogue":
		return buildCatalogue(ctx, cfg)
	case "gateway":
		return buildGateway(ctx, cfg, oc)
	case "ops":
		return buildOps(cfg, oc)
	case "echo":
		return opserver.NewEcho(oc), "tcp", nil
	case "null":
		return opserver.NewNull(oc), "http", nil
	}
	return nil, "", fmt.Errorf("system %q: want one of %s", name, strings.Join(Names(), ", "))
}

// Envelopes returns those that ops can be served over: REST and op-call over net/http, over HTTP/2 too, over our own HTTP loop,
// ZAP-HTTP frames, ZAP-RPC frames, and MCP: without sessions, with them, with streams of events for replies, on net/http.
// [ServeStream] has one more.
func Envelopes() []string {
	return []string{"rest", "rest-h2c", "rest-raw", "zap-http", "zap-rpc", "every", "mcp", "mcp-stateful", "mcp-sse", "mcp-nethttp"}
}

func operations() (opserver.Registry, error) {
	return opserver.NewRegistry(opserver.Note(), opserver.Tasks(), opserver.Blob())
}

func buildOps(cfg Config, oc opserver.Config) (s server, scheme string, err error) {
	ops, err := operations()
	if err != nil {
		return nil, "", err
	}
	if cfg.Tools.Set != "" {
		set, err := cfg.Tools.open()
		if err != nil {
			return nil, "", err
		}
		cfg.MCP.Only = tools.AsMCP(set)
	}
	switch cfg.Envelope {
	case "", "rest":
		return opserver.NewREST(oc, ops), "http", nil
	case "rest-h2c":
		oc.H2C = true
		return opserver.NewREST(oc, ops), "http", nil
	case "rest-raw":
		return opserver.NewRaw(oc, ops), "http", nil
	case "every":
		return opserver.NewEvery(oc, ops), "http", nil
	case "zap-http":
		return opserver.NewZAP(oc, ops), "tcp", nil
	case "zap-rpc":
		return opserver.NewZAPRPC(oc, ops), "tcp", nil
	case "mcp", "mcp-stateful", "mcp-sse":
		cfg.MCP.Sessions, cfg.MCP.Events = cfg.Envelope == "mcp-stateful", cfg.Envelope == "mcp-sse"
		s, err = opserver.NewMCP(oc, ops, cfg.MCP)
		return s, "http", err
	case "mcp-nethttp":
		s, err = opserver.NewMCPHTTP(oc, ops, cfg.MCP)
		return s, "http", err
	}
	return nil, "", fmt.Errorf("envelope %q: want one of %s", cfg.Envelope, strings.Join(Envelopes(), ", "))
}

// ServeStream serves ops over MCP on a byte stream, one message a line, until r ends.
func ServeStream(ctx context.Context, cfg Config, r io.Reader, w io.Writer) error {
	ops, err := operations()
	if err != nil {
		return err
	}
	return opserver.ServeMCPStream(ctx, opserver.Config{MaxBody: cfg.MaxBody}, ops, cfg.MCP, r, w)
}

func address(scheme string, a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return scheme + "://" + a.String()
}

// Shutdown stops accepting, lets the calls in flight finish until ctx ends, then breaks them off.
func (r *Running) Shutdown(ctx context.Context) error {
	err := r.server.Shutdown(ctx)
	<-r.done
	return err
}

// Reload has a system that reads files, such as a gateway its certificates, read them again. Others have nothing to do.
func (r *Running) Reload() error {
	if s, ok := r.server.(interface{ Reload() error }); ok {
		return s.Reload()
	}
	return nil
}

// Close stops at once.
func (r *Running) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Done is closed when the system has stopped.
func (r *Running) Done() <-chan struct{} { return r.done }

// Wait waits until the system has stopped and returns why, nil after Shutdown or Close.
func (r *Running) Wait() error {
	<-r.done
	return r.err
}
