package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toll/fleet"
	"toll/fleet/hub"
	"toll/lab"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/record"
	"toll/lab/result"
	"toll/suite"
)

// fleetFlags are those of run for many machines.
type fleetFlags struct {
	Workers   int           `help:"Spread a load file over so many machines: each runs 'toll worker' with the line that is printed." placeholder:"N"`
	Listen    string        `help:"Where workers connect to; on loopback, at a free port, unless given." placeholder:"HOST:PORT"`
	NATS      string        `name:"nats" help:"Use this NATS server or cluster, which must have JetStream, instead of one of our own." placeholder:"URL"`
	NKeys     string        `name:"nkeys" help:"Let in those workers whose public nkeys are in this file, one a line, instead of whoever has the token." placeholder:"FILE" type:"existingfile"`
	Token     string        `help:"What workers must know; drawn unless given." env:"TOLL_TOKEN" placeholder:"TEXT"`
	OnLoss    string        `help:"When a worker is lost: invalidate ends the run and keeps what all had delivered; continue goes on with less load." enum:"invalidate,continue" default:"invalidate" placeholder:"WHAT"`
	Rejoin    time.Duration `help:"How long a worker may be out of reach, or the workers without their coordinator." default:"15s"`
	Raw       bool          `help:"Workers keep every latency in a file of their own."`
	Resume    string        `help:"Go on with the run of this folder, whose coordinator ended." placeholder:"DIR" type:"existingdir"`
	Simulate  string        `help:"Run the coordinator against made-up workers in virtual time: workers=1000,time=60s,calls=100,loss=0.01,again=0.01,skew=1s,delay=1ms." placeholder:"LIST"`
	natsFlags `embed:""`
}

// A fleetRun is what a coordinator that is started anew must know; it lies in the run's folder.
type fleetRun struct {
	Run     string        `json:"run"`
	Listen  string        `json:"listen,omitempty"`
	NATS    string        `json:"nats,omitempty"`
	Token   string        `json:"token,omitempty"`
	Workers int           `json:"workers"`
	OnLoss  string        `json:"on_loss"`
	Rejoin  plan.Duration `json:"rejoin"`
	Seed    int64         `json:"seed"`
	Raw     bool          `json:"raw,omitempty"`
}

// The files of a fleet's folder.
const (
	fleetRunFile  = "run.json"
	fleetPlanFile = "plan.yaml"
	fleetStore    = "jetstream"
)

// runFleet conducts a load that other machines put on its target.
func (c *runCmd) runFleet(ctx context.Context, s *streams) error {
	r, text, dir, err := c.fleetRun()
	if err != nil {
		return err
	}
	cfg, settings, thresholds, err := readLoad(fleetPlanFile, text)
	if err != nil {
		return exit(exitUsage, err)
	}
	p, kind, err := suite.LoadPlan(cfg, settings)
	if err != nil {
		return usage("--workers: %w", err)
	}
	p.Thresholds = thresholds
	build, err := fleetBuild()
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	fc := fleet.Config{
		Run: r.Run, Plan: text, Settings: settings, Workers: r.Workers, OnLoss: r.OnLoss, Rejoin: time.Duration(r.Rejoin), Seed: r.Seed, Build: build, Raw: r.Raw,
	}
	if err := fc.Check(); err != nil {
		return usage("--workers: %w", err)
	}
	back := spare(r.Workers)
	defer back()
	access, stop, err := c.server(r, dir)
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	defer stop()
	if err := saveRun(dir, r, text); err != nil {
		return exit(exitNotMeasured, err)
	}
	conductor, err := hub.Conduct(ctx, access, fc)
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	defer conductor.Close()
	fmt.Fprintf(s.err, "toll: run %s waits for %d workers; on each machine: toll worker %s%s\n", r.Run, r.Workers, c.joinURL(access.URL, r), map[bool]string{true: " --join " + r.Run}[r.NATS != ""])
	fmt.Fprintf(s.err, "toll: should this process end, go on with: toll run --resume %s\n", dir)
	watch := watchFleet(s.err, conductor)
	defer watch()
	f := &fleetOpener{conductor: conductor, plan: p, back: back}
	_, err = conduct(ctx, s, conducting{
		plan: p, open: &suite.Opener{Opener: f, Hop: result.Hop{Kind: kind}}, settings: settings, claimed: settings, seed: r.Seed, out: c.Out, json: c.JSON, strict: c.Strict,
		annotate: f.annotate,
	})
	if f.failed != nil {
		err = exit(exitNotMeasured, f.failed)
	}
	if report := conductor.Report(); report != nil && (report.Whole() || !f.started) {
		err = errors.Join(err, conductor.Forget(ctx))
		stop()
		os.RemoveAll(dir)
	}
	return err
}

