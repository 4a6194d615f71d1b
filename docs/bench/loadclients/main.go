// Command loadclients reduces the blocks of docs/bench/load-clients.sh to a table: each client's rate and CPU per request
// divided in the same block by those of wrk, or of toll where wrk did not run.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"

	"toll/lab/stats"
)

// A run is one client in one block.
type run struct{ calls, seconds, cpu float64 }

func main() {
	if err := table(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "loadclients:", err)
		os.Exit(1)
	}
}

// table reads lines of block, client, calls, seconds and CPU seconds.
func table(w io.Writer, r io.Reader) error {
	all := make(map[string]map[int]run)
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var block int
		var name string
		var x run
		if _, err := fmt.Sscan(lines.Text(), &block, &name, &x.calls, &x.seconds, &x.cpu); err != nil {
			return fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		if all[name] == nil {
			all[name] = make(map[int]run)
		}
		all[name][block] = x
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	base := "wrk"
	if all[base] == nil {
		base = "toll"
	}
	fmt.Fprintf(w, "| client | requests/s | ratio to %[1]s (95 %%) | CPU-s per 100k | ratio to %[1]s (95 %%) |\n|---|--:|---|--:|---|\n", base)
	for _, name := range names {
		rate := func(x run) float64 { return x.calls / x.seconds }
		cpu := func(x run) float64 { return x.cpu / x.calls * 1e5 }
		fmt.Fprintf(w, "| %s | %s | %s |\n", name, column(all[name], all[base], "%.0f", rate), column(all[name], all[base], "%.2f", cpu))
	}
	fmt.Fprintf(w, "\n%d interleaved blocks; median, and the Hodges–Lehmann ratio with its Wilcoxon interval.\n", len(all[base]))
	return nil
}

// column is the median of a figure and its ratio to the baseline's, block by block.
func column(mine, base map[int]run, format string, of func(run) float64) string {
	var a, b []float64
	for block, x := range mine {
		if y, ok := base[block]; ok {
			a, b = append(a, of(x)), append(b, of(y))
		}
	}
	q := stats.PairedRatio(a, b, .95)
	text := fmt.Sprintf(format+" | %.2f", stats.Median(a), q.Value)
	if q.Interval {
		text += fmt.Sprintf(" (%.2f–%.2f)", q.Lo, q.Hi)
	}
	return text
}
