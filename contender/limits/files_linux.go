package limits

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A mount is where one control group hierarchy is seen.
type mount struct {
	point       string
	root        string   // of the hierarchy that is mounted
	controllers []string // of version 1
	v2          bool
}

// mounts reads the control group hierarchies from mountinfo (proc(5)).
func (m machine) mounts() ([]mount, error) {
	f, err := os.Open(filepath.Join(m.proc, "self/mountinfo"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []mount
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) < 3 {
			continue
		}
		switch kind[0] {
		case "cgroup":
			out = append(out, mount{point: fields[4], root: fields[3], controllers: strings.Split(kind[2], ",")})
		case "cgroup2":
			out = append(out, mount{point: fields[4], root: fields[3], v2: true})
		}
	}
	return out, lines.Err()
}

// paths reads in which group of each hierarchy a process is: by controller, "" for version 2 (cgroups(7)).
func (m machine) paths(pid string) (map[string]string, error) {
	data, err := os.ReadFile(filepath.Join(m.proc, pid, "cgroup"))
	if err != nil {
		return nil, err
	}
	out := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			out[controller] = fields[2]
		}
	}
	return out, nil
}

// dir is where a group of the hierarchy is seen; a group outside the mounted part is not.
func (mt mount) dir(group string) string {
	rel := strings.TrimPrefix(group, strings.TrimSuffix(mt.root, "/"))
	return filepath.Join(mt.point, rel)
}

func write(dir, file, value string) error {
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0); err != nil {
		pe, _ := errors.AsType[*fs.PathError](err)
		return fmt.Errorf("writing %s to %s: %w", value, file, pe.Err)
	}
	return nil
}

func readInt(dir, file string) (int64, error) {
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, err
	}
	text := strings.TrimSpace(string(data))
	if text == "max" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s holds %q; expected a number", file, text)
	}
	return n, nil
}

// readKeyed reads a file of lines "key value".
func readKeyed(dir, file string) (map[string]int64, error) {
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return nil, err
	}
	out := make(map[string]int64)
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s holds %q; expected a name and a number", file, strings.TrimSpace(line))
		}
		out[key] = n
	}
	return out, nil
}

// period is over which a quota counts, as container runtimes have it.
const period = 100 * time.Millisecond

func quota(cpus float64) int64 { return int64(cpus * float64(period.Microseconds())) }

// quotaHolds reports whether a quota in a period is what was asked for; whose it is may round.
func quotaHolds(most, per, cpus float64) bool {
	got := most / per
	return per > 0 && got <= cpus*1.001 && got >= cpus*.999
}

// killGrace is how long the processes of a group may take to end once they were killed.
const killGrace = 5 * time.Second

// remove kills what is in the group and removes it. The kernel keeps a group for a moment after its last process ended.
func remove(dir string) error {
	for deadline := time.Now().Add(killGrace); ; time.Sleep(5 * time.Millisecond) {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue
		}
		for pid := range strings.FieldsSeq(string(data)) {
			if n, err := strconv.Atoi(pid); err == nil && n > 0 && n != os.Getpid() {
				syscall.Kill(n, syscall.SIGKILL)
			}
		}
	}
}
