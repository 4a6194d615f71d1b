package env

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestTheSmallestLimitOnTheWayUpCounts(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t, "cgroup") {
		f.check(t, readGroup(f.root))
	}
}

// readGroup writes what is known of the groups as the fixtures do.
func readGroup(root fs.FS) string {
	r := reader{root: root, sys: someSystem()}
	r.cgroup()
	c := r.env.Cgroup
	var b strings.Builder
	fmt.Fprintf(&b, "version %s\ncpus %s\nmemory_mb %s\n", c.Version, orNull(c.CPUs), orNull(c.MemoryMB))
	for _, s := range r.env.NotVisible {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

func orNull(v *float64) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(*v)
}

func TestANamespaceHidesTheLimitsAboveIt(t *testing.T) {
	t.Parallel()
	for link, hidden := range map[string]bool{initialNamespace: false, "cgroup:[4026532800]": true} {
		got := readGroup(fstest.MapFS{
			"proc/self/ns/cgroup":   {Data: []byte(link), Mode: fs.ModeSymlink},
			"proc/self/mountinfo":   {Data: []byte("1 2 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")},
			"proc/self/cgroup":      {Data: []byte("0::/\n")},
			"sys/fs/cgroup/cpu.max": {Data: []byte("100000 100000\n")},
		})
		if strings.Contains(got, "can't be seen") != hidden || !strings.Contains(got, "cpus 1\n") {
			t.Errorf("namespace %s:\n%s", link, got)
		}
	}
}

func TestAFileThatMayNotBeReadIsNotNoLimit(t *testing.T) {
	t.Parallel()
	got := readGroup(forbidden{fstest.MapFS{
		"proc/self/mountinfo":      {Data: []byte("1 2 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")},
		"proc/self/cgroup":         {Data: []byte("0::/\n")},
		"sys/fs/cgroup/memory.max": {Data: []byte("max\n")},
		"sys/fs/cgroup/cpu.max":    {Data: []byte("100000 100000\n")},
	}, "sys/fs/cgroup/cpu.max"})
	want := "version v2\ncpus null\nmemory_mb null\ncgroup.cpus: a group's limit can't be read or is not understood\ncgroup.memory_mb: no limit is set\n"
	if got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// forbidden is a file system with one file that may not be read.
type forbidden struct {
	fs.FS
	name string
}

func (f forbidden) Open(name string) (fs.File, error) {
	if name == f.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return f.FS.Open(name)
}

// Whatever the kernel's files hold, the walk ends and stays in the tree.
func FuzzGroups(f *testing.F) {
	f.Add("30 25 0:26 /docker/a /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu", "4:cpu:/docker/a/b")
	f.Add(`1 2 0:3 / /a\040b rw shared:1 - cgroup2 x rw`, "0::/../c")
	f.Add("1 2 0:3 / / rw - cgroup2 x rw", "0::/")
	f.Fuzz(func(t *testing.T, mounts, groups string) {
		all := parseMounts(mounts)
		all.place(groups)
		for _, h := range all {
			dirs, _ := h.dirs()
			for i, d := range dirs {
				if strings.HasPrefix(d, "/") || d == ".." || strings.HasPrefix(d, "../") || i > 0 && len(d) >= len(dirs[i-1]) {
					t.Errorf("%+v: %q", h, dirs)
				}
			}
		}
	})
}
