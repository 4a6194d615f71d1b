package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"toll/contender"
	"toll/contender/hop"
	"toll/lab"
	"toll/lab/env"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
	"toll/report"
	"toll/suite"
)

type runCmd struct {
	What    []string `arg:"" optional:"" help:"Benchmarks, published methods, or plan files (*.yaml); none = all benchmarks."`
	Quick   bool     `help:"The quick profile: the default, but of published methods, which it shortens." xor:"profile"`
	Full    bool     `help:"The full profile: more rounds, blocks and concurrencies." xor:"profile"`
	Profile string   `help:"Run a benchmark's other plan; toll list names them." placeholder:"NAME"`
	With    []string `help:"Enter outside contenders: folders or manifests, or names below --peers; all = every one below --peers." placeholder:"NAME,…"`
	Only    []string `help:"Run only these of the plan's contenders; the baseline always runs." placeholder:"NAME,…"`
	Out     string   `help:"Folder for the results." default:"results"`
	JSON    bool     `name:"json" help:"Print the document instead of the table."`
	Seed    int64    `help:"Seed of every random choice; 0 draws one." default:"0"`
	Hop     string   `help:"Reach the contenders over loopback, netns (a network namespace) or netns:5ms (with that round trip)." placeholder:"HOP"`
	CPUs    float64  `name:"cpus" help:"Limit each contender's process tree to so many cores' worth of CPU time." placeholder:"N"`
	Memory  string   `help:"Limit each contender's process tree to so much memory, such as 1GiB." placeholder:"SIZE"`
	Knee    string   `help:"In place of the plan's load, search for each contender's highest rate that holds a bound while nothing fails and nothing is dropped. Engines have no open model and are gaps." placeholder:"p99<5ms"`
	Target  string   `help:"bus, gateway, spawn: call the processes of 'toll serve bus-host', gateway-host or spawn-host on this machine instead of our own." placeholder:"HOST[:PORT]"`
	Token   string   `name:"token-file" help:"bus: file with the secret that the target wants; our own processes want it, too." placeholder:"FILE" type:"existingfile"`
	Fault   string   `help:"bus: spoil every connection, such as delay=5ms,jitter=1ms; toll serve --help lists them." placeholder:"LIST"`

	PublishedSemantics bool `name:"published-semantics" help:"A reply with a wrong content fails no call and is only counted, as in the published methods that toll list names."`

	AllowUnlimited bool `help:"Run where the limits that were asked for can't be held."`

	Strict bool   `help:"Exit 4 when the result breaks a rule of an honest number."`
	Peers  string `help:"Folder of contenders that --with can name." default:"peers"`

	VsCommit  string     `name:"vs-commit" help:"Build this commit of the current project as well and interleave both builds: the honest CI gate." placeholder:"REF"`
	VsPackage string     `name:"vs-package" help:"The command to build, such as ./cmd/server; the module's only one by default." placeholder:"PKG"`
	VsArgs    string     `name:"vs-args" help:"What the command is started with." placeholder:"ARGS"`
	VsDriver  string     `name:"vs-driver" help:"How it is called: rest or stdio." default:"rest"`
	VsCase    string     `name:"vs-case" help:"The case that is called; by default call/32B for rest." placeholder:"NAME"`
	VsBlocks  int        `name:"vs-blocks" help:"How many blocks; more find smaller differences." default:"60"`
	Fleet     fleetFlags `embed:""`

	Gate string `help:"With --vs-commit: exit 1 when the working tree is worse by more than this, beyond interval and noise floor." placeholder:"3%"`
}

