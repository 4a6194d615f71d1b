package limits

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// v1 holds a tree by control groups of version 1: one group in each hierarchy that is needed.
type v1 struct {
	m      machine
	limits Limits
	name   string
	home   map[string]string // by controller, the group that we are in ourselves
	dirs   map[string]string // by controller, the tree's group
}

func (m machine) openV1(l Limits) (rung, error) {
	mounts, err := m.mounts()
	if err != nil {
		return nil, err
	}
	own, err := m.paths("self")
	if err != nil {
		return nil, err
	}
	g := &v1{m: m, limits: l, name: groupName(), home: make(map[string]string), dirs: make(map[string]string)}
	for _, c := range l.controllers() {
		at := slices.IndexFunc(mounts, func(mt mount) bool { return slices.Contains(mt.controllers, c) })
		if at < 0 {
			return nil, errors.Join(fmt.Errorf("controller %s is not mounted", c), g.close())
		}
		g.home[c] = mounts[at].dir(own[c])
		g.dirs[c] = filepath.Join(g.home[c], g.name)
		if err := os.Mkdir(g.dirs[c], 0o755); err != nil && !errors.Is(err, fs.ErrExist) { // two controllers may share a hierarchy
			return nil, errors.Join(err, g.close())
		}
	}
	if err := g.write(); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// controllers are those that the limits need.
func (l Limits) controllers() []string {
	var out []string
	if l.CPUs > 0 {
		out = append(out, "cpu")
	}
	if l.Memory > 0 {
		out = append(out, "memory")
	}
	return out
}

func (g *v1) write() error {
	if g.limits.CPUs > 0 {
		if err := write(g.dirs["cpu"], "cpu.cfs_period_us", strconv.FormatInt(period.Microseconds(), 10)); err != nil {
			return err
		}
		if err := write(g.dirs["cpu"], "cpu.cfs_quota_us", strconv.FormatInt(quota(g.limits.CPUs), 10)); err != nil {
			return err
		}
	}
	if g.limits.Memory > 0 {
		bytes := strconv.FormatInt(g.limits.Memory, 10)
		if err := write(g.dirs["memory"], "memory.limit_in_bytes", bytes); err != nil {
			return err
		}
		// Without it the tree would swap where it should end. A kernel without swap accounting has no such file.
		if err := write(g.dirs["memory"], "memory.memsw.limit_in_bytes", bytes); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// before moves the calling thread into the group: what it forks is born there, so that no instruction of it runs outside.
func (g *v1) before(*exec.Cmd) (func() error, error) {
	tid := strconv.Itoa(unix.Gettid())
	back := func() error {
		var errs []error
		for c := range g.dirs {
			errs = append(errs, write(g.home[c], "tasks", tid))
		}
		return errors.Join(errs...)
	}
	for _, dir := range g.dirs {
		if err := write(dir, "tasks", tid); err != nil {
			return nil, errors.Join(err, back())
		}
	}
	return back, nil
}

func (g *v1) inForce(pid int) error {
	in, err := g.m.paths(strconv.Itoa(pid))
	if err != nil {
		return err
	}
	for c := range g.dirs {
		if filepath.Base(in[c]) != g.name {
			return fmt.Errorf("pid %d is in the %s group %s", pid, c, in[c])
		}
	}
	return g.readBack()
}

// readBack compares the groups' files with the limits that they are to hold.
func (g *v1) readBack() error {
	if g.limits.CPUs > 0 {
		got, err := readInt(g.dirs["cpu"], "cpu.cfs_quota_us")
		if err != nil {
			return err
		}
		per, err := readInt(g.dirs["cpu"], "cpu.cfs_period_us")
		if err != nil {
			return err
		}
		if !quotaHolds(float64(got), float64(per), g.limits.CPUs) {
			return fmt.Errorf("cpu.cfs_quota_us is %d in %d, want %v of a core", got, per, g.limits.CPUs)
		}
	}
	if g.limits.Memory > 0 { // which the kernel rounds to whole pages
		got, err := readInt(g.dirs["memory"], "memory.limit_in_bytes")
		if err != nil || got > g.limits.Memory || got < g.limits.Memory-int64(os.Getpagesize()) {
			return fmt.Errorf("memory.limit_in_bytes is %d, want %d: %v", got, g.limits.Memory, err)
		}
	}
	return nil
}

func (g *v1) usage() (u Usage, err error) {
	if dir := g.dirs["cpu"]; dir != "" {
		stat, err := readKeyed(dir, "cpu.stat")
		if err != nil {
			return u, err
		}
		u.Throttled = time.Duration(stat["throttled_time"])
		u.Periods, u.ThrottledPeriods = stat["nr_periods"], stat["nr_throttled"]
	}
	if dir := g.dirs["memory"]; dir != "" {
		if u.MemoryPeak, err = readInt(dir, "memory.max_usage_in_bytes"); err != nil {
			return u, err
		}
		control, err := readKeyed(dir, "memory.oom_control")
		if err != nil {
			return u, err
		}
		u.OOMKills = control["oom_kill"]
	}
	return u, nil
}

func (g *v1) close() error {
	var errs []error
	for _, dir := range g.dirs {
		errs = append(errs, remove(dir))
	}
	return errors.Join(errs...)
}
