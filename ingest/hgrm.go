package ingest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

func isHgrm(t *text) bool {
	for _, l := range t.lines[:min(len(t.lines), 40)] {
		w := strings.Fields(l)
		if len(w) >= 3 && (w[0] == "Value" || strings.HasPrefix(w[0], "Value(")) && w[1] == "Percentile" && w[2] == "TotalCount" {
			return true
		}
	}
	return false
}

var hgrmNote = regexp.MustCompile(`(Mean|StdDeviation|Max|Total count)\s*=\s*([0-9.]+)`)

// hgrm reads an HdrHistogram percentile distribution. Only vegeta's names its unit; elsewhere figures end in _unit.
func hgrm(t *text, r *Report) error {
	row := Row{Label: "histogram", Of: "histogram", Figures: Figures{}}
	suffix, scale, begun := "_unit", 1.0, false
	r.Method = Method{Tool: "HdrHistogram"}
	var last, lastValue float64
	for i, l := range t.lines {
		w := strings.Fields(l)
		switch {
		case len(w) >= 3 && strings.HasPrefix(w[0], "Value") && w[1] == "Percentile":
			begun = true
			if unit, ok := strings.CutPrefix(w[0], "Value("); ok {
				us, err := parseTime("1" + strings.TrimSuffix(unit, ")"))
				if err != nil {
					return fmt.Errorf("line %d: unit: %w", i+1, err)
				}
				suffix, scale, r.Method.Tool = "_us", us, "vegeta"
			}
		case !begun || len(w) == 0:
		case strings.HasPrefix(l, "#"):
			for _, got := range hgrmNote.FindAllStringSubmatch(l, -1) {
				v, err := parseNumber(got[2])
				if err != nil {
					return fmt.Errorf("line %d: %s: %w", i+1, got[1], err)
				}
				switch got[1] {
				case "Total count":
					row.Figures["count"] = v
				default:
					row.Figures[map[string]string{"Mean": "mean", "StdDeviation": "sd", "Max": "max"}[got[1]]+suffix] = v * scale
				}
			}
		default:
			v, q, n, err := hgrmLine(w)
			if err != nil {
				return fmt.Errorf("line %d: %w", i+1, err)
			}
			if q < last || v < lastValue {
				return fmt.Errorf("line %d: a percentile or value below the one before it", i+1)
			}
			row.hgrm(last, v, q, n, scale, suffix)
			last, lastValue = q, v
		}
	}
	if last == 0 {
		return errors.New("no percentile in it: it was cut off")
	}
	r.Rows = []Row{row}
	return nil
}

func hgrmLine(w []string) (value, quantile, count float64, err error) {
	if len(w) < 3 || len(w) > 4 {
		return 0, 0, 0, fmt.Errorf("%d columns; want Value, Percentile, TotalCount and 1/(1-Percentile)", len(w))
	}
	for i, v := range []*float64{&value, &quantile, &count} {
		if *v, err = parseNumber(w[i]); err != nil {
			return 0, 0, 0, err
		}
	}
	if quantile < 0 || quantile > 1 {
		return 0, 0, 0, fmt.Errorf("percentile %v is not within 0 and 1", quantile)
	}
	return value, quantile, count, nil
}

// hgrm notes the first value at or beyond each quantile that toll names.
func (r *Row) hgrm(last, value, quantile, count, scale float64, suffix string) {
	if quantile == 0 {
		r.Figures["min"+suffix] = value * scale
	}
	for _, p := range []float64{50, 75, 90, 95, 99, 99.9} {
		name := strings.TrimSuffix(quantileName(p), "_us") + suffix
		if _, there := r.Figures[name]; !there && last < p/100 && quantile >= p/100 {
			r.Figures[name] = value * scale
		}
	}
	if quantile == 1 || count > r.Figures["count"] {
		r.Figures["count"] = count
	}
	if quantile == 1 {
		r.Figures["max"+suffix] = value * scale
	}
}
