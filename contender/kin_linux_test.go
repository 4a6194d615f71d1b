package contender

import (
	"bufio"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// Both searches for a tree's members must find the same: the short way down, and the one that reads every process.
func TestSearchesAgree(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 60 & sh -c 'sleep 60 & echo; wait' & wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	pids := func(tree []procStat) (out []int) {
		for _, s := range tree {
			out = append(out, s.pid)
		}
		return out
	}
	var down, whole kin
	down.root(cmd.Process.Pid, "MARK=1")
	whole.root(cmd.Process.Pid, "MARK=1")
	tree, err := down.walk()
	if err != nil {
		t.Fatal(err)
	}
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, deep := range []bool{false, true} {
		if got, want := pids(tree), pids(whole.find(all, deep)); len(got) != 4 || !slices.Equal(got, want) {
			t.Errorf("the way down finds %v, the search through all (deep: %v) %v; want the same four", got, deep, want)
		}
	}
}
