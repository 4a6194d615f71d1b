package limits

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seenAt makes a machine with process 7 in group, whose files are given below the mounts.
func seenAt(t *testing.T, mountinfo, group string, files map[string]string) machine {
	t.Helper()
	m, root := tree(t, mountinfo, "0::/\n")
	files["proc/7/cgroup"] = group
	for file, text := range files {
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

const split = `31 25 0:27 / ROOT/cpu rw - cgroup cgroup rw,cpu,cpuacct
32 25 0:28 / ROOT/memory rw - cgroup cgroup rw,memory
33 25 0:26 / ROOT/fs rw - cgroup2 cgroup2 rw
`

const inBox = "5:memory:/box/1\n4:cpu,cpuacct:/box/1\n0::/box/1\n"

func TestTheLimitsOfSomebodyElsesGroupAreReadBack(t *testing.T) {
	t.Parallel()
	l := Limits{CPUs: 1.5, Memory: 64 << 20}
	v1 := func(quota, memory string) map[string]string {
		return map[string]string{"cpu/box/1/cpu.cfs_quota_us": quota, "cpu/box/1/cpu.cfs_period_us": "50000\n", "memory/box/1/memory.limit_in_bytes": memory}
	}
	v2 := func(dir, quota, memory string) map[string]string {
		return map[string]string{dir + "/cpu.max": quota, dir + "/memory.max": memory}
	}
	for name, x := range map[string]struct {
		mounts, group string
		files         map[string]string
		want          string
	}{
		"version 1":           {split, inBox, v1("75000\n", "67108864\n"), ""},
		"version 1, rounded":  {split, inBox, v1("74999\n", "67108864\n"), ""},
		"version 1, no quota": {split, inBox, v1("-1\n", "67108864\n"), "podman: 1.5 CPU, 64MiB: not in force: cpu.cfs_quota_us is -1 in 50000, want 1.5 of a core"},
		"version 1, no limit": {split, inBox, v1("75000\n", "9223372036854771712\n"), "podman: 1.5 CPU, 64MiB: not in force: memory.limit_in_bytes is 9223372036854771712, want 67108864: <nil>"},
		"version 1, no files": {split, inBox, map[string]string{}, "podman: 1.5 CPU, 64MiB: not in force: open ROOT/cpu/box/1/cpu.cfs_quota_us: no such file or directory"},
		"version 1, a word":   {split, inBox, v1("much\n", "67108864\n"), `podman: 1.5 CPU, 64MiB: not in force: cpu.cfs_quota_us holds "much"; expected a number`},
		"version 2":           {unified, "0::/box/1\n", v2("fs/box/1", "75000 50000\n", "67108864\n"), ""},
		"version 2, above":    {unified, "0::/box/1/container\n", v2("fs/box/1", "75000 50000\n", "67108864\n"), ""},
		"version 2, no quota": {unified, "0::/box/1\n", v2("fs/box/1", "max 100000\n", "67108864\n"), `podman: 1.5 CPU, 64MiB: not in force: cpu.max is "max 100000"`},
		"version 2, other":    {unified, "0::/box/1\n", v2("fs/box/1", "100000 100000\n", "67108864\n"), `podman: 1.5 CPU, 64MiB: not in force: cpu.max is "100000 100000", 1 of a core`},
		"version 2, no limit": {unified, "0::/box/1\n", v2("fs/box/1", "75000 50000\n", "max\n"), "podman: 1.5 CPU, 64MiB: not in force: memory.max is 0, want 67108864: <nil>"},
		"none is mounted":     {"25 1 0:5 / /proc rw - proc proc rw\n", inBox, map[string]string{}, "limits can't be held on this machine (1.5 CPU, 64MiB): podman: no control groups are mounted here"},
	} {
		m := seenAt(t, x.mounts, x.group, x.files)
		g, err := m.seen("podman", 7, l)
		if err == nil {
			err = g.InForce(7)
		}
		got := ""
		if err != nil {
			got = strings.ReplaceAll(err.Error(), filepath.Dir(m.proc), "ROOT")
		}
		if got != x.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, x.want)
		}
	}
}

func TestAGroupOfSomebodyElsesIsOnlyLookedAt(t *testing.T) {
	t.Parallel()
	m := seenAt(t, split, inBox, map[string]string{
		"cpu/box/1/cpu.cfs_quota_us": "100000\n", "cpu/box/1/cpu.cfs_period_us": "100000\n", "memory/box/1/memory.limit_in_bytes": "67108864\n",
		"cpu/box/1/cpu.stat":                     "nr_periods 10\nnr_throttled 4\nthrottled_time 250000000\n",
		"memory/box/1/memory.max_usage_in_bytes": "4096\n",
		"memory/box/1/memory.oom_control":        "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
		"proc/8/cgroup":                          "5:memory:/\n4:cpu,cpuacct:/\n0::/\n",
	})
	g, err := m.seen("podman", 7, Limits{CPUs: 1, Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	u, err := g.Usage()
	if d := cmp.Diff(Usage{Throttled: 250e6, Periods: 10, ThrottledPeriods: 4, MemoryPeak: 4096, OOMKills: 2}, u); d != "" || err != nil {
		t.Error(d, err)
	}
	if err := g.InForce(8); err == nil || !strings.Contains(err.Error(), "pid 8 is in the group /, and pid 7 in /box/1") {
		t.Errorf("a process outside: %v", err)
	}
	if _, err := g.rung.before(exec.Command("true")); err == nil {
		t.Error("a process could be put into it")
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(m.proc, "../cpu/box/1/cpu.stat")); err != nil {
		t.Errorf("it was removed: %v", err)
	}
	if _, err := m.seen("podman", 9, Limits{CPUs: 1}); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "the control groups of pid 9") {
		t.Errorf("a process that is not there: %v", err)
	}
}
