package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// isCriterion knows estimates.json, which criterion.rs leaves in target/criterion/…/new, and the lines of
// cargo criterion --message-format=json.
func isCriterion(t *text) bool {
	return !t.list && (t.has("mean", "median", "std_dev") || t.has("reason") && (t.keys["reason"] == "benchmark-complete" || t.keys["reason"] == "group-complete"))
}

// An estimate is a statistic with its interval, in the unit beside it, ns where none is.
type estimate struct {
	Point *float64 `json:"point_estimate"`
	Span  struct {
		Level float64 `json:"confidence_level"`
		Lo    float64 `json:"lower_bound"`
		Hi    float64 `json:"upper_bound"`
	} `json:"confidence_interval"`

	Estimate *float64 `json:"estimate"` // of the lines
	Lower    float64  `json:"lower_bound"`
	Upper    float64  `json:"upper_bound"`
	Unit     string   `json:"unit"`
}

func criterion(t *text, r *Report) error {
	r.Method = Method{Tool: "criterion.rs", Order: "sequential", Level: .95}
	if t.has("reason") {
		return criterionLines(t, r)
	}
	var in struct {
		Mean, Median, Slope *estimate
		SD                  *estimate `json:"std_dev"`
	}
	if err := t.into(&in); err != nil {
		return err
	}
	if in.Mean == nil || in.Mean.Point == nil || in.Median == nil || in.Median.Point == nil {
		return errors.New("mean or median without a point_estimate")
	}
	row := Row{Label: criterionName(t.name), Of: "criterion.rs", Figures: Figures{
		"mean_us": *in.Mean.Point / 1000, "p50_us": *in.Median.Point / 1000,
		"lo_us": in.Mean.Span.Lo / 1000, "hi_us": in.Mean.Span.Hi / 1000,
	}}
	r.Method.Centre, r.Method.Level = "mean_us", in.Mean.Span.Level
	if in.SD != nil {
		row.Figures.set("sd_us", in.SD.Point, 1e-3)
	}
	if in.Slope != nil && in.Slope.Point != nil {
		row.Figures["slope_us"] = *in.Slope.Point / 1000
	}
	r.Rows = []Row{row}
	return nil
}

// criterionName is the benchmark in a path such as target/criterion/fib/20/new/estimates.json.
func criterionName(path string) string {
	dir := filepath.ToSlash(filepath.Dir(path))
	if base := filepath.Base(dir); base == "new" || base == "base" || base == "change" {
		dir = filepath.ToSlash(filepath.Dir(dir))
	}
	if _, behind, ok := strings.Cut(dir, "criterion/"); ok && behind != "" {
		return behind
	}
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

func criterionLines(t *text, r *Report) error {
	r.Method.Centre = "mean_us"
	for i, line := range bytes.Split(t.data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var in struct {
			Reason       string
			ID           string
			Mean, Median *estimate
			Unit         string
			Iterations   []float64 `json:"iteration_count"`
			Measured     []float64 `json:"measured_values"`
		}
		if err := json.Unmarshal(line, &in); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		if in.Reason != "benchmark-complete" {
			continue
		}
		if in.Mean == nil || in.Mean.Estimate == nil || len(in.Iterations) != len(in.Measured) || len(in.Measured) > maxRuns {
			return fmt.Errorf("line %d: %q has no mean, or %d values for %d counts", i+1, in.ID, len(in.Measured), len(in.Iterations))
		}
		us, err := parseTime("1" + in.Mean.Unit)
		if err != nil {
			return fmt.Errorf("line %d: unit: %w", i+1, err)
		}
		row := Row{Label: in.ID, Case: in.ID, Of: "criterion.rs", Figures: Figures{
			"mean_us": *in.Mean.Estimate * us, "lo_us": in.Mean.Lower * us, "hi_us": in.Mean.Upper * us,
		}}
		if in.Median != nil {
			row.Figures.set("p50_us", in.Median.Estimate, us)
		}
		for j, n := range in.Iterations {
			row.Figures["count"] += n
			if n > 0 {
				row.Runs = append(row.Runs, Figures{"mean_us": in.Measured[j] / n * us, "count": n})
			}
		}
		r.Rows = append(r.Rows, row)
	}
	return nil
}
