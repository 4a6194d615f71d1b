package contender_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toll/contender"
)

// The contenders that stand in peers as examples are started as anyone's are. Where their language is not installed, that
// is what their test says.
func TestThePeersConform(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"javascript/node-http", "javascript/stdio-sha256", "python/python-http", "python/stdio-sha256"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			m := peer(t, dir)
			findings := contender.Check(t.Context(), m)
			points := make(map[string]bool)
			for _, f := range findings {
				points[f.Point] = true
				if f.Fails() {
					t.Errorf("%s", f)
				}
			}
			for _, p := range []string{"start", "version", "stats", "usage", "second", "stop", "leaves"} {
				if !points[p] {
					t.Errorf("nothing was found about %s: %v", p, findings)
				}
			}
		})
	}
}

func peer(t *testing.T, dir string) contender.Manifest {
	t.Helper()
	m, err := contender.Load(filepath.Join("../peers", dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range m.Needs {
		if _, err := exec.LookPath(program); err != nil {
			cannot(t, "%s is not installed here", program)
		}
	}
	return m
}

func TestTheRESTPeersServeTheNote(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"javascript/node-http", "python/python-http"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			s, err := peer(t, dir).Spec()
			if err != nil {
				t.Fatal(err)
			}
			p := start(t, s)
			client := &http.Client{Transport: new(http.Transport)}
			defer client.CloseIdleConnections()
			for _, note := range []string{"", "text", "naïve \"quotes\" 𝄞\n", strings.Repeat("x", 64<<10)} {
				in, err := json.Marshal(map[string]any{"id": 1234567890123456, "note": note})
				if err != nil {
					t.Fatal(err)
				}
				status, kind, body := post(t, client, p.Ready().Addr+"/v1/note", in)
				want := fmt.Sprint(map[string]any{"id": json.Number("1234567890123456"), "note": note, "status": "done", "owner": "toll"})
				if status != 200 || kind != "application/json" || body != want {
					t.Errorf("status %d, %s, %.200s\nwant %.200s", status, kind, body, want)
				}
			}
			for _, in := range []string{`x`, `null`, `{"id":"1","note":""}`, `{"id":1}`, ``} {
				if status, _, body := post(t, client, p.Ready().Addr+"/v1/note", []byte(in)); status != 400 {
					t.Errorf("%q: status %d, %s; want 400", in, status, body)
				}
			}
			resp, err := client.Get(p.Ready().Addr + "/healthz")
			if err != nil {
				t.Fatal(err)
			}
			if resp.Body.Close(); resp.StatusCode != 200 {
				t.Errorf("healthz: %s", resp.Status)
			}
		})
	}
}

func post(t *testing.T, client *http.Client, url string, in []byte) (status int, kind, body string) {
	t.Helper()
	resp, err := client.Post(url, "application/json", bytes.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	d := json.NewDecoder(resp.Body)
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("more behind the reply: %v", err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), fmt.Sprint(v)
}

func TestTheStdioPeersDigestTheNote(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"javascript/stdio-sha256", "python/stdio-sha256"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			s, err := peer(t, dir).Spec()
			if err != nil {
				t.Fatal(err)
			}
			p := start(t, s)
			for id, note := range []string{"", "naïve \"quotes\" 𝄞\n", strings.Repeat("x", 4096)} {
				in, err := json.Marshal(map[string]any{"id": id, "case": "digest/4KiB", "input": map[string]string{"note": note}})
				if err != nil {
					t.Fatal(err)
				}
				got := ask(t, p, string(in))
				if want := hexSum(hexSum(note)); got.ID == nil || *got.ID != id || got.Digest != want || got.NS <= 0 || got.Error != "" {
					t.Errorf("got %+v, want id %d and %s", got, id, want)
				}
			}
			for _, in := range []string{`{"id":5,"case":"sign/1","input":{}}`, `{"id":5,"case":"digest/1","input":{}}`} {
				if got := ask(t, p, in); got.ID == nil || *got.ID != 5 || got.Error == "" || got.Digest != "" {
					t.Errorf("%s: got %+v, want an error", in, got)
				}
			}
			for _, in := range []string{`x`, `[1]`, `null`} {
				if got := ask(t, p, in); got.ID != nil || got.Error == "" {
					t.Errorf("%s: got %+v, want an error without an id", in, got)
				}
			}
		})
	}
}

