package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"toll/lab/plan"
	"toll/lab/result"
)

// Load writes the document of an ad-hoc load as one screen: one target by its own figures, several as the table of a
// comparison with a sentence on what it shows.
func Load(w io.Writer, d *result.Document) error {
	var b bytes.Buffer
	for _, g := range d.Groups() {
		rows := slices.DeleteFunc(slices.Clone(g.Rows), func(r *result.Row) bool { return !r.Ranked() })
		if len(rows) == 1 {
			loadScreen(&b, d, g, rows[0])
			continue
		}
		groupText(&b, d, g, false)
		if text := kneeVerdict(g); text != "" {
			b.WriteString("  " + text + "\n")
		} else {
			for _, line := range sentences(g) {
				b.WriteString("  " + line + "\n")
			}
		}
		gateText(&b, d.Gate)
		b.WriteString("\n")
	}
	if len(d.Rows) > 0 {
		elsewhereText(&b, d)
		gapsText(&b, d)
	}
	trustText(&b, d, false)
	_, err := w.Write(b.Bytes())
	return err
}

// loadScreen shows one target.
func loadScreen(b *bytes.Buffer, d *result.Document, g *result.Group, r *result.Row) {
	fmt.Fprintf(b, "%s\n", loadHeadline(d, g, r))
	failed := r.Ops - r.OK - r.Dropped
	timeouts := r.Failed["timeout"]
	fmt.Fprintf(b, "  %-10s %d in %.2f s: %d ok, %d failed, %d timed out, %d dropped\n", "calls", r.Ops, r.ElapsedS, r.OK, failed-timeouts, timeouts, r.Dropped)
	if r.Throughput != nil {
		fmt.Fprintf(b, "  %-10s %s ok a second\n", "rate", figureOf(*r.Throughput))
	} else {
		fmt.Fprintf(b, "  %-10s 0 ok a second\n", "rate")
	}
	if r.Open != nil {
		fmt.Fprintf(b, "  %-10s %s a second offered, %s; at most %d in flight of %d allowed; %d catch-up bursts, the largest of %d\n", "schedule",
			figureOf(r.Open.Offered), spreadText(r.Open.Spread), r.Open.InFlightMost, r.Open.InFlightLimit, r.Open.Bursts, r.Open.BurstMost)
		fmt.Fprintf(b, "  %-34s", "")
	} else {
		fmt.Fprintf(b, "  %-34s", "µs")
	}
	fmt.Fprintf(b, "%8s %8s %8s %8s %8s %8s %8s\n", "min", "mean", "p50", "p90", "p95", "p99", "max")
	label := "latency"
	if r.Open != nil {
		label = "response, from the intended start"
	}
	latencyLine(b, label, r.Latency)
	if r.Open != nil {
		latencyLine(b, "service, from the send", r.Service)
		if l := r.Open.Late; l != nil {
			fmt.Fprintf(b, "  %-34s%8s %8s %8s %8s %8s %8s %8s\n", "lateness of the send", "", "", figureOf(l.P50), "", "", atLeast(l.P99, 1000), figureOf(l.Max))
		}
	}
	for _, name := range sortedKeys(r.Parts) {
		p := r.Parts[name]
		latencyLine(b, fmt.Sprintf("  %s ×%d", name, p.Count), &p.Latency)
	}
	if r.Failing != nil {
		latencyLine(b, fmt.Sprintf("the %d that failed", failed), r.Failing)
	}
	if r.AboveTen != nil {
		fmt.Fprintf(b, "  %-34s%d\n", "above 10 × p50", *r.AboveTen)
	}
	if t := r.Tail; t != nil {
		fmt.Fprintf(b, "  %d timeouts counted as at least %s: %s\n", t.Timeouts, micros(t.Limit), tailText(t))
	}
	for _, line := range kneeLines(g) {
		b.WriteString("  " + line + "\n")
	}
	periodsText(b, d, r)
	costText(b, d, g, r)
	checksText(b, d, r)
	if text := fleetText(r); text != "" {
		b.WriteString("  " + text + "\n")
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(b, "  ! %s\n", w)
	}
	if kinds := failureText(r); kinds != "" {
		fmt.Fprintf(b, "  ! failures: %s\n", kinds)
	}
	for _, name := range sortedKeys(r.BadParts) {
		fmt.Fprintf(b, "  ! step %s failed %d times\n", name, r.BadParts[name])
	}
	b.WriteString("\n")
}

