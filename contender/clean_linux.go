package contender

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"toll/contender/owner"
)

// cleanProcesses kills the processes whose environment says that they are a contender of a run that is gone.
func cleanProcesses() []owner.Found {
	var out []owner.Found
	var left []procStat
	for _, s := range orphans() {
		out = append(out, owner.Found{What: "process", Name: fmt.Sprintf("%d, %s", s.pid, s.command())})
		left = append(left, s)
	}
	for until := time.Now().Add(killGrace); len(left) > 0 && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		for _, s := range left {
			syscall.Kill(s.pid, syscall.SIGKILL)
		}
		left = slices.DeleteFunc(left, func(s procStat) bool {
			now, err := readStat(s.pid)
			return err != nil || now.start != s.start || now.dead()
		})
	}
	for _, s := range left {
		for i := range out {
			if strings.HasPrefix(out[i].Name, fmt.Sprintf("%d, ", s.pid)) {
				out[i].Err = fmt.Errorf("it does not end, not even by SIGKILL")
			}
		}
	}
	return out
}

// orphans are the contenders of runs that are gone. We ourselves and who we were started by are never among them.
func orphans() []procStat {
	all, err := processes()
	if err != nil {
		return nil
	}
	above := make(map[int]bool)
	for pid := os.Getpid(); pid > 0 && !above[pid]; pid = all[pid].parent {
		above[pid] = true
	}
	var out []procStat
	for pid, s := range all {
		if above[pid] || s.dead() || s.pid == 1 {
			continue
		}
		if id, ok := markedOwner(pid); ok && id.Gone() {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b procStat) int { return a.pid - b.pid })
	return out
}

// markedOwner reads whose contender a process is from its environment, or from its arguments: a container's client is told there
// what the container's environment is to be.
func markedOwner(pid int) (owner.ID, bool) {
	for _, file := range []string{"environ", "cmdline"} {
		entries, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			return "", false
		}
		for entry := range bytes.SplitSeq(entries, []byte{0}) {
			value, ours := strings.CutPrefix(string(entry), markName+"=")
			at := strings.LastIndexByte(value, '-')
			if !ours || at < 0 {
				continue
			}
			if id, ok := owner.Parse(value[:at]); ok {
				return id, true
			}
		}
	}
	return "", false
}
