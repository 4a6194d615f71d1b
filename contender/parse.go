package contender

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"toll/lab/plan"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// manifestFile is a manifest as it is written.
type manifestFile struct {
	Name           string          `yaml:"name"`
	Language       string          `yaml:"language"`
	SDK            string          `yaml:"sdk"`
	Version        word            `yaml:"version"`
	VersionCommand []word          `yaml:"version_command"`
	Command        []word          `yaml:"command"`
	Image          string          `yaml:"image"`
	Env            map[string]word `yaml:"env"`
	Build          []word          `yaml:"build"`
	Driver         string          `yaml:"driver"`
	Operations     []string        `yaml:"operations"`
	Endpoint       string          `yaml:"endpoint"`
	Probe          struct {
		HTTP    string        `yaml:"http"`
		TCP     bool          `yaml:"tcp"`
		Line    string        `yaml:"line"`
		Ask     string        `yaml:"ask"`
		Timeout plan.Duration `yaml:"timeout"`
	} `yaml:"probe"`
	Stop  plan.Duration `yaml:"stop"`
	Needs []string      `yaml:"needs"`
}

// A word is text as it stands in the file: version 1.10 is not the number 1.1.
type word string

// UnmarshalYAML takes text, numbers and booleans.
func (w *word) UnmarshalYAML(n ast.Node) error {
	switch n := n.(type) {
	case *ast.StringNode:
		*w = word(n.Value)
	case *ast.LiteralNode:
		*w = word(n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		*w = word(n.GetToken().Value)
	default:
		return &yaml.SyntaxError{Token: n.GetToken(), Message: "expected text or a number"}
	}
	return nil
}

func texts(words []word) []string {
	var out []string
	for _, w := range words {
		out = append(out, string(w))
	}
	return out
}

func parse(file string, data []byte) (Manifest, error) {
	var f manifestFile
	if err := plan.Unmarshal(file, data, &f); err != nil {
		return Manifest{}, err
	}
	m := f.manifest()
	if at, msg := m.check(); msg != "" {
		return Manifest{}, plan.ErrorAt(file, data, "$."+at, msg)
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", file, err)
	}
	m.File, m.Dir = file, dir
	return m, nil
}

func (f *manifestFile) manifest() Manifest {
	m := Manifest{
		Name: f.Name, Language: f.Language, SDK: f.SDK, Version: string(f.Version), VersionCommand: texts(f.VersionCommand),
		Command: texts(f.Command), Image: f.Image, Build: texts(f.Build), Driver: f.Driver, Operations: f.Operations, Endpoint: f.Endpoint,
		Probe: ManifestProbe{Probe{f.Probe.HTTP, f.Probe.TCP, f.Probe.Line, f.Probe.Ask}, time.Duration(f.Probe.Timeout)},
		Stop:  time.Duration(f.Stop), Needs: f.Needs,
	}
	if len(f.Env) > 0 {
		m.Env = make(map[string]string)
	}
	for name, value := range f.Env {
		m.Env[name] = string(value)
	}
	return m
}

const (
	identifier = `[a-z0-9][a-z0-9-]{0,63}`
	maxTimeout = 10 * time.Minute
)

// check returns where in the manifest a mistake is, and what is wrong; an empty message means that there is none.
func (m *Manifest) check() (at, msg string) {
	for _, check := range []func() (at, msg string){m.checkNames, m.checkCommand, m.checkProbe, m.checkTimes} {
		if at, msg = check(); msg != "" {
			return at, msg
		}
	}
	return "", ""
}

func (m *Manifest) checkNames() (at, msg string) {
	id := regexp.MustCompile(`^` + identifier + `$`)
	for _, f := range []struct{ key, value, example string }{
		{"name", m.Name, "node-http"}, {"language", m.Language, "javascript"}, {"driver", m.Driver, "rest"},
	} {
		if f.value == "" {
			return f.key, fmt.Sprintf("no %s; expected one such as %s", f.key, f.example)
		}
		if !id.MatchString(f.value) {
			return f.key, fmt.Sprintf("%s is %q; expected a-z, 0-9 and -, such as %s", f.key, f.value, f.example)
		}
	}
	for i, o := range m.Operations {
		if !id.MatchString(o) {
			return fmt.Sprintf("operations[%d]", i), fmt.Sprintf("operation %q; expected a-z, 0-9 and -, such as blob", o)
		}
	}
	return "", ""
}

func (m *Manifest) checkCommand() (at, msg string) {
	switch {
	case m.Image == "" && len(m.Command) == 0:
		return "command", "no command and no image; expected one of them"
	case m.Image != "" && len(m.Build) > 0:
		return "build", "build and image; expected one of them, because an image is built already"
	case m.Image != "" && len(m.VersionCommand) > 0:
		return "version_command", "version_command and image; an image's label or its ready line gives the version"
	case strings.HasPrefix(m.Image, "-") || strings.ContainsAny(m.Image, " \t\n"):
		return "image", fmt.Sprintf("image is %q; expected a reference such as docker.io/library/nginx@sha256:…", m.Image)
	}
	for _, f := range []struct {
		key  string
		list []string
	}{{"command", m.Command}, {"version_command", m.VersionCommand}, {"build", m.Build}} {
		if len(f.list) > 0 && f.list[0] == "" && (m.Image == "" || f.key != "command") {
			return f.key + "[0]", f.key + " begins with an empty word; expected a program"
		}
		for i, word := range f.list {
			if strings.ContainsRune(word, 0) {
				return fmt.Sprintf("%s[%d]", f.key, i), f.key + " holds a zero byte"
			}
		}
	}
	for i, program := range m.Needs {
		if program == "" || strings.ContainsAny(program, `/\`) {
			return fmt.Sprintf("needs[%d]", i), fmt.Sprintf("needs %q; expected the name of a program in PATH", program)
		}
	}
	variable := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	for _, name := range slices.Sorted(maps.Keys(m.Env)) {
		if !variable.MatchString(name) || strings.ContainsRune(m.Env[name], 0) {
			return "env", fmt.Sprintf("environment variable %q; expected letters, digits and _", name)
		}
		if name == markName {
			return "env." + name, fmt.Sprintf("environment variable %s is toll's own", name)
		}
	}
	return "", ""
}

func (m *Manifest) checkProbe() (at, msg string) {
	kinds := 0
	for _, given := range []bool{m.Probe.HTTP != "", m.Probe.TCP, m.Probe.Line != "", m.Probe.Ask != ""} {
		if given {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return "probe", "more than one probe; expected http, tcp, line or ask"
	case kinds == 0 && m.Endpoint != "":
		return "endpoint", "an endpoint without a probe; expected a probe, or no endpoint: the ready line says where"
	case kinds == 0:
		return "", ""
	case m.Endpoint == "":
		return "probe", "a probe without an endpoint; expected endpoint: http://127.0.0.1:{port} or the like"
	}
	addr, _, err := splitAddr(sample(m.Endpoint))
	switch {
	case err != nil:
		return "endpoint", fmt.Sprintf("endpoint is %q; %s", m.Endpoint, wantAddr)
	case m.Probe.HTTP != "" && !strings.HasPrefix(m.Probe.HTTP, "/"):
		return "probe.http", fmt.Sprintf("probe.http is %q; expected a path such as /healthz", m.Probe.HTTP)
	case m.Probe.HTTP != "" && !strings.HasPrefix(addr, "http"):
		return "probe.http", fmt.Sprintf("probe.http needs an endpoint that speaks HTTP, and it is %s", m.Endpoint)
	case m.Probe.Ask != "" && addr != stdioAddr:
		return "probe.ask", fmt.Sprintf("probe.ask needs the endpoint %s, and it is %s", stdioAddr, m.Endpoint)
	case strings.ContainsAny(m.Probe.Ask, "\n\x00"):
		return "probe.ask", "probe.ask holds a line end or a zero byte; expected one line"
	case m.Probe.TCP && addr == stdioAddr:
		return "probe.tcp", "probe.tcp needs an endpoint to connect to, and it is " + stdioAddr
	}
	return "", ""
}

func (m *Manifest) checkTimes() (at, msg string) {
	for _, f := range []struct {
		key string
		d   time.Duration
	}{{"probe.timeout", m.Probe.Timeout}, {"stop", m.Stop}} {
		if f.d < 0 || f.d > maxTimeout {
			return f.key, fmt.Sprintf("%s is %v; expected more than 0 and at most %v", f.key, f.d, maxTimeout)
		}
	}
	return "", ""
}
