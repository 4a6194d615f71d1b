package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"toll/ingest"
	"toll/lab/check"
	"toll/lab/result"
)

type resultCmd struct {
	Check  resultCheckCmd  `cmd:"" help:"Check schema, identifiers and every rule of an honest number; exit 0, 2 or 4."`
	Import resultImportCmd `cmd:"" help:"Set other harnesses' outputs beside a result, as foreign rows."`
}

type resultImportCmd struct {
	Result string   `arg:"" help:"A result.json, or the folder that holds one."`
	File   []string `arg:"" help:"Outputs of other harnesses; toll audit --help lists which are read."`
	Out    string   `help:"Write the document here; the result itself is never changed." required:"" placeholder:"FILE"`
}

// Help shows how it is used.
func (resultImportCmd) Help() string {
	return `A foreign row keeps what its harness stated and the digest of the text. It gets no ratio and no rank: what is to be divided by a row of ours must run in the same blocks, as a contender (toll run --with).

  toll result import results/20260101T120000Z-transport wrk.txt --out beside.json
  toll report beside.json`
}

// Run writes a copy of the document with the rows of the outputs behind its own.
func (c *resultImportCmd) Run(s *streams) error {
	file := documentOf(c.Result)
	if same(file, c.Out) {
		return usage("--out %s: is the result itself; a document is never changed by what stands beside it", c.Out)
	}
	d, err := result.ReadFile(file)
	if err != nil {
		return exit(exitUsage, err)
	}
	rows := 0
	for _, name := range c.File {
		in, err := ingest.Read(name)
		if err != nil {
			return exit(exitUsage, err)
		}
		if slices.ContainsFunc(d.Rows, func(r result.Row) bool { return r.Source != nil && r.Source.SHA256 == in.SHA256 }) {
			return usage("%s: its rows are in the document already", name)
		}
		d.Rows = append(d.Rows, in.Foreign()...)
		rows += len(in.Rows)
	}
	if err := d.WriteFile(c.Out); err != nil {
		return exit(exitUsage, err)
	}
	fmt.Fprintf(s.out, "%s: foreign rows: %d, beside %d of the result\n", c.Out, rows, len(d.Rows)-rows)
	return nil
}

// documentOf is the document in a folder, or the file itself.
func documentOf(name string) string {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return filepath.Join(name, "result.json")
	}
	return name
}

func same(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

type resultCheckCmd struct {
	File []string `arg:"" help:"result.json files."`
}

// Run checks each file: exit 2 when one is no usable document, 4 when one breaks a rule.
func (c *resultCheckCmd) Run(s *streams) error {
	broken := 0
	for _, file := range c.File {
		data, err := result.ReadBytes(file)
		if err != nil {
			return exit(exitUsage, err)
		}
		d, found, err := check.Document(data)
		if err != nil {
			return usage("result %s: %w", file, err)
		}
		for _, v := range found {
			fmt.Fprintf(s.out, "%s: %s\n", file, v)
		}
		if d.Partial {
			fmt.Fprintf(s.out, "%s: not publishable: the run was interrupted\n", file)
		}
		if len(found) > 0 || !d.Verdict.Publishable {
			broken++
			continue
		}
		fmt.Fprintf(s.out, "%s: ok: %d rows, publishable\n", file, len(d.Rows))
	}
	if broken > 0 {
		return exit(exitNotPublishable, nil)
	}
	return nil
}