// fleetRun is a new run by the flags, or the one that is to go on.
func (c *runCmd) fleetRun() (r fleetRun, text []byte, dir string, err error) {
	if c.Fleet.Resume != "" {
		data, err := os.ReadFile(filepath.Join(c.Fleet.Resume, fleetRunFile))
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err == nil {
			text, err = os.ReadFile(filepath.Join(c.Fleet.Resume, fleetPlanFile))
		}
		if err != nil {
			return r, nil, "", usage("--resume: %w", err)
		}
		return r, text, c.Fleet.Resume, nil
	}
	if len(c.What) != 1 || !strings.HasSuffix(c.What[0], ".yaml") && !strings.HasSuffix(c.What[0], ".yml") {
		return r, nil, "", usage("--workers: name one load file (*.yaml, benchmark: load); benchmarks that start their contenders run from one machine")
	}
	if text, err = os.ReadFile(c.What[0]); err != nil {
		return r, nil, "", exit(exitUsage, err)
	}
	if _, _, _, err := readLoad(c.What[0], text); err != nil {
		return r, nil, "", exit(exitUsage, err)
	}
	id := make([]byte, 4)
	rand.Read(id)
	r = fleetRun{
		Run: time.Now().UTC().Format("20060102T150405-") + hex.EncodeToString(id), Listen: c.Fleet.Listen, NATS: c.Fleet.NATS, Workers: c.Fleet.Workers,
		OnLoss: c.Fleet.OnLoss, Rejoin: plan.Duration(c.Fleet.Rejoin), Seed: cmp.Or(c.Seed, 1+time.Now().UnixNano()%9999), Raw: c.Fleet.Raw,
	}
	if r.Token = c.Fleet.Token; r.NATS == "" && c.Fleet.NKeys == "" && r.Token == "" {
		secret := make([]byte, 16)
		rand.Read(secret)
		r.Token = hex.EncodeToString(secret)
	}
	return r, text, filepath.Join(c.Out, "fleet-"+r.Run), nil
}

// saveRun leaves what a coordinator that is started anew must know. The folder is its owner's alone: it holds the token.
func saveRun(dir string, r fleetRun, text []byte) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the run's folder: %w", err)
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, fleetRunFile), data, 0o600), os.WriteFile(filepath.Join(dir, fleetPlanFile), text, 0o600))
}

// server starts the NATS server of a run, unless there is one, and fills in where it listens.
func (c *runCmd) server(r fleetRun, dir string) (access hub.Access, stop func(), err error) {
	config, err := c.Fleet.tls()
	if err != nil {
		return access, nil, err
	}
	if r.NATS != "" {
		url, err := withToken(r.NATS, r.Token)
		return hub.Access{URL: url, Seed: c.Fleet.NKey, TLS: config}, func() {}, err
	}
	sc := hub.ServerConfig{Addr: r.Listen, Store: filepath.Join(dir, fleetStore), Token: r.Token, TLS: config}
	if c.Fleet.NKeys != "" {
		if sc.NKeys, err = readNKeys(c.Fleet.NKeys); err != nil {
			return access, nil, err
		}
		if c.Fleet.NKey == "" {
			return access, nil, errors.New("--nkeys: the coordinator connects to its own server, so give --nkey with a seed whose public key is in the file")
		}
	}
	srv, err := hub.StartServer(sc)
	if err != nil {
		return access, nil, err
	}
	ended := false
	access = hub.Access{URL: "nats://" + srv.Addr(), Seed: c.Fleet.NKey, TLS: config, Server: srv}
	if r.Token != "" {
		access.URL = "nats://" + r.Token + "@" + srv.Addr()
	}
	return access, func() {
		if !ended {
			ended = true
			srv.Close()
		}
	}, nil
}

func readNKeys(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--nkeys: %w", err)
	}
	var out []string
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !hub.CheckKey(line) {
			return nil, fmt.Errorf("--nkeys: %s:%d: not the public nkey of a user, which begins with U", file, i+1)
		}
		out = append(out, line)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--nkeys: %s names nobody", file)
	}
	return out, nil
}

// joinURL is where workers connect to. One that listens on every address is named by a word for ours.
func (c *runCmd) joinURL(text string, r fleetRun) string {
	u, err := url.Parse(text)
	if err != nil || r.NATS != "" {
		return text
	}
	if host, port, err := net.SplitHostPort(u.Host); err == nil {
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			name, err := os.Hostname()
			if err != nil {
				name = "HOST"
			}
			u.Host = net.JoinHostPort(name, port)
		}
	}
	if c.Fleet.Cert != "" {
		u.Scheme = "tls"
	}
	return u.String()
}

// withToken puts a token into a URL that has none.
func withToken(text, token string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("URL %q: want nats://TOKEN@HOST:PORT", text)
	}
	if token != "" && u.User == nil {
		u.User = url.User(token)
	}
	return u.String(), nil
}

