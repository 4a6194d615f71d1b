package ingest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

func isJMH(t *text) bool { return t.list && t.has("benchmark", "mode", "primaryMetric") }

// A jmhNumber is a number that JMH may write as "NaN"; then it is not there.
type jmhNumber struct{ v *float64 }

// UnmarshalJSON takes numbers and the words that stand for none.
func (n *jmhNumber) UnmarshalJSON(data []byte) error {
	if s, err := strconv.Unquote(string(data)); err == nil {
		switch s {
		case "NaN", "Infinity", "-Infinity", "+Infinity":
			n.v = nil
			return nil
		}
	}
	return json.Unmarshal(data, &n.v)
}

type jmhMetric struct {
	Score       jmhNumber
	Confidence  []jmhNumber          `json:"scoreConfidence"`
	Percentiles map[string]jmhNumber `json:"scorePercentiles"`
	Unit        string               `json:"scoreUnit"`
	Raw         [][]jmhNumber        `json:"rawData"`
	Histogram   [][][][2]float64     `json:"rawDataHistogram"`
}

// jmh reads -rf json. A score in time per operation is a mean, one in operations per time a rate. Percentiles of the mode sample
// are of calls; those of other modes are of iterations' means, so that they are left out.
func jmh(t *text, r *Report) error {
	var in []struct {
		Version   string `json:"jmhVersion"`
		Benchmark string
		Mode      string
		Threads   float64
		Params    map[string]string
		Primary   jmhMetric            `json:"primaryMetric"`
		Others    map[string]jmhMetric `json:"secondaryMetrics"`
	}
	if err := t.into(&in); err != nil {
		return err
	}
	r.Method = Method{Tool: "JMH", Order: "sequential", Centre: "mean_us", Level: .999}
	for i, b := range in {
		if i > MaxRows {
			break // check says so
		}
		r.Method.Tool = strings.TrimSpace("JMH " + b.Version)
		row := Row{Case: jmhName(b.Benchmark, b.Params), Of: "jmh", Figures: Figures{"concurrency": b.Threads}}
		row.Label = row.Case + " (" + b.Mode + ")"
		if err := row.jmh(b.Mode, b.Primary); err != nil {
			return fmt.Errorf("benchmark %d, %s: %w", i+1, row.Label, err)
		}
		if alloc := b.Others["gc.alloc.rate.norm"]; alloc.Unit == "B/op" {
			row.Figures.set("alloc_bytes_per_op", alloc.Score.v, 1)
		}
		r.Rows = append(r.Rows, row)
	}
	return nil
}

func jmhName(benchmark string, params map[string]string) string {
	for _, k := range sortedKeys(params) {
		benchmark += " " + k + "=" + params[k]
	}
	return benchmark
}

func (r *Row) jmh(mode string, m jmhMetric) error {
	if m.Score.v == nil {
		return fmt.Errorf("its score is no number")
	}
	before, after, _ := strings.Cut(m.Unit, "/")
	figure, scale := "rate_per_s", 0.0
	if before == "ops" {
		us, err := parseTime("1" + after)
		if err != nil {
			return fmt.Errorf("unit %.40q: %w", m.Unit, err)
		}
		scale = 1e6 / us
	} else {
		us, err := parseTime("1" + before)
		if err != nil {
			return fmt.Errorf("unit %.40q: %w", m.Unit, err)
		}
		figure, scale = "mean_us", us
	}
	r.Figures.set(figure, m.Score.v, scale)
	if figure == "mean_us" && len(m.Confidence) == 2 {
		r.Figures.set("lo_us", m.Confidence[0].v, scale)
		r.Figures.set("hi_us", m.Confidence[1].v, scale)
	}
	for _, fork := range m.Raw {
		for _, v := range fork {
			if v.v != nil && len(r.Runs) < maxRuns {
				r.Runs = append(r.Runs, Figures{figure: *v.v * scale})
			}
		}
	}
	if mode == "sample" {
		return r.jmhSample(m, scale)
	}
	return nil
}

// jmhSample takes the percentiles and counts the calls.
func (r *Row) jmhSample(m jmhMetric, scale float64) error {
	names := sortedKeys(m.Percentiles)
	for _, name := range names {
		p, err := parseNumber(name)
		if err != nil {
			return fmt.Errorf("percentile: %w", err)
		}
		figure := quantileName(p)
		switch p {
		case 0:
			figure = "min_us"
		case 100:
			figure = "max_us"
		}
		r.Figures.set(figure, m.Percentiles[name].v, scale)
	}
	for _, fork := range m.Histogram {
		for _, iteration := range fork {
			for _, bucket := range iteration {
				r.Figures["count"] += bucket[1]
			}
		}
	}
	return nil
}
