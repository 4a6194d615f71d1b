package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"toll/contender"
	"toll/contender/owner"
	"toll/lab/result"
	"toll/report"
	"toll/suite"
)

// leastVersus is how many blocks the intervals of two statistics need.
const leastVersus = 8

// A versus is what two builds of one contender are made from: the working tree as it stands and another commit of it.
type versus struct {
	ref, sha string
	root     string // the working tree
	old      string // the other commit's files, in a folder of their own
	tmp      string // everything that is made on the way; removed afterwards
}

// runVersus builds another commit of the current Go project's command and measures both in the same blocks.
func (c *runCmd) runVersus(ctx context.Context, s *streams) error {
	gate, err := parseGate(c.Gate)
	if err != nil {
		return err
	}
	switch {
	case len(c.What) > 0 || c.Profile != "" || c.Full || len(c.Only) > 0:
		return usage("--vs-commit measures one contender at one case: it takes no benchmark, --profile, --full or --only")
	case c.VsBlocks < leastVersus || c.VsBlocks > 10_000:
		return usage("--vs-blocks %d: expected %d to 10000; fewer give no interval", c.VsBlocks, leastVersus)
	case c.VsDriver != "rest" && c.VsDriver != "stdio":
		return usage("--vs-driver %s: expected rest or stdio", c.VsDriver)
	case len(c.With) > 1:
		return usage("--vs-commit with --with %s: expected one contender", strings.Join(c.With, ","))
	}
	v, err := checkOut(ctx, c.VsCommit)
	if err != nil {
		return err
	}
	defer os.RemoveAll(v.tmp)
	before, after, err := v.manifests(ctx, c, s)
	if err != nil {
		return err
	}
	p, open, err := suite.Versus(before, after, c.VsCase, c.VsBlocks)
	if err != nil {
		return exit(exitUsage, err)
	}
	defer open.Close()
	settings := p.Settings
	doc, err := conduct(ctx, s, conducting{
		plan: p, open: open, settings: settings, claimed: settings, seed: c.Seed, out: c.Out, json: c.JSON, strict: c.Strict,
	})
	if err != nil || doc == nil {
		return err
	}
	found, err := result.Within(doc)
	if err != nil {
		return exit(exitNotMeasured, err)
	}
	if !c.JSON {
		fmt.Fprintln(s.out)
		if err := report.Compare(s.out, found); err != nil {
			return err
		}
	}
	return gated(found, gate, true)
}

// checkOut puts the files of another commit into a folder. It leaves the repository's own index and work trees alone.
func checkOut(ctx context.Context, ref string) (*versus, error) {
	root, err := command(ctx, "", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, usage("--vs-commit: this folder is in no git repository: %w", err)
	}
	sha, err := command(ctx, "", nil, "git", "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if err != nil {
		return nil, usage("--vs-commit %s: no such commit in %s", ref, filepath.Base(root))
	}
	tmp, err := owner.Folder("toll-versus-")
	if err != nil {
		return nil, exit(exitNotMeasured, err)
	}
	v := &versus{ref, sha, root, filepath.Join(tmp, "old"), tmp}
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(tmp, "index")}
	_, err = command(ctx, root, index, "git", "read-tree", sha)
	if err == nil {
		_, err = command(ctx, root, index, "git", "checkout-index", "--all", "--prefix="+v.old+string(filepath.Separator))
	}
	if err != nil {
		os.RemoveAll(tmp)
		return nil, exit(exitNotMeasured, fmt.Errorf("--vs-commit %s: its files: %w", ref, err))
	}
	return v, nil
}

// manifests returns the two sides, built: of the manifest that --with names, else of the Go command of this folder's module.
func (v *versus) manifests(ctx context.Context, c *runCmd, s *streams) (before, after contender.Manifest, err error) {
	if len(c.With) == 1 {
		before, after, err = v.fromManifest(ctx, c, s)
	} else {
		before, after, err = v.fromModule(ctx, c)
	}
	before.Version, after.Version = v.sha[:12], "working tree"
	before.Name, after.Name = before.Name+"-before", after.Name+"-after"
	return before, after, err
}

