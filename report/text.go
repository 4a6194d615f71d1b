package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"toll/lab/plan"
	"toll/lab/result"
)

// Text writes d as one table per case, phase and concurrency, at most 100 columns wide, then what concerns the whole run.
func Text(w io.Writer, d *result.Document) error {
	var b bytes.Buffer
	for _, g := range d.Groups() {
		groupText(&b, d, g)
	}
	for _, line := range ladderLines(d) {
		b.WriteString(line + "\n")
	}
	gapsText(&b, d)
	trustText(&b, d)
	_, err := w.Write(b.Bytes())
	return err
}

// headline says what the table's numbers are of, before any number (rule 16).
func headline(d *result.Document, g *result.Group) string {
	s := d.Plan.Settings
	parts := []string{d.Benchmark, g.Case}
	if g.Phase != "" {
		parts = append(parts, g.Phase)
	}
	callers := "1 caller"
	if g.Concurrency > 1 {
		callers = fmt.Sprintf("%d callers", g.Concurrency)
	}
	turn := fmt.Sprintf("%d calls", s.Calls)
	if s.Duration > 0 {
		turn = durationText(s.Duration)
	}
	parts = append(parts, callers, fmt.Sprintf("%d × %s, %s", s.Blocks, turn, d.Method.Order), hopText(d), "µs")
	return strings.Join(parts, " · ")
}

func hopText(d *result.Document) string {
	switch {
	case d.Method.Hop.Kind == "none":
		return "no network"
	case d.Method.Hop.MeasuredRTT == nil:
		return d.Method.Hop.Kind
	}
	return fmt.Sprintf("%s, rtt %.0f", d.Method.Hop.Kind, *d.Method.Hop.MeasuredRTT*1000)
}

func durationText(v plan.Duration) string {
	text, _ := v.MarshalText()
	return string(text)
}

// Column widths; a negative one is left-aligned.
var columns = [...]int{-4, -17, -17, 5, 5, 7, 6, 6, 6, 4, 4, 8}

func groupText(b *bytes.Buffer, d *result.Document, g *result.Group) {
	head := headline(d, g)
	seed := fmt.Sprintf("seed %d", d.Seed)
	if utf8.RuneCountInString(head)+len(seed)+2 <= 100 {
		head += strings.Repeat(" ", 100-utf8.RuneCountInString(head)-len(seed)) + seed
	} else {
		head += "\n" + seed
	}
	b.WriteString(head + "\n")
	fmt.Fprintf(b, "%61s%6s %13s %9s %8s\n", "", "above", "CPU µs/op", "allocs/op", "wire B")
	line(b, "rank", "contender", "ratio (95 %)", "min", "p50", "p99", "floor", "client", "server", "cli", "srv", "out/in")
	shared := sharedWarnings(g)
	for _, r := range ordered(g) {
		line(b, r.Rank, name(r), ratioText(r),
			quantile(r, func(l *result.Latency) *float64 { return &l.Min }, 1),
			quantile(r, func(l *result.Latency) *float64 { return &l.P50 }, 1),
			quantile(r, func(l *result.Latency) *float64 { return l.P99 }, 1000),
			figure(aboveFloor(r, g)),
			figure(r.Client.CPU), figure(serverCost(r, func(s *result.ServerCost) *float64 { return s.CPU })),
			count(r.Client.Allocs), count(serverCost(r, func(s *result.ServerCost) *float64 { return s.Allocs })),
			wire(r))
		for _, w := range r.Warnings {
			if !slices.Contains(shared, w) {
				fmt.Fprintf(b, "         ! %s\n", w)
			}
		}
		if kinds := failureText(r); kinds != "" {
			fmt.Fprintf(b, "         ! failures: %s\n", kinds)
		}
	}
	for _, w := range shared {
		b.WriteString("  all rows: " + w + "\n")
	}
	for _, text := range []string{loopText(g), controlText(g)} {
		if text != "" {
			b.WriteString("  " + text + "\n")
		}
	}
	b.WriteString("\n")
}

