package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"toll/lab/load"
	"toll/system"
	"toll/wire/engine"
)

// drainTime is how long calls in flight may take to finish once a system is told to stop.
const drainTime = 3 * time.Second

// systems are what serve knows.
func systems() []string {
	return slices.Concat(system.Names(), system.Engines(), []string{"bus", "bus-worker", "bus-broker", "bus-host", "gateway-host", "spawn-host", "agent-worker", "gateway-agents"})
}

type serveCmd struct {
	System   string `arg:"" help:"Which: ${systems}." enum:"${systems}"`
	Envelope string `help:"How ops is served: rest, rest-h2c, rest-raw, zap-http, zap-rpc, every, mcp, mcp-stateful, mcp-sse, mcp-nethttp or mcp-stdio." default:"" placeholder:"NAME"`
	Addr     string `help:"Listen on HOST:PORT; without a host, on loopback." placeholder:"HOST:PORT" xor:"where"`
	Unix     string `help:"Listen on a unix socket instead." placeholder:"PATH" xor:"where"`
	Cert     string `help:"Serve over TLS with this certificate (PEM)." placeholder:"FILE" type:"existingfile" and:"tls"`
	Key      string `help:"Its key (PEM)." placeholder:"FILE" type:"existingfile" and:"tls"`
	PQ       bool   `name:"pq" help:"Over TLS, refuse peers without the hybrid key exchange X25519MLKEM768."`
	MaxBody  int64  `help:"Largest request body, in bytes (1 MiB)." placeholder:"BYTES"`

	MCP    mcpFlags   `embed:""`
	Bus    busFlags   `embed:""`
	Null   nullFlags  `embed:""`
	Spawn  spawnFlags `embed:""`
	Agents agentFlags `embed:""`

	Gateway gatewayFlags `embed:""`
	Host    hostFlags    `embed:""`
	Tools   toolFlags    `embed:""`
}

// agentFlags are those of serve that only agents has.
type agentFlags struct {
	Topology string `arg:"" optional:"" help:"agents, and gateway with --routes: the topology file (YAML)." placeholder:"FILE" type:"existingfile"`
	Spans    string `help:"agents: append an OpenTelemetry span for each message handled, a line of JSON." placeholder:"FILE"`
}

// spawnFlags are those of serve that only spawn has.
type spawnFlags struct {
	Isolation string `help:"spawn: where the children run, goroutine, inline, warm or cold." default:"" placeholder:"LEVEL"`
}

// open checks the flags and opens the file of spans. What it returns is to be closed after the system.
func (f agentFlags) open(name string, cfg *system.Config) (io.Closer, error) {
	none := io.NopCloser(nil)
	switch {
	case name != "agents" && f.Topology != "" && cfg.Routes == "":
		return none, usage("serve %s: it takes no topology file %s", name, f.Topology)
	case name != "agents" && f.Spans != "" && cfg.Routes == "":
		return none, usage("--spans: serve %s makes no spans; only agents does", name)
	case name == "agents" && f.Topology == "":
		return none, usage("serve agents: name a topology file")
	}
	cfg.Agents.Topology = f.Topology
	if f.Spans == "" {
		return none, nil
	}
	file, err := os.OpenFile(f.Spans, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return none, usage("--spans: %w", err)
	}
	cfg.Agents.Spans = file
	return file, nil
}

// Help shows how it is used.
func (serveCmd) Help() string {
	return `The first line on stdout is JSON: the address and the version. The line "stats" on stdin is answered by one JSON line; closed stdin stops the server.

  toll serve ops --addr 127.0.0.1:8080
  toll serve ops --unix /run/user/1000/toll/ops.sock
  toll serve ops --envelope zap-rpc
  toll serve ops --envelope mcp --addr 127.0.0.1:8080
  toll serve ops --envelope mcp-stateful --tools 50 --max-sessions 1000
  toll serve spawn --isolation warm
  toll serve gateway --front nethttp
  toll serve gateway topology.yaml --routes routes.yaml --addr 127.0.0.1:8080
  toll serve gateway-agents --at nats://192.0.2.7:4222
  toll serve gateway --at nats://192.0.2.7:4222 --addr 192.0.2.8:8080
  toll serve agents topology.yaml --addr 127.0.0.1:8095
  toll serve echo
  toll serve bus-worker --carrier direct --addr 192.0.2.7:7411
  toll serve bus-worker --carrier direct --addr 192.0.2.7:7411 --cert me.pem --key me-key.pem --client-ca ca.pem
  toll serve bus-host --addr 192.0.2.7:7410
  toll serve gateway-host --addr 192.0.2.7:7440 --cpus 1 --memory 1GiB

The mcp envelopes are at the path /mcp: mcp takes requests of 2026-07-28, and of earlier revisions without a session; mcp-stateful gives those a session; mcp-sse answers calls with a stream of events; mcp-nethttp is mcp on net/http; mcp-stdio speaks over stdin and stdout, a message a line, and prints no ready line.`
}

// ready is the first line that a contender prints.
type ready struct {
	Ready      string `json:"ready"`
	Version    string `json:"version"`
	Name       string `json:"name"`
	Language   string `json:"language"`
	GOMAXPROCS int    `json:"gomaxprocs"`
}

