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
		b.WriteString("| rank | contender | ratio (95 %) | of minima | min | p50 | p99 | above floor | calls/s | client CPU | server CPU | client allocs (B) | server allocs (B) | server RSS MB | wire out/in |\n")
		b.WriteString("|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
		for _, r := range ordered(g) {
			cells := []string{
				r.Rank, "`" + name(r) + "`", ratioText(r), minima(r),
				quantile(r, func(l *result.Latency) *float64 { return &l.Min }, 1),
				quantile(r, func(l *result.Latency) *float64 { return &l.P50 }, 1),
				quantile(r, func(l *result.Latency) *float64 { return l.P99 }, 1000) + span(r, "p99"),
				figure(aboveFloor(r, g)), figure(r.Throughput), figure(r.Client.CPU),
				figure(serverCost(r, func(s *result.ServerCost) *float64 { return s.CPU })),
				objects(r.Client.Allocs, r.Client.AllocBytes),
				objects(serverCost(r, func(s *result.ServerCost) *float64 { return s.Allocs }),
					serverCost(r, func(s *result.ServerCost) *float64 { return s.AllocBytes })),
				figure(serverCost(r, func(s *result.ServerCost) *float64 { return s.RSSPeakMB })),
				wire(r),
			}
			b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		}
		b.WriteString("\n")
		for _, text := range []string{loopText(g), controlText(g), warningText(g)} {
			if text != "" {
				b.WriteString(text + "\n\n")
			}
		}
	}
	if lines := ladderLines(d); len(lines) > 0 {
		b.WriteString("```\n" + strings.Join(lines, "\n") + "```\n\n")
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
