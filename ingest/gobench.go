package ingest

import (
	"fmt"
	"regexp"
	"strings"
)

func isGo(t *text) bool {
	for _, l := range t.lines[:min(len(t.lines), 400)] {
		if goLine.MatchString(l) {
			return true
		}
	}
	return false
}

var goLine = regexp.MustCompile(`^Benchmark(\S*)\s+(\d+)\s+([0-9.eE+-]+) (\S+)(.*)$`)

// goBench reads Go's benchmark text. Lines of one name are repeats: they become the runs of one row, whose own figure is
// that of a single run, or absent where there are several.
func goBench(t *text, r *Report) error {
	r.Method = Method{Tool: "go test -bench", Order: "sequential"}
	byName := make(map[string]int)
	for i, l := range t.lines {
		got := goLine.FindStringSubmatch(l)
		if got == nil {
			if strings.HasPrefix(l, "Benchmark") && strings.Contains(l, " ns/op") {
				return fmt.Errorf("line %d: want a name, a count and pairs of value and unit", i+1)
			}
			continue
		}
		run, err := goFigures(got[2], strings.Fields(got[3]+" "+got[4]+got[5]))
		if err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		at, ok := byName[got[1]]
		if !ok {
			if len(r.Rows) > MaxRows {
				return fmt.Errorf("line %d: more than %d rows", i+1, MaxRows)
			}
			at = len(r.Rows)
			byName[got[1]] = at
			r.Rows = append(r.Rows, Row{Label: "Benchmark" + got[1], Case: "Benchmark" + got[1], Of: "go"})
		}
		r.Rows[at].Runs = append(r.Rows[at].Runs, run)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if len(row.Runs) == 1 {
			row.Figures, row.Runs = row.Runs[0], nil
			continue
		}
		row.Figures = Figures{}
		for _, run := range row.Runs {
			row.Figures["count"] += run["count"]
		}
	}
	return nil
}

func goFigures(n string, pairs []string) (Figures, error) {
	count, err := parseNumber(n)
	if err != nil {
		return nil, err
	}
	f := Figures{"count": count}
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("a value without a unit: %.60q", strings.Join(pairs, " "))
	}
	for i := 0; i < len(pairs); i += 2 {
		v, err := parseNumber(pairs[i])
		if err != nil {
			return nil, err
		}
		switch unit := pairs[i+1]; unit {
		case "ns/op":
			f["mean_us"] = v / 1000
		case "B/op":
			f["alloc_bytes_per_op"] = v
		case "allocs/op":
			f["allocs_per_op"] = v
		default:
			f[unit] = v
		}
	}
	return f, nil
}
