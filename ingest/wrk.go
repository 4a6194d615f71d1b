package ingest

import (
	"fmt"
	"regexp"
	"strings"
)

func isWrk(t *text) bool { return t.begins("Running ") && t.begins("Thread Stats") }

var (
	wrkCrew  = regexp.MustCompile(`^\s*(\d+) threads? and (\d+) connections?$`)
	wrkTotal = regexp.MustCompile(`^\s*(\d+) requests in (\S+), (\S+) read$`)
	wrkAt    = regexp.MustCompile(`^\s*([0-9.]+)%\s+(\S+)$`)
)

// wrk reads the output of wrk and wrk2, with or without --latency. wrk2's detailed spectrum behind it is left to hgrm.
func wrk(t *text, r *Report) error {
	row := Row{Label: "wrk", Of: "wrk", Figures: Figures{}, Failed: map[string]int64{}}
	r.Method = Method{Tool: "wrk", Model: "closed", KeepAlive: "on", Success: "status"}
	if rest, _, ok := t.after("Running "); ok {
		if _, url, ok := strings.Cut(rest, " @ "); ok {
			row.Label = url
		}
	}
	for i, l := range t.lines {
		if err := wrkLine(l, &row, &r.Method); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	for _, name := range []string{"concurrency", "count", "mean_us"} {
		if _, ok := row.Figures[name]; !ok {
			return fmt.Errorf("no %s in it: it was cut off", name)
		}
	}
	v, err := t.number("Requests/sec:")
	if err != nil {
		return err
	}
	row.Figures.set("rate_per_s", v, 1)
	row.Figures["ok"] = row.Figures["count"] - float64(row.Failed["status"])
	r.Rows = []Row{row}
	return nil
}

func wrkLine(l string, row *Row, m *Method) (err error) {
	f := row.Figures
	word := strings.Fields(l)
	time := func(name, s string) {
		if err == nil {
			f[name], err = parseTime(s)
		}
	}
	number := func(s string) (v float64) {
		if err == nil {
			v, err = parseNumber(s)
		}
		return v
	}
	switch {
	case wrkCrew.MatchString(l):
		f["concurrency"] = number(wrkCrew.FindStringSubmatch(l)[2])
	case wrkTotal.MatchString(l):
		got := wrkTotal.FindStringSubmatch(l)
		f["count"] = number(got[1])
		time("elapsed_s", got[2])
		f["elapsed_s"] /= 1e6
	case wrkAt.MatchString(l) && len(word) == 2:
		got := wrkAt.FindStringSubmatch(l)
		percent := number(got[1])
		if percent == 100 {
			return err
		}
		time(quantileName(percent), got[2])
	case len(word) == 5 && word[0] == "Latency" && strings.HasSuffix(word[4], "%"):
		time("mean_us", word[1])
		time("sd_us", word[2])
		time("max_us", word[3])
	case strings.HasPrefix(strings.TrimSpace(l), "Non-2xx or 3xx responses:"):
		row.Failed["status"] = int64(number(word[len(word)-1]))
	case strings.HasPrefix(strings.TrimSpace(l), "Socket errors:"):
		return wrkErrors(l, row)
	case strings.Contains(l, "Latency Distribution (HdrHistogram"):
		m.Tool = "wrk2"
	}
	return err
}

// wrkErrors reads "Socket errors: connect 0, read 0, write 0, timeout 3".
func wrkErrors(l string, row *Row) error {
	_, list, _ := strings.Cut(l, ":")
	for part := range strings.SplitSeq(list, ",") {
		word := strings.Fields(part)
		if len(word) != 2 {
			return fmt.Errorf("%.60q is no count of errors", part)
		}
		n, err := parseNumber(word[1])
		if err != nil {
			return err
		}
		if n > 0 {
			row.Failed[word[0]] = int64(n)
		}
	}
	return nil
}