// Run serves until ctx ends or stdin closes.
func (c *serveCmd) Run(ctx context.Context, s *streams) error {
	if c.System == "agent-worker" {
		if err := system.Worker(ctx); err != nil {
			return exit(exitNotMeasured, err)
		}
		return nil
	}
	if bench, err := system.Bench(c.System); err == nil {
		return c.engine(ctx, s, bench)
	}
	if c.System == "gateway" && c.Gateway.Remote {
		return c.remoteGateway(ctx, s)
	}
	if c.System == "bus-host" {
		return c.busHost(ctx, s)
	}
	if benchmark, ok := strings.CutSuffix(c.System, "-host"); ok {
		return c.host(ctx, s, benchmark)
	}
	if c.System == "bus" {
		return c.busEngine(ctx, s)
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	spans, err := c.Agents.open(c.System, &cfg)
	if err != nil {
		return err
	}
	defer spans.Close()
	if c.Envelope == stdio {
		return c.serveStdio(ctx, s, cfg)
	}
	running, err := system.Start(ctx, c.System, cfg)
	if err != nil {
		return exit(exitNotMeasured, fmt.Errorf("serve %w", err))
	}
	line := ready{running.Addr, version().Version, c.System, "go", runtime.GOMAXPROCS(0)}
	if err := json.NewEncoder(s.out).Encode(line); err != nil {
		return errors.Join(exit(exitNotMeasured, err), running.Close())
	}
	stop := reloading(ctx, s, running)
	c.wait(ctx, s, running)
	stop()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if err := running.Shutdown(drain); err != nil {
		return exit(exitNotMeasured, fmt.Errorf("serve %s: draining: %w", c.System, err))
	}
	if err := running.Wait(); err != nil {
		return exit(exitNotMeasured, fmt.Errorf("serve %s: it ended by itself: %w", c.System, err))
	}
	return nil
}

// config checks the flags and turns them into what a system is served with.
func (c *serveCmd) config() (cfg system.Config, err error) {
	cfg = system.Config{
		Addr: c.Addr, Unix: c.Unix, Envelope: c.Envelope, MaxBody: c.MaxBody,
		Isolation: c.Spawn.Isolation, Carrier: c.Bus.Carrier, At: c.Bus.At, Store: c.Bus.Store, PostQuantum: c.PQ,
	}
	for _, f := range []struct {
		flag, given, system string
		known               []string
	}{
		{"--envelope", c.Envelope, "ops", append(system.Envelopes(), stdio)},
		{"--isolation", c.Spawn.Isolation, "spawn", system.Isolations()},
		{"--front", c.Gateway.Front, "gateway", system.Fronts()},
		{"--set", c.Tools.Set, c.System, system.ToolSets()},
	} {
		switch {
		case f.given == "":
		case c.System != f.system:
			return cfg, usage("%s: only %s has it", f.flag, f.system)
		case !slices.Contains(f.known, f.given):
			return cfg, usage("%s %q: want one of %s", f.flag, f.given, strings.Join(f.known, ", "))
		}
	}
	if c.MaxBody < 0 {
		return cfg, usage("--max-body: %d; want at least 1", c.MaxBody)
	}
	if cfg.MCP, err = c.MCP.config(c.Envelope); err != nil {
		return cfg, err
	}
	if cfg.Tools, err = c.Tools.config(c.System, c.Envelope); err != nil {
		return cfg, err
	}
	if cfg.Reply, cfg.Delay, err = c.Null.config(); err != nil {
		return cfg, err
	}
	if cfg.Token, err = c.Bus.token(); err != nil {
		return cfg, err
	}
	if strings.HasPrefix(c.System, "bus") {
		if cfg.TLS, err = c.busTLS(); err != nil {
			return cfg, err
		}
	}
	if c.PQ && c.Cert == "" {
		return cfg, usage("--pq: needs --cert and --key")
	}
	if err := c.Gateway.config(c, &cfg); err != nil {
		return cfg, err
	}
	if c.Cert != "" && cfg.Gateway == nil && cfg.TLS == nil {
		pairs, err := c.pair()
		if err != nil {
			return cfg, err
		}
		cfg.TLS = &tls.Config{Certificates: pairs, MinVersion: tls.VersionTLS13}
	}
	return cfg, nil
}

// engine answers questions on stdin until it closes or ctx ends.
func (c *serveCmd) engine(ctx context.Context, s *streams, bench engine.Bench) error {
	if c.Addr != "" || c.Unix != "" || c.Cert != "" && c.System != "bus" || c.Envelope != "" || c.Null.Reply != "" {
		return usage("serve %s: it is asked over stdin; --addr, --unix, --cert, --envelope and --reply say nothing to it", c.System)
	}
	pacer, err := load.NewPacer()
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	defer pacer.Close()
	line := ready{"stdio:", version().Version, c.System, "go", runtime.GOMAXPROCS(0)}
	if err := json.NewEncoder(s.out).Encode(line); err != nil {
		return exit(exitNotMeasured, err)
	}
	over := make(chan error, 1)
	go func() {
		over <- engine.Serve(ctx, s.in, s.out, bench, pacer.Wait, func(line string) any {
			if line == "stats" {
				return system.Stats()
			}
			return nil
		})
	}()
	select {
	case err := <-over:
		if err != nil {
			return exit(exitNotMeasured, fmt.Errorf("serve %s: %w", c.System, err))
		}
	case <-ctx.Done():
	}
	return nil
}

// wait answers commands on stdin until it closes, ctx ends or the system stops by itself.
func (c *serveCmd) wait(ctx context.Context, s *streams, running *system.Running) {
	over := make(chan struct{}, 2)
	go func() {
		answer(s.in, s.out, running.Stats)
		over <- struct{}{}
	}()
	go func() {
		running.Wait()
		over <- struct{}{}
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// answer writes one line of JSON for each line "stats" on in, and for each line "collect" after a collection, until in ends.
// Other lines are ignored.
func answer(in io.Reader, out io.Writer, stats func() system.Usage) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		switch strings.TrimSpace(lines.Text()) {
		case "stats":
		case "collect":
			runtime.GC()
			runtime.GC() // what finalizers and pools let go in the first
		default:
			continue
		}
		if err := json.NewEncoder(out).Encode(stats()); err != nil {
			return
		}
	}
}
