package report

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

	"toll/lab/result"
)

//go:embed page
var pageFiles embed.FS

// mostStatic is how many groups of rows a page shows without its script; the others are packed, to keep the page small.
const mostStatic = 2

// A page is what page.html shows.
type page struct {
	Style, PlotStyle template.CSS
	Script, Plot     template.JS
	PlotLicence      template.HTML
	Doc              *result.Document
	Title            string
	Facts            []fact
	Sections         []section     // shown as they are
	More             template.HTML // the other sections, packed
	Contents         []entry
	Bends            []bend
	Ladder           string
	Elsewhere        []*result.Row
	Gaps             []result.Gap
	Trust            []string
	Environment      []fact
	Method           []fact
	Explanations     []explanation
	Packed           template.HTML
	Thinned          bool
	Colours          template.JS // contender: colour
}

// An entry leads to the sections of one case and phase: to the only one, or to each concurrency's.
type entry struct {
	Title string
	Alone bool
	Links []link
}

type link struct{ ID, Text, Label string }

func contents(sections []section) []entry {
	var out []entry
	for _, s := range sections {
		l := link{s.ID, strconv.Itoa(s.Callers), s.Title + ", " + s.Sub}
		if n := len(out); n > 0 && out[n-1].Title == s.Title {
			out[n-1].Links = append(out[n-1].Links, l)
			continue
		}
		out = append(out, entry{Title: s.Title, Links: []link{l}})
	}
	for i := range out {
		if out[i].Alone = len(out[i].Links) == 1; out[i].Alone {
			out[i].Links[0].Text = out[i].Title
		}
	}
	return out
}

// A fact is a name and what is so called.
type fact struct{ Name, Text string }

