package contender_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"toll/contender"

	"github.com/google/go-cmp/cmp"
)

func start(t *testing.T, s contender.Spec) *contender.Process {
	t.Helper()
	p, err := contender.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(context.Background()) })
	return p
}

func TestReadySaysWhatTheFirstLineSaid(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "good"))
	got := p.Ready()
	if !strings.HasPrefix(got.Addr, "tcp://127.0.0.1:") {
		t.Errorf("address %q", got.Addr)
	}
	got.Addr = ""
	want := contender.Ready{Version: "1.2", Name: "act", Language: "go", SDK: "none", GOMAXPROCS: runtime.GOMAXPROCS(0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("second stop: %v", err)
	}
	if err := p.Err(); err != nil {
		t.Errorf("a process that was stopped did not crash: %v", err)
	}
	if _, err := p.Usage(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("usage after the end: %v", err)
	}
	if _, err := p.Stats(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("stats after the end: %v", err)
	}
}

func TestWhatDoesNotComeToBeReadySaysWhy(t *testing.T) {
	t.Parallel()
	const want = `the ready line, {"ready":ADDR,"version":…}`
	for act, text := range map[string]string{
		"crash":    `crash: ended before it was ready (exit status 3); on stderr: "Error: no configuration"`,
		"crashing": `crashing: ended before it was ready (exit status 4); on stderr: "no luck"`,
		"silent":   `silent: not ready after 700ms; waited for ` + want + ` on stdout`,
		"rubbish":  `rubbish: its first line on stdout is "Listening on port 80"; expected ` + want + `, or a probe in the manifest`,
		"empty":    `empty: its first line on stdout is "{}"; expected ` + want + `, or a probe in the manifest`,
		"huge": `huge: its first line on stdout has more than 2097152 bytes and begins "` + strings.Repeat("x", 200) +
			`"…; expected ` + want,
		"zero": `zero: its ready line: address "http://127.0.0.1:0": ` +
			`expected tcp://host:port, tls://host:port, http://host:port, https://host:port, unix:/path or stdio:`,
		"closed": `closed: closed its stdout; expected ` + want + ` on stdout`,
	} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			s := spec(t, act)
			if act == "silent" {
				s.ReadyTimeout = 700 * time.Millisecond
			}
			_, err := contender.Start(t.Context(), s)
			if !errors.Is(err, contender.ErrNotReady) || errors.Is(err, contender.ErrMissing) {
				t.Fatalf("got %v, want an ErrNotReady", err)
			}
			if err.Error() != text {
				t.Errorf("got  %s\nwant %s", err, text)
			}
			crash, crashed := errors.AsType[*contender.CrashError](err)
			if want := strings.HasPrefix(act, "crash"); crashed != want {
				t.Errorf("crashed: %v", crashed)
			}
			if act == "crash" && !strings.Contains(crash.Stderr, "Node.js v99") {
				t.Errorf("stderr %q", crash.Stderr)
			}
			nothingLeft(t, s)
		})
	}
}

func TestWhatCanNotBeRunSaysWhy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string, mode fs.FileMode) string {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return "./" + name
	}
	for _, c := range []struct {
		command string
		text    string
		missing bool
	}{
		{"no-such-program-of-toll", `x: no-such-program-of-toll is not in PATH`, true},
		{"./absent", `x: there is no program ` + dir + `/absent`, false},
		{file("plain", "text", 0o644), `x: ` + dir + `/plain can't be run: permission denied`, false},
		{file("text", "text", 0o755), `x: ` + dir + `/text can't be run: exec format error`, false},
		{"", `x: no command`, false},
	} {
		_, err := contender.Start(t.Context(), contender.Spec{Name: "x", Command: []string{c.command}, Dir: dir})
		if err == nil || err.Error() != c.text || errors.Is(err, contender.ErrMissing) != c.missing || errors.Is(err, contender.ErrNotReady) {
			t.Errorf("%q: got %v\nwant %s", c.command, err, c.text)
		}
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := spec(t, "silent")
	s.ReadyTimeout = time.Minute
	ctx, cancel := context.WithCancelCause(t.Context())
	out := &watched{seen: make(chan struct{})}
	s.Stderr = out
	s.Env = append(s.Env, actName+"=late") // says something on stderr, never the ready line
	go func() {
		<-out.seen
		cancel(errors.New("the user left"))
	}()
	_, err := contender.Start(ctx, s)
	if want := "silent: given up before it was ready: the user left"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	nothingLeft(t, s)
}

// watched closes seen when something is written.
type watched struct {
	seen chan struct{}
	once sync.Once
}

func (w *watched) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.seen) })
	return len(p), nil
}