// loadHeadline says what the figures are of (rule 16).
func loadHeadline(d *result.Document, g *result.Group, r *result.Row) string {
	s := d.Plan.Settings
	var load string
	switch {
	case s.Model == plan.Open && len(s.Stages) > 0:
		load = "open, stages " + stagesText(s.Stages) + "/s"
	case s.Knee != "":
		load = fmt.Sprintf("open, %d searches for the knee of %s, stretches of %s", s.Blocks, s.Knee, durationText(s.Duration))
	case s.Model == plan.Open:
		load = fmt.Sprintf("open, %s/s for %s", figureOf(s.Rate), durationText(s.Duration))
	case len(s.Stages) > 0:
		load = "closed, stages " + stagesText(s.Stages) + " VUs"
	case s.CallsOnly:
		load = fmt.Sprintf("closed, %d VUs, %d calls", g.Concurrency, s.Calls)
	default:
		load = fmt.Sprintf("closed, %d VUs for %s", g.Concurrency, durationText(s.Duration))
	}
	parts := []string{r.Contender.Name, load}
	if s.Think > 0 {
		parts = append(parts, "think "+durationText(s.Think))
	}
	if s.Rounds > 1 {
		parts = append(parts, fmt.Sprintf("%d rounds", s.Rounds))
	}
	if s.WarmupTime > 0 {
		parts = append(parts, "warm-up "+durationText(s.WarmupTime))
	}
	parts = append(parts, g.Phase, hopText(d))
	if r.Client.Kind != "" {
		client := "client " + r.Client.Kind
		if len(r.Processes) > 0 && r.Processes[0].Threads != nil {
			client += fmt.Sprintf(" ×%d", *r.Processes[0].Threads)
		}
		parts = append(parts, client)
	}
	if r.TLS != nil {
		parts = append(parts, tlsText(r.TLS))
	}
	return strings.Join(append(parts, fmt.Sprintf("seed %d", d.Seed)), " · ")
}

func tlsText(t *result.TLS) string {
	text := "server not verified"
	switch {
	case t.ServerVerified && t.ClientVerified:
		text = "both verified"
	case t.ServerVerified:
		text = "server verified"
	}
	if t.Resumption != "" {
		text += ", resumption " + t.Resumption
	}
	return text
}

func stagesText(stages []plan.Stage) string {
	var parts []string
	for _, s := range stages {
		parts = append(parts, fmt.Sprintf("%v→%s", time.Duration(s.Duration), figureOf(s.Target)))
	}
	return strings.Join(parts, ", ")
}

func spreadText(spread string) string {
	if spread == plan.Poisson {
		return "at random moments (Poisson)"
	}
	return "evenly spaced"
}

func latencyLine(b *bytes.Buffer, label string, l *result.Latency) {
	if l == nil {
		fmt.Fprintf(b, "  %-34s%8s\n", label, "none")
		return
	}
	fmt.Fprintf(b, "  %-34s%8s %8s %8s %8s %8s %8s %8s\n", label, figureOf(l.Min), figureOf(l.Mean), figureOf(l.P50),
		atLeast(l.P90, 100), atLeast(l.P95, 200), atLeast(l.P99, 1000), figureOf(l.Max))
}

func atLeast(v *float64, least int) string {
	if v == nil {
		return fmt.Sprintf("n<%d", least)
	}
	return figureOf(*v)
}

func figureOf(v float64) string { return figure(&v) }

func micros(us float64) string {
	return time.Duration(us * float64(time.Microsecond)).Round(time.Microsecond).String()
}

