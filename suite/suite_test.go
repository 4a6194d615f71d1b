package suite_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"toll/contender"
	"toll/lab/plan"
	"toll/suite"
)

func planSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile("../docs/schema/plan.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate holds YAML against the schema, as an editor would.
func validate(s *jsonschema.Schema, text []byte) error {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		return err
	}
	return s.Validate(doc)
}

func TestEveryBenchmarkHasAPlanThatFitsTheSchema(t *testing.T) {
	t.Parallel()
	s := planSchema(t)
	seen := 0
	for _, b := range suite.All() {
		for _, profile := range append([]string{""}, b.Profiles()...) {
			seen++
			p, err := b.Plan(profile)
			if err != nil {
				t.Error(err)
				continue
			}
			if p.Benchmark != b.Name || b.About == "" {
				t.Errorf("plan %q of %s is of %s", profile, b.Name, p.Benchmark)
			}
			text, err := os.ReadFile("plans/" + strings.TrimSuffix(b.Name+"-"+profile, "-") + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(s, text); err != nil {
				t.Errorf("%s %s: %v", b.Name, profile, err)
			}
		}
	}
	files, err := filepath.Glob("plans/*.yaml")
	if err != nil || len(files) != seen {
		t.Errorf("%d plan files, %d plans, %v", len(files), seen, err)
	}
}

func TestEveryPublishedMethodHasAPlanThatFitsTheSchema(t *testing.T) {
	t.Parallel()
	s := planSchema(t)
	for _, r := range suite.Replicas() {
		b, p, ok, err := suite.LookupReplica(r.Name)
		if err != nil || !ok || p.Benchmark != b.Name || r.About == "" {
			t.Errorf("%s: %v, of %s", r.Name, err, p.Benchmark)
			continue
		}
		text, err := os.ReadFile("plans/replicas/" + r.Name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(s, text); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
		// --quick is a deviation that is listed, and the whole method is not.
		if d := plan.Deviations(p.Method(), p.AtQuick().Settings); !slices.ContainsFunc(d, func(v plan.Deviation) bool { return v.What == "stages" }) {
			t.Errorf("%s: --quick deviates by %v", r.Name, d)
		}
		if d := plan.Deviations(p.Method(), p.Settings); slices.ContainsFunc(d, func(v plan.Deviation) bool { return v.What == "stages" || v.What == "rounds" }) {
			t.Errorf("%s deviates by %v", r.Name, d)
		}
	}
	files, err := filepath.Glob("plans/replicas/*.yaml")
	if err != nil || len(files) != len(suite.Replicas()) {
		t.Errorf("%d plan files, %v", len(files), err)
	}
}

// What the schema refuses, Parse refuses, and the other way round.
func TestSchemaAndParserAgree(t *testing.T) {
	t.Parallel()
	s := planSchema(t)
	good, err := os.ReadFile("plans/transport.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to string }{
		{"rounds:", "round:"},
		{"timeout: 5s", "timeout: soon"},
		{"order: shuffled", "order: random"},
		{"model: closed", "model: ajar"},
		{"model: closed", "rate: -1"},
		{"model: closed", "stages: [{duration: 1s}]"},
		{"concurrency: [1]", "concurrency: []"},
		{"concurrency: [1]", "with: [x, x]"},
		{"concurrency: [1]", "concurrency: [0]"},
		{"phases: [tcp, unix]", "phases: [tcp, tcp]"},
		{"baseline: rest\n", ""},
		{"cases: [call/32B]", "cases: []"},
		{"timeout: 5s", "thresholds: [rest fast]"},
		{"toll.plan/v1", "toll.plan/v2"},
	} {
		text := strings.Replace(string(good), c.from, c.to, 1)
		if text == string(good) {
			t.Errorf("%q is not in the plan", c.from)
		}
		_, parseErr := plan.Parse("p.yaml", []byte(text))
		if err := validate(s, []byte(text)); err == nil || parseErr == nil {
			t.Errorf("%q instead of %q: the schema says %v, the parser %v", c.to, c.from, err, parseErr)
		}
	}
}

func TestManifestsMustHaveNamesAndDriversOfTheirOwn(t *testing.T) {
	t.Parallel()
	b, err := suite.Lookup("transport")
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Plan("")
	if err != nil {
		t.Fatal(err)
	}
	for want, ms := range map[string][]contender.Manifest{
		`two contenders are named "rest-raw"`: {{Name: "rest-raw", Driver: "rest"}},
		`two contenders are named "a"`:        {{Name: "a", Driver: "rest"}, {Name: "a", Driver: "rest"}},
		`a: driver "carrier" is not one of connect, engine, gateway, grpc, mcp, mcp-sse, mcp-stateful, mcp-stdio, mcp-tools, rest, rest-h2c, spawn, stdio`: {{Name: "a", Driver: "carrier"}},
	} {
		if o, err := b.Open(p, ms); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
			if o != nil {
				o.Close()
			}
		}
	}
	if _, err := suite.Lookup("nothing"); err == nil {
		t.Error("a benchmark called nothing")
	}
}
