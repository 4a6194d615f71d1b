package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"toll/contender"
	"toll/driver"
	"toll/lab"
	"toll/lab/plan"
	"toll/lab/result"
	"toll/system"
)

// ErrRefused is why a target can't be measured: a port refuses, or its processes are not those that the plan wants.
var ErrRefused = errors.New("the target is not ready")

const (
	preflightTimeout = 3 * time.Second // of each port
	mostAnswer       = 1 << 20         // bytes of a host's answer
)

// A remote is the processes of a host on another machine.
type remote struct {
	host   string // name or address, without a port
	base   string // http://host:port
	client *http.Client
	report hostReport
}

// preflight makes sure that a target can be called before any load is put on it, and names each port that refuses.
func (h *house) preflight(ctx context.Context, benchmark string) error {
	target := h.ground.Target
	if benchmark == "bus" {
		return h.preflightBus(ctx)
	}
	host, base, err := hostAddr(target)
	if err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	r := &remote{host: host, base: "http://" + net.JoinHostPort(host, strconv.Itoa(base)), client: &http.Client{Timeout: preflightTimeout}}
	if err := r.get(ctx, "/v1/host", &r.report); err != nil {
		return fmt.Errorf("%w: %w; start there: toll serve %s-host --addr %s", ErrRefused, err, benchmark, net.JoinHostPort(host, strconv.Itoa(base)))
	}
	switch {
	case r.report.Schema != hostSchema:
		return fmt.Errorf("%w: %s answers with schema %q; want %s", ErrRefused, target, r.report.Schema, hostSchema)
	case r.report.Benchmark != benchmark:
		return fmt.Errorf("%w: %s serves the benchmark %s, not %s", ErrRefused, target, r.report.Benchmark, benchmark)
	case r.report.Limits != h.plan.Limits && !h.ground.AllowUnlimited:
		return fmt.Errorf("%w: the plan limits contenders to %s, %s limits them to %s: start it with that, or give --cpus and --memory here, or --allow-unlimited",
			ErrRefused, h.plan.Limits, target, r.report.Limits)
	}
	var ports []string
	for _, p := range r.report.Processes {
		if slices.Contains(h.plan.Contenders, p.Name) {
			at, err := r.at(p)
			if err != nil {
				return fmt.Errorf("%w: %s: %w", ErrRefused, p.Name, err)
			}
			ports = append(ports, at.Host)
		}
	}
	h.remote = r
	return refused(ctx, ports)
}

// preflightBus looks at the ports of the carriers that the plan calls.
func (h *house) preflightBus(ctx context.Context) error {
	host, base, err := system.BusHost(h.ground.Target)
	if err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	var ports []string
	for _, c := range h.plan.Contenders {
		if slices.Contains(system.Carriers(), c) && c != system.Inproc {
			ports = append(ports, system.BusAddr(host, base, c))
		}
	}
	if err := refused(ctx, ports); err != nil {
		return fmt.Errorf("%w; start there: toll serve bus-host --addr %s", err, net.JoinHostPort(host, strconv.Itoa(base)))
	}
	return nil
}

// refused names each of the ports that nothing answers at.
func refused(ctx context.Context, ports []string) error {
	var bad []string
	for _, p := range ports {
		short, cancel := context.WithTimeout(ctx, preflightTimeout)
		nc, err := new(net.Dialer).DialContext(short, "tcp", p)
		cancel()
		if err != nil {
			bad = append(bad, p+" ("+cause(err)+")")
			continue
		}
		nc.Close()
	}
	if bad != nil {
		return fmt.Errorf("%w: no answer at %s", ErrRefused, strings.Join(bad, ", "))
	}
	return nil
}

// cause is the innermost of an error's reasons: connection refused.
func cause(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// get asks the host.
func (r *remote) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, "GET", r.base+path, nil)
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return fmt.Errorf("no answer at %s (%s)", strings.TrimPrefix(r.base, "http://"), cause(err))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", r.base, err)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s%s answers %s: %s", r.base, path, resp.Status, strings.TrimSpace(string(text[:min(len(text), 200)])))
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s%s: its answer is not the host's of a benchmark: %w", r.base, path, err)
	}
	return nil
}

// at is where a process of the host is reached from here.
func (r *remote) at(p hostProcess) (*url.URL, error) {
	u, err := url.Parse(p.Addr)
	if err != nil || u.Scheme != "http" && u.Scheme != "tcp" || u.Port() == "" {
		return nil, fmt.Errorf("its address is %q; expected one such as http://host:port", p.Addr)
	}
	u.Host = net.JoinHostPort(r.host, u.Port())
	return u, nil
}