func TestStatsAreWhatTheProcessSays(t *testing.T) {
	t.Parallel()
	want := contender.Stats{Allocs: 11, AllocBytes: 1100, AllocsKnown: true, Heap: 100, HeapKnown: true, GC: 1, GOMAXPROCS: 2}
	for _, act := range []string{"good", "chatty", "flood"} {
		p := start(t, spec(t, act))
		for range 3 {
			got, err := p.Stats(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", act, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", act, diff)
			}
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Errorf("%s: %v", act, err)
		}
	}
}

func TestNoStatsIsNoCrash(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "mute"))
	for range 2 { // the second one without a wait
		_, err := p.Stats(t.Context())
		if !errors.Is(err, contender.ErrNoStats) || err.Error() != "mute: no answer to stats within 2s" {
			t.Errorf("got %v", err)
		}
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLateStatsAreNotTakenForAnotherAnswer(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "slow"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Stats(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	got, err := p.Ask(t.Context(), []byte("1"))
	if err != nil || string(got) != `{"id":7,"heap":1,"asked":1}` {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := p.Stats(t.Context()); !errors.Is(err, contender.ErrNoStats) {
		t.Errorf("got %v", err)
	}
}

func TestAsksTakeTurns(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "good"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				got, err := p.Ask(t.Context(), fmt.Append(nil, i))
				if want := fmt.Sprintf(`{"id":7,"heap":1,"asked":%d}`, i); err != nil || string(got) != want {
					t.Errorf("got %s, %v; want %s", got, err, want)
					return
				}
				if _, err := p.Stats(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestAnUnansweredAskEndsTheTalk(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "mute"))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Ask(ctx, []byte(`{"id":1}`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	_, err := p.Ask(t.Context(), []byte(`{"id":2}`))
	if want := "mute: can't be asked any more; earlier, mute: no answer: context deadline exceeded"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAChildThatDoesNotReadHoldsNobody(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "deaf"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := p.Ask(ctx, make([]byte, 1<<20))
	if want := "deaf: it does not read its stdin: context deadline exceeded"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := p.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "long"))
	_, err := p.Ask(t.Context(), []byte("1"))
	if err == nil || !strings.HasPrefix(err.Error(), `long: an answer of more than 2097152 bytes that begins "{`) {
		t.Errorf("got %v", err)
	}
}

func TestADeathIsNoticed(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "dies"))
	if _, err := p.Stats(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.Err() != nil {
		t.Error(p.Err())
	}
	const want = `dies: ended by itself (exit status 7); on stderr: "panic: the end"`
	_, err := p.Ask(t.Context(), []byte("1"))
	if !errors.Is(err, io.EOF) || err.Error() != want {
		t.Errorf("ask: got %v", err)
	}
	<-p.Done()
	for range 2 {
		err = p.Stop(t.Context())
		if crash, ok := errors.AsType[*contender.CrashError](err); !ok || crash.Status != "exit status 7" || err.Error() != want {
			t.Errorf("stop: got %v", err)
		}
	}
	if err := p.Err(); err == nil || err.Error() != want {
		t.Errorf("err: got %v", err)
	}
}

func TestAnEndRightAfterTheReadyLineIsACrash(t *testing.T) {
	t.Parallel()
	p := start(t, spec(t, "brief"))
	<-p.Done()
	err := p.Stop(t.Context())
	if want := "brief: ended by itself (exit status 0)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestStopEndsTheUnwilling(t *testing.T) {
	t.Parallel()
	for _, act := range []string{"stubborn", "termed"} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			s := spec(t, act)
			s.StopTimeout = 50 * time.Millisecond
			p := start(t, s)
			if err := p.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			select {
			case <-p.Done():
			default:
				t.Error("it runs still")
			}
			nothingLeft(t, s)
		})
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	http := func(p contender.Probe) contender.Spec {
		s := spec(t, "http", "{port}")
		s.Probe, s.Endpoint, s.Version = p, "http://127.0.0.1:{port}/v1/note", "7"
		return s
	}
	line := spec(t, "late")
	line.Probe, line.Endpoint = contender.Probe{Line: "listening on"}, "unix:/run/x.sock"
	for name, s := range map[string]contender.Spec{
		"http": http(contender.Probe{HTTP: "/up"}), "tcp": http(contender.Probe{TCP: true}), "line": line,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, s)
			r := p.Ready()
			if name == "line" {
				if r != (contender.Ready{Addr: "unix:/run/x.sock"}) {
					t.Errorf("%+v", r)
				}
			} else if !regexp.MustCompile(`^http://127\.0\.0\.1:\d+$`).MatchString(r.Addr) || r.Path != "/v1/note" || r.Version != "7" {
				t.Errorf("%+v", r)
			}
			if _, err := p.Stats(t.Context()); !errors.Is(err, contender.ErrNoStats) {
				t.Errorf("stats: %v", err)
			}
			if err := p.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			nothingLeft(t, s)
		})
	}
}

