package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"toll/lab/result"
	"toll/report"
)

type compareCmd struct {
	Before string `arg:"" help:"A result.json, its folder, or a folder of several results: the side that is divided by."`
	After  string `arg:"" optional:"" help:"The other side. Without it, one result is compared with its own baseline."`
	Gate   string `help:"Exit 1 when a row got worse by more than this, beyond its interval and the noise floor." placeholder:"3%"`

	AllowSequential bool `help:"Let --gate judge runs made one after the other, whose intervals can't be trusted."`
}

// Help shows how it is used.
func (compareCmd) Help() string {
	return `Two results can be compared when plan, machine type and hop are the same. Only rounds that took turns can be paired; two runs made one after the other are shown as such, because whatever the machine did in between looks like a difference.

  toll compare results/A results/B
  toll compare results/before results/after --gate 3%
  toll compare results/A --gate 3%

The second compares folders of at least six runs each that were made in turns, the third the contenders of one run with its baseline. To compare two commits, let one run interleave them: toll run --vs-commit HEAD~1 --gate 3%

Exit: 0 nothing worse, 1 worse beyond the gate, 2 not comparable or not readable, 3 the gate can't judge.`
}

// Run prints the comparison and judges the gate.
func (c *compareCmd) Run(s *streams) error {
	gate, err := parseGate(c.Gate)
	if err != nil {
		return err
	}
	found, err := c.compare()
	if err != nil {
		return exit(exitUsage, err)
	}
	if err := report.Compare(s.out, found); err != nil {
		return err
	}
	return gated(found, gate, c.AllowSequential)
}

func (c *compareCmd) compare() (*result.Comparison, error) {
	before, err := readSide(c.Before)
	if err != nil {
		return nil, err
	}
	if c.After == "" {
		if len(before) != 1 {
			return nil, fmt.Errorf("compare %s: %d results; expected one, or a second side", c.Before, len(before))
		}
		return result.Within(before[0])
	}
	after, err := readSide(c.After)
	if err != nil {
		return nil, err
	}
	return result.Compare(before, after)
}

// mostRuns bounds how many results a side may have.
const mostRuns = 500

// readSide reads a result, or every result in the folders of a folder.
func readSide(path string) ([]*result.Document, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	files := []string{path}
	if info.IsDir() {
		files = []string{filepath.Join(path, "result.json")}
		if _, err := os.Stat(files[0]); err != nil {
			if files, err = filepath.Glob(filepath.Join(path, "*", "result.json")); err != nil {
				return nil, err
			}
		}
	}
	if len(files) == 0 || len(files) > mostRuns {
		return nil, fmt.Errorf("compare: %s holds %d results; expected 1 to %d result.json", path, len(files), mostRuns)
	}
	var out []*result.Document
	for _, f := range files {
		d, err := result.ReadFile(f)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// noGate is the gate of a comparison that has none.
const noGate = -1

// parseGate reads a share such as 3% or 0.03; noGate for nothing.
func parseGate(text string) (float64, error) {
	if text == "" {
		return noGate, nil
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v < 10) {
		return 0, usage("--gate %q: expected a share such as 3%% or 0.03", text)
	}
	return v, nil
}

// gated turns a comparison into an exit code.
func gated(c *result.Comparison, gate float64, allowSequential bool) error {
	if gate == noGate {
		return nil
	}
	if c.Sequential && !allowSequential {
		return exit(exitNotMeasured, errors.New("--gate: the runs are sequential, so no difference can be told from what the machine did; "+
			"interleave both sides with toll run --vs-commit, or pass --allow-sequential"))
	}
	judged := false
	for _, x := range c.Rows {
		judged = judged || x.Lo != nil && x.Floor != nil
	}
	if !judged {
		return exit(exitNotMeasured, errors.New("--gate: no row has an interval and a control to judge by; eight blocks or pairs of runs give one, and more where there are more rows"))
	}
	var worst *result.Difference
	missed := c.Missed(gate)
	for i := range missed {
		if worst == nil || cmp.Compare(missed[i].Value, worst.Value) > 0 {
			worst = &missed[i]
		}
	}
	if worst == nil {
		return nil
	}
	return exit(exitMissed, fmt.Errorf("gate %.4g %% missed by %d rows; worst: %s takes %.3f × as long", 100*gate, len(missed), worst.Row, worst.Value))
}
