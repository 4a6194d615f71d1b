package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience bounds one test; a loaded machine starts a browser slowly.
const patience = 60 * time.Second

// buildToll builds the program once for all tests.
var buildToll = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "toll-browser-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "toll")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/toll")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return bin, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := buildToll(); err == nil {
		os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

func toll(t *testing.T) string {
	t.Helper()
	bin, err := buildToll()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// shots is where screenshots are kept: a folder that CI keeps, or the test's own.
func shots(t *testing.T) string {
	if dir := os.Getenv("TOLL_SHOTS"); dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	return t.TempDir()
}

// A page is a tab, with everything it complained of and asked for.
type page struct {
	ctx context.Context

	mu       sync.Mutex
	problems []string // guarded by mu
	requests []string // guarded by mu
}

func open(t *testing.T, width, height int64, dark bool) *page {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &page{ctx: ctx}
	chromedp.ListenTarget(ctx, p.listen)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.run(t, network.Enable(), log.Enable(), runtime.Enable(), emulation.SetDeviceMetricsOverride(width, height, 1, width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}))
	return p
}

func (p *page) listen(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		if ev.Type == runtime.APITypeError || ev.Type == runtime.APITypeWarning {
			text, _ := json.Marshal(ev.Args)
			p.problems = append(p.problems, "console: "+string(text))
		}
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, "exception: "+ev.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if ev.Entry.Level == log.LevelError || ev.Entry.Level == log.LevelWarning {
			p.problems = append(p.problems, "log: "+ev.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, ev.Request.URL)
	}
}

func (p *page) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// eval returns what an expression of the page gives.
func eval[T any](t *testing.T, p *page, expression string) (out T) {
	t.Helper()
	p.run(t, chromedp.Evaluate(expression, &out))
	return out
}

// visit opens an address and waits until the page says that it is ready.
func (p *page) visit(t *testing.T, url string) {
	t.Helper()
	p.run(t, chromedp.Navigate(url))
	p.run(t, chromedp.Poll(`document.documentElement.dataset.ready === "true" || document.documentElement.dataset.failed`, nil))
	if failed := eval[string](t, p, `document.documentElement.dataset.failed || ""`); failed != "" {
		t.Fatal("the page's script failed: ", failed)
	}
}

// clean fails when the page complained, or asked for anything but itself.
func (p *page) clean(t *testing.T, allowed ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		t.Error(problem)
	}
	for _, url := range p.requests {
		ok := strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "blob:")
		for _, a := range allowed {
			ok = ok || strings.HasPrefix(url, a)
		}
		if !ok {
			t.Errorf("the page asked for %s", url)
		}
	}
}

