package report

import (
	"bytes"
	"fmt"
	"io"

	"toll/lab/result"
)

// mostHeadlines is how many lines a benchmark gets, so that all benchmarks fit one screen.
const mostHeadlines = 3

// Headlines closes a run of several benchmarks: what each found, a line per table, on one screen.
func Headlines(w io.Writer, docs []*result.Document) error {
	var b bytes.Buffer
	rows := [][]string{{"benchmark", "table", "fastest", "ratio (95 %)", "can't show less than", "state"}}
	for _, d := range docs {
		if d == nil {
			continue
		}
		groups := d.Groups()
		for i, g := range groups {
			if i == mostHeadlines && len(groups) > mostHeadlines {
				rows = append(rows, []string{"", fmt.Sprintf("and %s above", plural(len(groups)-i, "table")), "", "", "", ""})
				break
			}
			rows = append(rows, headlineRow(d, g, i == 0))
		}
	}
	b.WriteString("headlines\n")
	aligned(&b, rows, 4)
	_, err := w.Write(b.Bytes())
	return err
}

func headlineRow(d *result.Document, g *result.Group, first bool) []string {
	row := []string{"", g.Case + " " + g.Phase + fmt.Sprintf(" ×%d", g.Concurrency), none, none, "unknown", ""}
	if first {
		row[0], row[5] = d.Benchmark, "publishable"
		if !d.Verdict.Publishable {
			row[5] = "not publishable"
		}
	}
	for _, r := range ordered(g) {
		if r.Ranked() && (r.Ratio != nil || r.Role == result.Baseline) {
			row[2], row[3] = name(r), ratioText(r)
			if r.Rank != "" && r.Rank != "1" {
				row[2] += ", rank " + r.Rank
			}
			break
		}
	}
	if c := g.With(result.Control); c != nil && c.Ratio != nil && c.Ratio.Lo != nil {
		row[4] = fmt.Sprintf("± %.1f %%", 100*result.NoiseFloor(*c.Ratio.Lo, *c.Ratio.Hi))
	}
	return row
}
