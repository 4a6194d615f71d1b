package cli

import (
	"encoding/json"
	"errors"

	"toll/audit"
)

type auditCmd struct {
	File   string `arg:"" help:"Another harness' output, a result.json or its folder, or the name of a published table." placeholder:"FILE|NAME"`
	JSON   bool   `name:"json" help:"Print every claim, and the rows of another harness, as JSON."`
	Strict bool   `help:"Exit 1 when a claim fails."`
}

// Help shows how it is used.
func (auditCmd) Help() string {
	return `Computes from the figures and the stated method what must agree with them: users by Little's law, the harness' own ceiling, calls by rate and time, values beyond a quantile, the way and the waiting in a latency, what an iteration's requests are worth, ranks that do not repeat. It knows no harness or table by name and divides nothing by a figure of ours.

  toll audit tmdevlab-v1
  toll audit wrk.txt
  toll audit summary.json --json
  toll audit results/20260101T120000Z-transport --strict

Reads: Go benchmark text, criterion, JMH, Google Benchmark, hyperfine, k6 summaries, wrk, ab, hey, vegeta, oha, HdrHistogram's .hgrm, the published receipt and MLS benchmarks' JSON, and toll's own documents.

Exit: 0 read, 1 a claim fails (--strict), 2 unreadable.`
}

// Run audits one text.
func (c *auditCmd) Run(s *streams) error {
	r, err := audit.Open(c.File)
	if err != nil {
		return exit(exitUsage, err)
	}
	if c.JSON {
		enc := json.NewEncoder(s.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		err = enc.Encode(r)
	} else {
		err = r.Text(s.out)
	}
	if err != nil {
		return err
	}
	if c.Strict && r.Failed() {
		return exit(exitMissed, errors.New("a claim fails"))
	}
	return nil
}
