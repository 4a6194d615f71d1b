package contender_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toll/contender"
	"toll/lab/plan"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// whole is a manifest with every key that goes together.
const whole = `name: node-http
language: javascript
sdk: node:http
version: "1.0"
version_command: [node, --version]
command: [node, server.js, --port, "{port}"]
env: {PORT: "0", MODE: fast}
build: [npm, ci]
driver: rest
endpoint: http://127.0.0.1:{port}/v1/note
probe: {http: /healthz, timeout: 15s}
stop: 2s
needs: [sh]
`

// bad are manifests that can't be used; text is the whole error behind the file's name.
var bad = []struct {
	name, manifest, text string
	schemaToo            bool // the schema refuses it as well
}{
	{"empty", "", `: empty file`, false},
	{"not a mapping", "- a\n", `:1:1: sequence was used where mapping is expected`, true},
	{"unknown key", "name: a\nlimits: {cpus: 1}\n", `:2:1: unknown field "limits"`, true},
	{"unknown key of a probe", ok + "probe: {udp: true}\n", `:5:9: unknown field "udp"`, true},
	{"duplicate key", "name: a\nname: b\n", `:2:1: mapping key "name" already defined at [1:1]`, false},
	{"two documents", ok + "---\n" + ok, `: more than one YAML document; expected one`, false},
	{"no name", "language: go\ndriver: rest\ncommand: [x]\n", `:1:1: no name; expected one such as node-http`, true},
	{"name", "name: Node HTTP\nlanguage: go\ndriver: rest\ncommand: [x]\n",
		`:1:7: name is "Node HTTP"; expected a-z, 0-9 and -, such as node-http`, true},
	{"no language", "name: a\ndriver: rest\ncommand: [x]\n", `:1:1: no language; expected one such as javascript`, true},
	{"no driver", "name: a\nlanguage: go\ncommand: [x]\n", `:1:1: no driver; expected one such as rest`, true},
	{"no command", "name: a\nlanguage: go\ndriver: rest\n", `:1:1: no command and no image; expected one of them`, true},
	{"command as text", head + "command: node server.js\n", `:4:10: string was used where sequence is expected`, true},
	{"a list in a command", head + "command: [x, [y]]\n", `:4:14: expected text or a number`, true},
	{"empty word", head + "command: [\"\"]\n", `:4:11: command begins with an empty word; expected a program`, false},
	{"empty build", ok + "build: [\"\", ci]\n", `:5:9: build begins with an empty word; expected a program`, true},
	{"build and image", head + "image: x\nbuild: [make]\n",
		`:5:8: build and image; expected one of them, because an image is built already`, true},
	{"version_command and image", head + "image: x\nversion_command: [x]\n",
		`:5:18: version_command and image; an image's label or its ready line gives the version`, true},
	{"image as a flag", head + "image: --privileged\n",
		`:4:8: image is "--privileged"; expected a reference such as docker.io/library/nginx@sha256:…`, true},
	{"environment", ok + "env: {1A: x}\n", `:5:6: environment variable "1A"; expected letters, digits and _`, true},
	{"our environment", ok + "env: {TOLL_CONTENDER: x}\n", `:5:23: environment variable TOLL_CONTENDER is toll's own`, true},
	{"need", ok + "needs: [sh, /bin/sh]\n", `:5:13: needs "/bin/sh"; expected the name of a program in PATH`, true},
	{"two probes", ok + "endpoint: tcp://127.0.0.1:{port}\nprobe: {tcp: true, line: x}\n",
		`:6:8: more than one probe; expected http, tcp, line or ask`, true},
	{"probe alone", ok + "probe: {tcp: true}\n",
		`:5:8: a probe without an endpoint; expected endpoint: http://127.0.0.1:{port} or the like`, true},
	{"endpoint alone", ok + "endpoint: tcp://127.0.0.1:1\n",
		`:5:11: an endpoint without a probe; expected a probe, or no endpoint: the ready line says where`, true},
	{"endpoint with a timeout only", ok + "endpoint: tcp://127.0.0.1:1\nprobe: {timeout: 1s}\n",
		`:5:11: an endpoint without a probe; expected a probe, or no endpoint: the ready line says where`, true},
	{"endpoint", ok + "endpoint: 127.0.0.1:80\nprobe: {tcp: true}\n",
		`:5:11: endpoint is "127.0.0.1:80"; expected tcp://host:port, tls://host:port, http://host:port, https://host:port, unix:/path or stdio:`, true},
	{"endpoint without a port", ok + "endpoint: http://localhost\nprobe: {tcp: true}\n",
		`:5:11: endpoint is "http://localhost"; expected tcp://host:port, tls://host:port, http://host:port, https://host:port, unix:/path or stdio:`, false},
	{"relative path", ok + "endpoint: http://127.0.0.1:80\nprobe: {http: healthz}\n",
		`:6:15: probe.http is "healthz"; expected a path such as /healthz`, true},
	{"http probe over tcp", ok + "endpoint: tcp://127.0.0.1:80\nprobe: {http: /healthz}\n",
		`:6:15: probe.http needs an endpoint that speaks HTTP, and it is tcp://127.0.0.1:80`, false},
	{"tcp probe of stdio", ok + "endpoint: 'stdio:'\nprobe: {tcp: true}\n",
		`:6:14: probe.tcp needs an endpoint to connect to, and it is stdio:`, false},
	{"duration", ok + "stop: 5\n", `:5:7: "5" is not a duration such as 250ms or 10s`, true},
	{"negative", ok + "stop: -5s\n", `:5:7: stop is -5s; expected more than 0 and at most 10m0s`, true},
	{"ask of a port", ok + "endpoint: tcp://127.0.0.1:80\nprobe: {ask: hello}\n",
		`:6:14: probe.ask needs the endpoint stdio:, and it is tcp://127.0.0.1:80`, false},
	{"ask in two lines", ok + "endpoint: 'stdio:'\nprobe: {ask: \"a\\nb\"}\n",
		`:6:14: probe.ask holds a line end or a zero byte; expected one line`, true},
	{"operation", ok + "operations: [blob, \"\"]\n", `:5:20: operation ""; expected a-z, 0-9 and -, such as blob`, true},
	{"too long", ok + "probe: {timeout: 1h}\n", `:5:18: probe.timeout is 1h0m0s; expected more than 0 and at most 10m0s`, false},
}

