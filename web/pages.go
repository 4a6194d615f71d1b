package web

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"toll/lab/result"
	"toll/report"
)

func functions() template.FuncMap {
	return template.FuncMap{
		"style": func() template.CSS { return template.CSS(report.Style()) },
		"date":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") },
		"short": func(s string) string { return s[:min(len(s), 10)] },
		"last":  func(row []string) string { return row[len(row)-1] },
		"plus1": func(i int) int { return i + 1 },
	}
}

// A listing is the first page.
type listing struct {
	Live   []Live
	Runs   []listed
	Series []series
	Errors []error
	Page   int
	Pages  []int
	Total  int
}

type listed struct {
	result.Record
	Best string
}

// A series is the runs that may be compared.
type series struct {
	Key, Benchmark, Machine, Plan, Hop string
	Runs                               int
	Last                               time.Time
	Steps                              []string // rows whose level changed at last
}

// perPage is how many results a list shows at a time.
const perPage = 100

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	runs, errs := s.index.runs()
	l := listing{Live: s.watch.running(time.Now()), Errors: errs, Series: allSeries(runs), Total: len(runs)}
	fmt.Sscan(r.URL.Query().Get("page"), &l.Page)
	pages := (len(runs) + perPage - 1) / perPage
	l.Page = max(0, min(l.Page, pages-1))
	for i := range pages {
		l.Pages = append(l.Pages, i)
	}
	for _, x := range runs[min(l.Page*perPage, len(runs)):min((l.Page+1)*perPage, len(runs))] {
		l.Runs = append(l.Runs, listed{x, best(x)})
	}
	s.render(w, "list.html", l)
}

// best says in a few words what a run found.
func best(r result.Record) string {
	var row *result.RecordRow
	for i := range r.Rows {
		if x := &r.Rows[i]; x.Role == "" && x.Ratio != nil && (row == nil || *x.Ratio < *row.Ratio) {
			row = x
		}
	}
	switch {
	case row == nil:
		return ""
	case row.Lo == nil:
		return fmt.Sprintf("%s %.2f", row.ID, *row.Ratio)
	}
	return fmt.Sprintf("%s %.2f (%.2f–%.2f)", row.ID, *row.Ratio, *row.Lo, *row.Hi)
}

// mostSeries bounds for how many series a list looks for steps; trends of all are a click away.
const mostSeries = 50

func allSeries(runs []result.Record) []series {
	members := make(map[string][]result.Record)
	var out []series
	for _, r := range runs {
		k := r.Key()
		if members[k] == nil {
			out = append(out, series{Key: k, Benchmark: r.Benchmark, Machine: r.Machine, Plan: r.Plan, Hop: r.Hop, Last: r.Started})
		}
		members[k] = append(members[k], r)
	}
	for i := range out {
		all := members[out[i].Key]
		out[i].Runs = len(all)
		if i < mostSeries {
			out[i].Steps = steps(all)
		}
	}
	return out
}

// recentRuns is how far back a change still stands on the first page.
const recentRuns = 10

func steps(all []result.Record) []string {
	var out []string
	for _, t := range result.Trends(newest(all)) {
		if n := len(t.Changes); n > 0 && len(t.Points)-t.Changes[n-1].At <= recentRuns {
			out = append(out, fmt.Sprintf("%s × %.2f", t.Row, t.Changes[n-1].Ratio))
		}
	}
	return out
}

// mostPoints is how many runs a trend shows: the newest.
const mostPoints = 100

func newest(all []result.Record) []result.Record {
	all = slices.SortedStableFunc(slices.Values(all), func(a, b result.Record) int { return a.Started.Compare(b.Started) })
	return all[max(0, len(all)-mostPoints):]
}

// A trendPage is one series, a chart per row.
type trendPage struct {
	Series series
	Charts []chart
	Errors []error
}

// A chart is a trend drawn; places are in hundredths of its box.
type chart struct {
	Row, Of, Last string
	Points        []dot
	Lines         []segment
	Changes       []mark
	Top, Bottom   string
}

type dot struct{ X, Y, Lo, Hi, Text, Folder string }

type segment struct{ X1, Y1, X2, Y2 string }

type mark struct{ X, Text string }

