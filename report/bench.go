package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"

	"toll/lab/result"
)

// Bench writes d in Go's benchmark format, a line per block: its number of calls, its median as ns/op, and what the row's
// calls cost. A tool that reads the format takes blocks for independent samples and does not pair them: its intervals are
// wider or narrower than the document's own, which are what counts.
func Bench(w io.Writer, d *result.Document) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: %s\ncpu: %s\n", d.Environment.OS.Name, d.Environment.OS.Arch, d.Benchmark, d.Environment.CPU.BrandCPUID)
	fmt.Fprintf(&b, "seed: %d\nplan-sha256: %s\nhop: %s\n", d.Seed, d.Plan.SHA256, d.Method.Hop.Kind)
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.Kind != result.Measured {
			continue
		}
		costs := benchCosts(r)
		for _, x := range r.Rounds {
			for _, block := range x.Blocks {
				if block.P50 != nil {
					fmt.Fprintf(&b, "Benchmark%s\t%d\t%.0f ns/op%s\n", benchName(r), block.OK, *block.P50*1000, costs)
				}
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// benchCosts are the figures that a row has once for all its blocks.
func benchCosts(r *result.Row) string {
	var out strings.Builder
	for _, c := range []struct {
		v    *float64
		unit string
	}{
		{r.Client.CPU, "client-cpu-us/op"}, {serverCost(r, cpuOf), "server-cpu-us/op"},
		{serverCost(r, func(s *result.ServerCost) *float64 { return s.AllocBytes }), "B/op"}, {serverCost(r, allocsOf), "allocs/op"},
	} {
		if c.v != nil {
			fmt.Fprintf(&out, "\t%g %s", *c.v, c.unit)
		}
	}
	return out.String()
}

// benchName is the row as sub-benchmarks of its case: Call/size=32B would be prettier, but a case is one name.
func benchName(r *result.Row) string {
	name := strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '/' {
			return '-'
		}
		return c
	}, r.Case)
	name = strings.ToUpper(name[:1]) + name[1:]
	if r.Phase != "" {
		name += "/phase=" + r.Phase
	}
	contender := r.Contender.Name
	if r.Role == result.Control {
		contender += "(control)"
	}
	return fmt.Sprintf("%s/contender=%s/callers=%d", name, contender, r.Concurrency)
}
