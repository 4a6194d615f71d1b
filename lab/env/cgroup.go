package env

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"toll/lab/result"
)

// initialNamespace is how the kernel calls the cgroup namespace that no container is in.
const initialNamespace = "cgroup:[4026531835]"

func (r *reader) cgroup() {
	h, err := readHierarchies(r.root)
	r.env.Cgroup.Version = h.version()
	if err != nil {
		r.miss("cgroup.cpus", err.Error())
		r.miss("cgroup.memory_mb", err.Error())
		return
	}
	r.env.Cgroup.CPUs = r.limit("cgroup.cpus", h, "cpu", readCPULimit)
	if bytes := r.limit("cgroup.memory_mb", h, "memory", readMemoryLimit); bytes != nil {
		r.env.Cgroup.MemoryMB = new(result.Round3(*bytes / (1 << 20)))
	}
}

// limit walks from the group of this process up to the top of what is mounted and returns the smallest limit met: a group
// is held by the limits of all groups above it.
func (r *reader) limit(field string, h hierarchies, controller string, read func(root fs.FS, dir string, v2 bool) (float64, error)) *float64 {
	m, ok := h.of(controller)
	if !ok {
		r.miss(field, "no "+controller+" controller is mounted")
		return nil
	}
	dirs, whole := m.dirs()
	if link, err := fs.ReadLink(r.root, "proc/self/ns/cgroup"); err == nil && link != initialNamespace {
		whole = false
	}
	if !whole {
		r.miss(field, "limits of groups outside our cgroup namespace or mount can't be seen")
	}
	least, met, understood := math.Inf(1), false, true
	for _, dir := range dirs {
		if _, err := fs.Stat(r.root, dir); err != nil {
			continue
		}
		met = true
		switch v, err := read(r.root, dir, m.v2); {
		case err == nil:
			least = min(least, v)
		case !errors.Is(err, fs.ErrNotExist): // then the controller is off here, or this is the root group
			understood = false
		}
	}
	if !understood {
		r.miss(field, "a group's limit can't be read or is not understood")
	}
	switch {
	case !met:
		r.miss(field, "the group of this process is not in the mounted tree")
	case !math.IsInf(least, 1):
		return new(result.Round3(least))
	case whole && understood:
		r.miss(field, "no limit is set")
	}
	return nil
}

// readCPULimit returns a group's CPU quota in CPUs, +Inf when it has none.
func readCPULimit(root fs.FS, dir string, v2 bool) (float64, error) {
	if v2 {
		text, err := readText(root, path.Join(dir, "cpu.max"))
		if err != nil {
			return 0, err
		}
		quota, period, _ := strings.Cut(text, " ")
		return parseQuota(quota, period)
	}
	quota, err := readText(root, path.Join(dir, "cpu.cfs_quota_us"))
	if err != nil {
		return 0, err
	}
	period, err := readText(root, path.Join(dir, "cpu.cfs_period_us"))
	if err != nil {
		return 0, err
	}
	return parseQuota(quota, period)
}

// parseQuota divides a quota by its period, both in µs. No quota is "max" in v2 and -1 in v1.
func parseQuota(quota, period string) (float64, error) {
	if quota == "max" || quota == "-1" {
		return math.Inf(1), nil
	}
	q, err := strconv.ParseUint(quota, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("quota %q: %w", quota, errMalformed)
	}
	p, err := strconv.ParseUint(period, 10, 63)
	if err != nil || p == 0 {
		return 0, fmt.Errorf("period %q: %w", period, errMalformed)
	}
	return float64(q) / float64(p), nil
}

// noMemoryLimit is where v1's way to write "none" begins: the largest int64, rounded down to a page of the machine.
const noMemoryLimit = math.MaxInt64 &^ (1<<20 - 1)

// readMemoryLimit returns a group's memory limit in bytes, +Inf when it has none.
func readMemoryLimit(root fs.FS, dir string, v2 bool) (float64, error) {
	name := "memory.limit_in_bytes"
	if v2 {
		name = "memory.max"
	}
	text, err := readText(root, path.Join(dir, name))
	if err != nil {
		return 0, err
	}
	if text == "max" {
		return math.Inf(1), nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("memory limit %q: %w", text, errMalformed)
	}
	if n >= noMemoryLimit {
		return math.Inf(1), nil
	}
	return float64(n), nil
}

