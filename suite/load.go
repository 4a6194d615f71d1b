package suite

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"toll/contender"
	"toll/contender/owner"
	"toll/driver"
	"toll/lab/load"
	"toll/lab/plan"
	"toll/lab/result"
)

// The cases of benchmark load.
const (
	caseRequest = "request"
	caseSession = "session"
)

// A LoadTarget is one thing that an ad-hoc load calls: a URL, or a command that is started and then called.
type LoadTarget struct {
	Name    string
	URL     string // http(s)://host[:port][/path][?query]
	Unix    string // the socket to call in place of the URL's host
	Command string // run by the shell; it prints the ready line, or {port} stands in it for where it will listen
	Path    string // of a command's endpoint
}

// A LoadConfig says how an ad-hoc load calls its targets.
type LoadConfig struct {
	Targets []LoadTarget // the first is the baseline when there are several
	Client  string       // one of driver's; "" chooses the cheapest that can call the target
	Threads int          // of client loop
	Fresh   bool         // a connection for each request
	Method  string
	Header  []string // "Name: value"
	Body    []byte   // nil for none
	Expect  driver.Expect
	AnyBody bool // do not want each reply's body to be the first one's
	Steps   []driver.Step
	CA      string // PEM files
	Cert    string
	Key     string
	Resume  bool // let TLS sessions be resumed
	NoNull  bool
	Floor   bool // a socket with nothing on it beside the null target
}

// AssertJSON adds places in a JSON reply and what is wanted there, each as PLACE=VALUE.
func (c *LoadConfig) AssertJSON(all ...string) error {
	for _, a := range all {
		w, err := driver.ParseJSONWant(a)
		if err != nil {
			return err
		}
		c.Expect.JSON = append(c.Expect.JSON, w)
	}
	return nil
}

// A loader opens the targets of an ad-hoc load.
type loader struct {
	*house
	cfg    LoadConfig
	client *tls.Config
	asked  *atomic.Bool // whether the server asked for the client's certificate

	// Found by the probe:
	rtt     *float64
	nullDoc []byte   // what the null target answers
	seen    []string // remarks on what was found
	ca      *tls.Config
}

// Load prepares an ad-hoc load: it calls each URL twice, to learn what it answers, and returns the plan's names and the
// opener. An error means that a target can't be called, or does not answer as expected.
func Load(ctx context.Context, cfg LoadConfig, settings plan.Settings) (plan.Plan, *Opener, []string, error) {
	p := plan.Plan{Schema: plan.Schema, Benchmark: result.Load, Cases: []string{caseRequest}, Settings: settings}
	if len(cfg.Steps) > 0 {
		p.Cases[0] = caseSession
	}
	dir, err := owner.Folder(contender.FolderPrefix)
	if err != nil {
		return p, nil, nil, fmt.Errorf("a folder for sockets: %w", err)
	}
	l := &loader{house: &house{dir: dir}, cfg: cfg, asked: new(atomic.Bool)}
	if err := l.prepare(ctx, &p); err != nil {
		os.RemoveAll(dir)
		return p, nil, nil, err
	}
	l.plan = p
	hop := result.Hop{Kind: "loopback", MeasuredRTT: l.rtt}
	for _, t := range cfg.Targets {
		if !t.local() {
			hop.Kind = "remote"
		}
	}
	return p, &Opener{Opener: l, Hop: hop, house: l.house}, l.seen, nil
}

// LoadPlan is the plan of a load whose one target other machines call: nothing is called here. Kind is the hop's.
func LoadPlan(cfg LoadConfig, settings plan.Settings) (p plan.Plan, kind string, err error) {
	if len(cfg.Targets) != 1 || cfg.Targets[0].Command != "" {
		return p, "", errors.New("several machines put a load on one URL; a comparison, or a command that is started, needs one machine")
	}
	t := cfg.Targets[0]
	if err := t.check(); err != nil {
		return p, "", err
	}
	p = plan.Plan{Schema: plan.Schema, Benchmark: result.Load, Cases: []string{caseRequest}, Phases: []string{t.phase()}, Contenders: []string{t.Name}, Baseline: t.Name, Settings: settings}
	if len(cfg.Steps) > 0 {
		p.Cases[0] = caseSession
	}
	if !cfg.NoNull {
		p.Contenders = append(p.Contenders, result.Null)
	}
	if kind = "remote"; t.local() {
		kind = "loopback"
	}
	return p, kind, nil
}

// ErrTarget is why a target can't be measured at all: nobody answers, or not as expected.
var ErrTarget = errors.New("the target does not answer as expected")

