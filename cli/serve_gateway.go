package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"toll/contender"
	"toll/system"
)

// gatewayFlags are those of serve that only gateway has.
type gatewayFlags struct {
	Routes   string `help:"gateway: serve the agents of a topology file by the routes in this one (YAML)." placeholder:"FILE" type:"existingfile"`
	Front    string `help:"gateway: what answers HTTP/1.1, loop (ours), nethttp, bare: the same handlers on net/http without agents, or socket: one of them on a bare socket." default:"" placeholder:"NAME"`
	Call     string `help:"gateway: what --front socket calls for each message of 160 bytes: an operation and its payload, such as 'fibonacci {\"n\":20}'." default:"" placeholder:"TEXT"`
	Remote   bool   `help:"gateway: have the agents in another process, behind a NATS server in a third; both are started with it."`
	Threads  int    `help:"gateway: how many threads Go has at work at a time, in place of as many as it finds processors for." default:"0" placeholder:"N"`
	Clients  string `help:"gateway: whether clients show a certificate, none, optional or required." default:"" placeholder:"KIND"`
	ClientCA string `name:"client-ca" help:"gateway, bus-worker: the authorities that sign clients' certificates (PEM)." placeholder:"FILE" type:"existingfile"`
	Allow    string `help:"gateway: file of the subjects and alternative names that may make requests, one a line." placeholder:"FILE" type:"existingfile"`
}

// mostThreads bounds --threads.
const mostThreads = 1024

// config checks the flags against the system and adds them to its configuration.
func (f *gatewayFlags) config(c *serveCmd, cfg *system.Config) error {
	given := map[string]bool{"--clients": f.Clients != "", "--client-ca": f.ClientCA != "", "--allow": f.Allow != ""}
	for _, name := range []string{"--clients", "--client-ca", "--allow"} {
		switch {
		case name == "--client-ca" && strings.HasPrefix(c.System, "bus"): // busTLS looks at it
		case given[name] && c.System != "gateway":
			return usage("%s: only gateway has it", name)
		case given[name] && c.Cert == "":
			return usage("%s: needs --cert and --key", name)
		}
	}
	switch {
	case f.Threads != 0 && c.System != "gateway":
		return usage("--threads: only gateway has it")
	case f.Threads < 0 || f.Threads > mostThreads:
		return usage("--threads: %d; expected 1 to %d", f.Threads, mostThreads)
	case f.Routes == "":
	case c.System != "gateway":
		return usage("--routes: only gateway has it")
	case c.Agents.Topology == "":
		return usage("--routes: name the topology file whose agents they lead to: toll serve gateway topology.yaml --routes %s", f.Routes)
	case f.Front == "bare":
		return usage("--routes: --front bare has no agents")
	}
	switch socket := f.Front == "socket"; {
	case socket && f.Call == "":
		return usage("--front socket: --call says what its messages call, such as --call 'fibonacci {\"n\":20}'")
	case f.Call != "" && !socket:
		return usage("--call: only gateway --front socket has it")
	case socket && (c.Cert != "" || f.Routes != "" || c.Bus.At != ""):
		return usage("--front socket: it has no agents, so no --routes and no --remote, and no certificates")
	}
	cfg.Call = f.Call
	cfg.Front, cfg.Routes, cfg.Threads = f.Front, f.Routes, f.Threads
	if c.System == "gateway" && c.Cert != "" {
		cfg.Gateway = &system.GatewayTLS{Cert: c.Cert, Key: c.Key, Clients: f.Clients, CA: f.ClientCA, Allow: f.Allow}
	}
	return nil
}

// reloading has a running system read its files again whenever the process gets SIGHUP, until stop.
func reloading(ctx context.Context, s *streams, running *system.Running) (stop func()) {
	hups := make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hups:
			}
			if err := running.Reload(); err != nil {
				fmt.Fprintf(s.err, "toll: %v; what was read before stays in force\n", err)
			}
		}
	}()
	return func() {
		signal.Stop(hups)
		cancel()
	}
}

// remoteGateway serves a gateway whose agents are in a process of their own, with a NATS server between them.
func (c *serveCmd) remoteGateway(ctx context.Context, s *streams) (err error) {
	dir, err := os.MkdirTemp("", "toll-")
	if err != nil {
		return exit(exitNotMeasured, fmt.Errorf("serve gateway --remote: a folder for the server: %w", err))
	}
	defer os.RemoveAll(dir)
	var started []*contender.Process
	defer func() {
		for _, p := range slices.Backward(started) {
			err = errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
		}
	}()
	at := ""
	for _, args := range [][]string{{"serve", "bus-broker", "--carrier", system.NATS, "--store", dir}, {"serve", "gateway-agents", "--at"}} {
		if at != "" {
			args = append(args, at)
		}
		p, err := startSelf(ctx, args)
		if err != nil {
			return exit(exitNotMeasured, fmt.Errorf("serve gateway --remote: %w", err))
		}
		started = append(started, p)
		at = p.Ready().Addr
	}
	c.Gateway.Remote, c.Bus.At = false, at
	return c.Run(ctx, s)
}
