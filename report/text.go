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
func Text(w io.Writer, d *result.Document) error { return text(w, d, false) }

// Coloured writes what Text does, with colour where it carries meaning: differences that were shown, warnings, verdicts.
func Coloured(w io.Writer, d *result.Document) error { return text(w, d, true) }

func text(w io.Writer, d *result.Document, k ink) error {
	var b bytes.Buffer
	for _, g := range d.Groups() {
		groupText(&b, d, g, k)
	}
	for _, line := range append(ladderLines(d), overloadLines(d)...) {
		b.WriteString(line + "\n")
	}
	elsewhereText(&b, d)
	gapsText(&b, d)
	trustText(&b, d, k)
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
	turn := fmt.Sprintf("%d calls", s.CallsAt(g.Concurrency))
	if s.Timed() {
		turn = turnText(s, g.Phase)
	}
	parts = append(parts, callers, fmt.Sprintf("%d × %s, %s", s.Blocks, turn, d.Method.Order), hopText(d))
	if on := processorsText(g); on != "" {
		parts = append(parts, on)
	}
	if d.Method.Idle == plan.Poll {
		parts = append(parts, "idle processors poll")
	}
	parts = append(parts, "µs")
	return strings.Join(parts, " · ")
}

// turnText says what a contender's turn in a block is, where it is a time under load.
func turnText(s plan.Settings, phase string) string {
	text := durationText(s.Duration)
	if len(s.Stages) > 0 {
		text = durationText(plan.Duration(plan.Total(s.Stages))) + " of stages"
	}
	switch {
	case s.Model == plan.Open && len(s.Stages) > 0:
		return text + ", open"
	case s.Knee != "":
		return "a search for the knee of " + s.Knee + " by stretches of " + text + ", open"
	case s.Model == plan.Open && s.Shares != nil && phase == "":
		return text + " at shares of the baseline's capacity, open"
	case s.Model == plan.Open && s.Shares != nil:
		return fmt.Sprintf("%s at %s × capacity, open", text, figureOf(s.Shares[phase]))
	case s.Model == plan.Open:
		return fmt.Sprintf("%s at %s/s, open", text, figureOf(s.Rate))
	}
	return text
}

// processorsText says which processors a group's client and contenders were held to; empty when to none.
func processorsText(g *result.Group) string {
	for _, r := range g.Rows {
		if len(r.Processes) == 0 || len(r.Processes[0].Processors) == 0 {
			continue
		}
		client := r.Processes[0].Processors
		if len(r.Processes) > 1 && slices.Equal(client, r.Processes[1].Processors) {
			return "all on " + plural(len(client), "processor")
		}
		return fmt.Sprintf("client on %s of its own", plural(len(client), "processor"))
	}
	return ""
}

func hopText(d *result.Document) string {
	switch {
	case d.Method.Hop.Kind == "none":
		return "no network"
	case d.Method.Hop.MeasuredRTT == nil:
		return d.Method.Hop.Kind
	}
	kind := d.Method.Hop.Kind
	if c := d.Method.Hop.ConfiguredRTT; c > 0 {
		kind = fmt.Sprintf("%s:%gms", kind, c)
	}
	return fmt.Sprintf("%s, rtt %.0f", kind, *d.Method.Hop.MeasuredRTT*1000)
}

func durationText(v plan.Duration) string {
	text, _ := v.MarshalText()
	return string(text)
}

// widest is how many characters a table's line may have.
const widest = 100

func groupText(b *bytes.Buffer, d *result.Document, g *result.Group, k ink) {
	head, seed := headline(d, g), fmt.Sprintf("seed %d", d.Seed)
	if free := widest - runes(head) - len(seed); free >= 2 {
		head += strings.Repeat(" ", free) + seed
	} else {
		head += "\n" + seed
	}
	b.WriteString(head + "\n")
	rows := ordered(g)
	notes := newFootnotes(rows)
	all := columns()
	for i := range all {
		if all[i].id == "contender" {
			all[i].cell = func(r *result.Row, _ *result.Group) string { return name(r) + notes.marks(r) }
		}
	}
	t := tableOf(g, rows, all).fit(widest)
	width := t.widths()
	b.WriteString(t.overs(width) + "\n")
	for i := -1; i < len(rows); i++ {
		var cells []string
		for j, c := range t.columns {
			text := c.head
			if i >= 0 {
				text = t.rows[i][j]
			}
			text = padded(text, width[j], c.left)
			if i >= 0 && c.id == "ratio" {
				text = k.verdict(text, shown(rows[i], g))
			}
			cells = append(cells, text)
		}
		b.WriteString(strings.TrimRight(strings.Join(cells, " "), " ") + "\n")
	}
	for _, n := range notes.lines() {
		b.WriteString(k.warning("  "+n) + "\n")
	}
	for _, line := range kneeLines(g) {
		b.WriteString("  " + line + "\n")
	}
	parts := partsText(rows)
	if d.Benchmark == "tools" {
		parts = nil // too many for a line: see Iterations
	}
	for _, text := range append(append(parts, frameworkText(rows)...), loopText(g), retainedText(g), controlText(g)) {
		if text != "" {
			b.WriteString("  " + text + "\n")
		}
	}
	b.WriteString("\n")
}

