package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"

	"toll/contender"
	"toll/contender/faults"
	"toll/system"
)

// busFlags are those of serve that only the processes of the bus have.
type busFlags struct {
	Carrier string `help:"bus: how it is reached, inproc, direct, direct-mailbox, routed, nats, zmtp, zmtp-proxy, nats-go or floor." placeholder:"NAME"`
	At      string `help:"bus: where it connects to, a worker, a router, a NATS server or a proxy. Without it, bus starts what it needs. gateway, gateway-agents: the NATS server, with JetStream, that gateways and agents meet at." placeholder:"ADDR"`
	Store   string `help:"bus-broker, nats: keep streams and buckets in this folder." placeholder:"DIR"`
	Own     bool   `help:"bus: a connection for each caller instead of one for all."`
	Token   string `name:"token-file" help:"bus and its processes: file with a secret that who connects shows and who listens wants; without it anybody who can connect can register and route." placeholder:"FILE" type:"existingfile"`
	CA      string `name:"cacert" help:"bus: connect over TLS and verify the worker at --at by these authorities (PEM); --cert and --key are then our own." placeholder:"FILE" type:"existingfile"`
	Fault   string `help:"bus: spoil the connection, such as delay=5ms,jitter=1ms,drop=0.001,replay=0.01,reset=0.001,split=1; up. or down. in front of a name is one direction." placeholder:"LIST"`
}

// busEngine is the calling process of the bus benchmark. Unless --at says where they are, it starts the processes that it
// calls: a worker and, where one stands between, a broker.
func (c *serveCmd) busEngine(ctx context.Context, s *streams) error {
	if !slices.Contains(system.Carriers(), c.Bus.Carrier) {
		return usage("serve bus: --carrier %q: want one of %s", c.Bus.Carrier, strings.Join(system.Carriers(), ", "))
	}
	token, err := c.Bus.token()
	if err != nil {
		return err
	}
	secure, err := c.busTLS()
	if err != nil {
		return err
	}
	at, stop, err := c.busProcesses(ctx)
	if err != nil {
		return exit(exitNotMeasured, fmt.Errorf("serve bus: %w", errors.Join(err, stop())))
	}
	spoiled, restore, err := c.spoil(at)
	if err != nil {
		return errors.Join(err, stop())
	}
	client := system.NewBusClient(c.Bus.Carrier, spoiled, token, c.Bus.Own)
	client.Secure(secure)
	err = c.engine(ctx, s, client.Bench)
	return errors.Join(err, client.Close(), restore(), stop())
}

// token reads the secret; without a file it is empty.
func (f *busFlags) token() (string, error) {
	if f.Token == "" {
		return "", nil
	}
	data, err := os.ReadFile(f.Token)
	if err != nil {
		return "", usage("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < shortestToken || len(token) > system.LongestToken {
		return "", usage("--token-file %s: the secret has %d bytes; want %d to %d", f.Token, len(token), shortestToken, system.LongestToken)
	}
	return token, nil
}

// shortestToken is how many bytes of a secret nobody guesses.
const shortestToken = 16

// args hands the flags that are for all processes of the bus on to one that we start.
func (f *busFlags) args() []string {
	if f.Token == "" {
		return nil
	}
	return []string{"--token-file", f.Token}
}

// spoil stands the fault proxy between the client and what it connects to. The proxy works in the client's process, and what
// it costs is the client's.
func (c *serveCmd) spoil(at string) (spoiled string, restore func() error, err error) {
	if c.Bus.Fault == "" {
		return at, func() error { return nil }, nil
	}
	f, err := faults.Parse(c.Bus.Fault)
	if err != nil {
		return "", nil, usage("--fault: %w", err)
	}
	hostport, tcp := strings.CutPrefix(strings.Replace(at, "tls://", "tcp://", 1), "tcp://")
	if !tcp || c.Bus.Carrier == system.ZMTPProxy {
		return "", nil, usage("--fault: carrier %s does not connect over one TCP address", c.Bus.Carrier)
	}
	p, err := faults.Listen("tcp", hostport, f)
	if err != nil {
		return "", nil, exit(exitNotMeasured, err)
	}
	return "tcp://" + p.Addr().String(), p.Close, nil
}

// busHost starts a worker for every carrier, and the brokers between, at the ports where run --target looks for them. Without
// a token they answer whoever connects: that is for a network of one's own.
func (c *serveCmd) busHost(ctx context.Context, s *streams) error {
	host, base, err := system.BusHost(c.Addr)
	if err != nil {
		return usage("serve bus-host: --addr: %w", err)
	}
	if _, err := c.Bus.token(); err != nil {
		return err
	}
	if _, err := c.busTLS(); err != nil {
		return err
	}
	if ip := net.ParseIP(host); c.Bus.Token == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		fmt.Fprintf(s.err, "toll: serve bus-host: anybody who can reach %s can register and route; give --token-file here and to run\n", host)
	}
	var started []*contender.Process
	stop := func() error {
		var errs []error
		for _, p := range slices.Backward(started) {
			errs = append(errs, p.Stop(context.WithoutCancel(ctx)))
		}
		return errors.Join(errs...)
	}
	for _, carrier := range system.Carriers() {
		at := ""
		for _, args := range system.BusProcesses(carrier) {
			if at == "" {
				args = append(args, "--addr", system.BusAddr(host, base, carrier))
			} else {
				args = append(args, "--at", at)
			}
			if carrier != system.SocketFloor {
				args = append(args, c.Bus.args()...)
			}
			p, err := startSelf(ctx, append([]string{"serve"}, args...))
			if err != nil {
				return exit(exitNotMeasured, fmt.Errorf("serve bus-host: %w", errors.Join(err, stop())))
			}
			started = append(started, p)
			at = p.Ready().Addr
		}
	}
	line := ready{"tcp://" + system.BusAddr(host, base, system.Carriers()[0]), version().Version, c.System, "go", runtime.GOMAXPROCS(0)}
	if err := json.NewEncoder(s.out).Encode(line); err != nil {
		return errors.Join(exit(exitNotMeasured, err), stop())
	}
	over := make(chan struct{})
	go func() {
		answer(s.in, s.out, system.Stats)
		close(over)
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
	return stop()
}

func startSelf(ctx context.Context, args []string) (*contender.Process, error) {
	spec, err := contender.Self(args...)
	if err != nil {
		return nil, err
	}
	return contender.Start(ctx, spec)
}

// busProcesses starts what the carrier needs and returns where callers connect.
func (c *serveCmd) busProcesses(ctx context.Context) (at string, stop func() error, err error) {
	var started []*contender.Process
	stop = func() error {
		var errs []error
		for _, p := range slices.Backward(started) {
			errs = append(errs, p.Stop(context.WithoutCancel(ctx)))
		}
		return errors.Join(errs...)
	}
	if c.Bus.At != "" || c.Bus.Carrier == system.Inproc {
		return c.Bus.At, stop, nil
	}
	for _, args := range system.BusProcesses(c.Bus.Carrier) {
		if at != "" {
			args = append(args, "--at", at)
		}
		if c.Bus.Carrier != system.SocketFloor {
			args = append(args, c.Bus.args()...)
		}
		p, err := startSelf(ctx, append([]string{"serve"}, args...))
		if err != nil {
			return "", stop, err
		}
		started = append(started, p)
		at = p.Ready().Addr
	}
	return at, stop, nil
}
