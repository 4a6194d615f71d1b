package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// FileSchema is what the first key of a file of routes says.
const FileSchema = "toll.gateway/v1"

// maxFile bounds a file of routes, and maxRoutes what it may hold.
const (
	maxFile   = 1 << 20
	maxRoutes = 10_000
)

// file is a gateway as people write it down.
type file struct {
	Schema   string      `yaml:"schema"`
	Routes   []fileRoute `yaml:"routes"`
	MaxBody  int         `yaml:"max_body"` // bytes
	InFlight int         `yaml:"in_flight"`
	Timeout  span        `yaml:"timeout"`
	Rate     float64     `yaml:"rate"` // requests a second of one client
	Burst    int         `yaml:"burst"`
	Proxies  []string    `yaml:"proxies"` // networks whose Client-Cert header is believed
}

type fileRoute struct {
	Method   string `yaml:"method"`
	Path     string `yaml:"path"`
	Agent    string `yaml:"agent"`
	Mode     string `yaml:"mode"` // call, cast, stream
	Type     string `yaml:"type"`
	Timeout  span   `yaml:"timeout"`
	InFlight int    `yaml:"in_flight"`
	Within   span   `yaml:"within"`
}

// A span is a duration written like 250ms or 10s.
type span time.Duration

// UnmarshalYAML parses s; its error has a position.
func (s *span) UnmarshalYAML(n ast.Node) error {
	v, err := time.ParseDuration(n.GetToken().Value)
	if err != nil || v < 0 {
		return &yaml.SyntaxError{Token: n.GetToken(), Message: fmt.Sprintf("%q is not a duration such as 250ms or 10s", n.GetToken().Value)}
	}
	*s = span(v)
	return nil
}

// ParseFile reads a file of routes and bounds into a configuration, whose Asker and TLS are still to be given. An error names
// the file and, where it is known, line and column.
func ParseFile(name string, data []byte) (c Config, err error) {
	// The YAML library panics on some malformed input; that is the file's fault.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: not usable as YAML: %v", name, r)
		}
	}()
	if len(data) > maxFile {
		return c, fmt.Errorf("%s: %d bytes; at most %d", name, len(data), maxFile)
	}
	d := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	var f file
	switch err := d.Decode(&f); {
	case errors.Is(err, io.EOF):
		return c, fmt.Errorf("%s: empty file", name)
	case err != nil:
		return c, positioned(name, err)
	}
	switch {
	case f.Schema != FileSchema:
		return c, fmt.Errorf("%s: schema is %q; expected %s", name, f.Schema, FileSchema)
	case len(f.Routes) > maxRoutes:
		return c, fmt.Errorf("%s: %d routes; at most %d", name, len(f.Routes), maxRoutes)
	case f.MaxBody < 0 || f.InFlight < 0 || f.Burst < 0 || !(f.Rate >= 0):
		return c, fmt.Errorf("%s: max_body, in_flight, rate and burst: expected none below 0", name)
	}
	c = Config{MaxBody: f.MaxBody, InFlight: f.InFlight, Timeout: time.Duration(f.Timeout), Rate: f.Rate, Burst: f.Burst}
	for _, r := range f.Routes {
		c.Routes = append(c.Routes, Route{r.Method, r.Path, r.Agent, r.Mode, r.Type, time.Duration(r.Timeout), r.InFlight, time.Duration(r.Within)})
	}
	for _, text := range f.Proxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return c, fmt.Errorf("%s: proxies: %q is not a network such as 10.0.0.0/8", name, text)
		}
		c.Proxies = append(c.Proxies, network.Masked())
	}
	if _, err := newTable(c.Routes, c.withDefaults()); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// positioned puts the position that the library knows before its message.
func positioned(name string, err error) error {
	if se, ok := errors.AsType[yaml.Error](err); ok && se.GetToken() != nil {
		at := se.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", name, at.Line, at.Column, se.GetMessage())
	}
	return fmt.Errorf("%s: %w", name, err)
}
