package report

import (
	"bytes"
	"fmt"
	"io"

	"toll/lab/result"
	"toll/published"
)

// A LengthLevel is one level of requests whose failures were counted by the length of the reply and by what it says.
type LengthLevel struct{ Requests, Differ, Failed int }

// BesideSpawn sets the published spawn table, a run by its method and a run of the same requests in shuffled blocks one under
// the other, level by level, and says what the published figures can mean. Nothing of theirs is divided by anything of ours.
func BesideSpawn(w io.Writer, t published.Table, fixed, shuffled *result.Document, levels []LengthLevel) error {
	var b bytes.Buffer
	b.WriteString("published beside measured: spawn and despawn over a new connection, ms, each block by itself\n")
	line := func(who, c string, p50, p95, p99, rate string) {
		fmt.Fprintf(&b, "  %-34s %4s %9s %9s %9s %11s\n", who, c, p50, p95, p99, rate)
	}
	line("", "c", "p50", "p95", "p99", "requests/s")
	for _, r := range t.Rows {
		f := r.Figures
		line("published", r.Label, fmt.Sprint(r.P50[0]), fmt.Sprint(f["p95_ms"]), fmt.Sprint(f["p99_ms"]), fmt.Sprint(f["rps"]))
	}
	for _, run := range []struct {
		name string
		doc  *result.Document
	}{{"here, one stretch", fixed}, {"here, shuffled", shuffled}} {
		for _, name := range []string{"toll-goroutine", "no-op"} {
			for _, g := range run.doc.Groups() {
				for _, row := range g.Rows {
					if l := row.Latency; l != nil && row.Contender.Name == name && row.Role != result.Control {
						line(run.name+", "+name, fmt.Sprint(g.Concurrency), millis(&l.P50), millis(l.P95), millis(l.P99), perSecond(row.Throughput))
					}
				}
			}
		}
	}
	fmt.Fprintf(&b, "  published: %s, on %s; sha256 %.12s…, never divided by ours\n", t.Source, t.Machine, t.SHA256)
	b.WriteString("what the published figures can mean, computed from them alone\n")
	for _, note := range SpawnNotes(t) {
		b.WriteString("  " + note + "\n")
	}
	b.WriteString("what is known to be wrong with the published table\n")
	for _, e := range t.Errata {
		b.WriteString("  " + e + "\n")
	}
	lengths(&b, levels)
	_, err := w.Write(b.Bytes())
	return err
}

func millis(us *float64) string {
	if us == nil {
		return "n<1000"
	}
	return fmt.Sprintf("%.3g", *us/1000)
}

func perSecond(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f", *v)
}

// The published hop's round trip, ms, as its authors state it.
const lowRTT, highRTT = 4.0, 6.0

// SpawnNotes computes what a published spawn table says of itself: the round trips in its first level, the mean that Little's
// law gives for each, what a request costs where the rate no longer grows, and how many samples stand behind a p99.
func SpawnNotes(t published.Table) []string {
	const requests = 500
	first, last := t.Rows[0], t.Rows[len(t.Rows)-1]
	p50, top := first.P50[0], last.Figures["rps"]
	out := []string{
		fmt.Sprintf("c = %s: a request without keep-alive pays two round trips, one to connect and one to ask; at the stated %g–%g ms RTT that is %g–%g of its %g ms",
			first.Label, lowRTT, highRTT, 2*lowRTT, 2*highRTT, p50),
	}
	for _, r := range t.Rows {
		f := r.Figures
		out = append(out, fmt.Sprintf("c = %s: %g requests/s with %s in flight is a mean of %.1f ms (Little's law); the level lasted %.2f s",
			r.Label, f["rps"], r.Label, 1000*f["concurrency"]/f["rps"], requests/f["rps"]))
	}
	return append(out,
		fmt.Sprintf("at its highest rate one request costs the server at most 1/%g s = %.2f ms: spawn, despawn, HTTP and a connection together", top, 1000/top),
		fmt.Sprintf("%d requests leave %d beyond p99", requests, requests/100))
}

func lengths(b *bytes.Buffer, levels []LengthLevel) {
	if len(levels) == 0 {
		return
	}
	b.WriteString("how a counter in a body becomes failures: replies that name a child by a growing number, counted twice\n")
	for i, l := range levels {
		fmt.Fprintf(b, "  level %d: %d of %d failed by a length-comparing client, %d by what the replies say\n", i+1, l.Differ, l.Requests, l.Failed)
	}
}