func (l *loader) prepare(ctx context.Context, p *plan.Plan) error {
	var err error
	if l.client, err = l.cfg.tls(l.asked); err != nil {
		return err
	}
	phase := ""
	for i := range l.cfg.Targets {
		t := &l.cfg.Targets[i]
		if slices.Contains(p.Contenders, t.Name) {
			return fmt.Errorf("two targets are named %q", t.Name)
		}
		p.Contenders = append(p.Contenders, t.Name)
		if t.Command != "" {
			phase = cmp.Or(phase, "tcp")
			if err := l.probeCommand(ctx, *t, i == 0); err != nil {
				return err
			}
			continue
		}
		if err := t.check(); err != nil {
			return err
		}
		if ph := t.phase(); phase != "" && ph != phase {
			return fmt.Errorf("%s is called over %s and %s over %s: rows of two kinds of socket are not compared", l.cfg.Targets[0].Name, phase, t.Name, ph)
		} else {
			phase = ph
		}
		addr, host, path := t.address()
		if err := l.probe(ctx, t.Name, l.target(addr, host, path, l.client, nil), i == 0); err != nil {
			return err
		}
	}
	p.Phases, p.Baseline = []string{phase}, p.Contenders[0]
	if phase == "tls" {
		if l.ca, err = l.authority(); err != nil {
			return err
		}
	}
	if !l.cfg.NoNull {
		p.Contenders = append(p.Contenders, result.Null)
	}
	return nil
}

// check takes the URL apart once, so that what is wrong with it is said before anything runs.
func (t *LoadTarget) check() error {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		return fmt.Errorf("URL %q: %w", t.URL, err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("URL %q: want http://host:port/path or https://…", t.URL)
	case u.User != nil:
		return fmt.Errorf("URL %q: a user and a password go into a header: -H 'Authorization: …'", t.URL)
	case t.Unix != "" && u.Scheme == "https":
		return fmt.Errorf("URL %q: TLS over a unix socket is not supported", t.URL)
	}
	return nil
}

func (t LoadTarget) phase() string {
	switch {
	case t.Unix != "":
		return "unix"
	case strings.HasPrefix(t.URL, "https:"):
		return "tls"
	}
	return "tcp"
}

// local reports whether the target runs on this machine, as far as its address says.
func (t LoadTarget) local() bool {
	u, err := url.Parse(t.URL)
	if t.Unix != "" || t.Command != "" || err != nil {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// address returns where to connect, what the Host field says and the path with its query.
func (t LoadTarget) address() (addr, host, path string) {
	u, err := url.Parse(t.URL)
	if err != nil {
		return "", "", ""
	}
	addr, host, path = u.Scheme+"://"+u.Host, u.Host, u.RequestURI()
	if t.Unix != "" {
		addr = "unix:" + t.Unix
	}
	return addr, host, path
}

// target makes the driver that calls an address.
func (l *loader) target(addr, host, path string, config *tls.Config, wire *driver.Wire) *driver.HTTP {
	h := &driver.HTTP{
		Addr: addr, Host: host, Client: l.clientFor(addr), Fresh: l.cfg.Fresh, Threads: l.cfg.Threads, TLS: config, Wire: wire,
		RawRequest: driver.RawRequest{Method: l.cfg.Method, Path: path, Body: l.cfg.Body},
		Expect:     l.cfg.Expect, Steps: l.cfg.Steps, Pauses: load.NewPause,
	}
	var b strings.Builder
	for _, line := range l.cfg.Header {
		b.WriteString(strings.TrimSpace(line) + "\r\n")
	}
	h.Header = b.String()
	return h
}

// clientFor chooses the client: the cheapest that can call the target, unless one was named.
func (l *loader) clientFor(addr string) string {
	switch {
	case l.cfg.Client != "":
		return l.cfg.Client
	case driver.LoopWorks && !strings.HasPrefix(addr, "https:") && !l.cfg.Fresh && len(l.cfg.Steps) == 0:
		return driver.ClientLoop
	}
	return driver.ClientRaw
}

// readPool reads the certificates of a PEM file.
func readPool(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// tls makes the client's configuration. Whoever gives no CA gets the system's.
func (c LoadConfig) tls(asked *atomic.Bool) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.Resume {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	if c.CA != "" {
		pool, err := readPool(c.CA)
		if err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
		config.RootCAs = pool
	}
	if (c.Cert == "") != (c.Key == "") {
		return nil, errors.New("--cert and --key go together")
	}
	if c.Cert == "" {
		return config, nil
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("--cert, --key: %w", err)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked.Store(true)
		return &pair, nil
	}
	return config, nil
}
