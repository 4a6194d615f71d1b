package contender

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ManifestName is the file that makes a folder a contender. One program that is several contenders has further manifests
// beside it, contender-NAME.yaml.
const ManifestName = "contender.yaml"

const furtherManifests = "contender-*.yaml"

// A Manifest says what a contender is, how it is started and by which driver it is called.
type Manifest struct {
	Name           string // a stable identifier
	Language       string // as in c, go, javascript
	SDK            string // the library that is measured
	Version        string
	VersionCommand []string
	Command        []string // as Spec.Command, relative to the manifest's folder
	Image          string   // instead of a command, or with arguments for it
	Env            map[string]string
	Build          []string // run once by Build
	Driver         string   // such as rest or stdio
	Operations     []string // that it serves beside note: blob
	Endpoint       string   // with a probe: where it listens
	Probe          ManifestProbe
	Stop           time.Duration
	Needs          []string // programs that must be in PATH

	File  string // the manifest, as it was given
	Dir   string // its folder, absolute
	Cache string // where Build puts what it builds; empty = toll/contenders in the user's cache
}

// ManifestProbe is a Probe and how long it may take. Without a kind it is the time that the ready line may take.
type ManifestProbe struct {
	Probe
	Timeout time.Duration
}

// Load reads and checks a manifest, given as the file or as its folder. A manifest that can't be used is a
// *plan.SyntaxError.
func Load(path string) (Manifest, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, ManifestName)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	return parse(path, data)
}

// Find reads every manifest in the folders given and up to two folders below them, as in peers/go/go-sdk, in the order
// of their names. What can't be used is among the errors, and the rest is returned all the same.
func Find(dirs []string) ([]Manifest, []error) {
	var found []Manifest
	var errs []error
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err != nil {
			errs = append(errs, fmt.Errorf("manifests: %w", err))
			continue
		}
		for _, below := range []string{"", "*", "*/*"} {
			files, err := filepath.Glob(filepath.Join(dir, below, ManifestName))
			more, err2 := filepath.Glob(filepath.Join(dir, below, furtherManifests))
			if err := errors.Join(err, err2); err != nil {
				errs = append(errs, fmt.Errorf("manifests: %s: %w", dir, err))
			}
			for _, file := range append(files, more...) {
				m, err := Load(file)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				same := slices.IndexFunc(found, func(o Manifest) bool { return o.Name == m.Name })
				if same < 0 {
					found = append(found, m)
				} else if found[same].path() != m.path() {
					errs = append(errs, fmt.Errorf("%s: name %q is taken by %s", file, m.Name, found[same].File))
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b Manifest) int { return strings.Compare(a.Name, b.Name) })
	return found, errs
}

// path is the manifest's file, absolute.
func (m Manifest) path() string { return filepath.Join(m.Dir, filepath.Base(m.File)) }

// Spec says how the contender is started. It is an ErrMissing when a program that it needs is not in PATH, or when it has
// to be built first.
func (m Manifest) Spec() (Spec, error) {
	for _, program := range m.Needs {
		if _, err := exec.LookPath(program); err != nil {
			return Spec{}, missing("%s: needs %s, which is not in PATH", m.Name, program)
		}
	}
	dir := m.Dir
	if len(m.Build) > 0 {
		built, err := m.built()
		if err != nil {
			return Spec{}, err
		}
		if _, err := os.Stat(built); errors.Is(err, fs.ErrNotExist) {
			return Spec{}, missing("%s: not built yet, or changed since; run: toll contender build %s", m.Name, m.File)
		}
		dir = built
	}
	s := m.spec()
	s.Dir = dir
	return s, nil
}

func (m Manifest) spec() Spec {
	s := Spec{
		Name: m.Name, Command: m.Command, Image: m.Image, Dir: m.Dir, Endpoint: m.Endpoint, Probe: m.Probe.Probe,
		Version: m.Version, VersionCommand: m.VersionCommand,
		ReadyTimeout: m.Probe.Timeout, StopTimeout: m.Stop,
	}
	if len(m.Operations) > 0 {
		s.Words = map[string]string{setWord: m.Operations[0], "{catalogue}": "", "{redis}": ""} // until a benchmark says which
	}
	for _, name := range slices.Sorted(maps.Keys(m.Env)) {
		s.Env = append(s.Env, name+"="+m.Env[name])
	}
	return s
}

// Digest returns the SHA-256, in hex, of what would be started: see [Spec.Digest].
func (m Manifest) Digest() string {
	s, err := m.Spec()
	if err != nil {
		s = m.spec()
	}
	return s.Digest()
}
