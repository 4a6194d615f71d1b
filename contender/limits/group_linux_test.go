package limits

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// started starts cmd in g from a thread that is not the main one.
func started(g *Group, cmd *exec.Cmd, then func(error)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if unix.Gettid() == os.Getpid() {
			started(g, cmd, then)
			return
		}
		leave, err := g.Enter(cmd)
		if err == nil {
			err = errors.Join(cmd.Start(), leave())
		}
		then(err)
	}()
	<-done
}

// inGroup runs a shell script in a group of its own and returns what the group met.
func inGroup(t *testing.T, l Limits, script string) (*Group, Usage, error) {
	t.Helper()
	g, err := Open(l)
	if err != nil {
		if os.Getenv("TOLL_RUN_ALL") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	before, err := machine{proc: "/proc"}.paths("thread-self")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "read go; "+script)
	begin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var waitErr error
	started(g, cmd, func(err error) {
		if err != nil {
			t.Error(err)
			return
		}
		if err := g.InForce(cmd.Process.Pid); err != nil {
			t.Error(err)
		}
		begin.Close() // it is looked at before it may end
		waitErr = cmd.Wait()
		if here, err := (machine{proc: "/proc"}).paths("thread-self"); err != nil || cmp.Diff(before, here) != "" {
			t.Errorf("the thread is in another group than before: %v, %s", err, cmp.Diff(before, here))
		}
	})
	if after, err := (machine{proc: "/proc"}).paths("thread-self"); err != nil || cmp.Diff(before, after) != "" {
		t.Errorf("we are in another group than before: %v, %s", err, cmp.Diff(before, after))
	}
	u, err := g.Usage()
	if err != nil && g.Mechanism != Taskset {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	return g, u, waitErr
}

func TestABusyTreeIsThrottled(t *testing.T) {
	g, u, err := inGroup(t, Limits{CPUs: .2}, `i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done`)
	if err != nil {
		t.Fatal(err)
	}
	if g.Mechanism != Taskset && (u.ThrottledPeriods == 0 || u.Throttled == 0 || u.Periods < u.ThrottledPeriods) {
		t.Errorf("a loop on a fifth of a core met %+v", u)
	}
}

func TestATreeThatIsTooLargeIsKilled(t *testing.T) {
	_, u, err := inGroup(t, Limits{CPUs: 1, Memory: 32 << 20}, `head -c 100000000 /dev/zero | tail -c 90000000 | wc -c`)
	if u.OOMKills == 0 || u.MemoryPeak < 16<<20 || u.MemoryPeak > 33<<20 {
		t.Errorf("90 MB below a limit of 32 MiB met %+v, %v", u, err)
	}
}

func TestClosingEndsWhatIsLeft(t *testing.T) {
	g, _, err := inGroup(t, Limits{CPUs: 1}, `sleep 1000 >/dev/null 2>&1 & echo $! >&2`)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := g.rung.(*v1); ok {
		for _, dir := range v.dirs {
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", dir, err)
			}
		}
	}
}

func TestAffinityIsTheLastRung(t *testing.T) {
	m := machine{proc: t.TempDir(), lookup: func(string) (string, error) { return "", exec.ErrNotFound }}
	g, err := m.open(Limits{CPUs: 1})
	if err != nil || g.Mechanism != Taskset {
		t.Fatalf("%+v, %v", g, err)
	}
	cmd := exec.Command("sleep", "1000")
	started(g, cmd, func(err error) {
		if err != nil {
			t.Error(err)
			return
		}
		if err := g.InForce(cmd.Process.Pid); err != nil {
			t.Error(err)
		}
		if err := g.InForce(os.Getpid()); err == nil && runtime.NumCPU() > 1 {
			t.Error("we may use no more cores than the child")
		}
		cmd.Process.Kill()
		cmd.Wait()
	})
	if _, err := g.Usage(); err == nil {
		t.Error("an affinity counts nothing, and says that it does")
	}
	for want, l := range map[string]Limits{
		"taskset: holds no memory limit":           {CPUs: 1, Memory: 64 << 20},
		"taskset: holds whole cores only, not 0.5": {CPUs: .5},
		"taskset: we may use ":                     {CPUs: 900},
	} {
		_, err := m.open(l)
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %s", l, err, want)
		}
	}
}

