package report

import (
	"bytes"
	"fmt"
	"io"

	"toll/lab/result"
	"toll/published"
)

// BesideBus sets a published table of round trips at several concurrencies beside what a document has of the same topology.
// Nothing is divided: another machine, another language and another load shape stand between the two.
func BesideBus(w io.Writer, t published.Table, d *result.Document) error {
	var b bytes.Buffer
	for i, r := range t.Rows {
		callers := int(r.Figures["concurrency"])
		row := find(d, r, callers)
		if row == nil && i == 0 {
			return nil // a run without this topology
		}
		if i == 0 {
			fmt.Fprintf(&b, "\npublished beside measured: %s, %s, never divided\n", r.Contender, row.Case)
			fmt.Fprintf(&b, "  %-8s %-32s %s\n", "callers", "published: mean ms, p95 ms, /s", "here: mean ms, p95 ms, /s")
		}
		fmt.Fprintf(&b, "  %-8d %-32s %s\n", callers, busFigures(r.Figures["mean_ms"], r.Figures["p95_ms"], r.Figures["rps"]), measured(row))
	}
	fmt.Fprintf(&b, "  published: %s, %s, on %s; sha256 %.12s…\n", t.Source, t.Date, t.Machine, t.SHA256)
	b.WriteString("what is known to be wrong with the published table\n")
	for _, e := range t.Errata {
		b.WriteString("  " + e + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

func find(d *result.Document, r published.Row, callers int) *result.Row {
	for _, g := range d.Groups() {
		for _, row := range g.Rows {
			if g.Phase == r.Phase && g.Concurrency == callers && row.Contender.Name == r.Contender && row.Latency != nil {
				return row
			}
		}
	}
	return nil
}

func measured(r *result.Row) string {
	if r == nil {
		return "gap: this run has no row with so many callers"
	}
	p95, rate := 0.0, 0.0
	if r.Latency.P95 != nil {
		p95 = *r.Latency.P95
	}
	if r.Throughput != nil {
		rate = *r.Throughput
	}
	return busFigures(r.Latency.Mean/1000, p95/1000, rate)
}

func busFigures(mean, p95, rate float64) string {
	return fmt.Sprintf("%8.3f %8.3f %12.1f", mean, p95, rate)
}
