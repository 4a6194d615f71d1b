package cli_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"toll/contender/hop"
	"toll/lab"
	"toll/lab/check"
	"toll/lab/record"
	"toll/lab/result"
)

// ourEnd is this side of a link to a namespace.
func ourEnd(l *hop.Link) string {
	ip := net.ParseIP(l.Addr).To4()
	ip[3]--
	return ip.String()
}

// inside runs a command in a link's namespace; nil is ours.
func inside(l *hop.Link, cmd *exec.Cmd) error {
	if l == nil {
		return cmd.Start()
	}
	out := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
		leave, err := l.Enter(cmd)
		if err == nil {
			err = errors.Join(cmd.Start(), leave())
		}
		out <- err
	}()
	return <-out
}

// routed makes a namespace from which every address of ours is reached.
func routed(t *testing.T) *hop.Link {
	t.Helper()
	l, err := hop.Open(t.Context(), hop.Hop{Kind: hop.Netns}, nil)
	if errors.Is(err, hop.ErrUnavailable) && os.Getenv("TOLL_RUN_ALL") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	out := make(chan error)
	go func() {
		runtime.LockOSThread()
		leave, err := l.Enter(nil)
		if err == nil {
			err = errors.Join(netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(ourEnd(l))}), leave())
		}
		out <- err
	}()
	if err := <-out; err != nil {
		t.Fatal(err)
	}
	return l
}

// program makes a command of this program.
func program(t *testing.T, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = t.TempDir()
	return cmd
}

// served starts a target at an address and returns its URL.
func served(t *testing.T, addr string) string {
	t.Helper()
	cmd := program(t, "serve", "ops", "--addr", addr)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var ready struct{ Ready string }
	if err = errors.Join(err, json.Unmarshal(line, &ready)); err != nil {
		t.Fatal(err)
	}
	return ready.Ready
}

// A coordinator is the process of one.
type coordinator struct {
	cmd  *exec.Cmd
	join chan string
	out  strings.Builder
	said strings.Builder
	done chan struct{}
}

func coordinate(t *testing.T, args ...string) *coordinator {
	t.Helper()
	c := &coordinator{cmd: program(t, append([]string{"run"}, args...)...), join: make(chan string, 1), done: make(chan struct{})}
	c.cmd.Stdout = &c.out
	text, err := c.cmd.StderrPipe()
	if err = errors.Join(err, c.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		lines := bufio.NewScanner(text)
		for lines.Scan() {
			fmt.Fprintln(&c.said, lines.Text())
			if m := regexp.MustCompile(`toll worker ((?:nats|tls)://\S+)`).FindStringSubmatch(lines.Text()); m != nil {
				c.join <- m[1]
			}
		}
	}()
	t.Cleanup(func() { c.cmd.Process.Kill() })
	return c
}

// joinLine waits for what it says that workers are started with.
func (c *coordinator) joinLine(t *testing.T) string {
	t.Helper()
	select {
	case at := <-c.join:
		return at
	case <-c.done:
		t.Fatalf("it ended: %s", c.said.String())
		return ""
	}
}

