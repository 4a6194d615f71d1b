package report

import (
	"bytes"
	"fmt"
	"strings"

	"toll/lab/result"
)

// elsewhere returns the rows that this run did not measure.
func elsewhere(d *result.Document) []*result.Row {
	var out []*result.Row
	for i := range d.Rows {
		if d.Rows[i].Kind != result.Measured {
			out = append(out, &d.Rows[i])
		}
	}
	return out
}

// elsewhereText shows foreign and published rows apart: they are never divided by what was measured here.
func elsewhereText(b *bytes.Buffer, d *result.Document) {
	rows := elsewhere(d)
	if len(rows) == 0 {
		return
	}
	b.WriteString("measured elsewhere, never divided by ours\n")
	lines := [][]string{{"kind", "row", "p50 µs", "p99 µs", "calls/s", "source"}}
	for _, r := range rows {
		lines = append(lines, []string{
			r.Kind, r.ID(), theirs(r, "p50_us", func(l *result.Latency) *float64 { return &l.P50 }),
			theirs(r, "p99_us", func(l *result.Latency) *float64 { return l.P99 }), figure(r.Throughput), sourceText(r.Source),
		})
	}
	aligned(b, lines, 2)
	for _, r := range rows {
		if r.Source != nil && len(r.Source.Errata) > 0 {
			fmt.Fprintf(b, "  known of %s: %s\n", r.Contender.Name, strings.Join(r.Source.Errata, "; "))
		}
	}
	b.WriteString("\n")
}

func sourceText(s *result.Source) string {
	if s == nil {
		return none
	}
	if s.Date == "" {
		return fmt.Sprintf("%s, sha256 %.12s…", s.File, s.SHA256)
	}
	return fmt.Sprintf("%s, %s, sha256 %.12s…", s.File, s.Date, s.SHA256)
}

// theirs prints a quantile as somebody else gave it: how many samples it had is in their hands.
func theirs(r *result.Row, name string, pick func(*result.Latency) *float64) string {
	if r.Latency != nil {
		return figure(pick(r.Latency))
	}
	if v, ok := r.Stated[name]; ok {
		return figure(&v)
	}
	return none
}
