package limits

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// v2 holds a tree by one control group of version 2.
type v2 struct {
	m      machine
	limits Limits
	name   string
	dir    string
}

func (m machine) openV2(l Limits) (rung, error) {
	mounts, err := m.mounts()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(mounts, func(mt mount) bool { return mt.v2 })
	if at < 0 {
		return nil, errors.New("not mounted")
	}
	own, err := m.paths("self")
	if err != nil {
		return nil, err
	}
	var why []error
	// A group that has processes can't hand its controllers down, so ours is made beside our own, or at the top.
	for _, parent := range slices.Compact([]string{path.Dir(path.Join("/", own[""])), "/"}) {
		g := &v2{m: m, limits: l, name: groupName()}
		err := g.make(mounts[at].dir(parent))
		if err == nil {
			return g, nil
		}
		why = append(why, errors.Join(err, g.close()))
	}
	return nil, errors.Join(why...)
}

// make makes the group below parent, whose controllers it hands down if nobody has yet.
func (g *v2) make(parent string) error {
	has, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return err
	}
	down, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	for _, c := range g.limits.controllers() {
		if !slices.Contains(strings.Fields(string(has)), c) {
			return fmt.Errorf("controller %s is not there", c)
		}
		if !slices.Contains(strings.Fields(string(down)), c) {
			if err := write(parent, "cgroup.subtree_control", "+"+c); err != nil {
				return err
			}
		}
	}
	g.dir = filepath.Join(parent, g.name)
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return err
	}
	if g.limits.CPUs > 0 {
		if err := write(g.dir, "cpu.max", g.cpuMax()); err != nil {
			return err
		}
	}
	if g.limits.Memory > 0 {
		if err := write(g.dir, "memory.max", strconv.FormatInt(g.limits.Memory, 10)); err != nil {
			return err
		}
		// Without it the tree would swap where it should end. A kernel without swap has no such file.
		if err := write(g.dir, "memory.swap.max", "0"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (g *v2) cpuMax() string {
	return fmt.Sprintf("%d %d", quota(g.limits.CPUs), period.Microseconds())
}

// before has the kernel start the child in the group.
func (g *v2) before(cmd *exec.Cmd) (func() error, error) {
	f, err := os.Open(g.dir)
	if err != nil {
		return nil, err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(f.Fd())
	return f.Close, nil
}

func (g *v2) inForce(pid int) error {
	in, err := g.m.paths(strconv.Itoa(pid))
	if err != nil {
		return err
	}
	if path.Base(in[""]) != g.name {
		return fmt.Errorf("pid %d is in the group %s", pid, in[""])
	}
	return g.readBack()
}

func (g *v2) readBack() error { return readBackV2(g.dir, g.limits) }

// readBackV2 compares a group's files with the limits that it is to hold.
func readBackV2(dir string, l Limits) error {
	if l.CPUs > 0 {
		data, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
		if err != nil {
			return err
		}
		var most, per float64
		if _, err := fmt.Sscan(string(data), &most, &per); err != nil || per <= 0 {
			return fmt.Errorf("cpu.max is %q", strings.TrimSpace(string(data)))
		}
		if !quotaHolds(most, per, l.CPUs) {
			return fmt.Errorf("cpu.max is %q, %v of a core", strings.TrimSpace(string(data)), most/per)
		}
	}
	if l.Memory > 0 {
		got, err := readInt(dir, "memory.max")
		if err != nil || got > l.Memory || got < l.Memory-int64(os.Getpagesize()) {
			return fmt.Errorf("memory.max is %d, want %d: %v", got, l.Memory, err)
		}
	}
	return nil
}

func (g *v2) usage() (Usage, error) { return usageV2(g.dir, g.limits) }

func usageV2(dir string, l Limits) (u Usage, err error) {
	stat, err := readKeyed(dir, "cpu.stat")
	if err != nil {
		return u, err
	}
	u.Throttled = time.Duration(stat["throttled_usec"]) * time.Microsecond
	u.Periods, u.ThrottledPeriods = stat["nr_periods"], stat["nr_throttled"]
	if l.Memory > 0 {
		events, err := readKeyed(dir, "memory.events")
		if err != nil {
			return u, err
		}
		u.OOMKills = events["oom_kill"]
		u.MemoryPeak, _ = readInt(dir, "memory.peak") // Linux 5.19
	}
	return u, nil
}

func (g *v2) close() error {
	if g.dir == "" {
		return nil
	}
	return remove(g.dir)
}
