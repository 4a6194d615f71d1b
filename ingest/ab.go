package ingest

import (
	"fmt"
	"regexp"
	"strings"
)

func isAB(t *text) bool { return t.begins("This is ApacheBench") || t.begins("Document Path:") }

var (
	abKinds = regexp.MustCompile(`^\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)$`)
	abRow   = regexp.MustCompile(`^(Connect|Processing|Waiting|Total):\s+(\d+)\s+(\d+)\s+([0-9.]+)\s+(\d+)\s+(\d+)$`)
	abAt    = regexp.MustCompile(`^(\d+)%\s+(\d+)( \(longest request\))?$`)
)

// ab reads ApacheBench. It times in whole milliseconds, and calls a reply of another length than the first one failed
// unless it was told not to by -l, which its output does not say.
func ab(t *text, r *Report) error {
	row := Row{Label: "ab", Of: "ab", Figures: Figures{}, Failed: map[string]int64{}, Parts: map[string]Figures{}}
	r.Method = Method{Tool: "ab", Model: "closed", KeepAlive: "off", Success: "length", Resolution: 1000, MeanFromRate: true}
	if rest, _, ok := t.after("Document Path:"); ok && rest != "" {
		row.Label = rest
	}
	err := t.wanted(row.Figures, map[string]string{
		"Concurrency Level:": "concurrency", "Time taken for tests:": "elapsed_s", "Complete requests:": "count", "Failed requests:": "failed",
		"Requests per second:": "rate_per_s", "Time per request:": "mean_us",
	})
	if err != nil {
		return err
	}
	row.Figures["mean_us"] *= 1000
	row.Figures["ok"] = max(row.Figures["count"]-row.Figures["failed"], 0)
	if rest, _, ok := t.after("Document Length:"); ok && strings.HasPrefix(rest, "Variable") {
		r.Method.Success = "status" // -l
	}
	if v, err := t.number("Keep-Alive requests:"); err != nil {
		return err
	} else if v != nil {
		r.Method.KeepAlive = "on"
	}
	if v, err := t.number("Non-2xx responses:"); err != nil {
		return err
	} else if v != nil {
		row.Failed["status"] = int64(*v)
	}
	for i, l := range t.lines {
		if err := abLine(strings.TrimSpace(l), &row); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	r.Rows = []Row{row}
	return nil
}

func abLine(l string, row *Row) error {
	if got := abKinds.FindStringSubmatch(l); got != nil {
		for i, kind := range []string{"connect", "receive", "length", "exceptions"} {
			n, err := parseNumber(got[i+1])
			if err != nil {
				return err
			}
			if n > 0 {
				row.Failed[kind] = int64(n)
			}
		}
	}
	if got := abRow.FindStringSubmatch(l); got != nil {
		part := Figures{}
		for i, name := range []string{"min_us", "mean_us", "sd_us", "p50_us", "max_us"} {
			v, err := parseNumber(got[i+2])
			if err != nil {
				return err
			}
			part[name] = v * 1000
		}
		if got[1] != "Total" {
			row.Parts[strings.ToLower(got[1])] = part
			return nil
		}
		for _, name := range []string{"min_us", "sd_us", "p50_us", "max_us"} {
			row.Figures[name] = part[name]
		}
	}
	if got := abAt.FindStringSubmatch(l); got != nil && got[3] == "" && got[1] != "50" {
		p, err := parseNumber(got[1])
		if err != nil {
			return err
		}
		v, err := parseNumber(got[2])
		if err != nil {
			return err
		}
		row.Figures[quantileName(p)] = v * 1000
	}
	return nil
}
