package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"toll/contender"
	"toll/contender/limits"
	"toll/lab/plan"
	"toll/lab/result"
)

// hostSchema names what a host says of itself.
const hostSchema = "toll.host/v1"

// hostBase is the port at which a host answers; its processes listen at the ports behind it.
const hostBase = 7440

// A hostReport is what a host of a benchmark answers to GET /v1/host: the processes that another machine's run calls.
type hostReport struct {
	Schema    string        `json:"schema"`
	Benchmark string        `json:"benchmark"`
	Version   string        `json:"version"`
	Limits    plan.Quota    `json:"limits"`
	Processes []hostProcess `json:"processes"`
}

// A hostProcess is one contender, served.
type hostProcess struct {
	Name   string `json:"name"`
	Role   string `json:"role"` // control for the baseline's second
	Addr   string `json:"addr"` // as the process named it; its port counts
	SHA256 string `json:"command_sha256"`
}

// A hostUsage is what a host answers to GET /v1/host/usage?process=NUMBER: what one process has used so far. Times are µs.
type hostUsage struct {
	CPU        float64 `json:"cpu_us"`
	User       float64 `json:"user_us"`
	System     float64 `json:"system_us"`
	RSSPeak    int64   `json:"rss_peak"`
	Threads    int     `json:"threads"`
	Mechanism  string  `json:"limits_mechanism"`
	Counted    bool    `json:"limits_counted"` // what follows is known
	Throttled  float64 `json:"throttled_us"`
	MemoryPeak int64   `json:"memory_peak"`
	OOMKills   int64   `json:"oom_kills"`

	Allocs     *int64 `json:"allocs"` // null where the process does not say, or was not asked (&counters=1)
	AllocBytes *int64 `json:"alloc_bytes"`
	Heap       int64  `json:"heap"`
	GOMAXPROCS int    `json:"gomaxprocs"`
}

// A hosted is one process of a host, in the order of the ports.
type hosted struct {
	name, role string
	args       []string
}

// hostedOf lists the processes of a benchmark's host: its contenders by name, the baseline's control, and the floor.
func hostedOf(benchmark string) ([]hosted, error) {
	serves := make(map[string][]string)
	baseline := "nethttp"
	switch benchmark {
	case "gateway":
		for name, f := range fronts() {
			if f.role != result.Null && !f.clear && name != socketName { // which calls one thing only, chosen when it starts
				serves[name] = f.serve
			}
		}
	case "spawn":
		all, base := spawners(keepPhase)
		baseline = base
		for name, o := range all {
			if o.role != result.Null {
				serves[name] = o.serve
			}
		}
	default:
		return nil, fmt.Errorf("benchmark %q has no host of its processes; gateway and spawn have", benchmark)
	}
	var out []hosted
	for _, name := range slices.Sorted(maps.Keys(serves)) {
		out = append(out, hosted{name, "", serves[name]})
		if name == baseline {
			out = append(out, hosted{name, result.Control, serves[name]})
		}
	}
	return out, nil
}

// hostAddr parses host:port, host or nothing.
func hostAddr(addr string) (host string, base int, err error) {
	if addr == "" {
		return "127.0.0.1", hostBase, nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return strings.Trim(addr, "[]"), hostBase, nil
	}
	const behind = 16 // processes at most
	base, err = strconv.Atoi(port)
	if err != nil || base < 0 || base > 65535-behind {
		return "", 0, fmt.Errorf("port %q: want 1 to %d, with free ones behind it, or 0 for any", port, 65535-behind)
	}
	return host, base, nil
}

// A Host is the processes of a benchmark, for a run on another machine. It answers whoever asks what they use: it is for a
// network of one's own.
type Host struct {
	Addr string // where it answers

	report    hostReport
	processes []*contender.Process
	server    *http.Server
	listener  net.Listener
	over      sync.WaitGroup
}

