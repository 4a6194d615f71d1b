package contender

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kin is a contender's process tree: the process that we started or found in the container, everything below it, and what
// was once seen below it and has another parent now.
type kin struct {
	mu    sync.Mutex
	group int            // guarded by mu; the process group of the child that we started
	mark  string         // guarded by mu
	since uint64         // guarded by mu; when the first root started: nothing older belongs to the tree
	known map[int]uint64 // guarded by mu; start times, in ticks after boot, tell a process from a later one with its pid
	most  Usage          // guarded by mu; figures that only grow, as they were reported
}

// root makes pid, which has just been started, the root of the tree.
func (k *kin) root(pid int, mark string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.group, k.mark = pid, mark
	k.plant(pid)
}

// move makes pid the root of the tree instead; who is in the group of the old root belongs to it no more.
func (k *kin) move(pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.group = none
	k.plant(pid)
}

// none is no process group.
const none = -1

func (k *kin) plant(pid int) {
	k.known = make(map[int]uint64)
	if s, err := readStat(pid); err == nil {
		k.known[pid] = s.start
		if k.group == pid {
			k.since = s.start
		}
	}
}

// census looks for all that belongs to the tree now.
func (k *kin) census() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if all, err := processes(); err == nil {
		k.find(all, true)
	}
}

// find returns who belongs to the tree. A deep search also knows kin by process group and mark: a process that daemonised
// has left its parent and its session, but not its environment.
func (k *kin) find(all map[int]procStat, deep bool) []procStat {
	found := make(map[int]uint64)
	for pid, s := range all {
		start, known := k.known[pid]
		if known && start == s.start || deep && s.start >= k.since && (s.group == k.group || k.marked(pid)) {
			found[pid] = s.start
		}
	}
	for grown := true; grown; {
		grown = false
		for pid, s := range all {
			_, below := found[s.parent]
			if _, already := found[pid]; below && !already {
				found[pid] = s.start
				grown = true
			}
		}
	}
	k.known = found
	var out []procStat
	for pid := range found {
		out = append(out, all[pid])
	}
	slices.SortFunc(out, func(a, b procStat) int { return a.pid - b.pid })
	return out
}

// living returns who is known and whatever is below them.
func (k *kin) living() ([]procStat, error) {
	tree, err := k.walk()
	if !errors.Is(err, ErrUnsupported) {
		return tree, err
	}
	all, err := processes()
	if err != nil {
		return nil, err
	}
	return k.find(all, false), nil
}

// walk is a search that is not deep, from those who are known downwards. It costs a few reads for each relative, where find
// costs one for each process of the machine. ErrUnsupported: this kernel keeps no lists of children.
func (k *kin) walk() ([]procStat, error) {
	var tree []procStat
	found := make(map[int]uint64)
	add := func(s procStat) {
		if _, already := found[s.pid]; !already {
			found[s.pid] = s.start
			tree = append(tree, s)
		}
	}
	for pid, start := range k.known {
		if s, err := readStat(pid); err == nil && s.start == start {
			add(s)
		}
	}
	for i := 0; i < len(tree); i++ {
		below, err := children(tree[i].pid)
		if err != nil {
			return nil, err
		}
		for _, pid := range below {
			if s, err := readStat(pid); err == nil && s.parent == tree[i].pid {
				add(s)
			}
		}
	}
	k.known = found
	slices.SortFunc(tree, func(a, b procStat) int { return a.pid - b.pid })
	return tree, nil
}

// children returns the processes that pid's threads started; none when it is gone. Kernels can be made without that list
// (CONFIG_PROC_CHILDREN): ErrUnsupported.
func children(pid int) ([]int, error) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, nil
	}
	var out []int
	for _, t := range threads {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name()))
		if err != nil {
			if _, alive := os.Stat(fmt.Sprintf("/proc/%d/task/%s/stat", pid, t.Name())); alive == nil {
				return nil, fmt.Errorf("%w: /proc/%d/task/%s/children", ErrUnsupported, pid, t.Name())
			}
			continue
		}
		for f := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out, nil
}

func (k *kin) marked(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+k.mark+"\x00"))
}

// pids returns who belongs to the tree now.
func (k *kin) pids() ([]int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, err := processes()
	if err != nil {
		return nil, err
	}
	var out []int
	for _, s := range k.find(all, true) {
		if !s.dead() {
			out = append(out, s.pid)
		}
	}
	return out, nil
}

