package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"toll/lab/plan"
	"toll/suite"
)

// blocksOfComparison is how many blocks a comparison has without a gate.
const (
	blocksOfComparison = 20
	roundsOfComparison = 4
)

// read turns the flags into a configuration and settings.
func (c *loadCmd) read() (suite.LoadConfig, plan.Settings, error) {
	cfg := suite.LoadConfig{
		Client: c.Client, Threads: cmp.Or(c.Threads, max(runtime.GOMAXPROCS(0)/4, 1)), Fresh: c.NewConnection, Method: c.Method, Header: c.Header,
		AnyBody: c.AnyBody, CA: c.CACert, Cert: c.Cert, Key: c.Key, Resume: c.Resume, NoNull: c.NoNull,
	}
	cfg.Threads = min(cfg.Threads, max(c.VUs, 1))
	var settings plan.Settings
	if err := c.readRequest(&cfg); err != nil {
		return cfg, settings, err
	}
	targets, err := c.targets()
	if err != nil {
		return cfg, settings, err
	}
	cfg.Targets = targets
	settings, err = c.settings(len(targets))
	return cfg, settings, err
}

func (c *loadCmd) readRequest(cfg *suite.LoadConfig) error {
	if c.Body != "" && c.BodyFile != "" {
		return errors.New("--body and --body-file: give one of them")
	}
	if c.Body != "" {
		cfg.Body = []byte(c.Body)
	}
	if c.BodyFile != "" {
		data, err := os.ReadFile(c.BodyFile)
		if err != nil {
			return fmt.Errorf("--body-file: %w", err)
		}
		cfg.Body = data
	}
	if cfg.Method == "" && cfg.Body != nil {
		cfg.Method = "POST"
	}
	for _, h := range c.Header {
		name, _, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) != name || name == "" || strings.ContainsAny(h, "\r\n") {
			return fmt.Errorf("--header %q: want 'Name: value'", h)
		}
		switch strings.ToLower(name) {
		case "content-length", "transfer-encoding", "connection", "host", "user-agent":
			return fmt.Errorf("--header %q: toll sets this field itself", h)
		}
	}
	cfg.Expect.Status = c.AssertStatus
	if err := cfg.AssertJSON(c.AssertJSON...); err != nil {
		return fmt.Errorf("--assert-json: %w", err)
	}
	return nil
}

// targets are the URL, or the URLs or commands that are compared.
func (c *loadCmd) targets() ([]suite.LoadTarget, error) {
	switch {
	case c.VSCmd != "" && (c.URL == "" || c.VS != ""):
		return nil, errors.New("--vs-cmd wants two commands, the old and the new one behind it, and no --vs")
	case c.VSCmd != "":
		return []suite.LoadTarget{
			{Name: "old", Command: c.VSCmd, Path: c.Path}, {Name: "new", Command: c.URL, Path: c.Path},
		}, nil
	case c.Path != "":
		return nil, errors.New("--path belongs to --vs-cmd; a URL has its path")
	case c.URL == "" || c.file() != "":
		return nil, nil
	}
	out := []suite.LoadTarget{{Name: nameOf(c.URL), URL: c.URL, Unix: c.Unix}}
	if c.VS != "" {
		out = append(out, suite.LoadTarget{Name: nameOf(c.VS), URL: c.VS, Unix: c.Unix})
		if out[0].Name == out[1].Name {
			out[1].Name += " (again)"
		}
	}
	return out, nil
}

// nameOf is a URL without its scheme, query and user.
func nameOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	return u.Host + strings.TrimSuffix(u.Path, "/")
}