// hierarchies are the mounted trees of groups, each with the group of this process in it.
type hierarchies []hierarchy

type hierarchy struct {
	v2          bool
	controllers []string // v1 only: v2's are one tree
	root, point string   // which group is mounted, and where
	group       string   // of this process
}

// readHierarchies joins what is mounted with where this process is. Its errors are reasons for a reader.
func readHierarchies(root fs.FS) (hierarchies, error) {
	const mountsFile, groupsFile = "proc/self/mountinfo", "proc/self/cgroup"
	mounts, err := readText(root, mountsFile)
	if err != nil {
		return nil, errors.New(why(mountsFile, err))
	}
	all := parseMounts(mounts)
	if len(all) == 0 {
		return nil, errors.New("no cgroup file system is mounted")
	}
	groups, err := readText(root, groupsFile)
	if err != nil {
		return all, errors.New(why(groupsFile, err))
	}
	all.place(groups)
	return all, nil
}

// parseMounts takes the cgroup lines of a mountinfo file: ID, parent, device, root, mount point, options, any number of
// tags, "-", type, source, super options. Lines that are not so are left out.
func parseMounts(text string) hierarchies {
	var out hierarchies
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(head) < 6 || len(tail) < 1 {
			continue
		}
		h := hierarchy{root: unescape(head[3]), point: unescape(head[4])}
		switch {
		case tail[0] == "cgroup2":
			h.v2 = true
		case tail[0] == "cgroup" && len(tail) > 2:
			h.controllers = strings.Split(tail[2], ",")
		default:
			continue
		}
		out = append(out, h)
	}
	return out
}

// unescape undoes mountinfo's octal escapes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// place reads /proc/self/cgroup, lines of "ID:controllers:group"; v2's line has no controllers.
func (h hierarchies) place(text string) {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			continue
		}
		for i := range h {
			v1 := slices.ContainsFunc(strings.Split(f[1], ","), func(c string) bool { return c != "" && slices.Contains(h[i].controllers, c) })
			if v1 || h[i].v2 && f[1] == "" {
				h[i].group = f[2]
			}
		}
	}
}

func (h hierarchies) version() string {
	v1 := slices.ContainsFunc(h, func(x hierarchy) bool { return !x.v2 })
	v2 := slices.ContainsFunc(h, func(x hierarchy) bool { return x.v2 })
	switch {
	case v1 && v2:
		return "hybrid"
	case v1:
		return "v1"
	case v2:
		return "v2"
	}
	return "none"
}

// of returns the tree that a controller is in: its v1 tree when it has one, for a controller is in one tree only.
func (h hierarchies) of(controller string) (hierarchy, bool) {
	at := slices.IndexFunc(h, func(x hierarchy) bool { return slices.Contains(x.controllers, controller) })
	if at < 0 {
		at = slices.IndexFunc(h, func(x hierarchy) bool { return x.v2 })
	}
	if at < 0 {
		return hierarchy{}, false
	}
	return h[at], true
}

// dirs returns the folders of our group and of those above it, innermost first, and whether we know that the mount shows
// our group. A container often has its own group mounted as the top, and then the path tells more than can be seen.
func (h hierarchy) dirs() (dirs []string, known bool) {
	group := path.Clean("/" + h.group)
	inside, under := strings.CutPrefix(group+"/", strings.TrimSuffix(h.root, "/")+"/")
	// A group outside our cgroup namespace is written with "..".
	known = under && h.group != "" && !strings.Contains(h.group, "/..")
	if !known {
		inside = ""
	}
	top := path.Join(".", path.Clean("/" + h.point)[1:])
	for at := path.Join(top, inside); ; at = path.Dir(at) {
		dirs = append(dirs, at)
		if at == top || at == "." {
			return dirs, known
		}
	}
}
