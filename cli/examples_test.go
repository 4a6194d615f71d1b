package cli

import (
	"path/filepath"
	"testing"

	"toll/contender"
	"toll/lab/plan"
	"toll/suite"
)

// The plans of docs/examples can be run as they stand: each names a benchmark of ours and peers that it can call.
func TestExamplePlansNamePeersThatTheirBenchmarkCalls(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../docs/examples/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	plans := 0
	for _, file := range files {
		if filepath.Base(file) == contender.ManifestName {
			continue
		}
		plans++
		p, err := plan.Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		bench, err := suite.Lookup(p.Benchmark)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, with := range p.With {
			m, err := contender.Load(filepath.Join(filepath.Dir(file), with))
			if err != nil {
				t.Errorf("%s: %v", file, err)
			} else if !bench.Calls(m) {
				t.Errorf("%s: benchmark %s does not call %s", file, p.Benchmark, m.Name)
			}
		}
	}
	if plans == 0 {
		t.Error("no plan below docs/examples")
	}
}
