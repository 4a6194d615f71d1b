package report

import (
	"bytes"
	"fmt"
	"io"
	"math"

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
	for _, r := range t.Rows {
		f := r.Figures
		line := []string{r.Label, plain(f["avg_ms"]), plain(f["p95_ms"]), plain(f["rps"])}
		switch ours := same(d, r); {
		case r.Case == "":
			line = append(line, "none: their unit of work is another", "", "", "")
		case ours == nil:
			line = append(line, fmt.Sprintf("gap: no %s %s at %v VUs in this run", r.Case, r.Phase, f["vus"]), "", "", "")
		default:
			p95 := none
			if ours.Latency.P95 != nil {
				p95 = plain(*ours.Latency.P95 / 1000)
			}
			line = append(line, ours.Contender.Name, plain(ours.Latency.Mean/1000), p95, figure(ours.Throughput))
		}
		lines = append(lines, line)
	}
	aligned(b, lines, 1)
	if len(t.Rows) > 0 && t.Rows[0].Figures["fib_avg_ms"] > 0 {
		b.WriteString("  the tool fib alone, mean ms:")
		for i, r := range t.Rows {
			sep := ","
			if i == 0 {
				sep = ""
			}
			fmt.Fprintf(b, "%s %s %s", sep, r.Label, plain(r.Figures["fib_avg_ms"]))
		}
		b.WriteString("\n")
	}
}

// spent prints one kind of cost by itself.
func spent(b *bytes.Buffer, t published.Table, d *result.Document, kind, key, unit string, ours func(*result.Row) string) {
	lines := [][]string{{kind, "published", "here"}}
	there := false
	for _, r := range t.Rows {
		theirs, here := "not published", none
		if v, ok := r.Figures[key]; ok {
			theirs, there = plain(v)+" "+unit, true
		}
		if row := same(d, r); row != nil {
			here, there = ours(row), true
		}
		lines = append(lines, []string{r.Label, theirs, here})
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
	for _, r := range t.Rows {
		a := Follow(r.Figures)
		ceiling, share := "none: no think time", ""
		if !math.IsInf(a.Ceiling, 1) {
			ceiling, share = plain(a.Ceiling), fmt.Sprintf("%.0f %%", 100*a.OfCeiling)
		}
		lines = append(lines, []string{
			r.Label, plain(a.InFlight), plain(a.VUs), fmt.Sprintf("%.0f %%", 100*a.InCalls), ceiling, share, plain(r.Figures["requests_per_unit"]), plain(a.Units),
		})
	}
	aligned(b, lines, 1)
	for _, r := range t.Rows {
		if stated := r.Figures["stated_vus"]; stated > 0 {
			fmt.Fprintf(b, "  %s at the stated %v VUs: an iteration would have taken %s ms, of which its %v ms of think time and %v requests of %s ms explain %s\n",
				r.Label, stated, plain(Iteration(r.Figures, stated)), r.Figures["think_ms"], r.Figures["requests_per_unit"], plain(r.Figures["avg_ms"]), plain(Explained(r.Figures)))
		}
	}
}

// An Arithmetic is what follows from a published row's own figures.
type Arithmetic struct {
	InFlight  float64 // requests on their way, by Little's law
	VUs       float64 // mean over the stages, ramps included
	InCalls   float64 // the share of the VUs' time that was spent in requests
	Ceiling   float64 // requests a second that an infinitely fast server would show; +Inf without fixed delays
	OfCeiling float64
	Units     float64 // completed units of work a second
}

// Follow works out what follows from a row's figures: vus, ramp_s (up and down together) and hold_s of the load; rps, avg_ms; how
// many requests a unit of work takes, and think_ms and fixed_ms that a unit spends whatever the server does.
func Follow(f map[string]float64) Arithmetic {
	a := Arithmetic{InFlight: f["rps"] * f["avg_ms"] / 1000, Units: f["rps"] / f["requests_per_unit"]}
	a.VUs = f["vus"] * (f["hold_s"] + f["ramp_s"]/2) / (f["hold_s"] + f["ramp_s"])
	a.InCalls = a.InFlight / a.VUs
	a.Ceiling = a.VUs * f["requests_per_unit"] / ((f["think_ms"] + f["fixed_ms"]) / 1000)
	a.OfCeiling = f["rps"] / a.Ceiling
	return a
}

// Iteration is how long a unit of work takes by the row's rate and so many VUs, ms.
func Iteration(f map[string]float64, vus float64) float64 {
	f = map[string]float64{"vus": vus, "hold_s": f["hold_s"], "ramp_s": f["ramp_s"], "rps": f["rps"], "requests_per_unit": f["requests_per_unit"]}
	a := Follow(f)
	return 1000 * a.VUs / a.Units
}

// Explained is how long a unit of work takes by the row's own think time and mean, ms.
func Explained(f map[string]float64) float64 {
	return f["think_ms"] + f["requests_per_unit"]*f["avg_ms"]
}

// same is the row of a document that measured what a published row did, at as many VUs.
func same(d *result.Document, r published.Row) *result.Row {
	if r.Case == "" {
		return nil
	}
	for _, g := range d.Groups() {
		for _, row := range g.Rows {
			if g.Case == r.Case && g.Phase == r.Phase && g.Concurrency == int(r.Figures["vus"]) && row.Contender.Name == r.Contender && row.Latency != nil {
				return row
			}
		}
	}
	return nil
}

// plain prints a figure with four significant digits, and as many as it was published with where those are more.
func plain(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}
