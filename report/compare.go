package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"toll/lab/result"
)

// Compare writes what changed between two sides, a line per row.
func Compare(w io.Writer, c *result.Comparison) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "compared: %s\n", c.Design)
	rows := [][]string{{"row", "of", "before µs", "after µs", "after ÷ before", "floor", "CPU µs/op", "allocs/op", "verdict"}}
	for _, x := range c.Rows {
		rows = append(rows, []string{
			x.Row, x.Of, digits(level(x, x.Before)), digits(level(x, x.After)), DifferenceText(x), floorText(x.Floor),
			change(figure(serverCost(x.Before, cpuOf)), figure(serverCost(x.After, cpuOf))),
			change(count(serverCost(x.Before, allocsOf)), count(serverCost(x.After, allocsOf))), x.Verdict,
		})
	}
	aligned(&b, rows)
	b.WriteString("  a difference is shown when the interval (95 % over all rows together) excludes 1 and the ratio lies beyond the floor,\n" +
		"  what the A/A controls of these runs reached\n")
	_, err := w.Write(b.Bytes())
	return err
}

// level is the side's own figure: what is fastest where minima are compared, else the median.
func level(x result.Difference, r *result.Row) float64 {
	if x.Of == "block minima" {
		return r.Latency.Min
	}
	return r.Latency.P50
}

func cpuOf(s *result.ServerCost) *float64    { return s.CPU }
func allocsOf(s *result.ServerCost) *float64 { return s.Allocs }
func rssOf(s *result.ServerCost) *float64    { return s.RSSPeakMB }

// DifferenceText prints a ratio of two sides with three decimals: a gate is about single per cents.
func DifferenceText(x result.Difference) string {
	if x.Lo == nil || x.Hi == nil {
		return fmt.Sprintf("%.3f no interval", x.Value)
	}
	return fmt.Sprintf("%.3f (%.3f–%.3f)", x.Value, *x.Lo, *x.Hi)
}

func floorText(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf("± %.1f %%", 100**v)
}

func change(before, after string) string {
	if before == "–" && after == "–" {
		return "–"
	}
	return before + " → " + after
}

// aligned prints rows in columns: the first two and the last to the left, the others to the right.
func aligned(b *bytes.Buffer, rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, cell := range r {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i < 2 || i == len(r)-1 {
				line.WriteString("  " + cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