// wait waits for its end and returns the document that it left below a folder.
func (c *coordinator) wait(t *testing.T, dir string) *result.Document {
	t.Helper()
	<-c.done
	err := c.cmd.Wait()
	if err != nil {
		t.Fatalf("%v: %s", err, c.said.String())
	}
	found, err := filepath.Glob(filepath.Join(dir, "*-load", "result.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d documents; %s", len(found), c.said.String())
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	doc, broken, err := check.Document(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range broken {
		if v.Rule == 11 {
			t.Errorf("%s", v)
		}
	}
	return doc
}

func work(t *testing.T, l *hop.Link, join, dir, name string) *exec.Cmd {
	t.Helper()
	cmd := program(t, "worker", join, "--name", name, "--dir", dir)
	if err := inside(l, cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func loadFile(t *testing.T, url string, seconds int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "load.yaml")
	text := fmt.Sprintf("schema: toll.plan/v1\nbenchmark: load\ntargets: [{name: site, url: %q}]\nconcurrency: [16]\nduration: %ds\n", url+"/healthz", seconds)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// rawOf reads the raw latencies of all workers, from a slice on.
func rawOf(t *testing.T, dir string, from int) (h *record.Hist, files int) {
	t.Helper()
	h = new(record.Hist)
	found, err := filepath.Glob(filepath.Join(dir, "*.raw.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(z)
		lines.Scan() // the head
		for lines.Scan() {
			fields := strings.Split(lines.Text(), ",")
			slice, err := strconv.Atoi(fields[0])
			if err != nil {
				t.Fatal(err)
			}
			if slice < from || fields[1] == "" {
				continue
			}
			v, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			h.Record(v)
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	return h, len(found)
}

// Eight workers in eight namespaces: what is merged is, value by value, what they measured.
func TestEightWorkersInEightNamespaces(t *testing.T) {
	t.Parallel()
	const workers, seconds = 8, 3
	var links []*hop.Link
	for range workers {
		links = append(links, routed(t))
	}
	url := served(t, net.JoinHostPort(ourEnd(links[0]), "0"))
	out, dir := t.TempDir(), t.TempDir()
	c := coordinate(t, loadFile(t, url, seconds), "--workers", fmt.Sprint(workers), "--listen", ourEnd(links[0])+":0", "--raw", "--out", out)
	join := <-c.join
	for i, l := range links {
		work(t, l, join, dir, fmt.Sprint("host", i+1))
	}
	doc := c.wait(t, out)
	row := doc.Rows[0]
	f := row.Fleet
	if f == nil || f.Verdict != result.FleetComplete || f.WorkersComplete != workers || f.SlicesGot != workers*(1+seconds) || f.SlicesGot != f.SlicesExpected {
		t.Fatalf("%+v\n%s", f, c.said.String())
	}
	raw, files := rawOf(t, dir, 1) // slice 0 is the warm-up
	if files != workers {
		t.Errorf("%d raw logs of %d workers", files, workers)
	}
	h := row.Histogram
	merged, err := record.FromBuckets(h.Buckets, h.Count, h.Sum, h.Min, h.Max)
	if err != nil {
		t.Fatal(err)
	}
	if !merged.Equal(raw) || row.OK != raw.Count() || raw.Count() == 0 {
		t.Errorf("the row holds %d values, the raw logs %d, or others", merged.Count(), raw.Count())
	}
	if d := cmp.Diff(lab.Latency(raw), row.Latency); d != "" {
		t.Errorf("quantiles of the raw logs and of the row: %s", d)
	}
	t.Logf("%d values; control plane %.2f %% of the workers' CPU time", raw.Count(), 100**f.ControlCPU)
}

// The coordinator's process, and with it the server, is killed in the middle; another one goes on in its folder.
func TestAKilledCoordinatorIsResumed(t *testing.T) {
	t.Parallel()
	url := served(t, "127.0.0.1:0")
	out, dir := t.TempDir(), t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c := coordinate(t, loadFile(t, url, 8), "--workers", "2", "--listen", addr, "--out", out)
	join := <-c.join
	var all []*exec.Cmd
	for i := range 2 {
		all = append(all, work(t, nil, join, dir, fmt.Sprint("host", i+1)))
	}
	// As soon as a slice is in a worker's file, the load goes on.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
		found, _ := filepath.Glob(filepath.Join(dir, "*.slices"))
		size := int64(0)
		for _, name := range found {
			if s, err := os.Stat(name); err == nil {
				size += s.Size()
			}
		}
		if size > 0 {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("no slice was made: %s", c.said.String())
		}
	}
	c.cmd.Process.Signal(syscall.SIGKILL)
	<-c.done
	c.cmd.Wait()
	folder, err := filepath.Glob(filepath.Join(out, "fleet-*"))
	if err != nil || len(folder) != 1 {
		t.Fatalf("%v: %s", folder, c.said.String())
	}
	again := t.TempDir()
	doc := coordinate(t, "--resume", folder[0], "--out", again).wait(t, again)
	f := doc.Rows[0].Fleet
	if f.Verdict != result.FleetComplete || f.SlicesGot != f.SlicesExpected || f.SlicesGot != 18 {
		t.Errorf("%+v", f)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a worker ended with %v", err)
		}
	}
}