func (c *loadCmd) settings(targets int) (plan.Settings, error) {
	s := plan.Settings{
		Model: plan.Closed, Order: plan.Shuffled, Concurrency: []int{c.VUs}, Rounds: c.Rounds, Blocks: c.Rounds, Calls: 1, Warmup: 1,
		WarmupTime: plan.Duration(c.Warmup), Timeout: plan.Duration(c.Timeout), Think: plan.Duration(c.Think),
		Rate: c.Rate, InFlight: c.InFlight, Duration: plan.Duration(c.Duration),
	}
	if c.Knee != "" {
		return s, c.knee(&s)
	}
	if c.Rate != 0 || c.Open {
		s.Model = plan.Open
	}
	if c.Poisson {
		s.Arrivals = plan.Poisson
	}
	if err := c.stages(&s); err != nil {
		return s, err
	}
	if c.Calls > 0 {
		if s.Model == plan.Open || len(s.Stages) > 0 || targets > 1 {
			return s, errors.New("--calls: is for one target in the closed model, without --stages")
		}
		if s.Calls = int(c.Calls); s.Duration == 0 {
			s.Duration = plan.Duration(longestCount)
		}
		s.CallsOnly = true
		s.Concurrency[0] = min(c.VUs, s.Calls)
	}
	if len(s.Stages) == 0 && s.Duration == 0 {
		s.Duration = plan.Duration(10 * time.Second)
	}
	if targets > 1 {
		compare(&s, c.Rounds)
	}
	if s.Processors = c.Processors; s.Processors == "" && c.VSCmd != "" {
		s.Processors = plan.Held
	}
	return s, nil
}

// kneeStart and kneeStretch are where a search for the knee begins, and how long it stays at a rate, unless flags say.
const (
	kneeStart   = 500
	kneeStretch = time.Second
)

// knee makes settings of a search for the knee.
func (c *loadCmd) knee(s *plan.Settings) error {
	for _, f := range []struct {
		name  string
		given bool
	}{{"--calls", c.Calls > 0}, {"--stages", c.Stages != ""}, {"--open", c.Open}, {"--think", c.Think > 0}, {"--gate", c.Gate != ""}} {
		if f.given {
			return fmt.Errorf("--knee: a search chooses its own rates; leave %s out", f.name)
		}
	}
	s.Model, s.Knee, s.Rate = plan.Open, c.Knee, cmp.Or(c.Rate, kneeStart)
	s.Duration = cmp.Or(s.Duration, plan.Duration(kneeStretch))
	s.Blocks = max(c.Searches, s.Rounds)
	if c.Poisson {
		s.Arrivals = plan.Poisson
	}
	return nil
}

// longestCount bounds a load of a number of calls.
const longestCount = time.Hour

// warmOfBlock is how long each contender of a comparison is warmed up for in each round, at most.
const warmOfBlock = 250 * time.Millisecond

// compare divides the time over blocks; with stages, each block is a whole profile.
func compare(s *plan.Settings, rounds int) {
	if len(s.Stages) > 0 {
		s.Rounds = max(rounds, 6)
		s.Blocks = s.Rounds
		return
	}
	s.Rounds, s.Blocks = max(rounds, roundsOfComparison), max(blocksOfComparison, rounds)
	s.WarmupTime = min(s.WarmupTime, plan.Duration(warmOfBlock))
	s.Duration /= plan.Duration(s.Blocks)
}

func (c *loadCmd) stages(s *plan.Settings) error {
	if c.Stages == "" {
		if c.Open && c.Rate == 0 {
			return errors.New("--open: is for --stages; for a constant rate give --rate")
		}
		return nil
	}
	if c.Duration != 0 || c.Rate != 0 {
		return errors.New("--stages: the stages say for how long and how much; leave --duration and --rate out")
	}
	for part := range strings.SplitSeq(c.Stages, ",") {
		d, target, ok := strings.Cut(strings.TrimSpace(part), ":")
		took, err := time.ParseDuration(d)
		level, err2 := strconv.ParseFloat(target, 64)
		if !ok || err != nil || err2 != nil {
			return fmt.Errorf("--stages: %q: want TIME:TARGET, such as 10s:50", part)
		}
		s.Stages = append(s.Stages, plan.Stage{Duration: plan.Duration(took), Target: level})
	}
	if s.Model == plan.Closed {
		s.Concurrency[0] = max(int(plan.Peak(s.Stages)+.5), 1)
	}
	return nil
}

// flagOf names the flag behind a setting.
func flagOf(field string) string {
	name, _, _ := strings.Cut(field, "[")
	return "--" + map[string]string{
		"concurrency": "vus", "in_flight": "in-flight", "warmup_time": "warmup", "model": "rate", "arrivals": "poisson", "blocks": "rounds",
	}[name] + map[bool]string{true: name}[!strings.Contains("concurrency in_flight warmup_time model arrivals blocks", name)]
}
