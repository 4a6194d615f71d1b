package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"toll/lab/result"
	"toll/published"
)

// Beside sets a published table, a run by its method and a run of the same rows in shuffled order side by side. Each column
// holds ratios of medians to REST's of its own column; nothing is divided across columns.
func Beside(w io.Writer, t published.Table, fixed, shuffled *result.Document) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "published beside measured: p50 against REST, each column by itself\n")
	fmt.Fprintf(&b, "  %-16s %-6s %-20s %-22s %s\n", "row", "phase", "published", "here, fixed order", "here, shuffled")
	for _, r := range t.Rows {
		fmt.Fprintf(&b, "  %-16s %-6s %-20s %-22s %s\n", r.Label, r.Phase, ratios(r.Ratios), beside(fixed, r), beside(shuffled, r))
	}
	fmt.Fprintf(&b, "  %-16s %-6s %-20s %-22s %s\n", "control (A/A)", "tcp", "none", besideRole(fixed, "tcp"), besideRole(shuffled, "tcp"))
	fmt.Fprintf(&b, "  %-16s %-6s %-20s %-22s %s\n", "control (A/A)", "unix", "none", besideRole(fixed, "unix"), besideRole(shuffled, "unix"))
	fmt.Fprintf(&b, "  published: %s, %s, on %s; sha256 %.12s…, never divided by ours\n", t.Source, t.Date, t.Machine, t.SHA256)
	b.WriteString("what the method leaves mixed up, computed from the run by it\n")
	for _, c := range Confounders(fixed) {
		b.WriteString("  " + c + "\n")
	}
	b.WriteString("what is known to be wrong with the published table\n")
	for _, e := range t.Errata {
		b.WriteString("  " + e + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Orders sets the same rows in a fixed and in shuffled order side by side.
func Orders(w io.Writer, fixed, shuffled *result.Document) error {
	var b bytes.Buffer
	b.WriteString("the same rows in both orders: ratio (95 %)\n")
	fmt.Fprintf(&b, "  %-18s %-18s %-22s %s\n", "row", "behind", "fixed order", "shuffled")
	for i, g := range fixed.Groups() {
		for j, r := range g.Rows {
			if i >= len(shuffled.Groups()) || j >= len(shuffled.Groups()[i].Rows) {
				continue
			}
			behind := g.Rows[(j+len(g.Rows)-1)%len(g.Rows)]
			fmt.Fprintf(&b, "  %-18s %-18s %-22s %s\n", name(r), name(behind), ratioText(r), ratioText(shuffled.Groups()[i].Rows[j]))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func ratios(all []float64) string {
	var parts []string
	for _, v := range all {
		parts = append(parts, fmt.Sprintf("%.2f", v))
	}
	return strings.Join(parts, " · ")
}

// beside is what a document has for a published row.
func beside(d *result.Document, r published.Row) string {
	for _, g := range d.Groups() {
		for _, row := range g.Rows {
			if g.Phase == r.Phase && row.Contender.Name == r.Contender && row.Role != result.Control {
				return ratioText(row)
			}
		}
	}
	return "gap: not served"
}

func besideRole(d *result.Document, phase string) string {
	for _, g := range d.Groups() {
		if c := g.With(result.Control); g.Phase == phase && c != nil {
			return ratioText(c)
		}
	}
	return "–"
}

// Confounders lists what a document's method leaves mixed up with what its rows are about.
func Confounders(d *result.Document) []string {
	var out []string
	for _, v := range d.Method.Deviations {
		out = append(out, fmt.Sprintf("%s: %s instead of %s", v.What, v.Ran, v.Claimed))
	}
	if len(d.Plan.Cases) == 1 && len(d.Method.Concurrency) == 1 {
		out = append(out, fmt.Sprintf("one case, %s, at concurrency %d", d.Plan.Cases[0], d.Method.Concurrency[0]))
	}
	if d.Plan.Calls == 1 {
		out = append(out, "one call a turn: a row's time holds what its predecessor left behind")
	}
	for _, g := range d.Groups() {
		base := g.With(result.Baseline)
		for _, r := range g.Rows {
			if base != nil && r.Role == "" && r.Contender.SDK != base.Contender.SDK {
				out = append(out, fmt.Sprintf("%s %s: another library than the baseline's (%s; baseline %s)", r.Contender.Name, g.Phase, r.Contender.SDK, base.Contender.SDK))
			}
			if base != nil && r.Role == "" && r.WireBytes != nil && base.WireBytes != nil && r.Verified != r.OK != (base.Verified != base.OK) {
				out = append(out, fmt.Sprintf("%s %s: its replies are decoded, the baseline's are not", r.Contender.Name, g.Phase))
			}
		}
	}
	return out
}