func TestAProbeDoesNotTakeAStrangerForTheContender(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s := spec(t, "http", port)
	s.Probe, s.Endpoint = contender.Probe{TCP: true}, "http://127.0.0.1:"+port
	_, err = contender.Start(t.Context(), s)
	want := "http: its endpoint http://127.0.0.1:" + port + " is in use by another process; stop that one, or write {port} for a free port"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAnAddressInUseIsSaidInTheContendersWords(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	s := spec(t, "http", port)
	s.Probe, s.Endpoint = contender.Probe{HTTP: "/up"}, "http://127.0.0.1:{port}"
	_, err = contender.Start(t.Context(), s)
	if !errors.Is(err, contender.ErrNotReady) || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
}

func TestAProbeThatIsNeverAnswered(t *testing.T) {
	t.Parallel()
	s := spec(t, "silent")
	s.Probe, s.Endpoint, s.ReadyTimeout = contender.Probe{HTTP: "/up"}, "http://127.0.0.1:{port}", 300*time.Millisecond
	_, err := contender.Start(t.Context(), s)
	if err == nil || !regexp.MustCompile(`^silent: not ready after 300ms; waited for http://127.0.0.1:\d+/up to answer 2xx$`).MatchString(err.Error()) {
		t.Errorf("got %v", err)
	}
}

func TestSelfIsThisBinary(t *testing.T) {
	t.Parallel()
	s, err := contender.Self("serve", "ops")
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "toll serve ops" || s.Command[0] != testBinary(t) || len(s.Digest()) != 64 {
		t.Errorf("%+v", s)
	}
	other, err := contender.Self("serve", "echo")
	if err != nil {
		t.Fatal(err)
	}
	if s.Digest() == other.Digest() {
		t.Error("two commands have one digest")
	}
}

// Everything that was opened or started for a contender is closed or ended by Stop, and by a Start that fails.
func TestNothingOfOursIsLeft(t *testing.T) {
	files, stacks := openFiles(t), ours()
	for _, act := range []string{"good", "crash", "rubbish", "mute", "stubborn", "dies", "flood", "http"} {
		s := spec(t, act)
		s.StopTimeout = 50 * time.Millisecond
		if act == "http" {
			s.Command = append(s.Command, "{port}")
			s.Probe, s.Endpoint = contender.Probe{HTTP: "/up"}, "http://127.0.0.1:{port}"
		}
		p, err := contender.Start(t.Context(), s)
		if err == nil {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			p.Ask(ctx, []byte("1"))
			cancel()
			p.Stop(t.Context())
		}
		nothingLeft(t, s)
	}
	eventually(t, "goroutines", func() error {
		if now := ours(); now > stacks {
			return fmt.Errorf("%d goroutines of contender", now-stacks)
		}
		return nil
	})
	eventually(t, "files", func() error {
		if now := openFiles(t); now > files {
			return fmt.Errorf("%d open files, %d before", now, files)
		}
		return nil
	})
}

// ours counts the goroutines that run code of contender.
func ours() int {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	n := 0
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "toll/contender.") {
			n++
		}
	}
	return n
}

func openFiles(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// eventually polls until check is content.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// nothingLeft fails the test if a process that was started for s lives.
func nothingLeft(t *testing.T, s contender.Spec) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	var sign string
	for _, e := range s.Env {
		if strings.HasPrefix(e, "CONTENDER_TEST=") {
			sign = e
		}
	}
	if left := withEnv(sign); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
}

// withEnv returns the processes that have sign in their environment; those that have ended have none.
func withEnv(sign string) []string {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		panic(err)
	}
	var out []string
	for _, f := range files {
		if env, err := os.ReadFile(f); err == nil && sign != "" && strings.Contains(string(env), sign) {
			out = append(out, filepath.Base(filepath.Dir(f)))
		}
	}
	return out
}

func TestAProbeThatAsks(t *testing.T) {
	t.Parallel()
	s := spec(t, "mcp")
	s.Probe, s.Endpoint = contender.Probe{Ask: `{"jsonrpc":"2.0","id":0,"method":"ping"}`}, "stdio:"
	p := start(t, s)
	if got := ask(t, p, `{"id":0,"method":"ping"}`); got.ID == nil || *got.ID != 0 {
		t.Errorf("got %+v", got)
	}
	if _, err := p.Stats(t.Context()); !errors.Is(err, contender.ErrNoStats) {
		t.Errorf("stats: %v", err)
	}
	s = spec(t, "late")
	s.Probe, s.Endpoint, s.ReadyTimeout = contender.Probe{Ask: "hello"}, "stdio:", 300*time.Millisecond
	_, err := contender.Start(t.Context(), s)
	if want := `a line of JSON that answers "hello"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	nothingLeft(t, s)
}
