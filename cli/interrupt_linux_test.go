package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// behindNetwork is a run behind a network namespace with a delay, under limits, that takes some three seconds.
const behindNetwork = `schema: toll.plan/v1
benchmark: gateway
cases: [echo]
phases: [plain]
contenders: [toll, nethttp, floor, "null"]
baseline: nethttp
concurrency: [4]
rounds: 4
blocks: 8
calls: 40
warmup: 8
hop: netns:5ms
limits: {cpus: 0.5, memory: 256MiB}
`

// longestMoment is after how long at most a run is interrupted: about when it would end by itself.
const longestMoment = 3500 * time.Millisecond

// Ctrl-C at any moment leaves nothing: no process, no device, no namespace, no control group, no file. TOLL_INTERRUPTS says how
// many moments, TOLL_SEED which.
func TestCtrlCLeavesNothingAtAnyMoment(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network namespace and limits need root; nothing was tested")
	}
	moments, seed := number(t, "TOLL_INTERRUPTS", 5), number(t, "TOLL_SEED", rand.IntN(1e6))
	t.Logf("%d moments, TOLL_SEED=%d", moments, seed)
	rnd := rand.New(rand.NewPCG(uint64(seed), 0))
	for i := range moments {
		at := time.Duration(rnd.Int64N(int64(longestMoment)))
		group := rnd.IntN(2) == 0
		if !interruptedAt(t, at, group) {
			return
		}
		if t.Failed() {
			t.Fatalf("moment %d of TOLL_SEED=%d: after %v, to the group: %v", i+1, seed, at, group)
		}
	}
}

func number(t *testing.T, name string, none int) int {
	text := os.Getenv(name)
	if text == "" {
		return none
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// interruptedAt runs toll in a network namespace of its own, so that its devices are told from others', interrupts it after a
// time and looks at what is left. It returns false where this machine can't make such a run.
func interruptedAt(t *testing.T, at time.Duration, group bool) bool {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(behindNetwork), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mark := "TOLL_TEST_MARK=" + filepath.Base(filepath.Dir(dir)) + filepath.Base(dir) + strconv.FormatInt(time.Now().UnixNano(), 36)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "run", "plan.yaml", "--seed", "1", "--out", "out")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asToll+"=1", "TMPDIR="+filepath.Join(dir, "tmp"), mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = 10 * time.Second
	ns, err := startInNamespace(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	timer := time.NewTimer(at)
	defer timer.Stop()
	select {
	case err = <-over:
	case <-timer.C:
		pid := cmd.Process.Pid
		if group {
			pid = -pid
		}
		syscall.Kill(pid, syscall.SIGINT)
		err = <-over
	}
	var status *exec.ExitError
	if errors.As(err, &status) && strings.Contains(said.String(), "no such hop on this machine") {
		if os.Getenv("TOLL_RUN_ALL") != "" {
			t.Fatalf("%s", said.String())
		}
		t.Skipf("this machine makes no such run; nothing was tested: %s", said.String())
	}
	if ctx.Err() != nil {
		t.Errorf("it did not end within 5 minutes")
	}
	t.Logf("after %v, to the group: %v: %v; %s", at, group, err, lastLine(said.String()))
	if code := cmd.ProcessState.ExitCode(); err != nil && code != -1 && !strings.Contains(said.String(), "interrupted") && !strings.Contains(said.String(), "context canceled") {
		t.Errorf("it failed by itself: %v\n%s", err, said.String())
	}
	left := leftBehind(t, ns, cmd.Process.Pid, mark, filepath.Join(dir, "tmp"))
	for _, l := range left {
		t.Errorf("interrupted after %v: left behind: %s", at, l)
	}
	if left != nil {
		t.Logf("it said:\n%s", said.String())
	}
	return true
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// startInNamespace starts a command in a network namespace of its own, with its loopback up.
func startInNamespace(cmd *exec.Cmd) (netns.NsHandle, error) {
	type result struct {
		ns  netns.NsHandle
		err error
	}
	out := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		ns, err := netns.New()
		if err == nil {
			var lo netlink.Link
			if lo, err = netlink.LinkByName("lo"); err == nil {
				err = netlink.LinkSetUp(lo)
			}
		}
		if err == nil {
			err = cmd.Start()
		}
		out <- result{ns, err}
	}()
	r := <-out
	return r.ns, r.err
}

// leftBehind lists what is there that was not before: processes that carry the mark, devices beside loopback, control groups named
// after the process, files in its folder for such.
func leftBehind(t *testing.T, ns netns.NsHandle, pid int, mark, tmp string) []string {
	t.Helper()
	var out []string
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range environs {
		if text, err := os.ReadFile(f); err == nil && bytes.Contains(text, []byte(mark)) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
			out = append(out, fmt.Sprintf("process %s %q", filepath.Base(filepath.Dir(f)), bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	links, err := h.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Attrs().Name != "lo" {
			out = append(out, "device "+l.Attrs().Name)
		}
	}
	for _, depth := range []string{"*", "*/*", "*/*/*", "*/*/*/*"} {
		groups, _ := filepath.Glob("/sys/fs/cgroup/" + depth)
		for _, g := range groups {
			if strings.HasPrefix(filepath.Base(g), fmt.Sprintf("toll-%d-", pid)) {
				out = append(out, "control group "+g)
			}
		}
	}
	files, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		out = append(out, "file "+f.Name())
	}
	return out
}