type engineReply struct {
	ID            *int
	NS            int64
	Digest, Error string
}

func ask(t *testing.T, p *contender.Process, question string) engineReply {
	t.Helper()
	line, err := p.Ask(t.Context(), []byte(question))
	if err != nil {
		t.Fatal(err)
	}
	var r engineReply
	if err := json.Unmarshal(line, &r); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return r
}

func hexSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Check's words for contenders that lack something, by the points that do not conform.
func TestCheckSaysWhatDoesNotConform(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		act  string
		want []string // the beginning of each finding that is not ok
	}{
		{"good", nil},
		{"mute", []string{"gap     stats     its heap and allocations will be gaps: x: no answer to stats within 2s"}},
		{"crash", []string{`not ok  start     x: ended before it was ready (exit status 3); on stderr: "Error: no configuration"`}},
		{"termed", []string{
			"gap     stats     ", "not ok  stop      did not end when its stdin was closed; SIGTERM ended it after ",
		}},
		{"stubborn", []string{
			"gap     stats     ", "not ok  stop      did not end when its stdin was closed, nor by SIGTERM; SIGKILL ended it after ",
		}},
		{"leaks", []string{"not ok  leaves    x: left 1 running after it was stopped, killed: pid "}},
		{"fixed", []string{
			"gap     version   ", "gap     stats     ",
			"not ok  second    can't be started while another of it runs, so that it can't be its own control: x: its endpoint http://127.0.0.1:",
		}},
	} {
		t.Run(c.act, func(t *testing.T) {
			t.Parallel()
			act, port, more := c.act, "", ""
			switch act {
			case "fixed": // it asks for one port, and not for any free one
				act, port = "http", freePort(t)
				more = "endpoint: http://127.0.0.1:" + port + "\nprobe: {http: /up}\n"
			case "termed", "stubborn":
				more = "stop: 100ms\n"
			}
			m, err := contender.Load(write(t, t.TempDir(), "x.yaml", fmt.Sprintf(
				"name: x\nlanguage: go\ndriver: rest\ncommand: [%q, %q]\nenv: {%s: %s}\n%s",
				testBinary(t), port, actName, act, more)))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range contender.Check(t.Context(), m) {
				if !f.OK {
					got = append(got, f.String())
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("got %q, want %q", got[i], want)
				}
			}
		})
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestABuildIsMadeOncePerStateOfItsFolder(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	file := write(t, dir, "contender.yaml",
		"name: built\nlanguage: sh\ndriver: rest\ncommand: [sh, out/run.sh]\nbuild: [sh, make.sh]\nneeds: [sh]\n")
	write(t, dir, "make.sh", `echo building; mkdir out && cp src/run.sh out/`)
	write(t, dir, "src/run.sh", `echo '{"ready":"stdio:","version":"one"}'; read end`)
	write(t, dir, "node_modules/x", "left alone")
	load := func() contender.Manifest {
		m, err := contender.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		m.Cache = cache
		return m
	}
	notBuilt := func() {
		t.Helper()
		_, err := load().Spec()
		if want := "built: not built yet, or changed since; run: toll contender build " + file; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	build := func(m contender.Manifest, want string) {
		t.Helper()
		var log strings.Builder
		if err := contender.Build(t.Context(), m, &log); err != nil || !strings.HasPrefix(log.String(), want) {
			t.Errorf("%v, %q; want %q", err, log.String(), want)
		}
	}
	version := func() string {
		t.Helper()
		s, err := load().Spec()
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, s)
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		return p.Ready().Version
	}
	notBuilt()
	build(load(), "building\nbuilt: built, in "+cache)
	build(load(), "built: built already, in "+cache)
	if v := version(); v != "one" {
		t.Errorf("version %q", v)
	}
	write(t, dir, "src/run.sh", `echo '{"ready":"stdio:","version":"two"}'; read end`)
	notBuilt()
	build(load(), "building\n")
	if v := version(); v != "two" {
		t.Errorf("version %q", v)
	}
	write(t, dir, "make.sh", "exit 3")
	err := contender.Build(t.Context(), load(), io.Discard)
	if want := "built: build sh make.sh: exit status 3"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	notBuilt()
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	if hidden, _ := filepath.Glob(filepath.Join(cache, ".*")); err != nil || len(left) != 2 || len(hidden) != 0 {
		t.Errorf("in the cache: %v, %v", left, hidden)
	}
	if made, _ := filepath.Glob(filepath.Join(dir, "out")); len(made) != 0 {
		t.Error("the sources were built in")
	}
}

// Each folder is built by itself, so what several need stands in each; it must not drift apart.
func TestWhatPeersShareIsTheSame(t *testing.T) {
	t.Parallel()
	for pattern, least := range map[string]int{"../peers/go/*/contract.go": 6, "../peers/go/*/stretch.go": 2, "../peers/javascript/*/stretch.js": 2, "../peers/rust/*/src/stretch.rs": 2} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < least {
			t.Fatalf("%s: found %v, %v", pattern, files, err)
		}
		first, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files[1:] {
			if other, err := os.ReadFile(f); err != nil || !bytes.Equal(first, other) {
				t.Errorf("%s is not what %s is, %v", f, files[0], err)
			}
		}
	}
}

