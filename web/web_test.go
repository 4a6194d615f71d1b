package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toll/lab/result"
	"toll/web"
)

// fixture is the document that the reports' golden files are made from.
func fixture(t *testing.T) *result.Document {
	t.Helper()
	d, err := result.ReadFile("../report/testdata/transport.json")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// keep writes a result into a folder below dir.
func keep(t *testing.T, dir, folder string, d *result.Document) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteFile(filepath.Join(dir, folder, "result.json")); err != nil {
		t.Fatal(err)
	}
}

func serve(t *testing.T, cfg web.Config) *web.Server {
	t.Helper()
	s, err := web.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func get(s http.Handler, path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "http://127.0.0.1"+path, nil)
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestTheListTheReportAndTheDocument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep(t, dir, "20261201T000000.000Z-transport", fixture(t))
	s := serve(t, web.Config{Dir: dir})
	for path, want := range map[string]string{
		"/":                                    "rest-raw 0.52 (0.43–0.60)",
		"/run/20261201T000000.000Z-transport/": `id="packed"`,
		"/run/20261201T000000.000Z-transport/result.json": `"schema": "toll.result/v1"`,
		"/watch": "EventSource",
	} {
		w := get(s, path)
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d, lacks %q", path, w.Code, want)
		}
		if h := w.Header(); h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: headers %v", path, h)
		}
	}
	if w := get(s, "/", func(r *http.Request) { r.Method = "POST" }); w.Code != 405 {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestNothingOutsideTheFolderIsServed(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	dir := filepath.Join(above, "results")
	keep(t, above, "secret", fixture(t))
	keep(t, dir, "good", fixture(t))
	if err := os.Symlink("../secret", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	s := serve(t, web.Config{Dir: dir})
	for _, path := range []string{
		"/run/../secret/result.json", "/run/..%2fsecret/result.json", "/run/%2e%2e/result.json", "/run/..%5csecret/", "/run/link/", "/run/link/result.json",
		"/run/.hidden/", "/run/good%00/", "/run/good/../../secret/result.json", "/run/" + strings.Repeat("x", 300) + "/", "/run/absent/",
		"/compare?run=good&run=../secret", "/compare?run=good&run=link",
	} {
		if w := get(s, path); w.Code == 200 || strings.Contains(w.Body.String(), "machine_key") {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if body := get(s, "/").Body.String(); strings.Contains(body, "link") && strings.Contains(body, `value="link"`) || !strings.Contains(body, `value="good"`) {
		t.Error("the list shows a link that leads out of the folder, or not what is in it")
	}
}

func TestWhoMayAsk(t *testing.T) {
	t.Parallel()
	open := serve(t, web.Config{Dir: t.TempDir()})
	for host, want := range map[string]int{"127.0.0.1:80": 200, "localhost": 200, "[::1]:80": 200, "evil.example": 403, "127.0.0.1.evil.example": 403, "10.0.0.1": 403} {
		if w := get(open, "/", func(r *http.Request) { r.Host = host }); w.Code != want {
			t.Errorf("host %s: %d, want %d", host, w.Code, want)
		}
	}
	closed := serve(t, web.Config{Dir: t.TempDir(), Token: "sesame"})
	if w := get(closed, "/"); w.Code != 401 {
		t.Errorf("no token: %d", w.Code)
	}
	if w := get(closed, "/?token=wrong"); w.Code != 401 {
		t.Errorf("a wrong token: %d", w.Code)
	}
	w := get(closed, "/?token=sesame", func(r *http.Request) { r.Host = "elsewhere" })
	cookies := w.Result().Cookies()
	if w.Code != 200 || len(cookies) != 1 || !cookies[0].HttpOnly {
		t.Fatalf("the token: %d, %v", w.Code, cookies)
	}
	if w := get(closed, "/", func(r *http.Request) { r.AddCookie(cookies[0]) }); w.Code != 200 {
		t.Errorf("the cookie: %d", w.Code)
	}
}

func TestTwoResultsAreComparedByClicking(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	later, other := fixture(t), fixture(t)
	later.Started = later.Started.Add(time.Hour)
	other.Method.Hop.Kind = "netns"
	keep(t, dir, "a", fixture(t))
	keep(t, dir, "b", later)
	keep(t, dir, "c", other)
	s := serve(t, web.Config{Dir: dir})
	if body := get(s, "/compare?run=b&run=a").Body.String(); !strings.Contains(body, "sequential: no interval can be trusted") || !strings.Contains(body, `From <a href="/run/a/">`) {
		t.Errorf("a and b: %s", body)
	}
	if body := get(s, "/compare?run=a&run=c").Body.String(); !strings.Contains(body, "the hops differ") {
		t.Errorf("a and c: %s", body)
	}
	for _, q := range []string{"", "?run=a", "?run=a&run=a", "?run=a&run=b&run=c"} {
		if w := get(s, "/compare"+q); w.Code != 400 {
			t.Errorf("/compare%s: %d", q, w.Code)
		}
	}
}

func TestAThousandResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := fixture(t)
	for i := range 1000 {
		folder := fmt.Sprintf("run-%04d", i)
		d.Started = time.Date(2026, 1, 1, i, 0, 0, 0, time.UTC)
		d.Rows[1].Ratio.Value = 1
		if i >= 997 {
			*d.Rows[2].Ratio = result.Ratio{Value: .7}
		}
		if i%100 == 0 { // a hundredth of them is in no history and must be read
			keep(t, dir, folder, d)
			continue
		}
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, "result.json"), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := result.AppendHistory(filepath.Join(dir, result.HistoryName), d.Record(folder)); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, web.Config{Dir: dir})
	body := get(s, "/").Body.String()
	if !strings.Contains(body, "1000 results") || strings.Count(body, `type="checkbox"`) != 100 || !strings.Contains(body, "/?page=9") {
		t.Errorf("the list: %d boxes", strings.Count(body, `type="checkbox"`))
	}
	if !strings.Contains(body, "call/32B tcp rest-raw ×") {
		t.Error("the list does not say that a level changed")
	}
	if last := get(s, "/?page=9").Body.String(); !strings.Contains(last, `value="run-0000"`) {
		t.Error("the last page lacks the first run")
	}
	_, rest, _ := strings.Cut(body, `/trend?series=`)
	link, _, _ := strings.Cut(rest, `"`)
	trend := get(s, "/trend?series="+link).Body.String()
	if strings.Count(trend, `data-chart="trend"`) != 5 || !strings.Contains(trend, `class="change"`) || strings.Count(trend, "<circle") != 500 {
		t.Errorf("the trend: %d charts, %d dots", strings.Count(trend, `data-chart="trend"`), strings.Count(trend, "<circle"))
	}
	if w := get(s, "/trend?series=nonsense"); w.Code != 404 {
		t.Errorf("a series that is not there: %d", w.Code)
	}
}

func TestWhatCanNotBeReadIsSaidOnceAndTheRestIsListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep(t, dir, "good", fixture(t))
	for folder, text := range map[string]string{"broken": `{"schema":"toll.result/v1","rows":[`, "newer": `{"schema":"toll.result/v2"}`} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, "result.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, web.Config{Dir: dir})
	body := get(s, "/").Body.String()
	for _, want := range []string{"<h2>1 result</h2>", "result broken: line 1: unexpected end of JSON input", "result newer: schema is &#34;toll.result/v2&#34;; this toll reads toll.result/v1"} {
		if !strings.Contains(body, want) {
			t.Errorf("the list lacks %q", want)
		}
	}
	if w := get(s, "/run/newer/"); w.Code != 404 {
		t.Errorf("a newer result: %d", w.Code)
	}
}

func TestARunIsWatchedAndCharged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	running := filepath.Join(dir, "run")
	if err := os.Mkdir(running, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(web.Live{Benchmark: "transport", Case: "call/32B", Block: 3, Blocks: 9, Rows: []web.LiveRow{{Name: "rest", P50: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(running, web.LiveName), text, 0o644); err != nil {
		t.Fatal(err)
	}
	spent := time.Duration(0)
	s := serve(t, web.Config{Dir: dir, Spent: func() time.Duration { spent += 7 * time.Millisecond; return spent }})
	site := httptest.NewServer(s)
	defer site.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", site.URL+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := site.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), `data: [{"folder":"run","benchmark":"transport"`) {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	// The run ends: the next event says so, and what it cost until then is in its folder.
	if err := os.Remove(filepath.Join(running, web.LiveName)); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() && lines.Text() != "data: []" {
	}
	var w web.Watch
	data, err := os.ReadFile(filepath.Join(running, web.WatchName))
	if err != nil || json.Unmarshal(data, &w) != nil || w.CPU < int64(7*time.Millisecond) || w.CPU%int64(7*time.Millisecond) != 0 {
		t.Errorf("charged %s, %v", data, err)
	}
}
