package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"toll/lab/plan"
	"toll/lab/result"
	"toll/published"
)

// BesideGateway sets published tables of servers under a closed load beside what a document has of the same operations, and works
// out what the published figures can and can't mean. Kinds are kept apart: times and rates, CPU, memory. Nothing of theirs is
// divided by ours: another machine, another language and another load shape stand between them.
func BesideGateway(w io.Writer, tables []published.Table, d *result.Document) error {
	var b bytes.Buffer
	for _, t := range tables {
		fmt.Fprintf(&b, "\npublished beside measured: %s; never divided\n", t.Title)
		times(&b, t, d)
		spent(&b, t, d, "CPU", "cpu_percent", "% of a core", func(r *result.Row) string {
			if r.Server == nil || r.Server.CPU == nil {
				return none
			}
			return fmt.Sprintf("%.1f µs a call", *r.Server.CPU)
		})
		spent(&b, t, d, "memory", "memory_mb", "MB, mean", func(r *result.Row) string {
			if r.Server == nil || r.Server.RSSPeakMB == nil {
				return none
			}
			return fmt.Sprintf("%.1f MB, peak", *r.Server.RSSPeakMB)
		})
		arithmetic(&b, t)
		fmt.Fprintf(&b, "  published: %s, %s, on %s; sha256 %.12s…\n", t.Source, t.Date, t.Machine, t.SHA256)
		fmt.Fprintf(&b, "  limits: %s · %s\n", t.Method["limits"], t.Method["generator"])
		b.WriteString("what is known to be wrong with the published table\n")
		for _, e := range t.Errata {
			b.WriteString("  " + e + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// times prints the mean, the p95 and the rate of each published row, and of ours where the operation is the same.
func times(b *bytes.Buffer, t published.Table, d *result.Document) {
	lines := [][]string{{"times and rates", "published: mean ms", "p95 ms", "requests/s", "here", "mean ms", "p95 ms", "calls/s"}}
	for _, r := range own(t) {
		f := r.Figures
		line := []string{r.Label, plain(f["avg_ms"]), plain(f["p95_ms"]), plain(f["rps"])}
		all := same(d, t, r)
		switch {
		case r.Case == "":
			lines = append(lines, append(line, "none: their unit of work is another", "", "", ""))
		case len(all) == 0:
			lines = append(lines, append(line, fmt.Sprintf("gap: no %s %s at %v VUs in this run", r.Case, r.Phase, t.LoadOf(r).Users), "", "", ""))
		}
		for _, x := range all {
			p95 := none
			if x.Latency.P95 != nil {
				p95 = plain(*x.Latency.P95 / 1000)
			}
			lines = append(lines, append(line, x.Contender.Name, plain(x.Latency.Mean/1000), p95, figure(x.Throughput)))
			line = make([]string, len(line))
		}
	}
	aligned(b, lines, 1)
	parted(b, t)
}

// parted prints the means of what an iteration consists of, where it has several parts.
func parted(b *bytes.Buffer, t published.Table) {
	if t.Load == nil || len(t.Load.Parts) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(t.Load.Parts))
	lines := [][]string{append([]string{"published means of the parts, ms"}, names...)}
	for _, r := range own(t) {
		line := []string{r.Label}
		for _, n := range names {
			line = append(line, plain(r.Parts[n]["avg_ms"]))
		}
		lines = append(lines, line)
	}
	aligned(b, lines, 1)
}

// spent prints one kind of cost by itself.
func spent(b *bytes.Buffer, t published.Table, d *result.Document, kind, key, unit string, ours func(*result.Row) string) {
	lines := [][]string{{kind, "published", "here", ""}}
	there := false
	for _, r := range own(t) {
		theirs := "not published"
		if v, ok := r.Figures[key]; ok {
			theirs, there = plain(v)+" "+unit, true
		}
		line := []string{r.Label, theirs}
		all := same(d, t, r)
		if len(all) == 0 {
			lines = append(lines, append(line, none, ""))
		}
		for _, x := range all {
			lines, there = append(lines, append(line, x.Contender.Name, ours(x))), true
			line = make([]string, len(line))
		}
	}
	if there {
		aligned(b, lines, 1)
	}
}

// arithmetic says of each published row what follows from its own figures: by Little's law, how many requests were on their way
// (rate × mean), against how many VUs there were on average; the rate that think times and fixed delays alone allow; and how
// many units of work its requests are.
func arithmetic(b *bytes.Buffer, t published.Table) {
	lines := [][]string{{"what follows", "in flight = rate × mean", "VUs, mean over the stages", "in calls", "ceiling/s by fixed delays", "of it", "requests a unit", "units/s"}}
	for _, r := range own(t) {
		a := Follow(t, r)
		ceiling, share := "none: no think time", ""
		if !math.IsInf(a.Ceiling, 1) {
			ceiling, share = plain(a.Ceiling), fmt.Sprintf("%.0f %%", 100*a.OfCeiling)
		}
		lines = append(lines, []string{
			r.Label, plain(a.InFlight), plain(a.VUs), fmt.Sprintf("%.0f %%", 100*a.InCalls), ceiling, share, plain(a.Requests), plain(a.Units),
		})
	}
	aligned(b, lines, 1)
	for _, r := range own(t) {
		if stated := t.LoadOf(r).Users; stated != recorded(t, r) {
			a := Follow(t, r)
			fmt.Fprintf(b, "  %s at the stated %v VUs: an iteration would have taken %s ms, of which its %v ms of think time and %v requests of %s ms explain %s\n",
				r.Label, stated, plain(a.Iteration*stated/recorded(t, r)), a.Pause, a.Requests, plain(r.Figures["avg_ms"]), plain(a.Explained))
		}
	}
}

// own is a table's rows without those that it quotes from another.
func own(t published.Table) []published.Row {
	return slices.DeleteFunc(slices.Clone(t.Rows), func(r published.Row) bool { return r.Quoted != "" })
}

// recorded is how many VUs called a row at most: by the authors' raw files if they say so, else as stated.
func recorded(t published.Table, r published.Row) float64 {
	most := 0.0
	for _, x := range r.Rounds {
		most = max(most, x["recorded_users"])
	}
	return cmp.Or(most, t.LoadOf(r).Users)
}

// An Arithmetic is what follows from a published row's own figures.
type Arithmetic struct {
	InFlight  float64 // requests on their way, by Little's law
	VUs       float64 // mean over the stages, ramps included
	InCalls   float64 // the share of the VUs' time that was spent in requests
	Requests  float64 // that a unit of work takes
	Pause     float64 // that a unit of work waits between requests, ms
	Ceiling   float64 // requests a second that an infinitely fast server would show; +Inf without fixed delays
	OfCeiling float64
	Units     float64 // completed units of work a second
	Iteration float64 // how long a unit of work takes by the rate and the VUs, ms
	Explained float64 // how long it takes by its pause and its requests' mean, ms
}

// Follow works out what follows from the figures of a table's row and how it was called. Where the authors' raw files record
// another number of VUs than is stated, that one counts.
func Follow(t published.Table, r published.Row) Arithmetic {
	load, f := t.LoadOf(r), r.Figures
	a := Arithmetic{InFlight: f["rps"] * f["avg_ms"] / 1000, Requests: load.Requests[r.Contender]}
	var stages []plan.Stage
	for _, s := range load.Stages {
		stages = append(stages, plan.Stage{Duration: plan.Duration(s.Seconds * float64(time.Second)), Target: s.To * recorded(t, r)})
	}
	a.VUs = plan.Expected(stages) / plan.Total(stages).Seconds()
	a.InCalls = a.InFlight / a.VUs
	if load.Pause != nil {
		a.Pause = *load.Pause
	}
	fixed := a.Pause
	for part, ms := range load.Delays {
		fixed += ms * load.Parts[part]
	}
	a.Ceiling = a.VUs * a.Requests / (fixed / 1000)
	a.OfCeiling = f["rps"] / a.Ceiling
	a.Units = f["rps"] / a.Requests
	a.Iteration = 1000 * a.VUs / a.Units
	a.Explained = a.Pause + a.Requests*f["avg_ms"]
	return a
}

// same lists the rows of a document that measured what a published row did, at as many VUs: that of the same contender, if it took
// part, and ours.
func same(d *result.Document, t published.Table, r published.Row) (out []*result.Row) {
	if r.Case == "" {
		return nil
	}
	for _, name := range []string{r.Contender, "toll"} {
		for _, g := range d.Groups() {
			if g.Case != r.Case || g.Phase != r.Phase || g.Concurrency != int(t.LoadOf(r).Users) {
				continue
			}
			if x := namedRow(g, name); x != nil && x.Latency != nil {
				out = append(out, x)
			}
		}
	}
	return out
}

// plain prints a figure with four significant digits, and as many as it was published with where those are more.
func plain(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}
