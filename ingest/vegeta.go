package ingest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

func isVegeta(t *text) bool { return t.begins("Requests      [total, rate") }

var vegetaLine = regexp.MustCompile(`^(\S[^\[]*?)\s+\[([^\]]+)\]\s+(.*)$`)

// vegeta reads vegeta's text report. It calls at a rate, so its latencies are an open model's unless -max-workers capped it,
// which the report does not say.
func vegeta(t *text, r *Report) error {
	r.Method = Method{Tool: "vegeta", Model: "open", Success: "status"}
	row := Row{Label: "vegeta", Of: "vegeta", Figures: Figures{}, Failed: map[string]int64{}}
	for i, l := range t.lines {
		got := vegetaLine.FindStringSubmatch(l)
		if got == nil {
			continue
		}
		if err := vegetaFigures(got[1], strings.Split(got[2], ", "), got[3], &row); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return finishVegeta(r, row)
}

func vegetaFigures(kind string, names []string, rest string, row *Row) error {
	if kind == "Status Codes" {
		return vegetaCodes(rest, row)
	}
	values := strings.Split(rest, ", ")
	if len(values) != len(names) {
		return fmt.Errorf("%s: %d names and %d values", kind, len(names), len(values))
	}
	for i, name := range names {
		var err error
		switch {
		case kind == "Requests":
			figure := map[string]string{"total": "count", "rate": "offered_per_s", "throughput": "rate_per_s"}[name]
			if figure == "" {
				continue // of another version
			}
			row.Figures[figure], err = parseNumber(values[i])
		case kind == "Latencies" || kind == "Duration" && name == "total":
			var us float64
			us, err = parseTime(values[i])
			switch percent, numErr := strconv.ParseFloat(name, 64); {
			case kind == "Duration":
				row.Figures["elapsed_s"] = us / 1e6
			case numErr == nil:
				row.Figures[quantileName(percent)] = us
			default:
				row.Figures[name+"_us"] = us
			}
		}
		if err != nil {
			return fmt.Errorf("%s, %s: %w", kind, name, err)
		}
	}
	return nil
}

// vegetaCodes reads "200:180  503:20  0:3"; 0 is a call that had no reply.
func vegetaCodes(rest string, row *Row) error {
	for _, word := range strings.Fields(rest) {
		code, n, ok := strings.Cut(word, ":")
		v, err := parseNumber(n)
		if !ok || err != nil {
			return fmt.Errorf("%.40q is no status with its count", word)
		}
		row.code(code, v)
	}
	return nil
}

// code counts replies of a status.
func (r *Row) code(code string, n float64) {
	r.Figures["ok"] += 0 // stated, also where there is none
	switch {
	case code == "0":
		r.Failed["error"] += whole(n)
	case len(code) == 3 && code < "400":
		r.Figures["ok"] += n
	default:
		r.Failed["status"] += whole(n)
	}
}

func finishVegeta(r *Report, row Row) error {
	for _, name := range []string{"count", "mean_us", "max_us"} {
		if _, ok := row.Figures[name]; !ok {
			return fmt.Errorf("no %s in it: it was cut off", name)
		}
	}
	for _, n := range row.Failed {
		row.Figures["failed"] += float64(n)
	}
	r.Rows = []Row{row}
	return nil
}

func isVegetaJSON(t *text) bool {
	return t.has("latencies", "throughput", "status_codes", "wait") && !t.list
}

// vegetaJSON reads vegeta's JSON report: times are nanoseconds.
func vegetaJSON(t *text, r *Report) error {
	var in struct {
		Latencies  map[string]float64
		Earliest   string
		Duration   float64
		Wait       float64
		Requests   float64
		Rate       float64
		Throughput float64
		Codes      map[string]float64 `json:"status_codes"`
	}
	if err := t.into(&in); err != nil {
		return err
	}
	r.Method, r.Date = Method{Tool: "vegeta", Model: "open", Success: "status"}, in.Earliest
	row := Row{Label: "vegeta", Of: "vegeta", Failed: map[string]int64{}, Figures: Figures{
		"count": in.Requests, "offered_per_s": in.Rate, "rate_per_s": in.Throughput, "elapsed_s": (in.Duration + in.Wait) / 1e9,
	}}
	for name, v := range in.Latencies {
		if name == "total" {
			continue
		}
		if p, err := strconv.ParseFloat(strings.TrimRight(name, "thsndr"), 64); err == nil {
			row.Figures[quantileName(p)] = v / 1000
			continue
		}
		row.Figures[name+"_us"] = v / 1000
	}
	for code, n := range in.Codes {
		row.code(code, n)
	}
	return finishVegeta(r, row)
}
