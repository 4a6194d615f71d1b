package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toll/lab"
	"toll/lab/env"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
	"toll/report"
	"toll/suite"
)

type loadCmd struct {
	URL string `arg:"" optional:"" help:"http(s)://host:port/path, or a load file (*.yaml). With --vs-cmd, the new command."`

	VUs      int           `name:"vus" short:"c" help:"Virtual users, a connection each; in the open model, connections to begin with." default:"10"`
	Calls    int64         `name:"calls" short:"n" help:"Make exactly so many calls instead of running for a time." placeholder:"N"`
	Duration time.Duration `short:"d" help:"For how long; with --vs, of each target in all. 10s unless given." placeholder:"TIME"`
	Rate     float64       `help:"Open model: send so many calls a second, whatever comes back." placeholder:"N"`
	Poisson  bool          `help:"Open model: arrivals at random moments, not evenly spaced."`
	InFlight int           `name:"in-flight" help:"Open model: most calls in flight; an arrival beyond is dropped and counted. max(1000, 2 s × rate) unless given." placeholder:"N"`
	Stages   string        `help:"Ramps: TIME:TARGET,… of VUs, or with --open of calls a second." placeholder:"10s:50,5m:50,10s:0"`
	Open     bool          `help:"The targets of --stages are calls a second."`
	Knee     string        `help:"Search for the highest rate that holds a bound while nothing fails and nothing is dropped, by stretches of -d (1s) at one rate each, the first at --rate (500)." placeholder:"p99<5ms"`
	Searches int           `help:"With --knee: how many searches, from below and from above in turn; six or more give an interval." default:"8"`
	Think    time.Duration `help:"Closed model: pause of a VU between two calls." placeholder:"TIME"`

	Method        string        `short:"m" help:"Request method; POST when there is a body." placeholder:"NAME"`
	Header        []string      `short:"H" sep:"none" help:"A header, 'Name: value'. Can be repeated." placeholder:"LINE"`
	Body          string        `short:"b" help:"Request body." placeholder:"TEXT"`
	BodyFile      string        `help:"File that holds the request body." type:"existingfile" placeholder:"FILE"`
	Unix          string        `help:"Call over this unix socket; the URL's host goes into the Host field." placeholder:"PATH"`
	CACert        string        `name:"cacert" help:"Verify the server by these authorities (PEM) instead of the system's." placeholder:"FILE"`
	Cert          string        `help:"Client certificate (PEM)." placeholder:"FILE"`
	Key           string        `help:"Its key (PEM)." placeholder:"FILE"`
	Resume        bool          `help:"Let TLS sessions be resumed."`
	NewConnection bool          `help:"Open a connection for each call, and time connect, TLS and first byte apart."`
	Client        string        `help:"Which client: loop (an event loop), raw (a goroutine per connection), net/http, h2, h2c. The cheapest that can call the target unless given." enum:",loop,raw,net/http,h2,h2c" default:"" placeholder:"NAME"`
	Threads       int           `help:"Threads of client loop; a quarter of the processors, at least one, unless given." placeholder:"N"`
	Timeout       time.Duration `help:"Limit of one call." default:"5s"`

	AssertStatus []int    `help:"Statuses that are a success, in place of 2xx." placeholder:"CODE,…"`
	AssertJSON   []string `name:"assert-json" sep:"none" help:"PLACE=VALUE that each JSON reply must hold, such as items[0].id=5; without =VALUE, anything will do there." placeholder:"EXPR"`
	AnyBody      bool     `help:"Do not want each reply's body to be the first one's."`
	Threshold    []string `sep:"none" help:"A bound such as 'p99<50ms', 'failures<1%%' or 'throughput>1000'; missed: exit 1. Can be repeated." placeholder:"EXPR"`

	VS    string `name:"vs" help:"Compare with this URL: the first one is the baseline." placeholder:"URL"`
	VSCmd string `name:"vs-cmd" help:"Start two commands, this old and the new one behind it, and compare them. {port} stands for where each listens, unless it prints a ready line." placeholder:"OLD"`
	Path  string `help:"What --vs-cmd calls of both." default:"" placeholder:"/PATH"`
	Gate  string `help:"Exit 1 when the second is shown to be slower by more than this, 3 when it can't be told." placeholder:"3%"`

	Processors string `help:"held: with one VU everything runs on one processor, with more the client has half of them and the commands the rest; any: where the system puts them. held with --vs-cmd, any otherwise unless given." enum:",held,any" default:"" placeholder:"held|any"`

	Warmup time.Duration `help:"Warm-up under the same load, shown apart." default:"1s"`
	Rounds int           `help:"Repeats of the whole." default:"1"`
	NoNull bool          `help:"Leave out the null target, which shows the client's own cost. The result is then not publishable."`
	Out    string        `help:"Leave result.json, report.html and report.md in this folder." placeholder:"DIR"`
	JSON   bool          `name:"json" help:"Print the document instead of the screen."`
	Seed   int64         `help:"Seed of every random choice; 0 draws one." default:"0"`
	Strict bool          `help:"Exit 4 when the result breaks a rule of an honest number."`
}

