package opserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"toll/wire/http1"
	"toll/wire/mcp"
)

// MCPPath is where MCP is served over HTTP.
const MCPPath = "/mcp"

// MCPConfig says how the registry is served over MCP. Zero values are those of [mcp.Config].
type MCPConfig struct {
	Sessions    bool          // clients of revisions up to 2025-11-25 get a session
	Events      bool          // tool results come as a stream of events
	MaxSessions int           // at a time
	SessionIdle time.Duration // after which an unused session is forgotten
	Tools       int           // tools/list has exactly this many: the operations, then tools that do nothing; 0 = the operations
	Only        []mcp.Tool    // in place of the operations; Tools is then of no effect
	Conformance bool          // adds what the protocol's conformance suite wants to find
	Hosts       []string      // further names that may stand in Host
	Origins     []string      // further origins of pages that may call
	Version     string        // of the server
}

// newMCPCore makes the protocol's server of the registry's operations.
func newMCPCore(cfg Config, ops Registry, m MCPConfig) (*mcp.Server, error) {
	core := mcp.New(mcp.Config{
		Name: "toll", Title: "toll: one operation over every envelope", Version: m.Version,
		Sessions: m.Sessions, Events: m.Events, MaxSessions: m.MaxSessions, SessionIdle: m.SessionIdle,
		MaxBody: int(cfg.MaxBody), Hosts: m.Hosts, Origins: m.Origins, AnyHost: cfg.Unix != "",
	})
	if m.Only != nil {
		return core, core.AddTools(m.Only...)
	}
	tools := make([]mcp.Tool, 0, max(m.Tools, len(ops.ops)))
	for i := range ops.ops {
		tools = append(tools, asTool(&ops.ops[i]))
	}
	for i := len(tools); i < m.Tools; i++ {
		tools = append(tools, padding(i))
	}
	if m.Tools > 0 {
		tools = tools[:m.Tools]
	}
	if err := core.AddTools(tools...); err != nil {
		return nil, err
	}
	if m.Conformance {
		return core, addFixtures(core)
	}
	return core, nil
}

// asTool is the projection of an operation.
func asTool(op *Operation) mcp.Tool {
	return mcp.Tool{
		Name: op.Name, Description: op.Summary, Input: op.Input, Output: op.Output,
		Quick: func(ctx context.Context, arguments, dst []byte) ([]byte, error) {
			out, err := op.CallJSON(ctx, arguments, dst)
			if err != nil {
				return dst, visible(err) // as text to the model, which can mend its arguments
			}
			return out, nil
		},
	}
}

// padding is a tool that only makes the list longer; its entry is about as long as an operation's.
func padding(i int) mcp.Tool {
	op := Define(fmt.Sprintf("tool_%04d", i+1), "Takes a note and says that it is done.", func(_ context.Context, in NoteIn) (NoteOut, error) {
		return NoteOut{in.ID, in.Note, "done", "toll"}, nil
	})
	return asTool(&op)
}

// An MCP serves a registry over streamable HTTP, on our own HTTP loop or on net/http.
type MCP struct {
	core *mcp.Server
	loop server
	kept sync.Pool // of *mcpExchange
}

// A server is an HTTP server of either kind.
type server interface {
	Serve(l net.Listener) error
	Shutdown(ctx context.Context) error
}

// NewMCP makes a server of ops on our own HTTP loop.
func NewMCP(cfg Config, ops Registry, m MCPConfig) (*MCP, error) {
	cfg = cfg.withDefaults()
	core, err := newMCPCore(cfg, ops, m)
	if err != nil {
		return nil, err
	}
	s := &MCP{core: core}
	s.kept.New = func() any { return new(mcpExchange) }
	s.loop = http1.New(http1.Config{
		MaxHead: cfg.MaxHead, MaxBody: int(cfg.MaxBody), HeadTimeout: cfg.HeadTimeout,
		ReadTimeout: cfg.ReadTimeout, WriteTimeout: cfg.WriteTimeout, IdleTimeout: cfg.IdleTimeout, Refused: mcpUnreadable,
	}, s.answer)
	return s, nil
}