// sharedWarnings returns the warnings that every row of several has; they are said once.
func sharedWarnings(g *result.Group) []string {
	if len(g.Rows) < 2 {
		return nil
	}
	var out []string
	for _, w := range g.Rows[0].Warnings {
		if !slices.ContainsFunc(g.Rows, func(r *result.Row) bool { return !slices.Contains(r.Warnings, w) }) {
			out = append(out, w)
		}
	}
	return out
}

// name marks the roles that a reader must not take for contenders.
func name(r *result.Row) string {
	switch r.Role {
	case result.Baseline:
		return r.Contender.Name + " = 1"
	case result.Control:
		return r.Contender.Name + " (A/A)"
	case result.Floor:
		return r.Contender.Name + " (socket)"
	case result.Null:
		return r.Contender.Name + " (lab's own)"
	}
	return r.Contender.Name
}

func line(b *bytes.Buffer, cells ...string) {
	var out strings.Builder
	for i, c := range cells {
		w := columns[i]
		pad := max(abs(w)-utf8.RuneCountInString(c), 0)
		if i > 0 {
			out.WriteByte(' ')
		}
		if w < 0 {
			out.WriteString(c + strings.Repeat(" ", pad))
		} else {
			out.WriteString(strings.Repeat(" ", pad) + c)
		}
	}
	b.WriteString(strings.TrimRight(out.String(), " ") + "\n")
}

func abs(v int) int { return max(v, -v) }

func failureText(r *result.Row) string {
	var kinds []string
	for k, n := range r.Failed {
		kinds = append(kinds, fmt.Sprintf("%s %d", k, n))
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ", ")
}

// loopText says what the difference is worth to a loop of a hundred calls.
func loopText(g *result.Group) string {
	var best, worst *result.Row
	for _, r := range g.Rows {
		if !r.Ranked() || r.Latency == nil {
			continue
		}
		if best == nil || r.Latency.Mean < best.Latency.Mean {
			best = r
		}
		if worst == nil || r.Latency.Mean > worst.Latency.Mean {
			worst = r
		}
	}
	if best == nil || best == worst {
		return ""
	}
	return fmt.Sprintf("a loop of 100 calls: best %s ms (%s), worst %s ms (%s)",
		digits(best.Latency.Mean/10), best.Contender.Name, digits(worst.Latency.Mean/10), worst.Contender.Name)
}

// controlText turns the control's interval into what the run can show.
func controlText(g *result.Group) string {
	c := g.With(result.Control)
	if c == nil || c.Ratio == nil || c.Ratio.Lo == nil || c.Ratio.Hi == nil {
		return ""
	}
	text := fmt.Sprintf("the A/A control read %s: this run cannot show less than ± %.1f %%", ratioText(c), 100*NoiseFloor(c.Ratio))
	if *c.Ratio.Lo > 1 || *c.Ratio.Hi < 1 {
		text += "; it excludes 1, as one in twenty does by chance"
	}
	return text
}

// NoiseFloor is the largest distance from 1 that the control's interval reaches.
func NoiseFloor(q *result.Ratio) float64 { return max(*q.Hi-1, 1-*q.Lo, 0) }

func gapsText(b *bytes.Buffer, d *result.Document) {
	if len(d.Gaps) == 0 {
		return
	}
	b.WriteString("gaps\n")
	for _, g := range GapsBrief(d.Gaps) {
		fmt.Fprintf(b, "  %s — %s\n", g.Row, g.Reason)
	}
	b.WriteString("\n")
}

// few is how many rows may lack a figure for the same reason before they are counted instead of named.
const few = 3