// find returns the number and the place of a seat's process.
func (r *remote) find(s seat) (int, *url.URL, error) {
	role := ""
	if s.role == result.Control {
		role = s.role
	}
	for i, p := range r.report.Processes {
		if p.Name == s.contender.Name && p.Role == role {
			at, err := r.at(p)
			return i, at, err
		}
	}
	return 0, nil, &unplaced{fmt.Errorf("the target %s does not serve it", r.host)}
}

// enter seats a process of the target in place of one of ours.
func (h *house) enter(s seat) (*lab.Entry, error) {
	switch {
	case s.engine != nil, s.line != nil:
		return nil, &unplaced{errors.New("it is asked over its standard input, which reaches no other machine")}
	case s.tls != nil:
		return nil, &unplaced{errors.New("over mutual TLS: the certificates of a run are made where it runs, and the target has none of them")}
	case s.target == nil:
		return nil, &unplaced{errors.New("it is not called over a connection")}
	}
	i, at, err := h.remote.find(s)
	if err != nil {
		return nil, err
	}
	c := s.contender
	c.Version, c.CommandSHA256 = h.remote.report.Version, h.remote.report.Processes[i].SHA256
	wire := new(driver.Wire)
	ready := contender.Ready{Addr: at.String(), Version: c.Version}
	return &lab.Entry{
		Contender: c, Role: s.role, Connections: max(s.connections, "per-caller"), Clear: s.clear, Unverified: s.unverified, Client: s.client,
		Process: away{h.remote, i}, Target: s.target(ready, nil), Metered: s.target(ready, wire), Idle: s.idle,
		Wire: func() (out, in int64) { return wire.Out.Load(), wire.In.Load() },
	}, nil
}

// An away is a process of a host on another machine, as far as the host tells.
type away struct {
	remote *remote
	number int
}

// Usage asks the host.
func (a away) Usage() (lab.Usage, error) {
	u, err := a.ask(context.Background(), false)
	if err != nil {
		return lab.Usage{}, err
	}
	d := func(us float64) time.Duration { return time.Duration(us * 1e3) }
	return lab.Usage{
		CPU: d(u.CPU), User: d(u.User), System: d(u.System), RSSPeak: u.RSSPeak, Threads: u.Threads,
		Limited: lab.Limited{Mechanism: u.Mechanism, Throttled: d(u.Throttled), MemoryPeak: u.MemoryPeak, OOMKills: u.OOMKills, Known: u.Counted},
	}, nil
}

func (a away) ask(ctx context.Context, counters bool) (hostUsage, error) {
	var u hostUsage
	err := a.remote.get(ctx, usagePath(a.number, counters), &u)
	return u, err
}

// Counters asks the host, which asks the process.
func (a away) Counters(ctx context.Context) (lab.Counters, error) {
	u, err := a.ask(ctx, true)
	switch {
	case err != nil:
		return lab.Counters{}, err
	case u.Allocs == nil || u.AllocBytes == nil:
		return lab.Counters{}, errors.New("its stats do not count allocations")
	}
	return lab.Counters{Allocs: *u.Allocs, AllocBytes: *u.AllocBytes, Heap: u.Heap, GOMAXPROCS: u.GOMAXPROCS}, nil
}

// Stop leaves it alone: it serves the next run as well.
func (away) Stop(context.Context) error { return nil }

// targets are the benchmarks whose processes can be on another machine.
func targets() []string { return []string{"bus", "gateway", "spawn"} }

// checkTarget says what is wrong with a target or faults for a benchmark; nil where both are fine.
func (g *Ground) checkTarget(benchmark string, p plan.Plan) error {
	switch {
	case g.Fault != "" && benchmark != "bus":
		return fmt.Errorf("benchmark %s: --fault is for the benchmark bus only", benchmark)
	case g.Token != "" && benchmark != "bus":
		return fmt.Errorf("benchmark %s: --token-file is for the benchmark bus only", benchmark)
	case g.Target != "" && !slices.Contains(targets(), benchmark):
		return fmt.Errorf("benchmark %s: --target is for the benchmarks %s", benchmark, strings.Join(targets(), ", "))
	case g.Target != "" && p.Hop != "" && p.Hop != "loopback":
		return fmt.Errorf("--target %s: the hop %s is to processes of this machine; give one of them", g.Target, p.Hop)
	}
	return nil
}
