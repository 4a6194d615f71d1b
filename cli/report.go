package cli

import (
	"fmt"
	"io"

	"toll/lab/result"
	"toll/report"
)

type reportCmd struct {
	Result string `arg:"" help:"A result.json, or the folder that holds one."`
	MD     bool   `name:"md" help:"As Markdown." xor:"form"`
	CSV    bool   `name:"csv" help:"As CSV, one line per row." xor:"form"`
	HTML   bool   `name:"html" help:"As one page that needs nothing else." xor:"form"`
	Bench  bool   `help:"In Go's benchmark format, which benchstat reads: a line per block." xor:"form"`
	Like   string `help:"As the JSON of a published benchmark: carnac or marmot." xor:"form" placeholder:"NAME"`
}

// Run renders the document on stdout.
func (c *reportCmd) Run(s *streams) error {
	d, err := result.ReadFile(documentOf(c.Result))
	if err != nil {
		return exit(exitUsage, err)
	}
	switch {
	case c.MD:
		return report.Markdown(s.out, d)
	case c.CSV:
		return report.CSV(s.out, d)
	case c.HTML:
		return report.HTML(s.out, d)
	case c.Bench:
		return report.Bench(s.out, d)
	case c.Like != "":
		return c.like(s, d)
	}
	return show(s.out, d)
}

// like prints the shape of a published benchmark.
func (c *reportCmd) like(s *streams, d *result.Document) error {
	shapes := map[string]func(io.Writer, *result.Document) error{"carnac": report.Carnac, "marmot": report.Marmot}
	shape := shapes[c.Like]
	if shape == nil {
		return usage("--like %s: want carnac or marmot", c.Like)
	}
	if err := shape(s.out, d); err != nil {
		return exit(exitUsage, fmt.Errorf("--like %s: %w", c.Like, err))
	}
	return nil
}
