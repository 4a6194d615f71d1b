package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"toll/system"
)

// mcpFlags are those of serve that only the MCP envelopes have. A zero is the server's default.
type mcpFlags struct {
	Tools       int           `help:"MCP: have exactly so many tools." placeholder:"N"`
	Conformance bool          `help:"MCP: add the tools, resources and prompts that the official conformance suite looks for."`
	MaxSessions int           `help:"MCP: sessions at a time; the next is refused (10000)." placeholder:"N"`
	SessionIdle time.Duration `help:"MCP: forget a session that was not used for so long (5m)." placeholder:"DURATION"`
	Host        []string      `help:"MCP: a name that may stand in the Host header, beside localhost and addresses." placeholder:"NAME"`
	Origin      []string      `help:"MCP: an origin whose pages may call, beside those on the loopback address." placeholder:"SCHEME://HOST:PORT"`
}

// stdio is the envelope whose messages go over the standard streams.
const stdio = "mcp-stdio"

// config checks the flags against the envelope.
func (f *mcpFlags) config(envelope string) (system.MCP, error) {
	given := map[string]bool{
		"--tools": f.Tools != 0, "--conformance": f.Conformance, "--max-sessions": f.MaxSessions != 0, "--session-idle": f.SessionIdle != 0,
		"--host": len(f.Host) > 0, "--origin": len(f.Origin) > 0,
	}
	for _, name := range []string{"--tools", "--conformance", "--max-sessions", "--session-idle", "--host", "--origin"} {
		if given[name] && envelope != "mcp" && !strings.HasPrefix(envelope, "mcp-") {
			return system.MCP{}, usage("%s: only the mcp envelopes have it; give --envelope mcp", name)
		}
	}
	switch {
	case f.Tools < 0 || f.Tools > system.MaxTools:
		return system.MCP{}, usage("--tools: %d; want 1 to %d", f.Tools, system.MaxTools)
	case f.MaxSessions < 0:
		return system.MCP{}, usage("--max-sessions: %d; want at least 1", f.MaxSessions)
	case f.SessionIdle < 0:
		return system.MCP{}, usage("--session-idle: %v; want more than 0", f.SessionIdle)
	}
	return system.MCP{
		Tools: f.Tools, Conformance: f.Conformance, MaxSessions: f.MaxSessions, SessionIdle: f.SessionIdle,
		Hosts: f.Host, Origins: f.Origin, Version: version().Version,
	}, nil
}

// serveStdio answers MCP on the standard streams, and nothing else is written to stdout.
func (c *serveCmd) serveStdio(ctx context.Context, s *streams, cfg system.Config) error {
	if c.System != "ops" || c.Addr != "" || c.Unix != "" || c.Cert != "" || c.Null.Reply != "" {
		return usage("--envelope %s: only ops has it, and it listens nowhere: no --addr, --unix, --cert or --reply", stdio)
	}
	over := make(chan error, 1)
	go func() { over <- system.ServeStream(ctx, cfg, s.in, s.out) }()
	select {
	case err := <-over:
		if err != nil && ctx.Err() == nil {
			return exit(exitNotMeasured, fmt.Errorf("serve ops over %s: %w", stdio, err))
		}
	case <-ctx.Done(): // a read of stdin can't be broken off; the process ends all the same
	}
	return nil
}