// Help shows how it is used.
func (runCmd) Help() string {
	return `Each benchmark starts its contenders anew for every round, calls them in shuffled blocks and writes results/<UTC time>-<benchmark>/ with the document (result.json), the reports (report.html, report.md) and every raw latency (samples.csv.gz).

  toll run
  toll run transport --quick --seed 42
  toll run transport --profile ladder
  toll run transport --only zap-http,zap-rpc
  toll run transport --with peers/javascript/node-http
  toll run transport --profile mcp --with all
  toll run gateway --knee 'p99<5ms' --only toll
  toll run spawn --knee 'p99<5ms' --only toll-goroutine
  toll run tmdevlab-v1-as-run --quick --with fastmcp,ts-sdk
  toll run my-plan.yaml --strict
  toll run load.yaml --workers 3 --listen 0.0.0.0:4222
  toll run --simulate workers=100,time=20s,loss=0.01,skew=1s
  toll run --vs-commit HEAD~1 --gate 3%

Exit: 0 ok, 1 a threshold or the gate was missed, 2 bad usage or plan, 3 not everything could be measured, 4 not publishable (--strict).`
}

// A job is one benchmark with the plan that it runs.
type job struct {
	bench suite.Benchmark
	plan  plan.Plan
	base  string // folder that the plan's manifests are relative to
}