// HTML writes d as one page that needs nothing else: no network, no other file.
func HTML(w io.Writer, d *result.Document) error {
	p, err := newPage(d)
	if err != nil {
		return err
	}
	t, err := template.New("page.html").Funcs(functions()).ParseFS(pageFiles, "page/*.html")
	if err != nil {
		return fmt.Errorf("report: the page's template: %w", err)
	}
	var b bytes.Buffer
	if sections := p.Sections; len(sections) > mostStatic {
		more, err := packSections(t, p, sections[mostStatic:])
		if err != nil {
			return err
		}
		p.More = template.HTML(more) // base64: nothing to escape
		p.Sections = sections[:mostStatic]
	}
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("report: the page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

func packSections(t *template.Template, p *page, sections []section) (string, error) {
	var b bytes.Buffer
	for _, s := range sections {
		if err := t.ExecuteTemplate(&b, "section.html", s); err != nil {
			return "", fmt.Errorf("report: the page: %w", err)
		}
	}
	if len(p.Bends) > 0 {
		if err := t.ExecuteTemplate(&b, "bends.html", p); err != nil {
			return "", fmt.Errorf("report: the page: %w", err)
		}
	}
	return zipped(b.Bytes())
}

func functions() template.FuncMap {
	return template.FuncMap{
		"theirs50": func(r *result.Row) string {
			return theirs(r, "p50_us", func(l *result.Latency) *float64 { return &l.P50 })
		},
		"theirs99": func(r *result.Row) string {
			return theirs(r, "p99_us", func(l *result.Latency) *float64 { return l.P99 })
		},
		"figure":     figure,
		"source":     sourceText,
		"deviations": deviationText,
	}
}

func newPage(d *result.Document) (*page, error) {
	read := func(name string) string {
		data, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			panic("the embedded page: " + err.Error())
		}
		return string(data)
	}
	colours := coloursOf(d)
	p := &page{
		Style: template.CSS(read("page.css")), PlotStyle: template.CSS(read("uPlot.min.css")),
		Script: template.JS(read("page.js")), Plot: template.JS(read("uPlot.iife.min.js")),
		PlotLicence: template.HTML("<!--\nuPlot 1.6.32, in this page:\n" + strings.ReplaceAll(read("uPlot.LICENSE"), "--", "- -") + "-->"),
		Doc:         d, Title: d.Benchmark, Facts: facts(d), Elsewhere: elsewhere(d), Gaps: GapsBrief(d.Gaps), Trust: Trust(d),
		Ladder: strings.Join(ladderLines(d), "\n"), Environment: environment(d), Method: method(d), Explanations: explanations(),
	}
	for i, g := range d.Groups() {
		p.Sections = append(p.Sections, newSection(d, g, i, colours))
	}
	p.Contents = contents(p.Sections)
	p.Bends = bends(d, colours)
	names, err := json.Marshal(colours)
	if err != nil {
		return nil, err
	}
	p.Colours = template.JS(names)
	text, cut, err := document(d)
	p.Packed, p.Thinned = template.HTML(text), cut // base64: nothing to escape
	return p, err
}

// palette is how many colours page.css has; further contenders begin again.
const palette = 10

// coloursOf numbers the contenders of a document, so that one has the same colour everywhere.
func coloursOf(d *result.Document) map[string]int {
	out := make(map[string]int)
	for i := range d.Rows {
		if n := d.Rows[i].Contender.Name; d.Rows[i].Kind == result.Measured {
			if _, ok := out[n]; !ok {
				out[n] = len(out) % palette
			}
		}
	}
	return out
}

// facts is what must be known before any number.
func facts(d *result.Document) []fact {
	s := d.Plan.Settings
	turn := fmt.Sprintf("%d × %d calls", s.Blocks, s.Calls)
	if s.CallsEach > 0 {
		turn += fmt.Sprintf(", at least %d of each caller", s.CallsEach)
	}
	if s.Timed() {
		turn = fmt.Sprintf("%d × %s", s.Blocks, turnText(s, ""))
	}
	callers := make([]string, len(d.Method.Concurrency))
	for i, n := range d.Method.Concurrency {
		callers[i] = fmt.Sprint(n)
	}
	how := []fact{
		{"model", d.Method.Model},
		{"callers", strings.Join(callers, ", ")},
		{"blocks", fmt.Sprintf("%s of each contender, %s, %s", turn, d.Method.Order, plural(d.Method.Replicates, "round"))},
	}
	if g, r := loneTarget(d); r != nil {
		how = []fact{{"load", loadHeadline(d, g, r)}}
	}
	return slices.Concat([]fact{
		{"measured", d.Started.Format("2 January 2006, 15:04 UTC") + fmt.Sprintf(", %.0f s", d.ElapsedS)},
	}, how, []fact{
		{"hop", hopText(d) + unit(d)},
		{"limits on contenders", d.Method.Limits.Mechanism},
		{"machine", fmt.Sprintf("%s, %d CPUs", d.Environment.CPU.BrandCPUID, d.Environment.CPU.Logical)},
		{"seed", fmt.Sprint(d.Seed)},
	})
}

// loneTarget returns the row of a load that had one target only, nil where there are more.
func loneTarget(d *result.Document) (*result.Group, *result.Row) {
	groups := d.Groups()
	if d.Benchmark != result.Load || len(groups) != 1 {
		return nil, nil
	}
	rows := slices.DeleteFunc(slices.Clone(groups[0].Rows), func(r *result.Row) bool { return !r.Ranked() })
	if len(rows) != 1 {
		return nil, nil
	}
	return groups[0], rows[0]
}

// unit stands behind the hop where no table says that times are microseconds.
func unit(d *result.Document) string {
	if d.Method.Hop.MeasuredRTT == nil || d.Method.Hop.Kind == "none" {
		return ""
	}
	return " µs"
}

func method(d *result.Document) []fact {
	m := d.Method
	out := []fact{
		{"model", m.Model}, {"order", m.Order}, {"concurrency", strings.Trim(fmt.Sprint(m.Concurrency), "[]")}, {"processes", m.Processes},
		{"hop", hopText(d) + unit(d) + carrierText(m.Hop)}, {"limits on contenders", limitsText(m.Limits)}, {"rounds", fmt.Sprint(m.Replicates)},
		{"warm-up", fmt.Sprintf("%d calls of each contender in each round", d.Plan.Warmup)}, {"timeout of a call", durationText(d.Plan.Timeout)},
		{"plan", "sha256 " + d.Plan.SHA256},
		{"toll", strings.TrimSpace(d.Toll.Version + " " + d.Toll.Commit + " " + d.Toll.Go)},
	}
	if d.Toll.Dirty {
		out[len(out)-1].Text += ", built from changed sources"
	}
	if m.Processors != "" {
		out = append(out, fact{"processors", m.Processors + ": those of each process stand in its row"})
	}
	if m.Idle != "" {
		out = append(out, fact{"processors with nothing to do", m.Idle + ": they looked for work and did not sleep"})
	}
	return out
}

// carrierText says by what a hop is made, and what carrying its packets cost.
func carrierText(h result.Hop) string {
	if h.CarrierCores == nil {
		return strings.TrimSuffix(", "+h.Mechanism, ", ")
	}
	return fmt.Sprintf(", %s; carrying packets took %.2g cores, outside every limit and in no row", h.Mechanism, *h.CarrierCores)
}

func limitsText(l result.Limits) string {
	text := l.Mechanism
	if l.CPUs != nil {
		text += fmt.Sprintf(", %g CPUs", *l.CPUs)
	}
	if l.MemoryMB != nil {
		text += fmt.Sprintf(", %g MB", *l.MemoryMB)
	}
	if l.ThrottledMS != nil {
		text += fmt.Sprintf(", throttled %g ms", *l.ThrottledMS)
	}
	return text
}

func environment(d *result.Document) []fact {
	e := d.Environment
	out := []fact{
		{"machine key", e.MachineKey}, {"CPU", e.CPU.BrandCPUID}, {"CPU as the system names it", e.CPU.BrandOS}, {"logical CPUs", fmt.Sprint(e.CPU.Logical)},
		{"system", strings.TrimSpace(e.OS.Name + " " + e.OS.Arch + " " + e.OS.Kernel)}, {"hypervisor", e.OS.Hypervisor}, {"container", e.OS.Container},
		{"clock", strings.TrimSpace(e.OS.Clocksource + fmt.Sprintf(" %.0f ns a pair of readings", e.Lab.ClockNS))},
		{"recorder", fmt.Sprintf("%.1f ns a call", e.Lab.RecordNS)},
		{"lab", fmt.Sprintf("GOMAXPROCS %d, GOGC %s, GOMEMLIMIT %s", e.Client.GOMAXPROCS, e.Client.GOGC, e.Client.GOMEMLIMIT)},
		{"noise", noiseText(e.Noise)},
	}
	if t := e.OS.Conntrack; t != nil {
		out = append(out, fact{"connection tracking", trackingText(*t)})
	}
	if e.MemoryMB != nil {
		out = append(out, fact{"memory", fmt.Sprintf("%d MB", *e.MemoryMB)})
	}
	for _, n := range e.NotVisible {
		out = append(out, fact{"not visible", n})
	}
	return out
}

// Style returns the page's style sheet, so that other pages look the same.
func Style() string {
	data, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		panic("the embedded page: " + err.Error())
	}
	return string(data)
}
