package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toll/contender"
	"toll/suite"
)

type contenderCmd struct {
	List  contenderListCmd  `cmd:"" help:"List the contenders that have a manifest."`
	Build contenderBuildCmd `cmd:"" help:"Build contenders once; the result is cached."`
	Check contenderCheckCmd `cmd:"" help:"Say in plain words what of a contender does not conform."`
	Run   contenderRunCmd   `cmd:"" help:"Measure contenders among themselves; the first is the baseline."`
}

// everyPeer stands for all contenders below --peers.
const everyPeer = "all"

// findContender loads a manifest by its path, or by its name below peers.
func findContender(peers, what string) (contender.Manifest, error) {
	if _, err := os.Stat(what); err == nil || strings.ContainsRune(what, filepath.Separator) {
		return contender.Load(what)
	}
	found, _ := contender.Find([]string{peers})
	for _, m := range found {
		if m.Name == what {
			return m, nil
		}
	}
	return contender.Manifest{}, fmt.Errorf("no manifest of that name below %s, and no such folder or file", peers)
}

func findContenders(peers string, names []string) ([]contender.Manifest, error) {
	var out []contender.Manifest
	if slices.Equal(names, []string{everyPeer}) {
		found, errs := contender.Find([]string{peers})
		if err := errors.Join(errs...); err != nil {
			return nil, exit(exitUsage, err)
		}
		return found, nil
	}
	for _, n := range names {
		m, err := findContender(peers, n)
		if err != nil {
			return nil, usage("contender %s: %w", n, err)
		}
		out = append(out, m)
	}
	return out, nil
}

type contenderListCmd struct {
	Dirs []string `arg:"" optional:"" help:"Folders to look in." default:"peers"`
}

// Run prints one line per manifest: whether it could be started here, and why not.
func (c *contenderListCmd) Run(s *streams) error {
	found, errs := contender.Find(c.Dirs)
	for _, m := range found {
		state := "ready to run"
		if _, err := m.Spec(); err != nil {
			state = err.Error()
		}
		fmt.Fprintf(s.out, "%-20s %-12s %-8s %s\n", m.Name, m.Language, m.Driver, state)
	}
	if err := errors.Join(errs...); err != nil {
		return exit(exitUsage, err)
	}
	return nil
}

type contenderBuildCmd struct {
	Names  []string `arg:"" help:"Names below --peers, folders or manifests; all = everything below --peers."`
	Peers  string   `help:"Folder of contenders." default:"peers"`
	Except []string `help:"Of all, leave these out." placeholder:"NAME,…"`
}

// Run builds each; the first that fails ends it.
func (c *contenderBuildCmd) Run(ctx context.Context, s *streams) error {
	all, err := findContenders(c.Peers, c.Names)
	if err != nil {
		return err
	}
	for _, name := range c.Except {
		if !slices.ContainsFunc(all, func(m contender.Manifest) bool { return m.Name == name }) {
			return usage("--except %s: there is no contender of that name to leave out", name)
		}
	}
	for _, m := range all {
		if slices.Contains(c.Except, m.Name) {
			continue
		}
		err := contender.Build(ctx, m, s.err)
		if errors.Is(err, contender.ErrMissing) && slices.Equal(c.Names, []string{everyPeer}) {
			fmt.Fprintf(s.err, "%v\n", err) // one language that is not here keeps no other from being built
			continue
		}
		if err != nil {
			return exit(exitNotMeasured, err)
		}
	}
	return nil
}

type contenderCheckCmd struct {
	Names []string `arg:"" help:"Names below --peers, folders or manifests."`
	Peers string   `help:"Folder of contenders." default:"peers"`
}

// Run starts each contender, tries every point of the contract and prints what it found.
func (c *contenderCheckCmd) Run(ctx context.Context, s *streams) error {
	all, err := findContenders(c.Peers, c.Names)
	if err != nil {
		return err
	}
	failed := 0
	for _, m := range all {
		fmt.Fprintf(s.out, "%s\n", m.Name)
		for _, f := range contender.Check(ctx, m) {
			state := "ok"
			switch {
			case !f.OK && f.Optional:
				state = "lacks"
			case !f.OK:
				state = "FAILS"
				failed++
			}
			fmt.Fprintf(s.out, "  %-6s %-8s %s\n", state, f.Point, f.Text)
		}
	}
	if failed > 0 {
		return exit(exitMissed, fmt.Errorf("%d points do not conform", failed))
	}
	return nil
}

type contenderRunCmd struct {
	Names  []string `arg:"" help:"Names below --peers, folders or manifests. The first is the baseline."`
	Peers  string   `help:"Folder of contenders." default:"peers"`
	Case   string   `help:"The case; by default call/32B for driver rest, digest/32B for stdio." placeholder:"NAME"`
	Out    string   `help:"Folder for the results." default:"results"`
	JSON   bool     `name:"json" help:"Print the document instead of the table."`
	Seed   int64    `help:"Seed of every random choice; 0 draws one." default:"0"`
	Strict bool     `help:"Exit 4 when the result breaks a rule of an honest number."`
}

// Help shows how it is used.
func (contenderRunCmd) Help() string {
	return `All contenders are called by the same client, in shuffled blocks, beside an A/A control of the first, a raw-socket floor and the lab's null target.

  toll contender run peers/javascript/node-http peers/python/python-http
  toll contender run peers/python/stdio-sha256 peers/javascript/stdio-sha256`
}

// Run measures the contenders in one set of blocks.
func (c *contenderRunCmd) Run(ctx context.Context, s *streams) error {
	all, err := findContenders(c.Peers, c.Names)
	if err != nil {
		return err
	}
	p, open, err := suite.Among(all, c.Case)
	if err != nil {
		return exit(exitUsage, err)
	}
	defer open.Close()
	_, err = conduct(ctx, s, conducting{
		plan: p, open: open, settings: p.Settings, claimed: p.Settings, seed: c.Seed, out: c.Out, json: c.JSON, strict: c.Strict,
	})
	return err
}