// partsText says where each row's time goes, as far as its contender tells.
func partsText(rows []*result.Row) []string {
	var out []string
	for _, r := range rows {
		var parts []string
		for _, k := range partNames(r) {
			parts = append(parts, k+" "+digits(r.Parts[k].Mean))
		}
		if len(parts) > 0 {
			out = append(out, "parts of "+name(r)+", mean µs: "+strings.Join(parts, ", "))
		}
	}
	return out
}

func runes(s string) int { return utf8.RuneCountInString(s) }

func padded(s string, width int, left bool) string {
	pad := strings.Repeat(" ", max(width-runes(s), 0))
	if left {
		return s + pad
	}
	return pad + s
}

// shown is -1 when the row is faster than the baseline beyond its interval and the control's, 1 when it is slower, else 0.
func shown(r *result.Row, g *result.Group) int {
	c := g.With(result.Control)
	if r.Role != "" || r.Ratio == nil || r.Ratio.Lo == nil || c == nil || c.Ratio == nil || c.Ratio.Lo == nil {
		return 0
	}
	floor := result.NoiseFloor(*c.Ratio.Lo, *c.Ratio.Hi)
	switch {
	case *r.Ratio.Hi < 1 && r.Ratio.Value < 1-floor:
		return -1
	case *r.Ratio.Lo > 1 && r.Ratio.Value > 1+floor:
		return 1
	}
	return 0
}

// name marks the roles that a reader must not take for contenders.
func name(r *result.Row) string {
	switch r.Role {
	case result.Baseline:
		return r.Contender.Name + " = 1"
	case result.Control:
		return r.Contender.Name + " (A/A)"
	case result.Floor:
		if r.Contender.Name != result.Floor {
			return r.Contender.Name + " (floor)"
		}
		return r.Contender.Name + " (socket)"
	case result.Null:
		return r.Contender.Name + " (lab's own)"
	}
	return r.Contender.Name
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

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
	if slices.ContainsFunc(g.Rows, func(r *result.Row) bool { return r.Knee != nil }) {
		return "" // their latencies are those of different rates
	}
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
	text := fmt.Sprintf("the A/A control read %s: this run cannot show less than ± %.1f %%", ratioText(c), 100*result.NoiseFloor(*c.Ratio.Lo, *c.Ratio.Hi))
	if *c.Ratio.Lo > 1 || *c.Ratio.Hi < 1 {
		text += "; it excludes 1, as one in twenty does by chance"
	}
	return text
}

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
func trustText(b *bytes.Buffer, d *result.Document, k ink) {
	b.WriteString("how far to trust this\n")
	for _, t := range Trust(d) {
		fmt.Fprintf(b, "  %s\n", t)
	}
	for _, t := range d.Thresholds {
		state := k.bad("missed")
		if t.Passed {
			state = "met"
		}
		fmt.Fprintf(b, "  threshold %s: %s\n", t.Expr, state)
	}
	if d.Verdict.Publishable {
		b.WriteString("  publishable: keeps every rule of an honest number\n")
		return
	}
	b.WriteString(k.bad("  not publishable:") + "\n")
	for _, r := range d.Verdict.Reasons {
		fmt.Fprintf(b, "    %s\n", r)
	}
}

// Trust lists, one sentence each, what a reader must know to judge the document's numbers.
func Trust(d *result.Document) []string {
	var ops, wrong, blind, dropped int64
	bound := 0
	share := 0.0
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Kind != result.Measured {
			continue
		}
		sent := r.Ops - r.Dropped // what was dropped has no reply
		ops, wrong, blind, dropped = ops+sent, wrong+sent-r.OK, blind+r.OK-r.Verified, dropped+r.Dropped
		if r.Client.CPU != nil && r.ElapsedS > 0 {
			share = max(share, *r.Client.CPU*float64(r.Ops)/1e6/r.ElapsedS/float64(r.Concurrency))
		}
		if slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, "client-bound") }) {
			bound++
		}
	}
	client := fmt.Sprintf("client at most %.0f %% of a core per caller", 100*share)
	if bound > 0 {
		client += fmt.Sprintf(", client-bound in %s", plural(bound, "row"))
	} else {
		client += ", not client-bound"
	}
	checked := "each checked"
	if blind > 0 {
		checked = fmt.Sprintf("%d not looked into", blind)
	}
	if dropped > 0 {
		checked += fmt.Sprintf(", and %d arrivals dropped", dropped)
	}
	out := []string{fmt.Sprintf("%s · %d failed of %d replies, %s · clock %.0f ns, recorder %.1f ns a call",
		client, wrong, ops, checked, d.Environment.Lab.ClockNS, d.Environment.Lab.RecordNS)}
	for _, a := range d.Anomalies {
		out = append(out, fmt.Sprintf("%s: %s: %s", a.Kind, a.Row, a.Detail))
	}
	if m := d.Method.Hop.Mechanism; m != "" {
		out = append(out, "hop: "+hopText(d)+" µs"+carrierText(d.Method.Hop))
	}
	out = append(out, "noise: "+noiseText(d.Environment.Noise)+" · limits on contenders: "+d.Method.Limits.Mechanism)
	if t := d.Environment.OS.Conntrack; t != nil && *t {
		out = append(out, "connections over loopback were tracked, which shows in every round trip: see toll doctor")
	}
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

func trackingText(tracked bool) string {
	if tracked {
		return "of loopback, too: every packet was looked up, which shows in every round trip"
	}
	return "not of loopback"
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
