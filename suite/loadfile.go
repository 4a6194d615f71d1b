package suite

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"toll/driver"
	"toll/lab/plan"
)

// A loadFile is a load in strict YAML: several targets, a session's steps, and the load itself as in a plan.
type loadFile struct {
	Schema        string `yaml:"schema"` // toll.plan/v1
	Benchmark     string `yaml:"benchmark"`
	Targets       []fileTarget
	Steps         []fileStep
	Client        string
	Header        []string
	plan.Settings `yaml:",inline"`
	Thresholds    plan.Thresholds
}

type fileTarget struct {
	Name    string
	URL     string `yaml:"url"`
	Unix    string
	Command string
	Path    string
}

type fileStep struct {
	Name   string
	Method string
	Path   string
	Header []string
	Body   string
	Status []int
	Assert []string          // as --assert-json
	Keep   map[string]string // name: place in the JSON reply, or header:NAME
	Think  plan.Duration
	Needs  string // leave the step out when this value was not kept
}

// LoadFile reads a load file into cfg and settings, whose own values stand where the file is silent, and returns its
// thresholds. A file that can't be used is a *plan.SyntaxError.
func LoadFile(file string, cfg *LoadConfig, settings *plan.Settings) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("load file: %w", err)
	}
	return LoadText(file, data, cfg, settings)
}

// LoadText is LoadFile with the file's text.
func LoadText(file string, data []byte, cfg *LoadConfig, settings *plan.Settings) ([]string, error) {
	var f loadFile
	if err := plan.Unmarshal(file, data, &f); err != nil {
		return nil, err
	}
	bad := func(path, format string, args ...any) error {
		return plan.ErrorAt(file, data, path, fmt.Sprintf(format, args...))
	}
	switch {
	case f.Schema != plan.Schema:
		return nil, bad("$.schema", "schema is %q; expected %s", f.Schema, plan.Schema)
	case f.Benchmark != "load":
		return nil, bad("$.benchmark", "benchmark is %q; expected load", f.Benchmark)
	case len(f.Targets) == 0:
		return nil, bad("$", "targets is missing; expected at least one with a url or a command")
	}
	cfg.Header = append(cfg.Header, f.Header...)
	if f.Client != "" {
		cfg.Client = f.Client
	}
	for i, t := range f.Targets {
		if (t.URL == "") == (t.Command == "") {
			return nil, bad(fmt.Sprintf("$.targets[%d]", i), "target %q: expected a url or a command", t.Name)
		}
		if t.Name == "" {
			return nil, bad(fmt.Sprintf("$.targets[%d]", i), "a target without a name")
		}
		cfg.Targets = append(cfg.Targets, LoadTarget(t))
	}
	for i, s := range f.Steps {
		step, err := s.step()
		if err != nil {
			return nil, bad(fmt.Sprintf("$.steps[%d]", i), "step %s: %v", s.Name, err)
		}
		cfg.Steps = append(cfg.Steps, step)
	}
	if err := driver.Check(cfg.Steps); err != nil {
		return nil, bad("$.steps", "%v", err)
	}
	*settings = fileSettings(*settings, f.Settings, len(f.Targets))
	if all := !slices.ContainsFunc(f.Targets, func(t fileTarget) bool { return t.Command == "" }); all && len(f.Targets) > 1 && settings.Processors == "" {
		settings.Processors = plan.Held // as --vs-cmd has it
	}
	if field, msg := settings.Check(); msg != "" {
		return nil, bad("$."+field, "%s", msg)
	}
	return f.Thresholds, nil
}

// fileSettings puts the file's load in place of the flags', and divides it over blocks where targets are compared.
func fileSettings(flags, file plan.Settings, targets int) plan.Settings {
	if file.Model == "" && file.Rate > 0 {
		file.Model = plan.Open
	}
	s := flags.With(&file)
	if len(s.Stages) > 0 && s.Model == plan.Closed && file.Concurrency == nil {
		s.Concurrency = []int{max(int(plan.Peak(s.Stages)+.5), 1)}
	}
	if targets > 1 && file.Blocks == 0 {
		s.Rounds, s.Blocks = max(file.Rounds, 4), max(20, file.Rounds)
		if len(s.Stages) > 0 {
			s.Rounds = max(file.Rounds, 6)
			s.Blocks = s.Rounds
		}
		s.Duration /= plan.Duration(s.Blocks)
	} else if file.Blocks == 0 {
		s.Blocks = s.Rounds
	}
	return s
}

func (s fileStep) step() (driver.Step, error) {
	out := driver.Step{
		Name: s.Name, Method: s.Method, Path: s.Path, Header: s.Header, Body: s.Body, Think: time.Duration(s.Think), Needs: s.Needs,
		Expect: driver.Expect{Status: s.Status},
	}
	if out.Method == "" && s.Body != "" {
		out.Method = "POST"
	}
	for _, a := range s.Assert {
		w, err := driver.ParseJSONWant(a)
		if err != nil {
			return out, fmt.Errorf("assert: %w", err)
		}
		out.Expect.JSON = append(out.Expect.JSON, w)
	}
	for name, place := range s.Keep {
		if field, ok := strings.CutPrefix(place, "header:"); ok {
			if out.Fields == nil {
				out.Fields = make(map[string]string)
			}
			out.Fields[name] = strings.TrimSpace(field)
			continue
		}
		if strings.Contains(place, "=") {
			return out, fmt.Errorf("keep %s: %q is not a place such as result.id", name, place)
		}
		w, err := driver.ParseJSONWant(place)
		if err != nil {
			return out, fmt.Errorf("keep %s: %w", name, err)
		}
		if out.Keep == nil {
			out.Keep = make(map[string][]string)
		}
		out.Keep[name] = w.Path
	}
	return out, nil
}