func tailText(t *result.Tail) string {
	show := func(name string, q float64, v *float64) string {
		switch {
		case v == nil:
			return ""
		case q > t.AtLeastFrom:
			return fmt.Sprintf("%s ≥ %s", name, micros(*v))
		}
		return fmt.Sprintf("%s %s", name, micros(*v))
	}
	parts := []string{show("p50", .5, &t.P50), show("p90", .9, t.P90), show("p95", .95, t.P95), show("p99", .99, t.P99)}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// periodsText shows the stages and the warm-up, which is in no other figure.
func periodsText(b *bytes.Buffer, d *result.Document, r *result.Row) {
	unit := "VUs"
	if d.Method.Model == plan.Open {
		unit = "/s"
	}
	show := func(label string, p *result.Period) {
		var failed int64
		for _, n := range p.Failed {
			failed += n
		}
		p50, p99 := "–", "–"
		if p.Latency != nil {
			p50, p99 = figureOf(p.Latency.P50), atLeast(p.Latency.P99, 1000)
		}
		fmt.Fprintf(b, "  %-34s%s ok/s, p50 %s, p99 %s, %d failed, %d dropped\n", label, figureOf(p.Throughput), p50, p99, failed, p.Dropped)
	}
	for i := range r.Stages {
		p := &r.Stages[i]
		show(fmt.Sprintf("stage %gs–%gs, %s to %s %s", p.FromS, p.ToS, figureOf(p.From), figureOf(p.To), unit), p)
	}
	if r.WarmUp != nil {
		show("warm-up, in no other figure", r.WarmUp)
	}
}

// costText shows what both sides spent, and what the client spends on a target that does nothing.
func costText(b *bytes.Buffer, d *result.Document, g *result.Group, r *result.Row) {
	if r.Client.CPU != nil {
		share := *r.Client.CPU * float64(r.Ops-r.Dropped) / 1e6 / r.ElapsedS
		fmt.Fprintf(b, "  %-34s%s s per 100k calls, %.0f %% of a core, %s allocations a call", "client CPU", figureOf(*r.Client.CPU/10), 100*share, count(r.Client.Allocs))
		if r.WireBytes != nil {
			fmt.Fprintf(b, "; %s bytes out/in", wire(r))
		}
		b.WriteString("\n")
	}
	if r.Server != nil && r.Server.CPU != nil {
		fmt.Fprintf(b, "  %-34s%s s per 100k calls, peak RSS %s MB\n", "server CPU", figureOf(*r.Server.CPU/10), figure(r.Server.RSSPeakMB))
	}
	if n := g.With(result.Null); n != nil && n.Latency != nil {
		fmt.Fprintf(b, "  %-34sp50 %s µs", "null target (the client's floor)", figureOf(n.Latency.P50))
		if d.Method.Model == plan.Closed && n.Throughput != nil {
			fmt.Fprintf(b, ", %s/s", figureOf(*n.Throughput))
		}
		if n.Client.CPU != nil {
			fmt.Fprintf(b, ", %s s client CPU per 100k calls", figureOf(*n.Client.CPU/10))
		}
		b.WriteString("\n")
	}
}

// checksText says what the self-checks found.
func checksText(b *bytes.Buffer, d *result.Document, r *result.Row) {
	var parts []string
	if r.Little != nil {
		parts = append(parts, fmt.Sprintf("Little %.3f", *r.Little))
	}
	var failed int64
	for _, n := range r.Failed {
		failed += n
	}
	if r.Ops == r.OK+failed+r.Dropped {
		parts = append(parts, "accounting exact")
	} else {
		parts = append(parts, fmt.Sprintf("accounting off by %d", r.Ops-r.OK-failed-r.Dropped))
	}
	state := func(about, yes, no string) {
		if slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, about) }) {
			parts = append(parts, yes)
		} else {
			parts = append(parts, no)
		}
	}
	state("client-bound", "client-bound", "not client-bound")
	state("no steady state", "not steady", "steady")
	parts = append(parts, fmt.Sprintf("%d of %d replies verified", r.Verified, r.OK))
	fmt.Fprintf(b, "  %-34s%s\n", "self-checks", strings.Join(parts, " · "))
}

// sentences say of each contender whether it was shown to differ from the baseline.
func sentences(g *result.Group) []string {
	base, control := g.With(result.Baseline), g.With(result.Control)
	var out []string
	for _, r := range g.Rows {
		q := r.Ratio
		if r.Role != "" || base == nil || q == nil || q.Lo == nil || q.Hi == nil {
			continue
		}
		floor := 0.0
		if control != nil && control.Ratio != nil && control.Ratio.Lo != nil {
			floor = result.NoiseFloor(*control.Ratio.Lo, *control.Ratio.Hi)
		}
		off := fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*(q.Value-1), 100*(*q.Lo-1), 100*(*q.Hi-1))
		switch {
		case *q.Lo <= 1 && *q.Hi >= 1:
			out = append(out, fmt.Sprintf("tied: %s and %s: no difference shown", r.Contender.Name, base.Contender.Name))
		case max(q.Value-1, 1-q.Value) <= floor:
			out = append(out, fmt.Sprintf("no difference shown: %s is off by %s, within what the A/A control reads", r.Contender.Name, off))
		case q.Value > 1:
			out = append(out, fmt.Sprintf("%s is slower than %s by %s", r.Contender.Name, base.Contender.Name, off))
		default:
			out = append(out, fmt.Sprintf("%s is faster than %s: its p50 differs by %s", r.Contender.Name, base.Contender.Name, off))
		}
	}
	return out
}

func gateText(b *bytes.Buffer, g *result.Gate) {
	if g == nil {
		return
	}
	for _, l := range g.Looks {
		span := "no interval"
		if l.Lo != nil && l.Hi != nil {
			span = fmt.Sprintf("%.3f–%.3f", *l.Lo, *l.Hi)
		}
		fmt.Fprintf(b, "  gate %.3g %%: look at %d blocks: %.3f (%.1f %%: %s): %s\n", 100*g.Bound, l.Blocks, l.Value, 100*g.Level, span, l.Decision)
	}
	fmt.Fprintf(b, "  gate %.3g %%: %s; the smallest difference this run could show: ± %.1f %%\n", 100*g.Bound, cmp.Or(g.Decision, "no look"), 100*g.Smallest)
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
