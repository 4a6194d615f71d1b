package report

import (
	"fmt"

	"toll/lab/result"
)

// frameworkText says of each row with one caller how much of a call is its handler, and how much what stands around it. With more
// the calls' waiting for each other would be most of it.
func frameworkText(rows []*result.Row) []string {
	var out []string
	for _, r := range rows {
		if f := r.Framework; f != nil && r.Concurrency == 1 {
			text := fmt.Sprintf("framework of %s = total − handler, mean µs: %s − %s = %s, %.1f %% of a call",
				name(r), digits(f.Handler+f.Overhead), digits(f.Handler), digits(f.Overhead), 100*f.Share)
			if s := socketOverhead(rows); s != nil && r.Role != result.Floor {
				text += fmt.Sprintf(", %s and %.1f %% above the bare socket's", digits(f.Overhead-*s), 100*(f.Overhead-*s)/(f.Handler+f.Overhead))
			}
			if f.CPU != nil {
				text += fmt.Sprintf("; %s and %.1f %% of its CPU time", digits(*f.CPU), 100**f.CPUShare)
			}
			out = append(out, text)
		}
	}
	return out
}

// socketOverhead is what a call takes beside its handler where the handler stands on a bare socket.
func socketOverhead(rows []*result.Row) *float64 {
	for _, r := range rows {
		if r.Role == result.Floor && r.Framework != nil {
			return &r.Framework.Overhead
		}
	}
	return nil
}

// overloadLines say, of each contender that was offered several shares of a capacity, what the largest did to it: how late its
// answers became, how many calls it refused and how soon.
func overloadLines(d *result.Document) []string {
	var out []string
	for _, g := range d.Groups() {
		for _, r := range g.Rows {
			if least := leastShare(d, r); least != nil && least != r {
				out = append(out, overloadLine(r, least))
			}
		}
	}
	if out != nil {
		out = append([]string{"more than can be answered: shares of the baseline's capacity, measured before each round"}, append(out, "")...)
	}
	return out
}

// leastShare is the row of the same contender that was offered the least of the capacity.
func leastShare(d *result.Document, r *result.Row) *result.Row {
	if r.Open == nil || r.Open.Share == nil || r.Role == result.Null || r.Role == result.Floor {
		return nil
	}
	least := r
	for i := range d.Rows {
		o := &d.Rows[i]
		if o.Case == r.Case && o.Concurrency == r.Concurrency && o.Contender.Name == r.Contender.Name && o.Role == r.Role &&
			o.Open != nil && o.Open.Share != nil && *o.Open.Share < *least.Open.Share {
			least = o
		}
	}
	return least
}

func overloadLine(r, least *result.Row) string {
	line := fmt.Sprintf("  %s %s: at %v × capacity ", name(r), r.Case, *r.Open.Share)
	if r.Latency == nil {
		return line + "nothing was answered"
	}
	line += fmt.Sprintf("answers %s a second, p99 %s µs", figure(r.Throughput), figure(r.Latency.P99))
	if l := least.Latency; l != nil && l.P99 != nil && r.Latency.P99 != nil {
		line += fmt.Sprintf(" = %.2f × that at %v (%s)", *r.Latency.P99 / *l.P99, *least.Open.Share, figure(l.P99))
	}
	refused := r.Ops - r.OK - r.Dropped
	if r.Failing != nil {
		line += fmt.Sprintf("; %.0f %% refused, p50 %s µs, p99 %s", 100*float64(refused)/float64(max(r.Ops, 1)), digits(r.Failing.P50), figure(r.Failing.P99))
	}
	if r.Dropped > 0 {
		line += fmt.Sprintf("; %.0f %% never sent: %d were in flight", 100*float64(r.Dropped)/float64(max(r.Ops, 1)), r.Open.InFlightLimit)
	}
	if r.Server != nil && r.Server.RSSPeakMB != nil {
		line += fmt.Sprintf("; %s MB", figure(r.Server.RSSPeakMB))
	}
	return line
}