// GapsBrief returns the gaps for reading: a figure that many rows lack for one reason is one line.
func GapsBrief(gaps []result.Gap) []result.Gap {
	count := make(map[result.Gap]int)
	key := func(g result.Gap) (result.Gap, bool) {
		_, field, ok := strings.Cut(g.Row, ": ")
		return result.Gap{Row: field, Reason: g.Reason}, ok
	}
	for _, g := range gaps {
		if k, ok := key(g); ok {
			count[k]++
		}
	}
	var out []result.Gap
	for _, g := range gaps {
		k, ok := key(g)
		switch n := count[k]; {
		case !ok || n <= few && n > 0:
			out = append(out, g)
		case n > few:
			out = append(out, result.Gap{Row: fmt.Sprintf("%s of %d rows", k.Row, n), Reason: g.Reason})
			count[k] = 0
		}
	}
	return out
}

// trustText is the last block: how far the numbers go.
func trustText(b *bytes.Buffer, d *result.Document) {
	b.WriteString("how far to trust this\n")
	for _, t := range Trust(d) {
		fmt.Fprintf(b, "  %s\n", t)
	}
	for _, t := range d.Thresholds {
		state := "missed"
		if t.Passed {
			state = "met"
		}
		fmt.Fprintf(b, "  threshold %s: %s\n", t.Expr, state)
	}
	if d.Verdict.Publishable {
		b.WriteString("  publishable: keeps every rule of an honest number\n")
		return
	}
	b.WriteString("  not publishable:\n")
	for _, r := range d.Verdict.Reasons {
		fmt.Fprintf(b, "    %s\n", r)
	}
}

// Trust lists, one sentence each, what a reader must know to judge the document's numbers.
func Trust(d *result.Document) []string {
	var ops, wrong, blind int64
	bound := 0
	share := 0.0
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Kind != result.Measured {
			continue
		}
		ops, wrong, blind = ops+r.Ops, wrong+r.Ops-r.OK, blind+r.OK-r.Verified
		if r.Client.CPU != nil && r.ElapsedS > 0 {
			share = max(share, *r.Client.CPU*float64(r.Ops)/1e6/r.ElapsedS/float64(r.Concurrency))
		}
		if slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, "client-bound") }) {
			bound++
		}
	}
	client := fmt.Sprintf("client at most %.0f %% of a core per caller", 100*share)
	if bound > 0 {
		client += fmt.Sprintf(", client-bound in %d rows", bound)
	} else {
		client += ", not client-bound"
	}
	checked := "each checked"
	if blind > 0 {
		checked = fmt.Sprintf("%d not looked into", blind)
	}
	out := []string{fmt.Sprintf("%s · %d failed of %d replies, %s · clock %.0f ns, recorder %.1f ns a call",
		client, wrong, ops, checked, d.Environment.Lab.ClockNS, d.Environment.Lab.RecordNS)}
	for _, a := range d.Anomalies {
		out = append(out, fmt.Sprintf("%s: %s: %s", a.Kind, a.Row, a.Detail))
	}
	out = append(out, "noise: "+noiseText(d.Environment.Noise)+" · limits on contenders: "+d.Method.Limits.Mechanism)
	return append(out, "deviations from the claimed method: "+deviationText(d.Method.Deviations))
}

func noiseText(n result.Noise) string {
	var parts []string
	for _, p := range []struct {
		name string
		v    *float64
	}{{"other processes", n.OthersCPU}, {"cpu pressure", n.PSICPUSome}, {"steal", n.Steal}} {
		if p.v != nil {
			parts = append(parts, fmt.Sprintf("%s %.1f %%", p.name, *p.v))
		}
	}
	if len(parts) == 0 {
		return "not visible on this system"
	}
	return strings.Join(parts, ", ")
}

func deviationText(all []plan.Deviation) string {
	if len(all) == 0 {
		return "none"
	}
	var parts []string
	for _, v := range all {
		parts = append(parts, fmt.Sprintf("%s %s instead of %s", v.What, v.Ran, v.Claimed))
	}
	return strings.Join(parts, "; ")
}