func (s *Server) trend(w http.ResponseWriter, r *http.Request) {
	runs, errs := s.index.runs()
	key := r.URL.Query().Get("series")
	var own []result.Record
	for _, x := range runs {
		if x.Key() == key {
			own = append(own, x)
		}
	}
	if len(own) == 0 {
		s.fail(w, http.StatusNotFound, errors.New("no run belongs to this series"))
		return
	}
	p := trendPage{Series: allSeries(own)[0], Errors: errs}
	for _, t := range result.Trends(newest(own)) {
		p.Charts = append(p.Charts, newChart(t))
	}
	s.render(w, "trend.html", p)
}

func newChart(t result.Trend) chart {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range t.Points {
		lo, hi = min(lo, p.Value), max(hi, p.Value)
		if p.Lo != nil {
			lo, hi = min(lo, *p.Lo), max(hi, *p.Hi)
		}
	}
	if !(lo > 0) || math.IsInf(hi, 0) {
		lo, hi = 1, 2
	}
	more := max(math.Pow(hi/lo, .08), 1.02)
	lo, hi = lo/more, hi*more
	y := func(v float64) string { return place(100 - 100*math.Log(v/lo)/math.Log(hi/lo)) }
	x := func(i float64) string { return place(100 * (i + .5) / float64(len(t.Points))) }
	c := chart{Row: t.Row, Of: t.Of, Top: fmt.Sprintf("%.3g", hi), Bottom: fmt.Sprintf("%.3g", lo)}
	for i, p := range t.Points {
		d := dot{X: x(float64(i)), Y: y(p.Value), Folder: p.Folder, Text: fmt.Sprintf("%s: %.4g", p.Started.Format("2006-01-02 15:04"), p.Value)}
		if p.Lo != nil {
			d.Lo, d.Hi = y(*p.Lo), y(*p.Hi)
			d.Text += fmt.Sprintf(" (%.4g–%.4g)", *p.Lo, *p.Hi)
		}
		if p.Commit != "" {
			d.Text += ", commit " + p.Commit[:min(len(p.Commit), 12)]
		}
		if i > 0 {
			last := c.Points[i-1]
			c.Lines = append(c.Lines, segment{last.X, last.Y, d.X, d.Y})
		}
		c.Points = append(c.Points, d)
	}
	for _, g := range t.Changes {
		c.Changes = append(c.Changes, mark{x(float64(g.At) - .5), fmt.Sprintf("× %.2f since %s", g.Ratio, t.Points[g.At].Started.Format("2006-01-02 15:04"))})
	}
	if n := len(t.Points); n > 0 {
		c.Last = fmt.Sprintf("%.3g", t.Points[n-1].Value)
	}
	return c
}

func place(v float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", max(-10, min(110, v))), ".0")
}

// A comparison is two results side by side.
type comparison struct {
	*result.Comparison
	Before, After result.Record
	Table         [][]string
	Refused       string
}

func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	names := r.URL.Query()["run"]
	if len(names) != 2 || names[0] == names[1] {
		s.fail(w, http.StatusBadRequest, fmt.Errorf("%d results chosen; choose two", len(names)))
		return
	}
	var docs []*result.Document
	for _, n := range names {
		d, err := readDocument(s.root, n)
		if err != nil {
			s.fail(w, http.StatusNotFound, err)
			return
		}
		docs = append(docs, d)
	}
	if docs[1].Started.Before(docs[0].Started) {
		docs[0], docs[1], names[0], names[1] = docs[1], docs[0], names[1], names[0]
	}
	page := comparison{Before: docs[0].Record(names[0]), After: docs[1].Record(names[1])}
	found, err := result.Compare(docs[:1], docs[1:])
	if err != nil {
		page.Refused = err.Error()
	} else {
		page.Comparison, page.Table = found, report.CompareRows(found)
	}
	s.render(w, "compare.html", page)
}

func (s *Server) report(w http.ResponseWriter, r *http.Request) {
	d, err := readDocument(s.root, r.PathValue("folder"))
	if err != nil {
		s.fail(w, http.StatusNotFound, err)
		return
	}
	var b bytes.Buffer
	if err := report.HTML(&b, d); err != nil {
		s.fail(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(b.Bytes())
}

func (s *Server) document(w http.ResponseWriter, r *http.Request) {
	data, err := readResult(s.root, r.PathValue("folder"))
	if err != nil {
		s.fail(w, http.StatusNotFound, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(data)
}

func (s *Server) watchPage(w http.ResponseWriter, _ *http.Request) { s.render(w, "watch.html", nil) }
