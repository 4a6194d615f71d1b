package contender

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"toll/contender/hop"
	"toll/contender/limits"
	"toll/contender/place"
)

// Defaults of a Spec.
const (
	defaultReady      = 10 * time.Second
	defaultReadyImage = 30 * time.Second // of a container
	defaultStop       = 5 * time.Second
)

// portWord is replaced, in a command, its environment and its endpoint, by a port that was free when it was started,
// hostWord by the address to listen at, and in a command and its environment toolsWord by how many tools it is to list and
// idleWord by after how long it is to forget an idle session.
const (
	portWord  = "{port}"
	hostWord  = "{host}"
	toolsWord = "{tools}"
	idleWord  = "{idle}"
	setWord   = "{set}" // which of its operations a contender is to serve that lists several
)

// A Spec says how a process is started. Name and Command or Image are required.
type Spec struct {
	Name    string
	Command []string // a program and its arguments; a bare name is looked up in PATH, another path is relative to Dir
	Image   string   // a container image to run instead; Command, if any, is then given to it
	Dir     string   // working directory; empty = ours
	Env     []string // NAME=value, beside our own environment (a container gets these only)

	Tools    int               // replaces {tools}; 0 = as many as it likes
	Idle     time.Duration     // replaces {idle}; 0s = as it likes
	Words    map[string]string // further words that are replaced in a command and its environment
	Probe    Probe             // zero: the ready line
	Endpoint string            // where a process with a probe listens

	Host           string        // what {host} in the command, its environment and the endpoint stands for; 127.0.0.1 when empty
	Hop            *hop.Link     // the namespace to run in; nil for ours
	Limits         limits.Limits // what the whole tree may use; zero = no limit
	AllowUnlimited bool          // run it all the same where limits can't be held
	Processors     place.Set     // those that the whole tree is held to; empty for any
	Behind         place.Set     // those that what it has started by the time it is ready is held to instead; empty: the same

	Version        string   // empty: what the ready line says
	VersionCommand []string // asked when neither says; its first line counts

	ReadyTimeout time.Duration // 0 = 10 s, 30 s for a container
	StopTimeout  time.Duration // how long it may take to end once its stdin is closed; 0 = 5 s
	Stderr       io.Writer     // gets a copy of the child's stderr, line by line; nil = none
}

// A Probe says how a process that prints no ready line is found to be ready. At most one field is set.
type Probe struct {
	HTTP string // this path of the endpoint answers 2xx
	TCP  bool   // the endpoint accepts a connection
	Line string // a line on stdout or stderr holds this text
	Ask  string // this line on stdin is answered by a line of JSON on stdout
}

// Ready is what a process said of itself when it was ready, or what its manifest says in its place.
type Ready struct {
	Addr       string // such as tcp://127.0.0.1:4010, http://127.0.0.1:4010, unix:/path or stdio:
	Path       string // of the endpoint, where one was given: /v1/note
	Version    string
	Name       string
	Language   string
	SDK        string
	GOMAXPROCS int    // 0: it did not say
	Image      string // a container image's id
}

// Self is our own binary, started through the same door as anyone's.
func Self(args ...string) (Spec, error) {
	self, err := os.Executable()
	if err != nil {
		return Spec{}, fmt.Errorf("our own binary: %w", err)
	}
	return Spec{Name: strings.Join(append([]string{"toll"}, args...), " "), Command: append([]string{self}, args...)}, nil
}

