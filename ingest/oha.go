package ingest

import (
	"errors"
	"strings"
)

func isOhaJSON(t *text) bool { return !t.list && t.has("summary", "latencyPercentiles") }

// ohaJSON reads oha's JSON: times are seconds.
func ohaJSON(t *text, r *Report) error {
	var in struct {
		Summary struct {
			Total, Slowest, Fastest, Average *float64
			Rate                             *float64 `json:"requestsPerSec"`
			Success                          *float64 `json:"successRate"`
		}
		Percentiles map[string]*float64 `json:"latencyPercentiles"`
		Codes       map[string]float64  `json:"statusCodeDistribution"`
		Errors      map[string]float64  `json:"errorDistribution"`
	}
	if err := t.into(&in); err != nil {
		return err
	}
	r.Method = Method{Tool: "oha", Success: "status"}
	row := Row{Label: "oha", Of: "oha", Figures: Figures{}, Failed: map[string]int64{}}
	row.Figures.set("elapsed_s", in.Summary.Total, 1)
	row.Figures.set("max_us", in.Summary.Slowest, 1e6)
	row.Figures.set("min_us", in.Summary.Fastest, 1e6)
	row.Figures.set("mean_us", in.Summary.Average, 1e6)
	row.Figures.set("rate_per_s", in.Summary.Rate, 1)
	for name, v := range in.Percentiles {
		percent, err := parseNumber(strings.Replace(strings.TrimPrefix(name, "p"), "_", ".", 1))
		if err != nil {
			continue // a name of another version
		}
		row.Figures.set(quantileName(percent), v, 1e6)
	}
	for code, n := range in.Codes {
		row.Figures["count"] += n
		row.code(code, n)
	}
	for _, n := range in.Errors {
		row.Figures["count"] += n
		row.Failed["error"] += whole(n)
	}
	if row.Figures["count"] == 0 {
		return errors.New("neither a status nor an error is counted in it")
	}
	for _, n := range row.Failed {
		row.Figures["failed"] += float64(n)
	}
	r.Rows = []Row{row}
	return nil
}