// Help shows how it is used.
func (loadCmd) Help() string {
	return `Without flags: 10 VUs for 10 s. Each reply is checked: its status, its framing, and that its body is the first one's when two calls before the run were answered alike (else say what to expect by --assert-json).

  toll load http://127.0.0.1:8080/
  toll load http://127.0.0.1:8080/ -c 50 -d 30s --threshold 'p99<50ms' --threshold 'failures<1%'
  toll load http://127.0.0.1:8080/ --rate 1000 -d 10s
  toll load http://127.0.0.1:8080/ --knee 'p99<5ms'
  toll load http://127.0.0.1:8080/ --stages 10s:50,5m:50,10s:0
  toll load https://127.0.0.1:8443/ --cacert ca.pem --cert me.pem --key me-key.pem
  toll load http://localhost/ --unix /run/app.sock
  toll load http://127.0.0.1:8080/ --vs http://127.0.0.1:8081/
  toll load --vs-cmd ./old ./new --gate 3%
  toll load plan.yaml

A load file holds several targets, the steps of a session, and a load as in a plan: docs/load has examples, docs/schema/load.schema.json says all that may stand in one.

Exit: 0 ok, 1 a threshold or the gate was missed, 2 bad usage, 3 could not measure (no call was answered as it should be) or could not tell, 4 not publishable (--strict).`
}

// Run measures what the flags say.
func (c *loadCmd) Run(ctx context.Context, s *streams) error {
	cfg, settings, err := c.read()
	if err != nil {
		return exit(exitUsage, err)
	}
	thresholds := c.Threshold
	if file := c.file(); file != "" {
		if thresholds, err = suite.LoadFile(file, &cfg, &settings); err != nil {
			return exit(exitUsage, err)
		}
		thresholds = append(thresholds, c.Threshold...)
	}
	for _, t := range c.Threshold {
		if _, err := plan.ParseThreshold(t); err != nil {
			return usage("--threshold: %w", err)
		}
	}
	gate, err := c.gate(len(cfg.Targets))
	if err != nil {
		return exit(exitUsage, err)
	}
	if gate != nil {
		gate.apply(&settings)
	}
	if len(cfg.Targets) == 0 {
		return usage("toll load wants a URL, a load file or --vs-cmd; toll load --help shows examples")
	}
	if field, msg := settings.Check(); msg != "" {
		return usage("%s: %s", flagOf(field), msg)
	}
	p, open, seen, err := suite.Load(ctx, cfg, settings)
	if err != nil {
		if errors.Is(err, suite.ErrTarget) {
			return exit(exitNotMeasured, err)
		}
		return exit(exitUsage, err)
	}
	defer open.Close()
	p.Thresholds = thresholds
	return c.conduct(ctx, s, p, open, seen, gate)
}

func (c *loadCmd) file() string {
	if ext := filepath.Ext(c.URL); c.VSCmd == "" && (ext == ".yaml" || ext == ".yml") && !strings.Contains(c.URL, "://") {
		return c.URL
	}
	return ""
}

// conduct runs the plan and says what came of it.
func (c *loadCmd) conduct(ctx context.Context, s *streams, p plan.Plan, open *suite.Opener, seen []string, gate *gate) error {
	pacer, err := load.NewPacer()
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	defer pacer.Close()
	environ := env.Read(ctx)
	environ.Lab = env.LabCost()
	watch := env.StartWatch()
	status := newStatus(s.err)
	o := lab.Options{
		Settings: p.Settings, Claimed: p.Settings, Seed: cmp.Or(c.Seed, 1+rand.Int64N(9999)), Toll: version(), Environ: environ,
		Hop: open.Hop, Polling: open.Polling, Progress: status.show, Wait: pacer.Wait, Watch: watch.Stop,
	}
	if gate != nil {
		o.Look = gate.look
	}
	doc, runErr := lab.Run(ctx, p, open, o)
	status.clear()
	if doc == nil {
		return exit(exitNotMeasured, runErr)
	}
	if gate != nil {
		gate.conclude(doc)
	}
	if err := c.write(s, doc, seen); err != nil {
		return exit(exitNotMeasured, err)
	}
	if err := outcome(doc, runErr, c.Strict); err != nil || gate == nil {
		return err
	}
	return gate.verdict(doc)
}

func (c *loadCmd) write(s *streams, doc *result.Document, seen []string) error {
	if c.Out != "" {
		if err := os.MkdirAll(c.Out, 0o755); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if err := writeFiles(c.Out, doc); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if c.JSON {
		return doc.Encode(s.out)
	}
	for _, text := range seen {
		fmt.Fprintf(s.err, "toll: %s\n", text)
	}
	if err := report.Load(s.out, doc); err != nil {
		return err
	}
	if c.Out != "" {
		fmt.Fprintf(s.out, "  written: %s\n", filepath.Join(c.Out, "{result.json,report.html,report.md}"))
	}
	return nil
}
