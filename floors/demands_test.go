package floors_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// demanded are the lines of docs/demands.md. One that goes missing fails.
var demanded = strings.Fields("1 5 6 7 8 9 11 14 16 17 19 21 22 23 25 26 28 29 30 31")

var quoted = regexp.MustCompile("`([^`]+)`")

// Every demand has tests, and every test that it names is there.
func TestEveryDemandHasItsTests(t *testing.T) {
	text, err := os.ReadFile("../docs/demands.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := declaredTests(t)
	var rows []string
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00"), " | ")
		if len(cells) != 4 || !strings.HasPrefix(cells[0], "| ") || cells[0] == "| #" {
			continue
		}
		row := strings.TrimPrefix(cells[0], "| ")
		rows = append(rows, row)
		named := quoted.FindAllStringSubmatch(cells[3], -1)
		if len(named) == 0 {
			t.Errorf("demand %s names no test", row)
		}
		for _, n := range named {
			if name := strings.ReplaceAll(n[1], "\x00", "|"); !exists(t, tests, name) {
				t.Errorf("demand %s: there is no test %s", row, name)
			}
		}
	}
	if !slices.Equal(rows, demanded) {
		t.Errorf("the demands are %v; want %v", rows, demanded)
	}
}

// exists reports whether a test, package.Name or a script's line, is there.
func exists(t *testing.T, tests map[string]bool, name string) bool {
	script, line, isScript := strings.Cut(name, ".txtar: ")
	if !isScript {
		return tests[name]
	}
	text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(script)+".txtar"))
	if err != nil {
		t.Error(err)
		return false
	}
	return slices.Contains(strings.Split(string(text), "\n"), line)
}

// declaredTests are all test functions of the module, as package.Name.
func declaredTests(t *testing.T) map[string]bool {
	_, files := sources(t)
	out := make(map[string]bool)
	for pkg, all := range files {
		for _, f := range all {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
					out[pkg+"."+fn.Name.Name] = true
				}
			}
		}
	}
	return out
}
