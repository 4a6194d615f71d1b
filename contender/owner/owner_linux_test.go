package owner_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"toll/contender/owner"
)

// ended is the ID of a process that has ended and been waited for. Its own stat told it while it lived.
func ended(t *testing.T) owner.ID {
	t.Helper()
	text, err := exec.Command("sh", "-c", "readlink /proc/$$/ns/pid; cat /proc/$$/stat").Output()
	if err != nil {
		t.Fatal(err)
	}
	ns, stat, _ := strings.Cut(string(text), "\n")
	f := strings.Fields(stat)
	id, ok := owner.Parse(strings.Trim(ns, "pid:[]") + "-" + f[0] + "-" + f[21])
	if !ok {
		t.Fatalf("%q", text)
	}
	return id
}

func TestWhoIsGone(t *testing.T) {
	t.Parallel()
	self := owner.Self()
	if _, ok := owner.Parse(string(self)); !ok || self.Gone() {
		t.Errorf("this process, %q, is gone", self)
	}
	parts := strings.Split(string(self), "-")
	start, _ := strconv.Atoi(parts[2])
	for id, want := range map[owner.ID]bool{
		ended(t): true,
		owner.ID(parts[0] + "-" + parts[1] + "-" + strconv.Itoa(start-1)): true,  // its pid is another's now
		owner.ID("1-" + parts[1] + "-" + parts[2]):                        false, // of another namespace: who knows
		owner.ID(parts[0] + "-0-" + parts[2]):                             false,
	} {
		if got := id.Gone(); got != want {
			t.Errorf("%s gone: %v; want %v", id, got, want)
		}
	}
}