func (k *kin) usage() (Usage, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	tree, err := k.living()
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	for _, s := range tree {
		// All of stat was read before any clock: a child that is reaped in between is missed once, never counted twice.
		cpu, ok := s.cpu()
		if !ok {
			continue
		}
		u.CPU += cpu + s.waitedUser + s.waitedSystem
		u.User += s.user + s.waitedUser
		u.System += s.system + s.waitedSystem
		u.RSSPeak += rssPeak(s.pid)
		u.Threads += s.threads
		u.PIDs = append(u.PIDs, s.pid)
	}
	if len(u.PIDs) == 0 {
		return Usage{}, os.ErrProcessDone
	}
	u.CPU = max(u.CPU, k.most.CPU)
	u.User = max(u.User, k.most.User)
	u.System = max(u.System, k.most.System)
	u.RSSPeak = max(u.RSSPeak, k.most.RSSPeak)
	k.most = u
	return u, nil
}

// outlived waits up to grace for the tree to be gone and returns who is still there.
func (k *kin) outlived(grace time.Duration) []Leaked {
	var out []Leaked
	for _, s := range k.await(grace, func(procStat) {}) {
		out = append(out, Leaked{s.pid, s.command()})
	}
	return out
}

// killAll kills the tree and reports whether it is gone.
func (k *kin) killAll(within time.Duration) bool {
	return len(k.await(within, func(s procStat) { syscall.Kill(s.pid, syscall.SIGKILL) })) == 0
}

// await calls each for all who live until nobody does, or the time is over; it returns who is left.
func (k *kin) await(within time.Duration, each func(procStat)) []procStat {
	k.mu.Lock()
	defer k.mu.Unlock()
	const pause = 10 * time.Millisecond
	for until := time.Now().Add(within); ; time.Sleep(pause) {
		all, err := processes()
		if err != nil {
			return nil
		}
		left := slices.DeleteFunc(k.find(all, true), procStat.dead)
		for _, s := range left {
			each(s)
		}
		if len(left) == 0 || time.Now().After(until) {
			return left
		}
	}
}

// A procStat is what /proc/PID/stat says.
type procStat struct {
	pid, parent, group, threads int
	name                        string
	state                       byte
	user, system                time.Duration
	waitedUser, waitedSystem    time.Duration // of children that have ended and were waited for
	start                       uint64
}

// dead reports whether a process has ended and its parent has not taken notice yet.
func (s procStat) dead() bool { return s.state == 'Z' || s.state == 'X' }

// processes reads every process of the machine.
func processes() (map[int]procStat, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make(map[int]procStat)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil {
			all[pid] = s
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: /proc shows no process", ErrUnsupported)
	}
	return all, nil
}

// tick is the unit of the times in /proc/PID/stat: USER_HZ is 100 wherever Go runs on Linux.
const tick = 10 * time.Millisecond

// readShort reads a file of less than buf in one go. A search reads one for each process of the machine, and os.ReadFile makes
// twice the system calls.
func readShort(path string, buf []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

func readStat(pid int) (procStat, error) {
	b, err := readShort(fmt.Sprintf("/proc/%d/stat", pid), make([]byte, 1024))
	if err != nil {
		return procStat{}, err
	}
	// The name stands in parentheses and may hold any character, also a closing one.
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[end+1:]))
	if open < 0 || end < open || len(f) < 20 {
		return procStat{}, fmt.Errorf("/proc/%d/stat: %w", pid, errors.ErrUnsupported)
	}
	field := func(n int) int64 { // numbered as in proc(5)
		v, _ := strconv.ParseInt(f[n-3], 10, 64)
		return v
	}
	return procStat{
		pid: pid, name: string(b[open+1 : end]), state: f[0][0],
		parent: int(field(4)), group: int(field(5)), threads: int(field(20)),
		user: time.Duration(field(14)) * tick, system: time.Duration(field(15)) * tick,
		waitedUser: time.Duration(field(16)) * tick, waitedSystem: time.Duration(field(17)) * tick,
		start: uint64(field(22)),
	}, nil
}

// cpu reads the process' CPU clock, threads that have ended included. It is false when the process is gone.
func (s procStat) cpu() (time.Duration, bool) {
	const cpuclockSched = 2 // linux/posix-timers.h: the clock of a whole process, in nanoseconds
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^s.pid<<3|cpuclockSched), &ts); err == nil {
		return time.Duration(ts.Nano()), true
	}
	if now, err := readStat(s.pid); err != nil || now.start != s.start {
		return 0, false
	}
	return s.user + s.system, true // a kernel without such clocks
}

// rssPeak reads the largest resident set that the process ever had; 0 for one that has ended.
func rssPeak(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// command returns the command line, or the name of a process that hides it.
func (s procStat) command() string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.pid))
	text := strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
	if err != nil || text == "" {
		return "(" + s.name + ")"
	}
	return text
}
