package ingest

import (
	"fmt"
	"regexp"
	"strings"
)

func isHey(t *text) bool {
	return t.begins("Summary:") && t.begins("Slowest:") && t.begins("Requests/sec:") && !isOha(t)
}

func isOha(t *text) bool {
	return t.begins("Summary:") && t.begins("Success rate:") && t.begins("Slowest:")
}

var (
	heyAt     = regexp.MustCompile(`^([0-9.]+)%? in ([0-9.]+) ?(secs|sec|ms|us|ns)?$`)
	heyStatus = regexp.MustCompile(`^\[(\d+)\]\s+(\d+) responses$`)
	noTime    = regexp.MustCompile(`^-?(NaN|inf) secs$`) // of calls of which none was answered
	heyError  = regexp.MustCompile(`^\[(\d+)\]\s+(.+)$`)
)

// hey reads hey, which prints seconds with four decimals and does not print how many workers it had.
func hey(t *text, r *Report) error {
	r.Method = Method{Tool: "hey", Model: "closed", Success: "status", Resolution: 100}
	return heyLike(t, r, "hey")
}

// oha reads oha's text.
func oha(t *text, r *Report) error {
	r.Method = Method{Tool: "oha", Success: "status", Resolution: 100}
	return heyLike(t, r, "oha")
}

func heyLike(t *text, r *Report, tool string) error {
	row := Row{Label: tool, Of: tool, Figures: Figures{}, Failed: map[string]int64{}}
	for label, name := range map[string]string{"Total:": "elapsed_us", "Slowest:": "max_us", "Fastest:": "min_us", "Average:": "mean_us"} {
		rest, line, ok := t.after(label)
		if !ok {
			return fmt.Errorf("no line %q in it", label)
		}
		if noTime.MatchString(rest) {
			continue
		}
		v, err := parseTime(rest)
		if err != nil {
			return fmt.Errorf("line %d: %s %w", line, label, err)
		}
		row.Figures[name] = v
	}
	if _, answered := row.Figures["mean_us"]; !answered {
		delete(row.Figures, "min_us") // hey prints zeros beside its NaN
		delete(row.Figures, "max_us")
	}
	row.Figures["elapsed_s"] = row.Figures["elapsed_us"] / 1e6
	delete(row.Figures, "elapsed_us")
	if err := t.wanted(row.Figures, map[string]string{"Requests/sec:": "rate_per_s"}); err != nil {
		return err
	}
	section := ""
	for i, l := range t.lines {
		l = strings.TrimSpace(l)
		if strings.HasSuffix(l, ":") {
			section = strings.TrimSuffix(l, ":")
			continue
		}
		if err := heyLine(section, l, &row); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if _, ok := row.Figures["count"]; !ok {
		return fmt.Errorf("no %q in it: it was cut off, or nothing was answered", "Status code distribution")
	}
	for _, n := range row.Failed {
		row.Figures["failed"] += float64(n)
	}
	r.Rows = []Row{row}
	return nil
}

func heyLine(section, l string, row *Row) error {
	switch section {
	case "Status code distribution":
		got := heyStatus.FindStringSubmatch(l)
		if got == nil {
			return nil
		}
		n, err := parseNumber(got[2])
		if err != nil {
			return err
		}
		row.Figures["count"] += n
		if got[1] >= "400" {
			row.Failed["status"] += int64(n)
			return nil
		}
		row.Figures["ok"] += n
	case "Error distribution":
		got := heyError.FindStringSubmatch(l)
		if got == nil {
			return nil
		}
		n, err := parseNumber(got[1])
		if err != nil {
			return err
		}
		row.Figures["count"] += n
		row.Failed["error"] += int64(n)
	default:
		got := heyAt.FindStringSubmatch(strings.Replace(l, "%%", "%", 1))
		if got == nil || !strings.HasPrefix(section, "Latency distribution") && !strings.HasPrefix(section, "Response time distribution") {
			return nil
		}
		p, err := parseNumber(got[1])
		if err != nil {
			return err
		}
		unit := got[3]
		if unit == "" {
			unit = "secs"
		}
		v, err := parseTime(got[2] + " " + unit)
		if err != nil {
			return err
		}
		row.Figures[quantileName(p)] = v
	}
	return nil
}
