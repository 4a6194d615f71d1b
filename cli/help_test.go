package cli

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every line of a help text that begins with "  toll " is an example; each must be a line that toll takes.
func TestExamplesInHelpTextsAreValid(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, file := range []string{ // that examples name
		"pinned.json", "key.pem", "next.pem", "receipt.json", "topology.yaml", "routes.yaml", "worker.nk", "ca.pem", "me.pem", "me-key.pem",
	} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("log", 0o700); err != nil {
		t.Fatal(err)
	}
	fresh := func() *kong.Kong {
		app, err := kong.New(new(grammar), kong.Name("toll"), words())
		if err != nil {
			t.Fatal(err)
		}
		return app
	}
	examples := 0
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		if h, ok := helpOf(n); ok {
			for line := range strings.Lines(h) {
				args, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "  toll ")
				if !ok {
					continue
				}
				examples++
				if _, err := fresh().Parse(strings.Fields(args)); err != nil {
					t.Errorf("example %q of %s: %v", line, n.FullPath(), err)
				}
			}
		}
		for _, c := range n.Children {
			walk(c)
		}
	}
	walk(fresh().Model.Node)
	if examples < 6 {
		t.Errorf("found %d examples", examples)
	}
}

func helpOf(n *kong.Node) (string, bool) {
	if !n.Target.IsValid() || n.Target.Kind() != reflect.Struct {
		return "", false
	}
	h, ok := n.Target.Interface().(interface{ Help() string })
	if !ok {
		return "", false
	}
	return h.Help(), true
}