// watchFleet prints what happens to the fleet, until it is stopped.
func watchFleet(w io.Writer, c *hub.Conductor) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second) // there is a new report as often
		defer tick.Stop()
		workers, events := 0, 0
		for {
			last := false
			select {
			case <-over:
				last = true
			case <-tick.C:
			}
			r := c.Report()
			if r == nil {
				if last {
					return
				}
				continue
			}
			if n := len(r.Members); n != workers {
				workers = n
				fmt.Fprintf(w, "toll: %d of %d workers\n", n, r.Workers)
			}
			for ; events < len(r.Events); events++ {
				e := r.Events[events]
				fmt.Fprintf(w, "toll: %.1f s: %s\n", e.At.Seconds(), strings.TrimSpace(strings.Trim(e.Worker+": "+e.What, ": ")))
			}
			if last {
				return
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

// A fleetOpener seats a fleet as one contender: to the lab it is a crowd like any other.
type fleetOpener struct {
	conductor *hub.Conductor
	plan      plan.Plan
	cpu       time.Duration // of this process when the load started
	started   bool
	failed    error
	report    *fleet.Report
	spent     time.Duration // of this process during the load
	back      func()        // puts back what the process was spared
}

// Open waits until the fleet is ready.
func (f *fleetOpener) Open(ctx context.Context, _ lab.Setting) (lab.Set, error) {
	select {
	case <-f.conductor.Started():
	case <-f.conductor.Done():
		r, err := f.conductor.Wait(ctx)
		if err == nil {
			err = errors.New(r.Verdict.String())
		}
		f.failed = err
		return lab.Set{}, err
	case <-ctx.Done():
		return lab.Set{}, ctx.Err()
	}
	f.cpu, f.started = record.ReadCPU(), true
	r := f.conductor.Report()
	e := lab.Entry{
		Contender: result.Contender{Name: f.plan.Contenders[0]}, Connections: "per-caller", Target: fleetTarget{f, false},
		Unseen: "called by its address, from other machines; toll did not start it and does not see its process",
	}
	remarks := make(map[string]bool)
	for _, m := range r.Members {
		k := m.Calibration
		if k == nil {
			continue
		}
		e.Client = k.Client
		e.Unverified = e.Unverified || k.Unverified
		if k.TLS != "" {
			e.TLS = &result.TLS{ServerVerified: true, ClientVerified: k.TLS == "mutual", Resumption: "off"}
		}
		for _, x := range k.Remarks {
			remarks[x] = true
		}
	}
	set := lab.Set{Entries: []lab.Entry{e}}
	if len(f.plan.Contenders) > 1 {
		set.Entries = append(set.Entries, lab.Entry{
			Contender: result.Contender{Name: result.Null, Language: "go"}, Role: result.Null, Connections: "per-caller", Target: fleetTarget{f, true}, Client: e.Client,
			Unseen: "each worker had a null target of its own, which it ended before the load",
		})
	}
	return set, nil
}

// A fleetTarget gathers the fleet, or what it measured of its null targets.
type fleetTarget struct {
	fleet *fleetOpener
	null  bool
}

var errNoCaller = errors.New("the workers call it, not this machine")

// Open has nothing to open here.
func (fleetTarget) Open(context.Context) (load.Caller, error) { return nil, errNoCaller }

// Gather makes the crowd.
func (t fleetTarget) Gather(context.Context, int) (load.Crowd, error) {
	return &fleetCrowd{fleetTarget: t, warm: new(record.Shard)}, nil
}

// A fleetCrowd is the workers.
type fleetCrowd struct {
	fleetTarget
	warmed bool
	warm   *record.Shard // filled in when the fleet is done: the workers warm up in the same go
}

// Close has nothing to close: the workers end by themselves.
func (*fleetCrowd) Close() error { return nil }

// Run waits for the fleet. The lab's first run is the warm-up.
func (c *fleetCrowd) Run(ctx context.Context, _ load.Load) (load.Outcome, error) {
	f := c.fleet
	if !c.warmed {
		c.warmed = true
		return load.Outcome{Slices: []load.Slice{{Stage: 1, Shard: c.warm}}}, nil
	}
	if c.null {
		return f.conductor.Report().Calibrations()
	}
	r, err := f.conductor.Wait(ctx)
	f.spent = record.ReadCPU() - f.cpu
	f.back()
	if err == nil && r.Verdict.Word == fleet.Refused {
		err = errors.New(r.Verdict.String())
	}
	if err != nil {
		f.failed = err
		return load.Outcome{}, err
	}
	f.report = r
	out, warm := r.Outcome()
	c.warm.Merge(warm)
	return out, nil
}

// annotate says of the document what only the fleet knows.
func (f *fleetOpener) annotate(d *result.Document) {
	if f.report == nil {
		return
	}
	var theirs time.Duration
	for _, m := range f.report.Members {
		if m.Totals != nil {
			theirs += m.Totals.CPU
		}
	}
	var control *float64
	if theirs > 0 {
		control = result.Ptr(result.Round5(f.spent.Seconds() / theirs.Seconds()))
	}
	if d.Method.Hop.MeasuredRTT == nil {
		for _, m := range f.report.Members {
			if m.Calibration != nil && m.Calibration.RTT != nil {
				d.Method.Hop.MeasuredRTT = result.Ptr(max(*m.Calibration.RTT, cmp.Or(valueOf(d.Method.Hop.MeasuredRTT), 0)))
			}
		}
	}
	f.report.Annotate(d, control)
}

func valueOf(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}
