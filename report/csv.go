package report

import (
	"encoding/csv"
	"io"
	"strconv"

	"toll/lab/result"
)

// header names the columns of CSV as the document names its fields.
var header = [...]string{
	"case", "phase", "concurrency", "contender", "version", "language", "kind", "role", "rank", "ops", "ok", "failed", "dropped", "elapsed_s",
	"ratio", "ratio_lo", "ratio_hi", "blocks", "min_us", "mean_us", "p50_us", "p90_us", "p95_us", "p99_us", "p999_us", "max_us", "above_10x_p50",
	"throughput_per_s", "little", "client_cpu_us_per_op", "client_allocs_per_op", "client_alloc_bytes_per_op", "server_cpu_us_per_op",
	"server_rss_peak_mb", "server_allocs_per_op", "server_alloc_bytes_per_op", "wire_out", "wire_in", "service_p50_us", "backend_cpu_us_per_op", "backend_rss_peak_mb",
	"knee_per_s", "knee_lo", "knee_hi",
}

// CSV writes one line per row of d; a figure that is not there is an empty cell.
func CSV(w io.Writer, d *result.Document) error {
	c := csv.NewWriter(w)
	if err := c.Write(header[:]); err != nil {
		return err
	}
	for i := range d.Rows {
		if err := c.Write(record(&d.Rows[i])); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func record(r *result.Row) []string {
	var l result.Latency
	mid := make([]*float64, 4) // min, mean, p50, max
	if r.Latency != nil {
		l = *r.Latency
		mid = []*float64{&l.Min, &l.Mean, &l.P50, &l.Max}
	}
	var q result.Ratio
	var value *float64
	blocks := ""
	if r.Ratio != nil {
		q = *r.Ratio
		value, blocks = &q.Value, strconv.Itoa(q.Blocks)
	}
	var s result.ServerCost
	if r.Server != nil {
		s = *r.Server
	}
	var behind result.ServerCost
	if r.Backend != nil {
		behind = *r.Backend
	}
	var k result.Knee
	if r.Knee != nil {
		k = *r.Knee
	}
	var service *float64
	if r.Service != nil {
		service = &r.Service.P50
	}
	var out, in *float64
	if r.WireBytes != nil {
		out, in = &r.WireBytes.Out, &r.WireBytes.In
	}
	above := ""
	if r.AboveTen != nil {
		above = strconv.FormatInt(*r.AboveTen, 10)
	}
	whole := func(v int64) string { return strconv.FormatInt(v, 10) }
	return []string{
		r.Case, r.Phase, strconv.Itoa(r.Concurrency), r.Contender.Name, r.Contender.Version, r.Contender.Language, r.Kind, r.Role, r.Rank,
		whole(r.Ops), whole(r.OK), whole(r.Ops - r.OK - r.Dropped), whole(r.Dropped), cell(&r.ElapsedS),
		cell(value), cell(q.Lo), cell(q.Hi), blocks, cell(mid[0]), cell(mid[1]), cell(mid[2]), cell(l.P90), cell(l.P95), cell(l.P99), cell(l.P999), cell(mid[3]), above,
		cell(r.Throughput), cell(r.Little), cell(r.Client.CPU), cell(r.Client.Allocs), cell(r.Client.AllocBytes), cell(s.CPU),
		cell(s.RSSPeakMB), cell(s.Allocs), cell(s.AllocBytes), cell(out), cell(in), cell(service), cell(behind.CPU), cell(behind.RSSPeakMB),
		cell(k.Rate), cell(k.Lo), cell(k.Hi),
	}
}

func cell(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}