// OpenHost starts every process of a benchmark's host, each under the limits, which instruments do not have, and answers at
// addr. It must be closed.
func OpenHost(ctx context.Context, benchmark, addr, version string, lim plan.Quota, allowUnlimited bool) (*Host, error) {
	all, err := hostedOf(benchmark)
	if err != nil {
		return nil, err
	}
	name, base, err := hostAddr(addr)
	if err != nil {
		return nil, fmt.Errorf("--addr: %w", err)
	}
	ground, err := GroundOf(plan.Plan{Settings: plan.Settings{Limits: lim}}, allowUnlimited)
	if err != nil {
		return nil, err
	}
	h := &Host{report: hostReport{Schema: hostSchema, Benchmark: benchmark, Version: version, Limits: lim}}
	if h.listener, err = net.Listen("tcp", net.JoinHostPort(name, strconv.Itoa(base))); err != nil {
		return nil, err
	}
	for i, x := range all {
		port := base + 1 + i
		if base == 0 {
			port = 0 // whichever is free: the report says
		}
		if err := h.start(ctx, x, net.JoinHostPort(name, strconv.Itoa(port)), ground.Limits, allowUnlimited); err != nil {
			return nil, errors.Join(err, h.Close())
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/host", func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(h.report) })
	mux.HandleFunc("GET /v1/host/usage", h.usage)
	h.Addr = "http://" + h.listener.Addr().String()
	h.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
	h.over.Go(func() { h.server.Serve(h.listener) })
	return h, nil
}

func (h *Host) start(ctx context.Context, x hosted, addr string, lim limits.Limits, allowUnlimited bool) error {
	spec, err := contender.Self(append(append([]string{"serve"}, x.args...), "--addr", addr)...)
	if err != nil {
		return err
	}
	if x.name != result.Floor {
		spec.Limits, spec.AllowUnlimited = lim, allowUnlimited
	}
	plain, _ := contender.Self(append([]string{"serve"}, x.args...)...)
	p, err := contender.Start(ctx, spec)
	if err != nil {
		return fmt.Errorf("%s at %s: %w", x.name, addr, err)
	}
	h.processes = append(h.processes, p)
	h.report.Processes = append(h.report.Processes, hostProcess{x.name, x.role, p.Ready().Addr, plain.Digest()})
	return nil
}

// usage answers what one process has used.
func (h *Host) usage(w http.ResponseWriter, r *http.Request) {
	i, err := strconv.Atoi(r.FormValue("process"))
	if err != nil || i < 0 || i >= len(h.processes) {
		http.Error(w, fmt.Sprintf("process %q: want 0 to %d", r.FormValue("process"), len(h.processes)-1), http.StatusBadRequest)
		return
	}
	p := process{p: h.processes[i]}
	u, err := p.Usage()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	out := hostUsage{
		CPU: us(u.CPU), User: us(u.User), System: us(u.System), RSSPeak: u.RSSPeak, Threads: u.Threads,
		Mechanism: u.Limited.Mechanism, Counted: u.Limited.Known, Throttled: us(u.Limited.Throttled), MemoryPeak: u.Limited.MemoryPeak, OOMKills: u.Limited.OOMKills,
	}
	if r.FormValue("counters") != "" {
		if c, err := p.Counters(r.Context()); err == nil {
			out.Allocs, out.AllocBytes, out.Heap, out.GOMAXPROCS = &c.Allocs, &c.AllocBytes, c.Heap, c.GOMAXPROCS
		}
	}
	json.NewEncoder(w).Encode(out)
}

// Close stops the processes.
func (h *Host) Close() error {
	var errs []error
	if h.server != nil {
		errs = append(errs, h.server.Close())
	} else {
		errs = append(errs, h.listener.Close())
	}
	h.over.Wait()
	for _, p := range slices.Backward(h.processes) {
		errs = append(errs, p.Stop(context.Background()))
	}
	return errors.Join(errs...)
}

// usagePath asks a host about a process.
func usagePath(process int, counters bool) string {
	v := url.Values{"process": {strconv.Itoa(process)}}
	if counters {
		v.Set("counters", "1")
	}
	return "/v1/host/usage?" + v.Encode()
}