// NewMCPHTTP makes a server of ops on net/http.
func NewMCPHTTP(cfg Config, ops Registry, m MCPConfig) (*MCP, error) {
	cfg = cfg.withDefaults()
	core, err := newMCPCore(cfg, ops, m)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(MCPPath, &mcp.Handler{Server: core, MaxBody: cfg.MaxBody, WriteTimeout: cfg.WriteTimeout})
	return &MCP{core: core, loop: newHTTP(cfg, mux)}, nil
}

// ServeMCPStream answers messages on r with messages on w, a line each, until r ends.
func ServeMCPStream(ctx context.Context, cfg Config, ops Registry, m MCPConfig, r io.Reader, w io.Writer) error {
	core, err := newMCPCore(cfg.withDefaults(), ops, m)
	if err != nil {
		return err
	}
	defer core.Close()
	return core.ServeStream(ctx, r, w)
}

// Serve answers on l until Shutdown, and then returns nil.
func (s *MCP) Serve(l net.Listener) error {
	if err := s.loop.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting, ends sessions and streams, lets what is in flight be answered until ctx ends, then breaks off
// the rest.
func (s *MCP) Shutdown(ctx context.Context) error {
	s.core.Close()
	err := s.loop.Shutdown(ctx)
	if hard, ok := s.loop.(*http.Server); ok && err != nil {
		hard.Close()
	}
	return err
}

// An mcpExchange is what a request needs, kept from one to the next.
type mcpExchange struct {
	head   mcp.Head
	reply  mcp.Reply
	stream loopStream
}

// answer answers one request on our own loop.
func (s *MCP) answer(ctx context.Context, req *http1.Request, reply *http1.Reply) {
	if string(req.Path()) != MCPPath {
		reply.Status, reply.ContentType = http.StatusNotFound, "application/json"
		reply.Body = append(reply.Body, errorJSON(&Error{NotFound, "nothing at this path; MCP is at " + MCPPath})...)
		return
	}
	x := s.kept.Get().(*mcpExchange)
	defer s.kept.Put(x)
	x.head.Reset(methodName(req.Method))
	for _, f := range req.Fields() {
		x.head.Add(f.Name, f.Value)
	}
	x.stream.reply = reply
	x.reply.Body = reply.Body
	x.reply.Reset(&x.stream)
	s.core.Answer(ctx, &x.head, req.Body, &x.reply)
	if !x.reply.Streamed {
		reply.Status, reply.ContentType, reply.Body = x.reply.Status, x.reply.ContentType, x.reply.Body
		reply.Header = appendLines(reply.Header, x.reply.Header)
	}
	x.reply.Body, x.stream.reply = nil, nil // they are the connection's
}

// methodName spares the methods that are served a copy of their name.
func methodName(m []byte) string {
	switch string(m) {
	case http.MethodPost:
		return http.MethodPost
	case http.MethodGet:
		return http.MethodGet
	case http.MethodDelete:
		return http.MethodDelete
	}
	return string(m)
}

func appendLines(dst []byte, lines []mcp.Line) []byte {
	for _, l := range lines {
		dst = append(append(append(append(dst, l.Name...), ": "...), l.Value...), "\r\n"...)
	}
	return dst
}

// mcpUnreadable says in JSON-RPC why a request could not be read.
func mcpUnreadable(reply *http1.Reply, status int, text string) {
	var r mcp.Reply
	r.Unreadable(status, text)
	reply.ContentType, reply.Body = r.ContentType, append(reply.Body, r.Body...)
}

// loopStream is a reply on our own loop that becomes a stream of events.
type loopStream struct{ reply *http1.Reply }

// Watch returns a context that ends when the client goes away.
func (s *loopStream) Watch(ctx context.Context) context.Context { return s.reply.Watch(ctx) }

// Stream begins the stream.
func (s *loopStream) Stream(header []mcp.Line) (io.Writer, error) {
	s.reply.ContentType = "text/event-stream"
	s.reply.Header = appendLines(s.reply.Header, header)
	return s.reply.Stream()
}
