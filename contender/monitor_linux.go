package contender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"toll/contender/owner"
)

// A monitor is the process that podman leaves beside each container: conmon. When podman's client is killed while it starts one,
// podman may know nothing of the container any more, and monitor, process and control groups are there all the same.
type monitor struct {
	runtime string // runc or crun
	id      string // the container's for it
	name    string
}

// parseMonitor reads a command line of conmon (conmon(8)); ok is false for any other.
func parseMonitor(cmdline []byte) (m monitor, ok bool) {
	args := bytes.Split(cmdline, []byte{0})
	if filepath.Base(string(args[0])) != "conmon" {
		return m, false
	}
	for i := 1; i+1 < len(args); i++ {
		value := string(args[i+1])
		switch string(args[i]) {
		case "--exit-command", "--exit-command-arg":
			i++ // what follows is another program's
		case "-c", "--cid":
			m.id = value
		case "-n", "--name":
			m.name = value
		case "-r", "--runtime":
			m.runtime = filepath.Base(value)
		}
	}
	return m, isHex(m.id) && slices.Contains([]string{"runc", "crun"}, m.runtime)
}

func isHex(id string) bool {
	for _, c := range id {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(id) == 64
}

// monitors finds those that are ours and of which want says yes to the container's name.
func monitors(want func(name string) bool) []monitor {
	all, err := processes()
	if err != nil {
		return nil
	}
	var out []monitor
	for pid, s := range all {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || s.dead() || !isOurs(pid) {
			continue
		}
		if m, ok := parseMonitor(cmdline); ok && want(m.name) {
			out = append(out, m)
		}
	}
	return out
}

// removeMonitored removes a container of which podman knows nothing any more. Its runtime may not have made it yet, so that there is
// something to remove until the monitor is gone.
func removeMonitored(ctx context.Context, name string) (found bool, err error) {
	for until := time.Now().Add(killGrace); ; time.Sleep(monitorPause) {
		left := monitors(func(n string) bool { return n == name })
		if len(left) == 0 {
			return found, nil
		}
		if found = true; time.Now().After(until) {
			return found, errors.Join(fmt.Errorf("container %s is left behind: its monitor, conmon, does not end", name), err)
		}
		err = left[0].remove(ctx)
	}
}

const monitorPause = 50 * time.Millisecond

// cleanMonitors removes the containers of runs that are gone of which podman knows nothing.
func cleanMonitors(ctx context.Context) []owner.Found {
	gone := func(name string) bool { id, ok := containerOwner(name); return ok && id.Gone() }
	var out []owner.Found
	for _, m := range monitors(gone) {
		if found, err := removeMonitored(ctx, m.name); found {
			out = append(out, owner.Found{What: "container", Name: m.name, Err: err})
		}
	}
	return out
}

// isOurs reports whether we started the process, or somebody who is nobody else.
func isOurs(pid int) bool {
	info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}

// remove has the runtime kill the container and remove its groups; the monitor then ends by itself. The runtime is the one in PATH,
// whatever another process' command line says.
func (m monitor) remove(ctx context.Context) error {
	path, err := exec.LookPath(m.runtime)
	if err != nil {
		return err
	}
	c := container{runtime: path}
	_, err = c.do(context.WithoutCancel(ctx), runtimeActs, "delete", "--force", m.id)
	return err
}
