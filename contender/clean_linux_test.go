package contender

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"toll/contender/owner"
)

// sleeping starts a process whose environment says whose contender it is.
func sleeping(t *testing.T, whose string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Env = []string{"PATH=/bin", "XTOLL_CONTENDER=no", markName + "=" + whose}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

func TestOnlyContendersOfRunsThatAreGoneAreKilled(t *testing.T) {
	t.Parallel()
	self := string(owner.Self())
	at := strings.LastIndexByte(self, '-')
	gone := self[:at] + "-1" // our pid, as that of a process that began earlier
	_, rest, _ := strings.Cut(gone, "-")
	orphan := sleeping(t, gone+"-ABC")
	others := map[string]*exec.Cmd{
		"a living run's":         sleeping(t, self+"-ABC"),
		"another namespace's":    sleeping(t, "1-"+rest+"-ABC"),
		"one with an older mark": sleeping(t, "ABCDEFGH"),
	}
	client := exec.Command("sh", "-c", "read x; read y", "client", "run", "--env", markName+"="+gone+"-ABC", "image")
	stays, err := client.StdinPipe()
	if err != nil || client.Start() != nil {
		t.Fatal(err)
	}
	defer stays.Close()
	killed := cleanProcesses()
	if err := client.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the client of an orphan's container: %v", err)
	}
	if !slices.ContainsFunc(killed, func(f owner.Found) bool {
		return f.What == "process" && strings.HasSuffix(f.Name, ", sleep 600") && f.Err == nil
	}) {
		t.Errorf("killed: %v", killed)
	}
	if s, err := readStat(orphan.Process.Pid); err == nil && !s.dead() {
		t.Error("the orphan lives")
	}
	for name, cmd := range others {
		if s, err := readStat(cmd.Process.Pid); err != nil || s.dead() {
			t.Errorf("%s contender was killed", name)
		}
	}
}

func TestARunningContenderIsMarkedAsOurs(t *testing.T) {
	t.Parallel()
	p, err := Start(t.Context(), Spec{Name: "quiet", Command: []string{"sh", "-c", `echo '{"ready":"stdio:"}'; read x`}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(context.Background())
	if id, ok := markedOwner(p.cmd.Process.Pid); !ok || id != owner.Self() || id.Gone() {
		t.Errorf("whose: %q, %v; want %q", id, ok, owner.Self())
	}
}
