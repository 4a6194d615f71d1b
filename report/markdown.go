package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"toll/lab/result"
)

// Markdown writes d for a pull request or a README: the terminal's tables with the columns that did not fit there.
func Markdown(w io.Writer, d *result.Document) error {
	var b bytes.Buffer
	for _, g := range d.Groups() {
		fmt.Fprintf(&b, "**%s** (seed %d)\n\n", headline(d, g), d.Seed)
		markdownTable(&b, tableOf(g, ordered(g), markdownColumns()))
		if lines := kneeLines(g); lines != nil {
			b.WriteString("```\n" + strings.Join(lines, "\n") + "\n```\n\n")
		}
		if parts := partsText(ordered(g)); len(parts) > 0 {
			b.WriteString("- " + strings.Join(parts, "\n- ") + "\n\n")
		}
		for _, text := range []string{loopText(g), retainedText(g), fleetTexts(g), controlText(g), warningText(g)} {
			if text != "" {
				b.WriteString(text + "\n\n")
			}
		}
	}
	if lines := ladderLines(d); len(lines) > 0 {
		b.WriteString("```\n" + strings.Join(lines, "\n") + "```\n\n")
	}
	if len(elsewhere(d)) > 0 {
		b.WriteString("```\n")
		elsewhereText(&b, d)
		b.WriteString("```\n\n")
	}
	if len(d.Gaps) > 0 {
		b.WriteString("Gaps:\n\n")
		for _, g := range GapsBrief(d.Gaps) {
			fmt.Fprintf(&b, "- %s — %s\n", g.Row, g.Reason)
		}
		b.WriteString("\n")
	}
	b.WriteString("How far to trust this:\n\n")
	for _, t := range Trust(d) {
		b.WriteString("- " + t + "\n")
	}
	for _, t := range d.Thresholds {
		fmt.Fprintf(&b, "- threshold `%s`: %s\n", t.Expr, map[bool]string{true: "met", false: "**missed**"}[t.Passed])
	}
	if d.Verdict.Publishable {
		b.WriteString("- publishable: keeps every rule of an honest number\n")
	}
	for _, r := range d.Verdict.Reasons {
		b.WriteString("- **not publishable**: " + r + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// markdownColumns are the terminal's, with what did not fit there.
func markdownColumns() []column {
	var out []column
	for _, c := range columns() {
		plain := c.cell
		switch {
		case c.id == "contender":
			c.cell = func(r *result.Row, g *result.Group) string { return "`" + plain(r, g) + "`" }
		case c.id == "p99":
			c.cell = func(r *result.Row, g *result.Group) string { return plain(r, g) + span(r, "p99") }
		case c.id == "allocs" && c.head == "cli":
			c.cell = func(r *result.Row, _ *result.Group) string { return objects(r.Client.Allocs, r.Client.AllocBytes) }
		case c.id == "allocs":
			c.cell = func(r *result.Row, _ *result.Group) string {
				return objects(serverCost(r, allocsOf), serverCost(r, func(s *result.ServerCost) *float64 { return s.AllocBytes }))
			}
		}
		out = append(out, c)
		if c.id == "ratio" {
			out = append(out, column{id: "minima", head: "of minima", left: true, cell: func(r *result.Row, _ *result.Group) string { return minima(r) }})
		}
	}
	return out
}

func markdownTable(b *bytes.Buffer, t table) {
	heads, rules := make([]string, len(t.columns)), make([]string, len(t.columns))
	for i, c := range t.columns {
		heads[i], rules[i] = strings.TrimSpace(strings.TrimPrefix(c.over, "µs")+" "+c.head), "--:"
		if c.id == "allocs" {
			heads[i] += " (B)"
		}
		if c.left {
			rules[i] = "---"
		}
	}
	for _, r := range append([][]string{heads, rules}, t.rows...) {
		b.WriteString("| " + strings.Join(r, " | ") + " |\n")
	}
	b.WriteString("\n")
}

// span shows the interval of a quantile.
func span(r *result.Row, name string) string {
	s, ok := r.Intervals[name]
	if !ok {
		return ""
	}
	return fmt.Sprintf(" (%s–%s)", digits(s.Lo), digits(s.Hi))
}

func minima(r *result.Row) string {
	if r.Ratio == nil {
		return ""
	}
	return figure(r.Ratio.MinValue)
}

func objects(n, bytes *float64) string {
	if n == nil {
		return "–"
	}
	return count(n) + " (" + count(bytes) + ")"
}

func warningText(g *result.Group) string {
	var all []string
	for _, r := range ordered(g) {
		for _, w := range r.Warnings {
			all = append(all, "- `"+name(r)+"`: "+w)
		}
		if kinds := failureText(r); kinds != "" {
			all = append(all, "- `"+name(r)+"`: failures: "+kinds)
		}
	}
	return strings.Join(all, "\n")
}
