package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"toll/lab/result"
)

// Compare writes what changed between two sides, a line per row, at most 100 columns wide where the names allow it.
func Compare(w io.Writer, c *result.Comparison) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "compared: %s\n", c.Design)
	rows := CompareRows(c)
	for _, name := range []string{"allocs/op", "CPU µs/op", "before µs", "after µs"} {
		if lineWidth(rows) <= widest {
			break
		}
		rows = withoutColumn(rows, name)
	}
	aligned(&b, rows, 2)
	b.WriteString("  a difference is shown when the interval (95 % over all rows together) excludes 1 and the ratio\n" +
		"  lies beyond the floor, what the A/A controls of these runs reached\n")
	_, err := w.Write(b.Bytes())
	return err
}

// CompareRows returns a comparison as a table whose first row is its head and whose last column is the verdict.
func CompareRows(c *result.Comparison) [][]string {
	rows := [][]string{{"row", "of", "before µs", "after µs", "after ÷ before", "floor", "CPU µs/op", "allocs/op", "verdict"}}
	for _, x := range c.Rows {
		rows = append(rows, []string{
			x.Row, x.Of, digits(level(x, x.Before)), digits(level(x, x.After)), DifferenceText(x), floorText(x.Floor),
			change(figure(serverCost(x.Before, cpuOf)), figure(serverCost(x.After, cpuOf))),
			change(count(serverCost(x.Before, allocsOf)), count(serverCost(x.After, allocsOf))), x.Verdict,
		})
	}
	return rows
}

func lineWidth(rows [][]string) int {
	total := 0
	for i := range rows[0] {
		w := 0
		for _, r := range rows {
			w = max(w, runes(r[i]))
		}
		total += w + 2
	}
	return total
}

func withoutColumn(rows [][]string, name string) [][]string {
	i := slices.Index(rows[0], name)
	out := make([][]string, len(rows))
	for j, r := range rows {
		out[j] = slices.Delete(slices.Clone(r), i, i+1)
	}
	return out
}

// level is the side's own figure: what is fastest where minima are compared, else the median.
func level(x result.Difference, r *result.Row) float64 {
	if x.Of == result.OfMinima {
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

// aligned prints rows in columns: so many at first and the last to the left, the others to the right.
func aligned(b *bytes.Buffer, rows [][]string, left int) {
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
			if i < left || i == len(r)-1 {
				line.WriteString("  " + cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