// Two manifests of one folder are two contenders and one build.
func TestOneFolderHoldsSeveralContenders(t *testing.T) {
	t.Parallel()
	dir, cache := t.TempDir(), t.TempDir()
	text := "name: %s\nlanguage: sh\ndriver: rest\ncommand: [sh, run.sh]\nbuild: [sh, make.sh]\nneeds: [sh]\n"
	write(t, dir, "contender.yaml", fmt.Sprintf(text, "one"))
	write(t, dir, "contender-two.yaml", fmt.Sprintf(text, "two"))
	write(t, dir, "contender-three.yaml", fmt.Sprintf(text, "one"))
	write(t, dir, "make.sh", "echo true >run.sh")
	found, errs := contender.Find([]string{dir, dir + "/."})
	if len(found) != 2 || found[0].Name != "one" || found[1].Name != "two" {
		t.Fatalf("found %v", found)
	}
	if len(errs) == 0 || !strings.Contains(errs[0].Error(), `contender-three.yaml: name "one" is taken by `) {
		t.Errorf("errors %v", errs)
	}
	for i, want := range []string{"one: built, in ", "two: built already, in "} {
		var log strings.Builder
		found[i].Cache = cache
		if err := contender.Build(t.Context(), found[i], &log); err != nil || !strings.HasPrefix(log.String(), want) {
			t.Errorf("%v, %q; want %q", err, log.String(), want)
		}
	}
}

func TestVersionCommand(t *testing.T) {
	t.Parallel()
	s := spec(t, "late")
	s.Probe, s.Endpoint = contender.Probe{Line: "listening"}, "stdio:"
	s.VersionCommand = []string{"sh", "-c", "echo ' v1.2 '; echo more"}
	p := start(t, s)
	if got := p.Ready().Version; got != "v1.2" {
		t.Errorf("version %q", got)
	}
	p.Stop(t.Context())
	s.VersionCommand = []string{"sh", "-c", "exit 4"}
	_, err := contender.Start(t.Context(), s)
	if want := "late: version_command sh -c exit 4: exit status 4"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	s.ReadyTimeout = 300 * time.Millisecond
	s.VersionCommand = []string{"sh", "-c", "exec sleep 60"}
	if _, err = contender.Start(t.Context(), s); err == nil || !strings.HasPrefix(err.Error(), "late: not ready after 300ms") {
		t.Errorf("got %v", err)
	}
	nothingLeft(t, s)
}
