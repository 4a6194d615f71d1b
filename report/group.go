package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"toll/lab/result"
	"toll/published"
)

// Group sets the published table of group engines beside a run of the same cases, each in its own unit and never divided by
// one another, and under every case of the run how far the baseline is above the cryptography it must do.
func Group(w io.Writer, t published.Table, d *result.Document) error {
	var b bytes.Buffer
	b.WriteString("published beside measured: each column by itself, nothing divided across columns\n")
	lines := [][]string{{"case", "MDK ms", "quartz ms", "quartz MB/op", "here µs min", "p50", "floor min", "× floor, min", "CPU", "p50 paired (95 %)"}}
	for _, g := range d.Groups() {
		mdk, quartz := publishedRow(t, g.Case, "mdk"), publishedRow(t, g.Case, "quartz")
		base, floor := g.With(result.Baseline), contenderRow(g.Rows, "floor-std")
		line := []string{g.Case, publishedP50(mdk), publishedP50(quartz), none, none, none, none, none, none, none}
		if quartz != nil {
			line[3] = fmt.Sprint(quartz.Figures["alloc_mb"])
		}
		if base != nil && base.Latency != nil {
			line[4], line[5] = figure(&base.Latency.Min), figure(&base.Latency.P50)
			copy(line[6:], timesFloor(base, floor))
		}
		lines = append(lines, line)
	}
	aligned(&b, lines, 1)
	fmt.Fprintf(&b, "  published: %s, %s, on %s; sha256 %.12s…\n", t.Source, t.Date, t.Machine, t.SHA256)
	b.WriteString("what is known of the published table\n")
	for _, e := range t.Errata {
		b.WriteString("  " + e + "\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

// timesFloor is the floor's minimum and what the baseline is of it: by minimum, by CPU, by block medians.
func timesFloor(base, floor *result.Row) []string {
	out := []string{none, none, none, none}
	if floor == nil || floor.Latency == nil {
		return out
	}
	out[0] = figure(&floor.Latency.Min)
	if floor.Latency.Min > 0 {
		out[1] = fmt.Sprintf("%.2f", base.Latency.Min/floor.Latency.Min)
	}
	if base.Server != nil && floor.Server != nil && base.Server.CPU != nil && floor.Server.CPU != nil && *floor.Server.CPU > 0 {
		out[2] = fmt.Sprintf("%.2f", *base.Server.CPU / *floor.Server.CPU)
	}
	if q := floor.Ratio; q != nil && q.Value > 0 && q.Lo != nil && *q.Lo > 0 {
		out[3] = fmt.Sprintf("%.2f (%.2f–%.2f)", 1/q.Value, 1 / *q.Hi, 1 / *q.Lo)
	}
	return out
}

func contenderRow(rows []*result.Row, name string) *result.Row {
	for _, r := range rows {
		if r.Contender.Name == name {
			return r
		}
	}
	return nil
}

func publishedRow(t published.Table, name, contender string) *published.Row {
	at := slices.IndexFunc(t.Rows, func(r published.Row) bool {
		return r.Contender == contender && strings.HasPrefix(r.Label, name+" ")
	})
	if at < 0 {
		return nil
	}
	return &t.Rows[at]
}

func publishedP50(r *published.Row) string {
	if r == nil {
		return none
	}
	return fmt.Sprintf("%.2f", r.P50[0])
}

// marmotRow is one line of the published benchmark's own JSON.
type marmotRow struct {
	Name       string   `json:"name"`
	P50        float64  `json:"p50_us"`
	P90        *float64 `json:"p90_us"`
	P99        *float64 `json:"p99_us"`
	Mean       float64  `json:"mean_us"`
	BytesPerOp *float64 `json:"bytes_per_op"`
	Iterations int64    `json:"iterations"`
}

// Marmot writes the baseline's rows of a group result in the flat shape that marmotBench prints. A quantile without its
// samples, and a figure that is not known, are null; the published benchmark prints them all the same.
func Marmot(w io.Writer, d *result.Document) error {
	if d.Benchmark != "group" {
		return fmt.Errorf("it is a shape of the benchmark group; this result is of %s", d.Benchmark)
	}
	rows := []marmotRow{}
	for _, g := range d.Groups() {
		r := g.With(result.Baseline)
		if r == nil || r.Latency == nil {
			continue
		}
		row := marmotRow{Name: g.Case, P50: r.Latency.P50, P90: r.Latency.P90, P99: r.Latency.P99, Mean: r.Latency.Mean, Iterations: r.OK}
		if r.Server != nil {
			row.BytesPerOp = r.Server.AllocBytes
		}
		rows = append(rows, row)
	}
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, r := range rows {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		b.WriteString("  ")
		b.Write(line)
		if i < len(rows)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	_, err := w.Write(b.Bytes())
	return err
}