// tree makes a machine whose control groups are files.
func tree(t *testing.T, mountinfo, own string) (machine, string) {
	t.Helper()
	root := t.TempDir()
	put := func(file, text string) {
		t.Helper()
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("proc/self/mountinfo", strings.ReplaceAll(mountinfo, "ROOT", root))
	put("proc/self/cgroup", own)
	put("fs/cgroup.controllers", "cpuset cpu io memory pids\n")
	put("fs/cgroup.subtree_control", "cpu\n")
	return machine{proc: filepath.Join(root, "proc"), lookup: exec.LookPath}, root
}

const unified = `25 1 0:5 / /proc rw - proc proc rw
30 25 0:26 / ROOT/fs rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
`

func TestVersion2IsWrittenAndReadBack(t *testing.T) {
	t.Parallel()
	m, root := tree(t, unified, "0::/\n")
	got, err := m.openV2(Limits{CPUs: 1.5, Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	g := got.(*v2)
	if g.dir != filepath.Join(root, "fs", g.name) {
		t.Errorf("the group is at %s", g.dir)
	}
	for file, want := range map[string]string{"cpu.max": "150000 100000", "memory.max": "1073741824", "memory.swap.max": "0"} {
		if data, err := os.ReadFile(filepath.Join(g.dir, file)); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", file, data, err)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(root, "fs/cgroup.subtree_control")); string(data) != "+memory" {
		t.Errorf("the parent was told %q", data)
	}
	if err := readBackV2(g.dir, g.limits); err != nil {
		t.Error(err)
	}
	if err := readBackV2(g.dir, Limits{CPUs: 1}); err == nil || err.Error() != `cpu.max is "150000 100000", 1.5 of a core` {
		t.Errorf("got %v", err)
	}
	cmd := exec.Command("true")
	after, err := g.before(cmd)
	if err != nil || !cmd.SysProcAttr.UseCgroupFD {
		t.Errorf("%+v, %v", cmd.SysProcAttr, err)
	}
	after()
	for file, text := range map[string]string{
		"cpu.stat":      "usage_usec 7\nnr_periods 10\nnr_throttled 4\nthrottled_usec 250000\n",
		"memory.events": "low 0\noom_kill 2\n", "memory.peak": "4096\n",
	} {
		os.WriteFile(filepath.Join(g.dir, file), []byte(text), 0o644)
	}
	u, err := g.usage()
	if d := cmp.Diff(Usage{Throttled: 250e6, Periods: 10, ThrottledPeriods: 4, MemoryPeak: 4096, OOMKills: 2}, u); d != "" || err != nil {
		t.Error(d, err)
	}
}

func TestTheLadderSaysWhyEachRungCantHold(t *testing.T) {
	t.Parallel()
	m, _ := tree(t, unified, "0::/\n")
	m.lookup = func(string) (string, error) { return "", exec.ErrNotFound }
	os.WriteFile(filepath.Join(m.proc, "../fs/cgroup.controllers"), []byte("hugetlb\n"), 0o644)
	_, err := m.open(Limits{CPUs: 1, Memory: 1 << 30})
	want := "limits can't be held on this machine (1 CPU, 1GiB): cgroup-v2: controller cpu is not there; " +
		"cgroup-v1: controller cpu is not mounted; systemd: systemd-run is not in PATH; taskset: holds no memory limit"
	if err == nil || err.Error() != want {
		t.Errorf(" got %v\nwant %s", err, want)
	}
}

func TestGroupsAreFoundBelowMounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ point, root, group, want string }{
		{"/sys/fs/cgroup/cpu", "/", "/a/b", "/sys/fs/cgroup/cpu/a/b"},
		{"/sys/fs/cgroup/cpu", "/docker/1", "/docker/1", "/sys/fs/cgroup/cpu"},
		{"/sys/fs/cgroup/cpu", "/docker/1", "/docker/1/x", "/sys/fs/cgroup/cpu/x"},
		{"/sys/fs/cgroup", "/", "/", "/sys/fs/cgroup"},
	} {
		if got := (mount{point: c.point, root: c.root}).dir(c.group); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestSystemdRunBecomesTheCommand(t *testing.T) {
	t.Parallel()
	g := &systemd{unit: "toll-1-1.scope", program: "/usr/bin/systemd-run", user: true, limits: Limits{CPUs: .5, Memory: 1 << 30}}
	cmd := exec.Command("/bin/echo", "hello")
	if _, err := g.before(cmd); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/usr/bin/systemd-run", "--scope", "--quiet", "--collect", "--unit=toll-1-1.scope", "--user", "--property=CPUQuota=50%",
		"--property=MemoryMax=1073741824", "--property=MemorySwapMax=0", "--", "/bin/echo", "hello",
	}
	if !slices.Equal(cmd.Args, want) || cmd.Path != want[0] {
		t.Errorf("%s %q", cmd.Path, cmd.Args)
	}
}
