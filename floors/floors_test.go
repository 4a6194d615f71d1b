package floors_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "toll"

// A floor is a set of packages and what of ours they may import. A path ending in /... means the package and all below.
type floor struct {
	packages string
	may      []string
}

// table is docs/floors.md in code. The first entry that matches a package decides. Changing it is a decision record.
var table = []floor{
	{"cmd/toll", []string{"cli"}},
	{"cli", []string{"suite", "certs", "report", "audit", "ingest", "web", "contender", "contender/...", "fleet", "fleet/...", "system", "system/receipt", "wire/engine", "wire/jcs", "published", "lab", "lab/..."}},
	{"web", []string{"report", "lab/result"}},
	{"suite", []string{"driver", "contender", "contender/...", "ingest", "certs", "published", "system", "system/...", "wire/envelope", "wire/engine", "wire/frame", "lab", "lab/..."}},
	{"report", []string{"lab/result", "lab/plan", "published"}},
	{"audit", []string{"ingest", "published", "lab/check", "lab/result"}},
	{"driver", []string{"lab/load", "lab/plan", "lab/record", "wire/..."}},
	{"contender", []string{"contender/...", "lab/plan"}},
	{"contender/owner", nil},
	{"contender/...", []string{"contender/owner"}},
	{"ingest", []string{"lab/result"}},
	{"fleet", []string{"lab", "lab/..."}},
	{"fleet/...", []string{"fleet", "lab", "lab/..."}},
	{"lab", []string{"lab/..."}},
	{"lab/load", []string{"lab/plan", "lab/record"}},
	{"lab/env", []string{"lab/result", "lab/record"}},
	{"lab/result", []string{"lab/plan", "lab/stats"}},
	{"lab/check", []string{"lab/result", "lab/plan", "lab/stats"}},
	{"lab/record", nil},
	{"lab/plan", nil},
	{"lab/stats", nil},
	{"system", []string{"system/...", "wire/curve", "wire/engine", "wire/envelope"}},
	{"system/...", []string{"wire/..."}},
	{"wire/mux", nil},
	{"wire/plain", nil},
	{"wire/...", []string{"wire/mux", "wire/plain"}},
	{"certs", nil},
	{"published", nil},
	{"floors", nil},
	{"docs/bench/...", []string{"lab/stats"}},
}

func matches(pattern, pkg string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(pkg, below+"/")
	}
	return pattern == pkg
}

// sources parses every Go file of the main module, in this process: a test that asked the go command would be cached and
// stay green after a new import.
func sources(t *testing.T) (*token.FileSet, map[string][]*ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	files := make(map[string][]*ast.File)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			_, statErr := os.Stat(filepath.Join(path, "go.mod"))
			if name == "testdata" || name == "node_modules" || path != ".." && (strings.HasPrefix(name, ".") || statErr == nil) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), ".."+string(filepath.Separator)))
		files[pkg] = append(files[pkg], f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("found %d packages; the walk is broken", len(files))
	}
	return fset, files
}

func TestEveryImportIsInTheTable(t *testing.T) {
	t.Parallel()
	fset, files := sources(t)
	for pkg, fs := range files {
		at := slices.IndexFunc(table, func(f floor) bool { return matches(f.packages, pkg) })
		if at < 0 {
			t.Errorf("package %s is on no floor: add it to the table and docs/floors.md, with a decision record", pkg)
			continue
		}
		for _, f := range fs {
			for _, imp := range f.Imports {
				path := strings.Trim(imp.Path.Value, `"`)
				ours, ok := strings.CutPrefix(path, module+"/")
				if !ok || ours == pkg {
					continue
				}
				if !slices.ContainsFunc(table[at].may, func(p string) bool { return matches(p, ours) }) {
					t.Errorf("%s: package %s may not import %s", fset.Position(imp.Pos()), pkg, ours)
				}
			}
		}
	}
}