// Run measures each benchmark in turn. The exit code is the worst of theirs.
func (c *runCmd) Run(ctx context.Context, s *streams) error {
	switch {
	case c.VsCommit != "":
		return c.runVersus(ctx, s)
	case c.Fleet.Simulate != "":
		return c.simulate(s)
	case c.Fleet.Workers > 0 || c.Fleet.Resume != "":
		return c.runFleet(ctx, s)
	case c.Gate != "":
		return usage("--gate %s: judges what --vs-commit measures; toll compare judges two results", c.Gate)
	}
	jobs, err := c.jobs()
	if err != nil {
		return exit(exitUsage, err)
	}
	var worst *exitError
	var docs []*result.Document
	for _, j := range jobs {
		doc, err := c.measure(ctx, s, j)
		docs = append(docs, doc)
		var e *exitError
		if err != nil && !errors.As(err, &e) {
			return err
		}
		if e != nil && e.err != nil {
			fmt.Fprintf(s.err, "toll: %s: %v\n", j.bench.Name, e.err)
		}
		if e != nil && (worst == nil || severity(e.code) > severity(worst.code)) {
			worst = &exitError{code: e.code}
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := c.beside(ctx, s, docs); err != nil {
		return exit(exitNotMeasured, err)
	}
	if len(jobs) > 1 && c.Profile == "" && !c.JSON {
		fmt.Fprintln(s.out)
		if err := report.Headlines(s.out, docs); err != nil {
			return err
		}
	}
	if worst != nil {
		return worst
	}
	return nil
}

// seedProfile reproduces a published method and the order profiles show what a fixed order does; they run twice, the second
// time in shuffled order, as every profile does that has a twin for it.
const (
	seedProfile     = "seed"
	orderProfile    = "order"
	orderSDKProfile = "order-sdk"
	shuffledToo     = "-shuffled"
)

// severity orders the exit codes: what could not be measured outweighs what was measured and missed.
func severity(code int) int {
	return map[int]int{exitOK: 0, exitMissed: 1, exitNotPublishable: 2, exitNotMeasured: 3, exitUsage: 4}[code]
}

// jobs turns the arguments into benchmarks and plans.
func (c *runCmd) jobs() ([]job, error) {
	if len(c.What) == 0 {
		for _, b := range suite.All() {
			c.What = append(c.What, b.Name)
		}
	}
	var out []job
	for _, what := range c.What {
		j, err := c.job(what)
		if err != nil {
			return nil, err
		}
		if err := c.narrow(&j.plan, j.bench.Baselines(j.plan)); err != nil {
			return nil, err
		}
		out = append(out, j)
		if slices.Contains(j.bench.Profiles(), c.Profile+shuffledToo) {
			again := j
			if again.plan, err = j.bench.Plan(c.Profile + shuffledToo); err != nil {
				return nil, err
			}
			out = append(out, again)
		}
	}
	return out, nil
}

func (c *runCmd) job(what string) (j job, err error) {
	if ext := filepath.Ext(what); ext == ".yaml" || ext == ".yml" {
		if c.Profile != "" {
			return j, fmt.Errorf("--profile %s: names a benchmark's own plan; %s is a plan already", c.Profile, what)
		}
		if j.plan, err = plan.Load(what); err != nil {
			return j, err
		}
		j.base = filepath.Dir(what)
		if j.bench, err = suite.Lookup(j.plan.Benchmark); err != nil {
			return j, fmt.Errorf("%s: %w", what, err)
		}
		return j, nil
	}
	var found bool
	if j.bench, j.plan, found, err = suite.LookupReplica(what); found {
		if err == nil && c.Profile != "" {
			err = fmt.Errorf("--profile %s: names a benchmark's own plan; %s is a published method", c.Profile, what)
		}
		return j, err
	}
	if j.bench, err = suite.Lookup(what); err != nil {
		return j, fmt.Errorf("%w, nor a published method that toll list names, nor a plan file (*.yaml)", err)
	}
	j.plan, err = j.bench.Plan(c.Profile)
	return j, err
}

// narrow leaves only the contenders of --only, and the baselines, floor and null that the others are read against.
func (c *runCmd) narrow(p *plan.Plan, baselines []string) error {
	if len(c.Only) == 0 {
		return nil
	}
	known := make(map[string]bool)
	for _, n := range p.Contenders {
		known[n] = true
	}
	keep := map[string]bool{result.Floor: true, result.Null: true}
	for _, n := range baselines {
		keep[n] = true
	}
	for _, n := range c.Only {
		if !known[n] {
			return fmt.Errorf("--only %s: the plan's contenders are %s", n, strings.Join(p.Contenders, ", "))
		}
		keep[n] = true
	}
	var left []string
	for _, n := range p.Contenders {
		if keep[n] {
			left = append(left, n)
		}
	}
	p.Contenders = left
	return nil
}

// manifests loads the outside contenders of a job: those of its plan and those of --with.
func (c *runCmd) manifests(j job) ([]contender.Manifest, error) {
	var out []contender.Manifest
	for _, w := range j.plan.With {
		load := func() (contender.Manifest, error) { return contender.Load(filepath.Join(j.base, w)) }
		if j.base == "" { // one of ours, which names contenders of peers
			load = func() (contender.Manifest, error) { return findContender(c.Peers, w) }
		}
		m, err := load()
		if err != nil {
			return nil, fmt.Errorf("the plan's with %s: %w", w, err)
		}
		out = append(out, m)
	}
	if slices.Contains(c.With, everyPeer) {
		all, err := c.everyPeer(j)
		if err != nil {
			return nil, err
		}
		return append(out, all...), nil
	}
	for _, w := range c.With {
		m, err := findContender(c.Peers, w)
		if err != nil {
			return nil, fmt.Errorf("--with %s: %w", w, err)
		}
		if slices.Contains(j.plan.Contenders, m.Name) {
			return nil, fmt.Errorf("--with %s: two contenders are named %q", w, m.Name)
		}
		out = append(out, m)
	}
	return out, nil
}

// everyPeer is --with all: what stands below --peers and can be called by the benchmark. What is not built or lacks a
// program is then a gap that says so.
func (c *runCmd) everyPeer(j job) ([]contender.Manifest, error) {
	found, errs := contender.Find([]string{c.Peers})
	if len(errs) > 0 {
		return nil, fmt.Errorf("--with %s: %w", everyPeer, errors.Join(errs...))
	}
	return slices.DeleteFunc(found, func(m contender.Manifest) bool {
		return !j.bench.Calls(m) || slices.Contains(j.plan.With, m.Name) || slices.Contains(j.plan.Contenders, m.Name)
	}), nil
}

// measure runs one job and writes what it gives.
func (c *runCmd) measure(ctx context.Context, s *streams, j job) (*result.Document, error) {
	outside, err := c.manifests(j)
	if err != nil {
		return nil, exit(exitUsage, err)
	}
	p := j.plan
	method := p.Method() // what --quick and --full change is a deviation from it where they change a published method
	switch {
	case c.Full:
		p = p.AtFull()
	case c.Quick:
		p = p.AtQuick()
	}
	if c.PublishedSemantics {
		p.Semantics = plan.PublishedChecks
	}
	p.Settings = p.Settings.With(&plan.Settings{Hop: c.Hop, Limits: plan.Quota{CPUs: c.CPUs, Memory: c.Memory}})
	if c.Knee != "" {
		p.Settings = p.Settings.SearchingFor(c.Knee)
		if field, msg := p.Settings.Check(); msg != "" {
			return nil, usage("--%s: %s", field, msg)
		}
	}
	p.With = nil
	for _, m := range outside {
		p.With = append(p.With, m.Name)
	}
	open, err := c.open(ctx, j, p, outside)
	if err != nil {
		return nil, err
	}
	defer open.Close()
	if j.base == "" { // a plan of ours
		found, _ := contender.Find([]string{c.Peers})
		open.Lacks(slices.DeleteFunc(found, func(m contender.Manifest) bool { return !j.bench.Calls(m) }))
	}
	settings, claimed := p.Settings, p.Settings.With(p.Claims)
	if p.Quick != nil {
		claimed = method
	}
	return conduct(ctx, s, conducting{
		plan: p, open: open, settings: settings, claimed: claimed, seed: c.Seed, out: c.Out, json: c.JSON, strict: c.Strict,
	})
}

// open prepares a benchmark on the ground that the plan and the flags name.
func (c *runCmd) open(ctx context.Context, j job, p plan.Plan, outside []contender.Manifest) (*suite.Opener, error) {
	ground, err := suite.GroundOf(p, c.AllowUnlimited)
	if err != nil {
		return nil, exit(exitUsage, err)
	}
	ground.Target, ground.Fault, ground.Token = c.Target, c.Fault, c.Token
	open, err := j.bench.OpenOn(ctx, ground, p, outside)
	switch {
	case errors.Is(err, hop.ErrUnavailable):
		return nil, exit(exitNotMeasured, fmt.Errorf("--hop %s: %w", ground.Hop, err))
	case errors.Is(err, suite.ErrRefused):
		return nil, exit(exitNotMeasured, fmt.Errorf("--target %s: %w", ground.Target, err))
	case err != nil:
		return nil, exit(exitUsage, err)
	}
	return open, nil
}

// conducting is what conduct needs to run a plan and write its result.
type conducting struct {
	plan              plan.Plan
	open              *suite.Opener
	settings, claimed plan.Settings
	seed              int64
	out               string
	json, strict      bool
	annotate          func(*result.Document) // adds what only its caller knows; nil for nothing
}

// conduct runs a plan, writes the result's folder and prints the table, and turns the outcome into an exit code.
func conduct(ctx context.Context, s *streams, c conducting) (*result.Document, error) {
	if c.seed == 0 {
		c.seed = 1 + rand.Int64N(9999) // short enough to type again
	}
	started := time.Now()
	dir := filepath.Join(c.out, started.UTC().Format("20060102T150405.000Z")+"-"+c.plan.Benchmark)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, exit(exitNotMeasured, fmt.Errorf("--out: %w", err))
	}
	samples, err := newSampleFile(filepath.Join(dir, "samples.csv.gz"))
	if err != nil {
		return nil, exit(exitNotMeasured, err)
	}
	environ := env.Read(ctx)
	environ.Lab = env.LabCost()
	watch := env.StartWatch()
	status := newStatus(s.err)
	live := newLiveFile(dir, c.plan.Benchmark, started)
	defer live.remove()
	pacer, err := load.NewPacer()
	if err != nil {
		return nil, exit(exitNotMeasured, err)
	}
	defer pacer.Close()
	doc, runErr := lab.Run(ctx, c.plan, c.open, lab.Options{
		Settings: c.settings, Claimed: c.claimed, Seed: c.seed, Toll: version(), Environ: environ,
		Hop: c.open.Hop, MemoryLimit: c.open.MemoryLimit, Carried: c.open.Carried, Polling: c.open.Polling,
		Progress: func(p lab.Progress) {
			status.show(p)
			live.show(p)
		},
		Samples: func(x lab.Samples) error {
			live.round(x)
			return samples.add(x)
		},
		Watch: watch.Stop, Watched: live.watched, Wait: pacer.Wait, Pauses: load.NewPause,
	})
	status.clear()
	if err := samples.close(); err != nil && runErr == nil {
		runErr = err
	}
	if doc == nil {
		os.RemoveAll(dir)
		return nil, exit(exitNotMeasured, runErr)
	}
	if c.annotate != nil {
		c.annotate(doc)
	}
	if err := write(s, dir, doc, c.json); err != nil {
		return nil, exit(exitNotMeasured, err)
	}
	if err := result.AppendHistory(filepath.Join(c.out, result.HistoryName), doc.Record(filepath.Base(dir))); err != nil {
		return nil, exit(exitNotMeasured, err)
	}
	return doc, outcome(doc, runErr, c.strict)
}

// write leaves result.json, report.html and report.md in dir and prints the table, or the document.
func write(s *streams, dir string, doc *result.Document, asJSON bool) error {
	if err := writeFiles(dir, doc); err != nil {
		return err
	}
	if asJSON {
		return doc.Encode(s.out)
	}
	if err := show(s.out, doc); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.out, "  written: %s\n", filepath.Join(dir, "{result.json,report.html,report.md,samples.csv.gz}"))
	return err
}

