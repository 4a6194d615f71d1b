package cli

import (
	"fmt"

	"toll/lab/check"
	"toll/lab/result"
)

type resultCmd struct {
	Check resultCheckCmd `cmd:"" help:"Check schema, identifiers and every rule of an honest number; exit 0, 2 or 4."`
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