// Digest returns the SHA-256, in hex, of the command, its environment, the program's file and those of its arguments that
// are files. Of an image it covers the reference.
func (s Spec) Digest() string {
	h := sha256.New()
	words := func(kind string, list ...string) {
		fmt.Fprintf(h, "%s %q\n", kind, list)
	}
	words("command", s.Command...)
	words("image", s.Image)
	words("env", s.Env...)
	for i, arg := range s.Command {
		path := s.path(arg)
		if program, err := s.program(); i == 0 && err == nil {
			path = program
		}
		if s.Image != "" || !regular(path) {
			continue
		}
		words("file", arg)
		// What can't be read is as good as absent: it would not run either.
		if f, err := os.Open(path); err == nil {
			io.Copy(h, f)
			f.Close()
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// path returns where a relative path leads from the working directory.
func (s Spec) path(rel string) string {
	if filepath.IsAbs(rel) {
		return rel
	}
	return filepath.Join(s.Dir, rel)
}

// program finds the program's file.
func (s Spec) program() (string, error) {
	name := s.Command[0]
	if !strings.ContainsAny(name, `/\`) {
		path, err := exec.LookPath(name)
		if errors.Is(err, exec.ErrNotFound) {
			return "", missing("%s: %s is not in PATH", s.Name, name)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.Name, err)
		}
		return filepath.Abs(path)
	}
	path, err := filepath.Abs(s.path(name))
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Name, err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: there is no program %s", s.Name, path)
	}
	return path, nil
}

// check finds what a caller forgot.
func (s Spec) check() error {
	switch {
	case s.Name == "":
		return errors.New("a contender without a name")
	case s.Image == "" && (len(s.Command) == 0 || s.Command[0] == ""):
		return fmt.Errorf("%s: no command", s.Name)
	case s.Probe == (Probe{}) && s.Endpoint != "":
		return fmt.Errorf("%s: an endpoint needs a probe; without one, the ready line says where", s.Name)
	case s.Probe != (Probe{}):
		_, _, err := splitAddr(sample(s.Endpoint))
		if err != nil {
			return fmt.Errorf("%s: endpoint: %w", s.Name, err)
		}
	}
	return nil
}

// withDefaults returns s with its times filled in and, where it asks for one, a free port.
func (s Spec) withDefaults() (Spec, error) {
	if s.Image != "" {
		s.ReadyTimeout = cmp.Or(s.ReadyTimeout, defaultReadyImage)
	}
	s.ReadyTimeout = cmp.Or(s.ReadyTimeout, defaultReady)
	s.StopTimeout = cmp.Or(s.StopTimeout, defaultStop)
	replaced := []string{toolsWord, strconv.Itoa(s.Tools), idleWord, s.Idle.String()}
	for _, w := range slices.Sorted(maps.Keys(s.Words)) {
		replaced = append(replaced, w, s.Words[w])
	}
	words := strings.NewReplacer(replaced...)
	s.Command, s.Env = each(s.Command, words.Replace), each(s.Env, words.Replace)
	s.hosted()
	asks := func(text string) bool { return strings.Contains(text, portWord) }
	if !asks(s.Endpoint) && !slices.ContainsFunc(s.Command, asks) && !slices.ContainsFunc(s.Env, asks) {
		return s, nil
	}
	port, err := freePort()
	if err != nil {
		return Spec{}, fmt.Errorf("%s: a free port: %w", s.Name, err)
	}
	fill := func(text string) string { return strings.ReplaceAll(text, portWord, port) }
	s.Command = each(s.Command, fill)
	s.Endpoint = fill(s.Endpoint)
	s.Env = append([]string{"PORT=" + port}, each(s.Env, fill)...) // the last one counts
	return s, nil
}

// each returns what f makes of the texts.
func each(list []string, f func(string) string) []string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = f(text)
	}
	return out
}

// sample is an endpoint as it may be once its words are filled in.
func sample(endpoint string) string {
	return strings.NewReplacer(portWord, "1", hostWord, "127.0.0.1").Replace(endpoint)
}

// hosted fills in where to listen.
func (s *Spec) hosted() {
	host := cmp.Or(s.Host, "127.0.0.1")
	fill := func(list []string) []string {
		out := slices.Clone(list)
		for i, text := range out {
			out[i] = strings.ReplaceAll(text, hostWord, host)
		}
		return out
	}
	s.Command, s.Env = fill(s.Command), fill(s.Env)
	s.Endpoint = strings.ReplaceAll(s.Endpoint, hostWord, host)
}

// freePort returns a port that nobody listens on. Another process may take it before the child does; the child then says
// that its address is in use.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
