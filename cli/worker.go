package cli

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"toll/fleet"
	"toll/fleet/hub"
	"toll/lab/env"
	"toll/lab/load"
	"toll/suite"
)

type workerCmd struct {
	URL  string        `arg:"" optional:"" help:"The line that the coordinator printed: nats://TOKEN@HOST:PORT."`
	Name string        `help:"What this worker is called: letters, digits, - and _. Drawn unless given." placeholder:"NAME"`
	Join string        `help:"Take part in this run only." placeholder:"RUN"`
	Dir  string        `help:"Folder for the file that keeps what this worker measured." default:"results/worker"`
	Wait time.Duration `help:"How long to look for the coordinator." default:"1m"`

	Token     string `help:"The token, where the URL has none." env:"TOLL_TOKEN" placeholder:"TEXT"`
	NewNKey   string `name:"new-nkey" help:"Draw an nkey, leave its seed in this new file, print the public key, and end." placeholder:"FILE"`
	natsFlags `embed:""`

	TargetCA   string `name:"cacert" help:"Verify the target by these authorities (PEM) instead of the system's." placeholder:"FILE" type:"existingfile"`
	TargetCert string `name:"cert" help:"Client certificate for the target (PEM)." placeholder:"FILE" type:"existingfile"`
	TargetKey  string `name:"key" help:"Its key (PEM)." placeholder:"FILE" type:"existingfile"`
}

// Help shows how it is used.
func (workerCmd) Help() string {
	return `Dials out to the coordinator that 'toll run PLAN --workers N' started, measures its segment of the plan, and ends when the coordinator has everything. What it measures is in its own file first.

  toll worker nats://TOKEN@192.0.2.7:4222
  TOLL_TOKEN=… toll worker nats://192.0.2.7:4222 --name $(hostname -s)
  toll worker --new-nkey worker.nk
  toll worker nats://192.0.2.7:4222 --nkey worker.nk
  toll worker tls://192.0.2.7:4222 --nats-ca ca.pem --nats-cert me.pem --nats-key me-key.pem

Exit: 0 the coordinator has everything, 2 bad usage, 3 not so; the message says where the file is.`
}

// Run takes part in one run.
func (c *workerCmd) Run(ctx context.Context, s *streams) error {
	if c.NewNKey != "" {
		return c.newKey(s)
	}
	if c.URL == "" {
		return usage("toll worker wants the line that the coordinator printed: nats://TOKEN@HOST:PORT")
	}
	if c.Name != "" {
		if err := hub.CheckName(c.Name); err != nil {
			return usage("--name: %w", err)
		}
	}
	config, err := c.tls()
	if err != nil {
		return exit(exitUsage, err)
	}
	url, err := withToken(c.URL, c.Token)
	if err != nil {
		return exit(exitUsage, err)
	}
	build, err := fleetBuild()
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	gen := &hub.Lab{Open: c.open}
	raw := &rawFile{dir: c.Dir}
	err = hub.Work(ctx, hub.WorkConfig{
		Access: hub.Access{URL: url, Seed: c.NKey, TLS: config}, ID: c.Name, Run: c.Join, Dir: c.Dir, Patience: c.Wait,
		Hello: fleet.Hello{Build: build, Host: fleetMachine(env.Read(ctx))}, Generator: gen, Raw: raw.add,
		Say: func(format string, args ...any) { fmt.Fprintf(s.err, "toll: "+format+"\n", args...) },
	})
	err = errors.Join(err, gen.Close(), raw.close())
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	return nil
}

func (c *workerCmd) newKey(s *streams) error {
	seed, public, err := hub.NewKey()
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	f, err := os.OpenFile(c.NewNKey, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return usage("--new-nkey: %w", err)
	}
	_, err = fmt.Fprintln(f, seed)
	if err = errors.Join(err, f.Close()); err != nil {
		return exit(exitNotMeasured, fmt.Errorf("--new-nkey: %w", err))
	}
	fmt.Fprintln(s.out, public)
	return nil
}

// open reads a plan that the coordinator sent, and calls its target.
func (c *workerCmd) open(ctx context.Context, text []byte) (*hub.Opened, error) {
	cfg, settings, _, err := readLoad("the coordinator's plan", text)
	if err != nil {
		return nil, err
	}
	cfg.CA, cfg.Cert, cfg.Key, cfg.Floor = c.TargetCA, c.TargetCert, c.TargetKey, true
	p, open, remarks, err := suite.Load(ctx, cfg, settings)
	if err != nil {
		return nil, err
	}
	return &hub.Opened{Plan: p, Opener: open.Opener, Remarks: remarks, RTT: open.Hop.MeasuredRTT, Close: open.Close}, nil
}

// A rawFile keeps every latency of a worker, a line each: the slice and the nanoseconds, or the kind and number of failures.
type rawFile struct {
	dir    string
	slice  int
	file   *os.File
	packed *gzip.Writer
	out    *bufio.Writer
	err    error
}

func (r *rawFile) add(a *fleet.Assignment, s load.Slice) {
	if r.file == nil && r.err == nil {
		name := fmt.Sprintf("%d-of-%d-%s.raw.csv.gz", a.Segment.Number+1, a.Segment.Of, time.Now().UTC().Format("20060102T150405.000Z"))
		if r.file, r.err = os.OpenFile(filepath.Join(r.dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); r.err != nil {
			return
		}
		r.packed, _ = gzip.NewWriterLevel(r.file, gzip.BestSpeed)
		r.out = bufio.NewWriter(r.packed)
		fmt.Fprintln(r.out, "slice,latency_ns,failed,count")
	}
	if r.err != nil {
		return
	}
	for _, v := range s.Shard.Raw() {
		fmt.Fprintf(r.out, "%d,%d,,\n", r.slice, v)
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Shard.Failures)) {
		fmt.Fprintf(r.out, "%d,,%s,%d\n", r.slice, kind, s.Shard.Failures[kind])
	}
	r.slice++
}

func (r *rawFile) close() error {
	if r.file == nil {
		return r.err
	}
	return errors.Join(r.err, r.out.Flush(), r.packed.Close(), r.file.Close())
}