// show prints the tables, coloured on a terminal unless NO_COLOR is set.
func show(w io.Writer, doc *result.Document) error {
	if doc.Benchmark == result.Load {
		return report.Load(w, doc)
	}
	f, ok := w.(*os.File)
	if ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd())) {
		return report.Coloured(w, doc)
	}
	return report.Text(w, doc)
}

// writeFiles leaves result.json, report.md and report.html in dir.
func writeFiles(dir string, doc *result.Document) error {
	if err := doc.WriteFile(filepath.Join(dir, "result.json")); err != nil {
		return err
	}
	for _, f := range []struct {
		name   string
		render func(io.Writer, *result.Document) error
	}{{"report.md", report.Markdown}, {"report.html", report.HTML}} {
		file, err := os.Create(filepath.Join(dir, f.name))
		if err != nil {
			return err
		}
		if err := errors.Join(f.render(file, doc), file.Close()); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// outcome turns what was measured into an exit code.
func outcome(doc *result.Document, runErr error, strict bool) error {
	missed := slices.IndexFunc(doc.Thresholds, func(t result.Threshold) bool { return !t.Passed })
	switch {
	case runErr != nil && !errors.Is(runErr, lab.ErrIncomplete):
		return exit(exitNotMeasured, fmt.Errorf("%w; the result is partial", runErr))
	case doc.Partial:
		return exit(exitNotMeasured, errors.New("interrupted; the result is partial"))
	case runErr != nil:
		return exit(exitNotMeasured, runErr)
	}
	if missed < 0 {
		if err := neverRight(doc); err != nil {
			return exit(exitNotMeasured, err)
		}
	}
	switch {
	case strict && !doc.Verdict.Publishable:
		return exit(exitNotPublishable, fmt.Errorf("not publishable: %s", doc.Verdict.Reasons[0]))
	case missed >= 0:
		return exit(exitMissed, fmt.Errorf("threshold missed: %s", doc.Thresholds[missed].Expr))
	}
	return nil
}

// neverRight says which target of a load answered none of its calls as it should; in a comparison such a contender is a gap.
func neverRight(doc *result.Document) error {
	for i := range doc.Rows {
		if r := &doc.Rows[i]; r.Kind == result.Measured && r.OK == 0 && r.Ops > 0 {
			return fmt.Errorf("%s: not one of its %d calls was answered as it should be, so there is nothing to measure", r.Contender.Name, r.Ops)
		}
	}
	return nil
}
