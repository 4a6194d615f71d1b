package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"toll/lab/result"
	"toll/published"
)

// Iterations says of a run by a published method of MCP servers what a unit of its work costs: iterations, their requests by
// each way of counting them, and CPU time; then it sets the published table beside it. Nothing is divided across the two. ours names the same
// thing as a row of the table among our contenders.
func Iterations(w io.Writer, t published.Table, ours map[string]string, d *result.Document) error {
	var b bytes.Buffer
	for _, g := range d.Groups() {
		if g.With(result.Baseline) == nil {
			continue
		}
		iterationsOf(&b, g)
		requestsOf(&b, g)
		besideIterations(&b, t, ours, g)
	}
	fmt.Fprintf(&b, "  published: %s, %s, on %s; sha256 %.12s…, never divided by ours\n", t.Source, t.Date, t.Machine, t.SHA256)
	b.WriteString("what is known to be wrong with the published table, and what it leaves out\n")
	for _, e := range t.Errata {
		b.WriteString("  " + e + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// iterationsOf is the cost of an iteration, row by row.
func iterationsOf(b *bytes.Buffer, g *result.Group) {
	fmt.Fprintf(b, "what an iteration of %s at %d users costs\n", g.Case, g.Concurrency)
	lines := [][]string{{"row", "it/s", "of ceiling", "HTTP/it", "HTTP/s", "mean ms", "p50", "p95", "p99", "tools ms", "p99", "CPU ms/it", "backend", "client", "CPU ratio (95 %)", "rank by CPU"}}
	rows := slices.Clone(g.Rows)
	slices.SortStableFunc(rows, func(x, y *result.Row) int { return compareCPU(x, y) })
	for _, r := range rows {
		if r.Role == result.Floor || r.OK == 0 {
			continue
		}
		http, tools := r.Parts["http"], r.Parts["tools"]
		line := []string{name(r), figure(r.Throughput), none, none, none, none, none, none, none, none, none, none, none, none, none, none}
		if r.Ceiling != nil && r.Throughput != nil && *r.Ceiling > 0 {
			line[2] = fmt.Sprintf("%.1f %%", 100**r.Throughput / *r.Ceiling)
		}
		if http.Count > 0 && r.ElapsedS > 0 {
			line[3] = fmt.Sprintf("%.0f", float64(http.Count)/float64(r.Ops))
			line[4] = digits(float64(http.Count) / r.ElapsedS)
			line[5], line[6], line[7], line[8] = inMillis(&http.Mean), inMillis(&http.P50), inMillis(http.P95), inMillis(http.P99)
		}
		if tools.Count > 0 {
			line[9], line[10] = inMillis(&tools.Mean), inMillis(tools.P99)
		}
		line[11], line[12] = inMillis(serverCost(r, cpuOf)), inMillis(backendCPU(r))
		line[13] = inMillis(r.Client.CPU)
		if r.CPURatio != nil {
			line[14] = spanText(r.CPURatio)
		} else if r.Role == result.Baseline {
			line[14] = "1"
		}
		if r.CPURank != "" {
			line[15] = r.CPURank
		}
		lines = append(lines, line)
	}
	aligned(b, lines, 1)
	for _, r := range g.Rows {
		if r.Ceiling != nil && r.Role != result.Null && r.Role != result.Floor {
			fmt.Fprintf(b, "  ceiling: %s iterations a second, if nothing took time but the pauses and the delays that the load itself asks for\n", figure(r.Ceiling))
			break
		}
	}
}

func backendCPU(r *result.Row) *float64 {
	if r.Backend == nil {
		return nil
	}
	return r.Backend.CPU
}

// requestsOf is how long each kind of request took, row by row.
func requestsOf(b *bytes.Buffer, g *result.Group) {
	sets := []string{"http", "counted", "tools"}
	var kinds []string
	for _, r := range g.Rows {
		for k := range r.Parts {
			if !slices.Contains(kinds, k) && !slices.Contains(sets, k) {
				kinds = append(kinds, k)
			}
		}
	}
	slices.Sort(kinds)
	lines := [][]string{append([]string{"mean ms of each request"}, kinds...)}
	for _, r := range g.Rows {
		if len(r.Parts) == 0 {
			continue
		}
		line := []string{name(r)}
		for _, k := range kinds {
			p, there := r.Parts[k]
			if !there {
				line = append(line, none)
				continue
			}
			line = append(line, inMillis(&p.Mean))
		}
		lines = append(lines, line)
	}
	aligned(b, lines, 1)
}

// compareCPU orders rows by what their servers spent; what is not known comes last.
func compareCPU(x, y *result.Row) int {
	a, b := serverCost(x, cpuOf), serverCost(y, cpuOf)
	switch {
	case a == nil && b == nil, a != nil && b != nil && *a == *b:
		return 0
	case a == nil, b != nil && *a > *b:
		return 1
	}
	return -1
}

// inMillis prints µs as ms.
func inMillis(us *float64) string {
	if us == nil {
		return none
	}
	ms := *us / 1000
	return figure(&ms)
}

// spanText is a ratio with its interval, if it has one.
func spanText(q *result.Ratio) string {
	if q.Lo == nil || q.Hi == nil {
		return fmt.Sprintf("%.2f, no interval", q.Value)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", q.Value, *q.Lo, *q.Hi)
}

// besideIterations sets the published order and what was measured of the same kind of server beside each other.
func besideIterations(b *bytes.Buffer, t published.Table, ours map[string]string, g *result.Group) {
	b.WriteString("published beside measured: each side by itself\n")
	lines := [][]string{{"published", "avg ms", "p95 ms", "rps", "CPU %", "MB", "here", "mean ms", "p95 ms", "HTTP/s", "CPU %", "MB", "rank by CPU", "CPU ratio (95 %)"}}
	for i, p := range t.Rows {
		line := []string{fmt.Sprintf("%d %s", i+1, p.Label)}
		for _, k := range []string{"avg_ms", "p95_ms", "rps", "cpu_percent", "memory_mb"} {
			line = append(line, publishedFigure(p, k))
		}
		mine := ours[p.Contender]
		r := namedRow(g, mine)
		if mine == "" {
			line = append(line, "no such server here", none, none, none, none, none, none, none)
		} else if r == nil {
			line = append(line, mine+": see gaps", none, none, none, none, none, none, none)
		} else {
			line = append(line, besideRow(r)...)
		}
		lines = append(lines, line)
	}
	aligned(b, lines, 1)
}

func publishedFigure(r published.Row, key string) string {
	v, there := r.Figures[key]
	if !there {
		return none
	}
	return fmt.Sprint(v)
}

func namedRow(g *result.Group, contender string) *result.Row {
	for _, r := range g.Rows {
		if r.Contender.Name == contender && r.Role != result.Control && r.OK > 0 {
			return r
		}
	}
	return nil
}

// besideRow is a row in the published table's columns: over all requests.
func besideRow(r *result.Row) []string {
	http := r.Parts["http"]
	out := []string{r.Contender.Name, inMillis(&http.Mean), inMillis(http.P95), none, none, figure(serverCost(r, rssOf)), r.CPURank, none}
	if r.ElapsedS > 0 {
		out[3] = digits(float64(http.Count) / r.ElapsedS)
		if cpu := serverCost(r, cpuOf); cpu != nil {
			out[4] = digits(100 * *cpu / 1e6 * float64(r.Ops) / r.ElapsedS)
		}
	}
	if r.CPURatio != nil {
		out[7] = spanText(r.CPURatio)
	} else if r.Role == result.Baseline {
		out[7] = "1"
	}
	return out
}
