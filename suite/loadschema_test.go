package suite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"toll/suite"
)

// A load file is one for the schema and for toll alike, or for neither.
func TestLoadFilesFitTheirSchema(t *testing.T) {
	t.Parallel()
	s, err := jsonschema.NewCompiler().Compile("../docs/schema/load.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	const top = "schema: toll.plan/v1\nbenchmark: load\n"
	const one = top + "targets: [{name: a, url: 'http://127.0.0.1:1/'}]\n"
	files, err := filepath.Glob("../docs/load/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no example: %v", err)
	}
	good := map[string]string{
		"stages":     one + "stages: [{duration: 1s, target: 20}, {duration: 1s, target: 0}]\nthink: 5ms\n",
		"open":       one + "rate: 100\nduration: 2s\narrivals: poisson\nin_flight: 50\nwarmup_time: 1s\ntimeout: 1s\n",
		"k6":         one + "stages: [{duration: '1s', target: 5}]\nthresholds: {http_req_failed: ['rate<0.05']}\n",
		"thresholds": one + "thresholds: ['p99<50ms', 'failures<1%']\n",
		"compared":   top + "targets: [{name: a, command: './a {port}', path: /x}, {name: b, command: ./b}]\nprocessors: held\nrounds: 4\nblocks: 20\n",
		"unix":       top + "targets: [{name: a, url: 'http://localhost/', unix: /run/a.sock}]\nclient: raw\nheader: ['Accept: text/plain']\n",
		"session": one + `steps:
  - {name: open, path: /open, body: '{}', keep: {sid: result.session, tag: 'header:ETag'}, status: [200, 201]}
  - {name: call, method: PUT, path: '/s/${sid}', header: ['If-Match: ${tag}'], assert: ['ok=true'], think: 5ms, needs: sid}
`,
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		good[file] = string(text)
	}
	bad := map[string]string{
		"no schema":      "benchmark: load\ntargets: [{name: a, url: 'http://a/'}]\n",
		"another":        "schema: toll.plan/v1\nbenchmark: bus\ntargets: [{name: a, url: 'http://a/'}]\n",
		"no target":      top,
		"empty targets":  top + "targets: []\n",
		"no url":         top + "targets: [{name: a}]\n",
		"both":           top + "targets: [{name: a, url: 'http://a/', command: b}]\n",
		"no name":        top + "targets: [{url: 'http://a/'}]\n",
		"unknown key":    one + "vus: 5\n",
		"unknown in it":  one + "steps: [{name: s, asserts: [a]}]\n",
		"bad duration":   one + "duration: ten\n",
		"bad arrivals":   one + "rate: 5\nduration: 1s\narrivals: random\n",
		"bad processors": one + "processors: some\n",
		"bad keep":       one + "steps: [{name: s, path: /, keep: {v: 'a=b'}}]\n",
		"bad status":     one + "steps: [{name: s, path: /, status: ['ok']}]\n",
		"bad threshold":  one + "thresholds: ['p99']\n",
	}
	dir := t.TempDir()
	load := func(text string) error {
		file := filepath.Join(dir, "l.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := settings(1)
		s.CallsOnly = false
		_, err := suite.LoadFile(file, new(suite.LoadConfig), &s)
		return err
	}
	for name, text := range good {
		if err := validate(s, []byte(text)); err != nil {
			t.Errorf("%s: the schema refuses it: %v", name, err)
		}
		if err := load(text); err != nil {
			t.Errorf("%s: toll refuses it: %v", name, err)
		}
	}
	for name, text := range bad {
		if validate(s, []byte(text)) == nil {
			t.Errorf("%s: the schema takes it", name)
		}
		if load(text) == nil {
			t.Errorf("%s: toll takes it", name)
		}
	}
}