// The table itself must keep the product's claim whatever is added to it.
func TestTheMeasuredAndTheMeasurerDoNotKnowEachOther(t *testing.T) {
	t.Parallel()
	for _, f := range table {
		for _, p := range f.may {
			lab := strings.HasPrefix(f.packages, "lab")
			system := strings.HasPrefix(f.packages, "system")
			if lab && !strings.HasPrefix(p, "lab") || system && strings.HasPrefix(p, "lab") {
				t.Errorf("%s may import %s", f.packages, p)
			}
		}
	}
}

func TestEveryPackageHasOnePackageComment(t *testing.T) {
	t.Parallel()
	_, files := sources(t)
	for pkg, fs := range files {
		var docs []string
		for _, f := range fs {
			if f.Doc != nil && !strings.HasSuffix(f.Name.Name, "_test") {
				docs = append(docs, f.Doc.Text())
			}
		}
		name := strings.TrimSuffix(fs[0].Name.Name, "_test")
		want := "Package " + name + " "
		if name == "main" {
			want = "Command "
		}
		if len(docs) != 1 || !strings.HasPrefix(docs[0], want) {
			t.Errorf("package %s has %d package comments; expected one that starts %q", pkg, len(docs), want)
		}
	}
}

func TestNoTestSleeps(t *testing.T) {
	t.Parallel()
	fset, files := sources(t)
	for _, fs := range files {
		for _, f := range fs {
			if !strings.HasSuffix(fset.Position(f.Pos()).Filename, "_test.go") {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "Sleep" {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && !importsSynctest(f) {
					t.Errorf("%s: time.Sleep in a test; wait for an event, or use testing/synctest", fset.Position(n.Pos()))
				}
				return true
			})
		}
	}
}

// importsSynctest allows sleeping in virtual time, where it costs nothing.
func importsSynctest(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
}

func TestNoPackageKeepsMutableState(t *testing.T) {
	t.Parallel()
	fset, files := sources(t)
	for _, fs := range files {
		for _, f := range fs {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s: init function", fset.Position(fn.Pos()))
				}
			}
		}
	}
}

// forbidden names say nothing about what a package holds.
func TestNoPackageIsADrawer(t *testing.T) {
	t.Parallel()
	_, files := sources(t)
	for pkg := range files {
		switch filepath.Base(pkg) {
		case "util", "utils", "common", "helper", "helpers", "base", "types", "model", "internal", "pkg":
			t.Errorf("package %s: the name says nothing", pkg)
		}
	}
}

// docs/words.md gives every word one meaning: one entry each, in bold, followed by its meaning.
func TestWordsHaveOneMeaning(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/words.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^- \*\*([^*]+)\*\* (.*)$`).FindAllStringSubmatch(string(text), -1) {
		word := strings.ToLower(m[1])
		if seen[word] || len(m[2]) < 10 {
			t.Errorf("docs/words.md: %q stands twice or has no meaning", word)
		}
		seen[word] = true
	}
	for _, w := range []string{"operation", "case", "contender", "baseline", "control", "VU", "round", "block", "phase", "window", "gap", "part"} {
		if !seen[strings.ToLower(w)] {
			t.Errorf("docs/words.md does not explain %q", w)
		}
	}
}

// docs/floors.md shows the same table.
func TestFloorsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/floors.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range table {
		row := fmt.Sprintf("| %s | %s |", f.packages, strings.Join(f.may, ", "))
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/floors.md lacks the row\n%s", row)
		}
	}
}

// A schema that the binary embeds stands beside the code that reads it; docs/schema holds the copy that people link to.
func TestDocumentedSchemasAreTheEmbeddedOnes(t *testing.T) {
	t.Parallel()
	for doc, code := range map[string]string{"result": "../lab/check/result.schema.json"} {
		a, err := os.ReadFile("../docs/schema/" + doc + ".schema.json")
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(code)
		if err != nil {
			t.Fatal(err)
		}
		if string(a) != string(b) {
			t.Errorf("docs/schema/%s.schema.json and %s differ; copy the latter over the former", doc, code)
		}
	}
}