func (p *page) shot(t *testing.T, name string) {
	t.Helper()
	var png []byte
	p.run(t, chromedp.Evaluate(`dispatchEvent(new Event("beforeprint"))`, nil)) // draws every curve, as printing does
	p.run(t, chromedp.FullScreenshot(&png, 100))
	if err := os.WriteFile(filepath.Join(shots(t), name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// report renders the fixture, changed by change if that is not nil, and returns the page's address.
func report(t *testing.T, change func(map[string]any)) (url, document string) {
	t.Helper()
	dir := t.TempDir()
	document = "../../report/testdata/transport.json"
	if change != nil {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		var d map[string]any
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		change(d)
		if text, err = json.Marshal(d); err != nil {
			t.Fatal(err)
		}
		document = filepath.Join(dir, "result.json")
		if err := os.WriteFile(document, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	html, err := exec.Command(toll(t), "report", document, "--html").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "report.html")
	if err := os.WriteFile(file, html, 0o644); err != nil {
		t.Fatal(err)
	}
	return "file://" + file, document
}

// everything makes every chart appear: several concurrencies, parts, a hostile name, a published row and gaps.
func everything(d map[string]any) {
	rows := d["rows"].([]any)
	copyOf := func(v any) map[string]any {
		text, _ := json.Marshal(v)
		var out map[string]any
		json.Unmarshal(text, &out)
		return out
	}
	var more []any
	for _, n := range []float64{8, 64, 256, 512} {
		for _, r := range rows {
			x := copyOf(r)
			x["concurrency"] = n
			x["throughput_per_s"] = x["throughput_per_s"].(float64) * (1 + n/20)
			l := x["latency_us"].(map[string]any)
			l["p50"] = l["p50"].(float64) * (1 + n/8)
			more = append(more, x)
		}
	}
	first := rows[2].(map[string]any)
	first["contender"].(map[string]any)["name"] = `<img src=x onerror=alert(1)>`
	part := copyOf(first["latency_us"])
	part["count"] = 2000
	first["parts_us"] = map[string]any{"sign": part, "envelope": part}
	published := copyOf(rows[0])
	published["kind"], published["role"] = "published", ""
	published["source"] = map[string]any{"file": "table.json", "sha256": "ab", "date": "2025", "errata": []any{"one caller only"}}
	d["rows"] = append(append(rows, more...), published)
	d["gaps"] = []any{map[string]any{"row": "call/32B tcp node", "reason": "it is not here"}}
}

func TestEveryChartHasItsData(t *testing.T) {
	url, document := report(t, everything)
	p := open(t, 1200, 900, false)
	p.visit(t, url)
	for what, want := range map[string]int{
		"figure[data-chart=forest]": 5, "figure[data-chart=curve]": 5, "figure[data-chart=cpu]": 5, "figure[data-chart=strip]": 5,
		"figure[data-chart=parts]": 1, "figure[data-chart=bend]": 1, "#elsewhere tbody tr": 1, "#gaps li": 1,
		"#g0 .tree .dot": 5, "#g0 .tree .band": 5, "#g0 [data-chart=strip] path.trace": 5, "#g0 [data-chart=cpu] rect": 10, "#g0 [data-chart=parts] rect": 2,
		"[data-chart=bend] .ring": 4, "table.figures": 5, "img": 0,
	} {
		if got := eval[int](t, p, fmt.Sprintf("document.querySelectorAll(%q).length", what)); got != want {
			t.Errorf("%d of %s, want %d", got, what, want)
		}
	}
	p.run(t, chromedp.ScrollIntoView("#g4 .uplot-here", chromedp.ByQuery), chromedp.Poll(`document.querySelector("#g4 .uplot-here").plot !== undefined`, nil))
	p.run(t, chromedp.ScrollIntoView("#g0 .uplot-here", chromedp.ByQuery), chromedp.Poll(`document.querySelector("#g0 .uplot-here").plot !== undefined`, nil))
	// The curve's values are the document's quantiles: at 99 % the first row's p99, to a histogram's bucket.
	got := eval[float64](t, p, `(() => { const d = document.querySelector("#g0 .uplot-here").plot.data; const i = d[0].findIndex((x) => x >= 2); return d[1][i]; })()`)
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Rows []struct {
			Latency struct{ P99 float64 } `json:"latency_us"`
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if want := d.Rows[0].Latency.P99; got < want*.97 || got > want*1.1 {
		t.Errorf("the curve reads %.1f µs at 99 %%, the document %.1f", got, want)
	}
	if rule := eval[string](t, p, `document.querySelector(document.querySelector("table.figures thead a[href='#rule-p99']").getAttribute("href")).textContent`); !strings.Contains(rule, "1,000 successes") {
		t.Errorf("the rule of p99, one click away: %q", rule)
	}
	p.shot(t, "everything-light")
	p.clean(t, url)
}

func TestTheDownloadedDocumentIsTheOneMeasured(t *testing.T) {
	url, document := report(t, nil)
	p := open(t, 1200, 900, false)
	p.visit(t, url)
	p.run(t, chromedp.Evaluate(`(() => { const make = URL.createObjectURL; URL.createObjectURL = (b) => { b.text().then((t) => { window.saved = t; }); return make(b); }; HTMLAnchorElement.prototype.click = () => {}; })()`, nil),
		chromedp.Click("#download", chromedp.ByQuery), chromedp.Poll(`window.saved !== undefined`, nil))
	saved := eval[string](t, p, `window.saved`)
	file := filepath.Join(t.TempDir(), "result.json")
	if err := os.WriteFile(file, []byte(saved), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(toll(t), "result", "check", file).CombinedOutput(); err != nil {
		t.Errorf("the download is no good document: %v: %s", err, out)
	}
	original, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(original, &a) != nil || json.Unmarshal([]byte(saved), &b) != nil {
		t.Fatal("no JSON")
	}
	if where := lost(a, b, "$"); where != "" {
		t.Errorf("the download differs at %s", where)
	}
	p.clean(t, url)
}

// lost returns where b lacks something of a, or has another value; a field that a reader of a adds is no loss.
func lost(a, b any, at string) string {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		for k, x := range a {
			if !ok {
				return at
			}
			if where := lost(x, b[k], at+"."+k); where != "" {
				return where
			}
		}
		return ""
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return at
		}
		for i := range a {
			if where := lost(a[i], b[i], fmt.Sprintf("%s[%d]", at, i)); where != "" {
				return where
			}
		}
		return ""
	}
	if a != b {
		return at
	}
	return ""
}

func TestTheKeyboardReachesEverything(t *testing.T) {
	url, _ := report(t, nil)
	p := open(t, 1200, 900, false)
	p.visit(t, url)
	p.run(t, chromedp.KeyEvent(kb.Tab))
	if at := eval[string](t, p, `document.activeElement.className`); at != "skip" {
		t.Errorf("the first stop is %q, want the link that skips to the results", at)
	}
	reached := make(map[string]bool)
	for range 120 {
		p.run(t, chromedp.KeyEvent(kb.Tab))
		reached[eval[string](t, p, `(() => { const e = document.activeElement; return e.id || e.className || e.getAttribute("href") || e.tagName; })()`)] = true
	}
	for _, want := range []string{"scroll", "uplot-here", "#rule-ratio", "#rule-p99", "#trust", "download"} {
		if !reached[want] {
			t.Errorf("Tab never reaches %s; it reaches %v", want, reached)
		}
	}
	p.run(t, chromedp.ScrollIntoView(".uplot-here", chromedp.ByQuery), chromedp.Poll(`document.querySelector(".uplot-here").plot !== undefined`, nil), chromedp.Focus(".uplot-here", chromedp.ByQuery))
	before := eval[string](t, p, `document.querySelector(".reading").textContent`)
	p.run(t, chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	after := eval[string](t, p, `document.querySelector(".reading").textContent`)
	if before == "" || before == after || !strings.Contains(after, "rest-raw ") {
		t.Errorf("the arrow keys moved the reading from %q to %q", before, after)
	}
	p.clean(t, url)
}

func TestDarkAndPhone(t *testing.T) {
	url, _ := report(t, everything)
	p := open(t, 1200, 900, true)
	p.visit(t, url)
	if paper := eval[string](t, p, `getComputedStyle(document.body).backgroundColor`); paper != "rgb(21, 21, 23)" {
		t.Errorf("in the dark the paper is %s", paper)
	}
	p.shot(t, "everything-dark")
	p.clean(t, url)
	phone := open(t, 390, 844, false)
	phone.visit(t, url)
	if over := eval[int](t, phone, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		t.Errorf("on a phone the page is %d px too wide", over)
	}
	phone.shot(t, "everything-phone")
	phone.clean(t, url)
}

// What is printed is light and holds the curves.
func TestPrint(t *testing.T) {
	url, _ := report(t, nil)
	p := open(t, 1200, 900, true)
	p.visit(t, url)
	p.run(t, emulation.SetEmulatedMedia().WithMedia("print"))
	if paper := eval[string](t, p, `getComputedStyle(document.body).backgroundColor`); paper != "rgb(255, 255, 255)" {
		t.Errorf("printed, the paper is %s", paper)
	}
	p.clean(t, url)
}

func TestTheFolderOfResults(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("../../report/testdata/transport.json")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		var d map[string]any
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		d["started"] = time.Date(2026, 1, 1, i, 0, 0, 0, time.UTC)
		folder := filepath.Join(dir, fmt.Sprintf("run-%d", i))
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		changed, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "result.json"), changed, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	live := map[string]any{"benchmark": "transport", "case": "call/32B", "phase": "tcp", "concurrency": 1, "round": 1, "block": 2, "blocks": 4, "done": 0, "total": 5,
		"rows": []any{map[string]any{"name": "rest", "role": "baseline", "p50_us": 100, "rounds": 1}}}
	running, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "now"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "now", "live.json"), running, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(toll(t), "view", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("view ended with %v", err)
		}
	}()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("view printed no address")
	}
	site := lines.Text()
	p := open(t, 1200, 900, false)
	p.run(t, chromedp.Navigate(site), chromedp.Click(`input[value="run-3"]`, chromedp.ByQuery), chromedp.Click(`input[value="run-5"]`, chromedp.ByQuery))
	p.shot(t, "list")
	p.run(t, chromedp.Click(`form button`, chromedp.ByQuery), chromedp.WaitVisible("#comparison", chromedp.ByQuery))
	if text := eval[string](t, p, `document.body.textContent`); !strings.Contains(text, "sequential") || !strings.Contains(text, "rest-raw") {
		t.Errorf("the comparison says %s", text)
	}
	p.shot(t, "compare")
	p.run(t, chromedp.Navigate(site), chromedp.Click(`a[href^="/trend"]`, chromedp.ByQuery), chromedp.WaitVisible("figure[data-chart=trend]", chromedp.ByQuery))
	if n := eval[int](t, p, `document.querySelectorAll("circle").length`); n != 40 {
		t.Errorf("the trends have %d dots, want 40", n)
	}
	p.shot(t, "trend")
	p.run(t, chromedp.Navigate(site+"watch"), chromedp.Poll(`document.querySelector("#live table") !== null`, nil))
	if text := eval[string](t, p, `document.getElementById("live").textContent`); !strings.Contains(text, "block 2 of 4") || !strings.Contains(text, "100.0 µs") {
		t.Errorf("the run that goes on is shown as %q", text)
	}
	p.shot(t, "watch")
	p.visit(t, site+"run/run-3/")
	p.clean(t, site)
}