func (v *versus) fromManifest(ctx context.Context, c *runCmd, s *streams) (before, after contender.Manifest, err error) {
	if after, err = findContender(c.Peers, c.With[0]); err != nil {
		return before, after, usage("--with %s: %w", c.With[0], err)
	}
	there, err := v.otherFolder(after.Dir)
	if err != nil {
		return before, after, err
	}
	file := filepath.Join(there, filepath.Base(after.File))
	if _, err := os.Stat(file); err != nil {
		return before, after, usage("--vs-commit %s: that commit has no contender %s in this folder", v.ref, after.Name)
	}
	if before, err = contender.Load(file); err != nil {
		return before, after, usage("--vs-commit %s: %w", v.ref, err)
	}
	if before.Name != after.Name || before.Driver != after.Driver {
		return before, after, usage("--vs-commit %s: the contender was %s by %s there and is %s by %s here", v.ref, before.Name, before.Driver, after.Name, after.Driver)
	}
	for _, m := range []contender.Manifest{before, after} {
		if err := contender.Build(ctx, m, s.err); err != nil {
			return before, after, exit(exitNotMeasured, err)
		}
	}
	return before, after, nil
}

// otherFolder returns where a folder of the working tree lies in the other commit's files.
func (v *versus) otherFolder(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", exit(exitUsage, err)
	}
	rel, err := filepath.Rel(v.root, real)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", usage("--vs-commit %s: %s is not in the git repository of this folder", v.ref, dir)
	}
	return filepath.Join(v.old, rel), nil
}

// fromModule builds the module's command on both sides.
func (v *versus) fromModule(ctx context.Context, c *runCmd) (before, after contender.Manifest, err error) {
	mod, err := command(ctx, "", nil, "go", "env", "GOMOD")
	if err != nil || mod == "" || mod == os.DevNull {
		return before, after, usage("--vs-commit: this folder is in no Go module; --with names a contender's manifest instead")
	}
	dir := filepath.Dir(mod)
	there, err := v.otherFolder(dir)
	if err != nil {
		return before, after, err
	}
	pkg, err := commandPackage(ctx, dir, c.VsPackage)
	if err != nil {
		return before, after, err
	}
	side := func(name, dir string) (contender.Manifest, error) {
		bin := filepath.Join(v.tmp, name, programName(pkg))
		if _, err := command(ctx, dir, nil, "go", "build", "-buildvcs=false", "-trimpath", "-o", bin, pkg); err != nil {
			return contender.Manifest{}, exit(exitNotMeasured, fmt.Errorf("building %s, %s: %w", pkg, name, err))
		}
		return contender.Manifest{
			Name: manifestName(pkg), Language: "go", Driver: c.VsDriver, Dir: filepath.Join(v.tmp, name),
			Command: append([]string{bin}, strings.Fields(c.VsArgs)...),
		}, nil
	}
	if before, err = side("before", there); err == nil {
		after, err = side("after", dir)
	}
	return before, after, err
}

// commandPackage returns the package to build: the one given, else the module's only command.
func commandPackage(ctx context.Context, dir, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	list, err := command(ctx, dir, nil, "go", "list", "-f", `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`, "./...")
	if err != nil {
		return "", exit(exitNotMeasured, err)
	}
	switch found := strings.Fields(list); len(found) {
	case 0:
		return "", usage("--vs-commit: the module has no command; --vs-package names one, --with a contender's manifest")
	case 1:
		return found[0], nil
	default:
		return "", usage("--vs-commit: the module has the commands %s; --vs-package says which", strings.Join(found, ", "))
	}
}

func programName(pkg string) string {
	name := filepath.Base(filepath.FromSlash(pkg))
	if name == "." || name == ".." || name == string(filepath.Separator) {
		return "command"
	}
	return name + os.Getenv("GOEXE")
}

// manifestName makes a contender's name of a package's.
func manifestName(pkg string) string {
	name := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(programName(pkg)), "-")
	if name = strings.Trim(name, "-"); name == "" {
		return "command"
	}
	return name
}

// command runs a program and returns what it printed. The error holds what it said on stderr.
func command(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, append(os.Environ(), env...), &out, &errs, time.Second
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(errs.String()); text != "" {
			return "", fmt.Errorf("%s: %w: %s", name, err, text)
		}
		if errors.Is(err, exec.ErrNotFound) {
			return "", fmt.Errorf("%s is not in PATH", name)
		}
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return strings.TrimSpace(out.String()), nil
}