const (
	head = "name: a\nlanguage: go\ndriver: rest\n"
	ok   = head + "command: [x]\n"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAManifestIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, dir, contender.ManifestName, whole)
	want := contender.Manifest{
		Name: "node-http", Language: "javascript", SDK: "node:http", Version: "1.0", VersionCommand: []string{"node", "--version"},
		Command: []string{"node", "server.js", "--port", "{port}"}, Env: map[string]string{"PORT": "0", "MODE": "fast"},
		Build: []string{"npm", "ci"}, Driver: "rest", Endpoint: "http://127.0.0.1:{port}/v1/note",
		Probe: contender.ManifestProbe{Probe: contender.Probe{HTTP: "/healthz"}, Timeout: 15 * time.Second},
		Stop:  2 * time.Second, Needs: []string{"sh"},
		File: file, Dir: dir,
	}
	for _, path := range []string{dir, file} {
		got, err := contender.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// A number is taken as it is written.
func TestAManifestsWordsAreText(t *testing.T) {
	t.Parallel()
	m, err := contender.Load(write(t, t.TempDir(), "a.yaml",
		head+"command: [x, 1.10, true, 'q', \"\\t\", 0x1F]\nversion: 1.10\nenv:\n  PORT: 08\n  TEXT: |\n    two\n    lines\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "1.10", "true", "q", "\t", "0x1F"}, m.Command); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"PORT": "08", "TEXT": "two\nlines\n"}, m.Env); diff != "" || m.Version != "1.10" {
		t.Errorf("version %q, %s", m.Version, diff)
	}
}

func TestABadManifestSaysWhere(t *testing.T) {
	t.Parallel()
	for _, c := range bad {
		file := write(t, t.TempDir(), contender.ManifestName, c.manifest)
		_, err := contender.Load(file)
		if _, ok := errors.AsType[*plan.SyntaxError](err); !ok || err.Error() != file+c.text {
			t.Errorf("%s: got  %v\nwant %s", c.name, err, file+c.text)
		}
	}
	_, err := contender.Load(filepath.Join(t.TempDir(), "absent"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: got %v", err)
	}
}

func TestTheSchemaAgrees(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile("../docs/schema/contender.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(manifest string) error {
		var v any
		if err := yaml.Unmarshal([]byte(manifest), &v); err != nil {
			t.Fatalf("%s: %v", manifest, err)
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%s: %v", manifest, err)
		}
		if v, err = jsonschema.UnmarshalJSON(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v)
	}
	for _, c := range bad {
		if c.schemaToo && check(c.manifest) == nil {
			t.Errorf("%s: the schema takes what Load refuses", c.name)
		}
	}
	good := []string{whole, ok, head + "image: docker.io/x/y@sha256:0\ncommand: [--fast, \"\"]\n", ok + "probe: {timeout: 1m30s}\n"}
	for _, file := range manifests(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		good = append(good, string(data))
	}
	for _, text := range good {
		if err := check(text); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
		if _, err := contender.Load(write(t, t.TempDir(), "x.yaml", text)); err != nil {
			t.Error(err)
		}
	}
}

// manifests are the real ones.
func manifests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../peers/*/*/contender*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("found %v, %v", files, err)
	}
	return files
}

func TestASpecFollowsItsManifest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := contender.Load(write(t, dir, "a.yaml", strings.Replace(whole, "build: [npm, ci]\n", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Spec()
	if err != nil {
		t.Fatal(err)
	}
	want := contender.Spec{
		Name: "node-http", Command: []string{"node", "server.js", "--port", "{port}"}, Dir: dir, Env: []string{"MODE=fast", "PORT=0"},
		Probe: contender.Probe{HTTP: "/healthz"}, Endpoint: "http://127.0.0.1:{port}/v1/note",
		Version: "1.0", VersionCommand: []string{"node", "--version"}, ReadyTimeout: 15 * time.Second, StopTimeout: 2 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAManifestNeedsIsAGap(t *testing.T) {
	t.Parallel()
	m, err := contender.Load(write(t, t.TempDir(), "a.yaml", ok+"needs: [sh, no-such-program-of-toll]\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Spec()
	if want := "a: needs no-such-program-of-toll, which is not in PATH"; !errors.Is(err, contender.ErrMissing) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestADigestCoversProgramAndArguments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "engine.py", "1")
	write(t, dir, "other.py", "1")
	s := contender.Spec{Name: "a", Command: []string{"sh", "engine.py"}, Dir: dir}
	first := s.Digest()
	if again := s.Digest(); again != first || len(first) != 64 {
		t.Errorf("%s, then %s", first, again)
	}
	renamed := s
	renamed.Name = "b"
	if renamed.Digest() != first {
		t.Error("it covers the name")
	}
	for what, change := range map[string]func(*contender.Spec){
		"environment": func(s *contender.Spec) { s.Env = []string{"A=1"} },
		"argument":    func(s *contender.Spec) { s.Command = []string{"sh", "other.py"} },
		"program":     func(s *contender.Spec) { s.Command = []string{"cat", "engine.py"} },
		"file":        func(*contender.Spec) { write(t, dir, "engine.py", "2") },
	} {
		c := s
		change(&c)
		if c.Digest() == first {
			t.Errorf("it does not cover the %s", what)
		}
	}
}

func TestFindReadsFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	named := func(name string) string { return strings.Replace(ok, "name: a", "name: "+name, 1) }
	write(t, dir, "go/zebra/contender.yaml", named("zebra"))
	write(t, dir, "python/ant/contender.yaml", named("ant"))
	write(t, dir, "bee/contender.yaml", named("bee"))
	write(t, dir, "python/twin/contender.yaml", named("bee"))
	write(t, dir, "python/bad/contender.yaml", "name: bad\n")
	write(t, dir, "a/b/c/contender.yaml", named("deep"))
	found, errs := contender.Find([]string{dir, filepath.Join(dir, "absent")})
	var names []string
	for _, m := range found {
		names = append(names, m.Name)
	}
	if diff := cmp.Diff([]string{"ant", "bee", "zebra"}, names); diff != "" {
		t.Error(diff)
	}
	var texts []string
	for _, err := range errs {
		texts = append(texts, strings.ReplaceAll(err.Error(), dir, "DIR"))
	}
	want := []string{
		"DIR/python/bad/contender.yaml:1:1: no language; expected one such as javascript",
		`DIR/python/twin/contender.yaml: name "bee" is taken by DIR/bee/contender.yaml`,
		"manifests: stat DIR/absent: no such file or directory",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(whole))
	for _, c := range bad {
		f.Add([]byte(c.manifest))
	}
	file := filepath.Join(f.TempDir(), "fuzz.yaml")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := contender.Load(file)
		if _, ok := errors.AsType[*plan.SyntaxError](err); err != nil && !ok {
			t.Errorf("%v is no *plan.SyntaxError", err)
		}
		if err == nil && (m.Name == "" || m.Driver == "" || len(m.Command) == 0 && m.Image == "") {
			t.Errorf("accepted %+v", m)
		}
	})
}
